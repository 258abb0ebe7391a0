// The lists of children. They are linked both ways and have no direction, so
// that turning one around is free.
#include "planner/pack/pq_tree.h"

namespace loadline::planner {

void PqTree::ReplaceBeside(int node, int old_node, int new_node) {
  if (node < 0) return;
  int* beside = nodes_[node].beside;
  beside[beside[0] == old_node ? 0 : 1] = new_node;
}

void PqTree::Push(int parent, int side, int child) {
  Node& above = nodes_[parent];
  const int neighbor = above.end[side];
  nodes_[child].parent = parent;
  nodes_[child].beside[0] = neighbor;
  nodes_[child].beside[1] = -1;
  ReplaceBeside(neighbor, -1, child);
  above.end[side] = child;
  if (neighbor < 0) above.end[1 - side] = child;
  ++above.children;
}

void PqTree::Unlink(int node) {
  Node& here = nodes_[node];
  const int a = here.beside[0], b = here.beside[1];
  ReplaceBeside(a, node, b);
  ReplaceBeside(b, node, a);
  for (int& end : nodes_[here.parent].end) {
    if (end == node) end = a >= 0 ? a : b;
  }
  --nodes_[here.parent].children;
  here.parent = here.beside[0] = here.beside[1] = -1;
}

// `by`, which has no place, takes the place of a node, which loses its own.
void PqTree::Substitute(int node, int by) {
  Node& here = nodes_[node];
  nodes_[by].parent = here.parent;
  for (int side : {0, 1}) {
    nodes_[by].beside[side] = here.beside[side];
    ReplaceBeside(here.beside[side], node, by);
  }
  if (here.parent < 0) {
    root_ = by;
  } else {
    for (int& end : nodes_[here.parent].end) {
      if (end == node) end = by;
    }
  }
  here.parent = here.beside[0] = here.beside[1] = -1;
}

// A node needs two children.
void PqTree::Tidy(int node) {
  if (nodes_[node].children == 1) {
    const int child = nodes_[node].end[0];
    Unlink(child);
    Substitute(node, child);
    Free(node);
  }
}

// Of siblings in a row; to -1: until there are no more.
void PqTree::SetParents(int from, int previous, int to, int parent) {
  for (int node = from; node >= 0; ++work_) {
    nodes_[node].parent = parent;
    if (node == to) return;
    const int next = Next(node, previous);
    previous = node;
    node = next;
  }
}

}  // namespace loadline::planner
