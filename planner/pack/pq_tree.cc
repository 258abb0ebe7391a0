// A set of leaves is made consecutive in three steps. *Mark* climbs from the
// leaves to the lowest node above all of them. *Check* looks at each marked
// node: of a node below the top, the full children must be able to stand at one
// end, followed by at most one partial child (both in pq_tree_mark.cc).
// *Gather* does so: a partial node becomes a list with the empty children at
// one end and the full ones at the other, which is spliced into the list of its
// parent (pq_tree_gather.cc). Every node knows its parent; when two lists
// become one, the shorter one's children change theirs. This file makes and
// frees nodes, and replaces leaves by others. Tested in pq_tree_test.cc.
#include "planner/pack/pq_tree.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

void PqTree::AppendLeaves(int node, std::vector<int>& leaves) const {
  std::vector<int> stack = {node};
  while (!stack.empty()) {
    const int top = stack.back();
    stack.pop_back();
    if (nodes_[top].kind == Kind::kLeaf) leaves.push_back(nodes_[top].leaf);
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

bool PqTree::CanReplace(const std::vector<int>& leaves) {
  Mark(leaves);
  return CheckMarked();
}

std::vector<int> PqTree::NodesOf(const Range& range) const {
  std::vector<int> nodes = {range.first};
  int previous = range.before;
  while (nodes.back() != range.last) {
    const int next = Next(nodes.back(), previous);
    previous = nodes.back();
    nodes.push_back(next);
  }
  return nodes;
}

// Frees these siblings. `by`, unless it is empty, takes their place.
void PqTree::PutInPlace(const std::vector<int>& nodes,
                        const std::vector<int>& by) {
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
  const std::vector<int> nodes = NodesOf(range);
  for (int node : nodes) AppendLeaves(node, replaced.order);
  work_ += static_cast<int64_t>(leaves.size());
  PutInPlace(nodes, by);
  return replaced;
}

std::vector<int> PqTree::Order() const {
  std::vector<int> order;
  if (root_ >= 0) AppendLeaves(root_, order);
  return order;
}

}  // namespace loadline::planner
