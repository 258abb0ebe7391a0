// A set of leaves is made consecutive in three steps. *Mark* climbs from the
// leaves to the lowest node above all of them. *Check* looks at each marked
// node: of a node below the top, the full children must be able to stand at one
// end, followed by at most one partial child. *Gather* does so: a partial node
// becomes a list with the empty children at one end and the full ones at the
// other, which is spliced into the list of its parent. Every node knows its
// parent; when two lists become one, the shorter one's children change theirs.
// Tested in pq_tree_test.cc.
#include "planner/pack/pq_tree.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/base/check.h"

namespace loadline::planner {

PqTree::PqTree(const std::vector<int>& leaves) {
  if (!leaves.empty()) root_ = MakeGroup(leaves);
}

int PqTree::New(Kind kind) {
  int node = static_cast<int>(nodes_.size());
  if (unused_.empty()) {
    nodes_.emplace_back();
  } else {
    node = unused_.back();
    unused_.pop_back();
    nodes_[node] = {};
  }
  nodes_[node].kind = kind;
  return node;
}

int PqTree::MakeGroup(const std::vector<int>& leaves) {
  const int group = leaves.size() == 1 ? -1 : New(Kind::kP);
  int node = -1;
  for (int leaf : leaves) {
    node = New(Kind::kLeaf);
    nodes_[node].leaf = leaf;
    if (leaf >= static_cast<int>(node_of_leaf_.size())) {
      node_of_leaf_.resize(leaf + 1, -1);
    }
    node_of_leaf_[leaf] = node;
    if (group >= 0) Push(group, 1, node);
  }
  return group >= 0 ? group : node;
}

void PqTree::Free(int node) {
  nodes_[node].kind = Kind::kUnused;
  unused_.push_back(node);
}

void PqTree::FreeTree(int node) {
  stack_.assign(1, node);
  while (!stack_.empty()) {
    const int top = stack_.back();
    stack_.pop_back();
    if (nodes_[top].kind == Kind::kLeaf) node_of_leaf_[nodes_[top].leaf] = -1;
    ForChildren(top, [&](int child) { stack_.push_back(child); });
    Free(top);
  }
}

// The other neighbour.
int PqTree::Next(int node, int previous) const {
  const Node& here = nodes_[node];
  return here.beside[0] == previous ? here.beside[1] : here.beside[0];
}

template <typename Visit>
void PqTree::ForChildren(int node, Visit visit) const {
  int previous = -1;
  for (int child = nodes_[node].end[0]; child >= 0;) {
    const int next = Next(child, previous);
    visit(child);
    previous = child;
    child = next;
  }
}

template <typename Visit>
void PqTree::ForLeaves(int node, Visit visit) const {
  std::vector<int> stack = {node};
  while (!stack.empty()) {
    const int top = stack.back();
    stack.pop_back();
    if (nodes_[top].kind == Kind::kLeaf) visit(nodes_[top].leaf);
    ForChildren(top, [&](int child) { stack.push_back(child); });
  }
}

int PqTree::AnyLeaf(int node) {
  while (nodes_[node].kind != Kind::kLeaf) {
    node = nodes_[node].end[0];
    ++work_;
  }
  return nodes_[node].leaf;
}

void PqTree::ReplaceBeside(int node, int old_node, int new_node) {
  if (node < 0) return;
  int* beside = nodes_[node].beside;
  beside[beside[0] == old_node ? 0 : 1] = new_node;
}

// Of the list of children; only one of the ends changes, unless there is only
// one child.
void PqTree::ReplaceEnd(int parent, int old_node, int new_node) {
  int* end = nodes_[parent].end;
  end[end[0] == old_node ? 0 : 1] = new_node;
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
        continue;
      }
      ++work_;
      Node& above = nodes_[parent];
      const bool reached = above.mark == mark_;
      if (!reached) {
        above.mark = mark_;
        above.first_marked = -1;
        above.marked_children = 0;
        still_rising_.push_back(parent);
      }
      nodes_[node].next_marked = above.first_marked;
      above.first_marked = node;
      ++above.marked_children;
      if (reached) --left;
    }
    rising_.swap(still_rising_);
  }
  top_ = rising_[0];
  while (nodes_[top_].kind != Kind::kLeaf &&
         nodes_[top_].marked_children == 1) {
    top_ = nodes_[top_].first_marked;
  }
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

// Each node's fill, and whether its children can be ordered as the file's
// comment says.
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

// The full children in a row from here on, and a partial one after them.
std::vector<int> PqTree::RowFrom(int node, int previous) {
  std::vector<int> row;
  while (Marked(node)) {
    row.push_back(node);
    ++work_;
    if (!Full(node)) break;
    const int next = Next(node, previous);
    previous = node;
    node = next;
  }
  return row;
}

int PqTree::Leaves(const std::vector<int>& row) const {
  int leaves = 0;
  for (int node : row) leaves += nodes_[node].at_end;
  return leaves;
}

// Children of which all, of a partial one at_end leaves, can stand at one end
// of this node: as many leaves as possible.
std::vector<int> PqTree::RowAtEnd(int node) {
  if (nodes_[node].kind == Kind::kQ) {
    std::vector<int> a = RowFrom(nodes_[node].end[0], -1);
    std::vector<int> b = RowFrom(nodes_[node].end[1], -1);
    return Leaves(a) >= Leaves(b) ? a : b;
  }
  std::vector<int> row, partial;
  SplitMarked(node, row, partial);
  int most = -1;
  for (int child : partial) {
    if (most < 0 || nodes_[child].at_end > nodes_[most].at_end) most = child;
  }
  if (most >= 0) row.push_back(most);
  return row;
}

// The same anywhere among the children of this node.
std::vector<int> PqTree::LongestRow(int node) {
  std::vector<int> row, partial;
  SplitMarked(node, row, partial);
  if (nodes_[node].kind == Kind::kP) {
    for (int i = 0; i < 2 && !partial.empty(); ++i) {
      const auto most = std::max_element(
          partial.begin(), partial.end(),
          [&](int a, int b) { return nodes_[a].at_end < nodes_[b].at_end; });
      row.push_back(*most);
      partial.erase(most);
    }
    return row;
  }
  std::vector<int> longest;
  int most = 0;
  for (int child = nodes_[node].first_marked; child >= 0;
       child = nodes_[child].next_marked) {
    for (int side : {0, 1}) {
      const int before = nodes_[child].beside[side];
      if (Full(child) && Full(before)) continue;
      // From a border on: a full child after none, or a partial one.
      std::vector<int> from = {child};
      const int next = nodes_[child].beside[1 - side];
      for (int other : RowFrom(next, child)) from.push_back(other);
      const int leaves = Leaves(from);
      if (leaves <= most) continue;
      most = leaves;
      longest = std::move(from);
    }
  }
  return longest;
}

std::vector<int> PqTree::MostConsecutive(const std::vector<int>& leaves) {
  Mark(leaves);
  ListMarked();
  std::vector<int> longest;
  int most = 0;
  for (size_t i = marked_.size(); i-- > 0;) {
    const int node = marked_[i];
    Check(node, true);
    Node& here = nodes_[node];
    if (here.kind == Kind::kLeaf) {
      here.at_end = 1;
      if (most == 0) longest = {node};
      most = std::max(most, 1);
      continue;
    }
    std::vector<int> row = LongestRow(node);
    const int count = Leaves(row);
    if (count > most) {
      most = count;
      longest = std::move(row);
    }
    here.at_end = Leaves(RowAtEnd(node));
  }
  std::vector<int> result;
  while (!longest.empty()) {
    const int node = longest.back();
    longest.pop_back();
    if (Full(node)) {
      ForLeaves(node, [&](int leaf) { result.push_back(leaf); });
    } else {
      for (int child : RowAtEnd(node)) longest.push_back(child);
    }
  }
  return result;
}

void PqTree::SplitMarked(int node, std::vector<int>& full,
                         std::vector<int>& partial) const {
  for (int child = nodes_[node].first_marked; child >= 0;
       child = nodes_[child].next_marked) {
    (Full(child) ? full : partial).push_back(child);
  }
}

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

// A partial node without a place becomes a Q-node whose end[0] is empty and
// whose end[1] is full. Down the chain of partial nodes each is taken out of
// its list, and on the way back up its children take its place.
int PqTree::Linearize(int node) {
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
      break;
    }
    if (is_q) {
      gap = TakeOut(node, partial[0]);
    } else {
      Unlink(partial[0]);
    }
    gaps.push_back(gap);
    node = partial[0];
  }
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

bool PqTree::CanReplace(const std::vector<int>& leaves) {
  Mark(leaves);
  return CheckMarked();
}

std::optional<PqTree::Replaced> PqTree::Replace(const std::vector<int>& leaves,
                                                const std::vector<int>& by) {
  if (!CanReplace(leaves)) return std::nullopt;
  const Range range = Gather();
  Replaced replaced;
  if (range.before >= 0 || range.after >= 0) {
    replaced.neighbor_is_before = range.before >= 0;
    replaced.neighbor = AnyLeaf(range.before >= 0 ? range.before : range.after);
  }
  std::vector<int> nodes;
  for (int node = range.first, previous = range.before;;) {
    nodes.push_back(node);
    ForLeaves(node, [&](int leaf) { replaced.order.push_back(leaf); });
    if (node == range.last) break;
    const int next = Next(node, previous);
    previous = node;
    node = next;
  }
  work_ += static_cast<int64_t>(leaves.size());
  const int parent = nodes_[nodes[0]].parent;
  for (size_t i = by.empty() ? 0 : 1; i < nodes.size(); ++i) {
    if (parent < 0) root_ = -1;
    if (parent >= 0) Unlink(nodes[i]);
    FreeTree(nodes[i]);
  }
  if (!by.empty()) {
    Substitute(nodes[0], MakeGroup(by));
    FreeTree(nodes[0]);
  }
  if (parent >= 0) Tidy(parent);
  return replaced;
}

std::vector<int> PqTree::Order() const {
  std::vector<int> order;
  if (root_ >= 0) ForLeaves(root_, [&](int leaf) { order.push_back(leaf); });
  return order;
}

}  // namespace loadline::planner
