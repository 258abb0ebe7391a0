// Reorders the children of marked nodes until all marked leaves are in a row:
// the templates of the reduction by Booth and Lueker. pq_tree.cc describes the
// steps.
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/pack/pq_tree.h"

namespace loadline::planner {

// Full nodes without a place, below one full node; -1: none.
int PqTree::Group(const std::vector<int>& nodes) {
  if (nodes.empty()) return -1;
  if (nodes.size() == 1) return nodes[0];
  const int group = New(Kind::kP);
  nodes_[group].mark = mark_;
  nodes_[group].fill = Fill::kFull;
  for (int node : nodes) Push(group, 1, node);
  return group;
}

// Takes each partial node of the chain from here down out of its list, and full
// children out of P-nodes. Parents before children.
std::vector<PqTree::Gap> PqTree::TakeApart(int node) {
  std::vector<Gap> gaps;
  for (;;) {
    Gap gap{.node = node};
    std::vector<int> full, partial;
    SplitMarked(node, full, partial);
    const bool is_q = nodes_[node].kind == Kind::kQ;
    if (is_q &&
        MarkedFrom(nodes_[node].end[1], -1) != nodes_[node].marked_children) {
      std::swap(nodes_[node].end[0], nodes_[node].end[1]);
    }
    if (!is_q) {
      for (int child : full) Unlink(child);
      gap.group = Group(full);
    }
    if (partial.empty()) {
      gaps.push_back(gap);
      return gaps;
    }
    if (is_q) {
      gap = TakeOut(node, partial[0]);
    } else {
      Unlink(partial[0]);
    }
    gaps.push_back(gap);
    node = partial[0];
  }
}

// A partial node without a place becomes a Q-node whose end[0] is empty and
// whose end[1] is full. The chain of partial nodes below it is taken apart, and
// from the bottom up each node's children take its place.
int PqTree::Linearize(int node) {
  const std::vector<Gap> gaps = TakeApart(node);
  int inner = -1;
  for (size_t i = gaps.size(); i-- > 0;) {
    const Gap& gap = gaps[i];
    if (nodes_[gap.node].kind == Kind::kQ) {
      inner = inner < 0 ? gap.node : Splice(gap, inner);
    } else {
      inner = LinearizeP(gap, inner < 0 ? New(Kind::kQ) : inner);
    }
  }
  return inner;
}

// What is left in the P-node comes to the empty end, its full children to the
// full end.
int PqTree::LinearizeP(const Gap& gap, int q) {
  const int node = gap.node;
  int empty = -1;
  if (nodes_[node].children == 1) {
    empty = nodes_[node].end[0];
    Unlink(empty);
  } else if (nodes_[node].children > 1) {
    empty = node;
  }
  if (empty != node) Free(node);
  if (empty >= 0) Push(q, 0, empty);
  if (gap.group >= 0) Push(q, 1, gap.group);
  return q;
}

// Takes the place of a partial child from it.
PqTree::Gap PqTree::TakeOut(int q, int child) {
  Gap gap{.node = q, .child = child};
  int* beside = nodes_[child].beside;
  const int side =
      Full(beside[0]) || (!Full(beside[1]) && beside[0] < 0) ? 0 : 1;
  gap.full_side = beside[side];
  gap.empty_side = beside[1 - side];
  nodes_[child].parent = beside[0] = beside[1] = -1;
  return gap;
}

// The children of `inner`, which Linearize has made of the child, come into the
// gap. Returns the Q-node: of the two, the one that had more children.
int PqTree::Splice(const Gap& gap, int inner) {
  const int q = gap.node, child = gap.child;
  const int empty = nodes_[inner].end[0], full = nodes_[inner].end[1];
  int end[2] = {nodes_[q].end[0], nodes_[q].end[1]};
  for (int& at : end) {
    if (at == child) at = gap.empty_side < 0 ? empty : full;
  }
  ReplaceBeside(gap.empty_side, child, empty);
  ReplaceBeside(empty, -1, gap.empty_side);
  ReplaceBeside(gap.full_side, child, full);
  ReplaceBeside(full, -1, gap.full_side);
  const int others = nodes_[q].children - 1;
  const int children = others + nodes_[inner].children;
  const int keep = nodes_[inner].children > others ? inner : q;
  if (keep == q) {
    SetParents(empty, gap.empty_side, full, q);
  } else {
    SetParents(gap.empty_side, empty, -1, inner);
    SetParents(gap.full_side, full, -1, inner);
    if (nodes_[q].parent >= 0 || root_ == q) Substitute(q, inner);
  }
  nodes_[keep].end[0] = end[0];
  nodes_[keep].end[1] = end[1];
  nodes_[keep].children = children;
  Free(keep == q ? inner : q);
  return keep;
}

// Two lists as Linearize makes them, full end to full end.
int PqTree::Concatenate(int a, int b) {
  if (nodes_[a].children < nodes_[b].children) std::swap(a, b);
  const int joint_a = nodes_[a].end[1], joint_b = nodes_[b].end[1];
  ReplaceBeside(joint_a, -1, joint_b);
  ReplaceBeside(joint_b, -1, joint_a);
  SetParents(joint_b, joint_a, -1, a);
  nodes_[a].end[1] = nodes_[b].end[0];
  nodes_[a].children += nodes_[b].children;
  Free(b);
  return a;
}

PqTree::Range PqTree::Gather() {
  if (Full(top_)) return {.first = top_, .last = top_};
  return nodes_[top_].kind == Kind::kP ? GatherP(top_) : GatherQ(top_);
}

PqTree::Range PqTree::GatherP(int node) {
  std::vector<int> full, partial;
  SplitMarked(node, full, partial);
  for (int child : full) Unlink(child);
  for (int child : partial) Unlink(child);
  int group = Group(full);
  if (partial.empty()) {
    Push(node, 1, group);
    return {.first = group, .last = group};
  }
  int q = Linearize(partial[0]);
  if (group >= 0) {
    Push(q, 1, group);
  } else {
    group = nodes_[q].end[1];
  }
  if (partial.size() > 1) q = Concatenate(q, Linearize(partial[1]));
  if (nodes_[node].children == 0) {
    Substitute(node, q);
    Free(node);
  } else {
    Push(node, 1, q);
  }
  return FullAround(group);
}

PqTree::Range PqTree::GatherQ(int node) {
  std::vector<int> full, partial;
  SplitMarked(node, full, partial);
  int q = node;
  if (full.empty()) {
    // Two partial children, side by side.
    const int other = partial[1];
    const int side = nodes_[other].beside[0] == partial[0] ? 0 : 1;
    Gap gap = TakeOut(q, partial[0]);
    if (gap.full_side != other) std::swap(gap.full_side, gap.empty_side);
    q = Splice(gap, Linearize(partial[0]));
    full.push_back(nodes_[other].beside[side]);
    partial = {other};
  }
  for (int child : partial) {
    const Gap gap = TakeOut(q, child);
    q = Splice(gap, Linearize(child));
  }
  return FullAround(full[0]);
}

// All full siblings in a row.
PqTree::Range PqTree::FullAround(int node) const {
  Range range;
  for (int side : {0, 1}) {
    int previous = node, next = nodes_[node].beside[side];
    while (Full(next)) {
      const int after = Next(next, previous);
      previous = next;
      next = after;
    }
    (side == 0 ? range.first : range.last) = previous;
    (side == 0 ? range.before : range.after) = next;
  }
  return range;
}

}  // namespace loadline::planner
