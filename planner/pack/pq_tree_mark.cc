// Finds the nodes above a set of leaves, and whether the leaves can be
// consecutive. Neither changes an order. pq_tree.cc describes the steps.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/base/check.h"
#include "planner/pack/pq_tree.h"

namespace loadline::planner {

// All paths climb at the same speed until one is left, so that none goes much
// higher than where they meet.
void PqTree::Mark(const std::vector<int>& leaves) {
  ++mark_;
  rising_.clear();
  for (int leaf : leaves) {
    const int node = node_of_leaf_[leaf];
    LOADLINE_CHECK(node >= 0);
    nodes_[node].mark = mark_;
    rising_.push_back(node);
  }
  while (rising_.size() > 1) {
    still_rising_.clear();
    size_t left = rising_.size();
    for (int node : rising_) {
      const int parent = left > 1 ? nodes_[node].parent : -1;
      if (parent < 0) {
        still_rising_.push_back(node);
      } else if (MarkParent(node)) {
        still_rising_.push_back(parent);
      } else {
        --left;
      }
    }
    rising_.swap(still_rising_);
  }
  top_ = rising_[0];
  while (nodes_[top_].kind != Kind::kLeaf &&
         nodes_[top_].marked_children == 1) {
    top_ = nodes_[top_].first_marked;
  }
}

// Adds the node to its parent's marked children. Returns whether the parent was
// unmarked until now.
bool PqTree::MarkParent(int node) {
  ++work_;
  Node& above = nodes_[nodes_[node].parent];
  const bool is_new = above.mark != mark_;
  if (is_new) {
    above.mark = mark_;
    above.first_marked = -1;
    above.marked_children = 0;
  }
  nodes_[node].next_marked = above.first_marked;
  above.first_marked = node;
  ++above.marked_children;
  return is_new;
}

// Parents before children.
void PqTree::ListMarked() {
  marked_.assign(1, top_);
  for (size_t i = 0; i < marked_.size(); ++i) {
    if (nodes_[marked_[i]].kind == Kind::kLeaf) continue;
    for (int child = nodes_[marked_[i]].first_marked; child >= 0;
         child = nodes_[child].next_marked) {
      marked_.push_back(child);
    }
  }
  work_ += static_cast<int64_t>(marked_.size());
}

// Each node's fill, and whether its children can be ordered as the comment of
// pq_tree.cc says.
bool PqTree::CheckMarked() {
  ListMarked();
  for (size_t i = marked_.size(); i-- > 0;) {
    if (!Check(marked_[i], i == 0)) return false;
  }
  return true;
}

bool PqTree::Check(int node, bool is_top) {
  Node& here = nodes_[node];
  here.fill = Fill::kFull;
  if (here.kind == Kind::kLeaf) return true;
  int partial = 0;
  for (int child = here.first_marked; child >= 0;
       child = nodes_[child].next_marked) {
    partial += nodes_[child].fill == Fill::kPartial;
  }
  if (partial == 0 && here.marked_children == here.children) return true;
  here.fill = Fill::kPartial;
  if (partial > (is_top ? 2 : 1)) return false;
  return here.kind == Kind::kP || CheckChain(node, is_top);
}

// Full children in a row from here on, and a partial one after them.
int PqTree::MarkedFrom(int node, int previous) {
  int count = 0;
  while (Marked(node)) {
    ++count;
    ++work_;
    if (!Full(node)) break;
    const int next = Next(node, previous);
    previous = node;
    node = next;
  }
  return count;
}

// The marked children of a Q-node are in a row, partial ones only at its ends,
// and, unless it is the top, full ones at an end of the list.
bool PqTree::CheckChain(int node, bool is_top) {
  const Node& here = nodes_[node];
  if (is_top) {
    int start = here.first_marked;
    while (!Full(start) && nodes_[start].next_marked >= 0) {
      start = nodes_[start].next_marked;
    }
    int count = 1;
    for (int next : nodes_[start].beside) {
      // Of two partial children without a full one, one is beside the other.
      count += Full(start) ? MarkedFrom(next, start) : Marked(next);
    }
    return count == here.marked_children;
  }
  for (int side : {0, 1}) {
    if (MarkedFrom(here.end[side], -1) == here.marked_children) return true;
  }
  return false;
}

void PqTree::SplitMarked(int node, std::vector<int>& full,
                         std::vector<int>& partial) const {
  for (int child = nodes_[node].first_marked; child >= 0;
       child = nodes_[child].next_marked) {
    (Full(child) ? full : partial).push_back(child);
  }
}

}  // namespace loadline::planner
