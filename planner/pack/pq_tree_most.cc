// The largest part of a set of leaves that can be consecutive. From the bottom
// up, each marked node learns how many marked leaves can stand at its end, and
// how many in a row anywhere below it.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/pack/pq_tree.h"

namespace loadline::planner {

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
  return nodes_[node].kind == Kind::kP ? LongestRowP(node) : LongestRowQ(node);
}

// All full children between the two best partial ones.
std::vector<int> PqTree::LongestRowP(int node) const {
  std::vector<int> row, partial;
  SplitMarked(node, row, partial);
  for (int i = 0; i < 2 && !partial.empty(); ++i) {
    const auto most = std::max_element(
        partial.begin(), partial.end(),
        [&](int a, int b) { return nodes_[a].at_end < nodes_[b].at_end; });
    row.push_back(*most);
    partial.erase(most);
  }
  return row;
}

std::vector<int> PqTree::LongestRowQ(int node) {
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

// The marked leaves below these nodes; of a partial one, those at its end.
std::vector<int> PqTree::LeavesInRow(std::vector<int> row) {
  std::vector<int> leaves;
  while (!row.empty()) {
    const int node = row.back();
    row.pop_back();
    if (Full(node)) {
      AppendLeaves(node, leaves);
    } else {
      for (int child : RowAtEnd(node)) row.push_back(child);
    }
  }
  return leaves;
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
  return LeavesInRow(std::move(longest));
}

}  // namespace loadline::planner
