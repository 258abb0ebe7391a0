// PQ-tree (Booth and Lueker 1976): all orders of some leaves in which each of
// several sets of leaves is consecutive. For pack_tiling.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_PQ_TREE_H_
#define LOADLINE_PLANNER_PACK_PQ_TREE_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline::planner {

class PqTree {
 public:
  // What Replace took out, in an order that was possible until then. The order
  // is to be read backwards if `neighbor` (a leaf that stays, -1: none) turns
  // out to lie on the other side.
  struct Replaced {
    std::vector<int> order;
    int neighbor = -1;
    bool neighbor_is_before = false;
  };

  // Leaves are small numbers, each at most once in a tree.
  explicit PqTree(const std::vector<int>& leaves);

  // Whether these leaves, one or more of the tree, can be consecutive.
  bool CanReplace(const std::vector<int>& leaves);

  // The most of these leaves that can be consecutive once the others of them
  // are taken out.
  std::vector<int> MostConsecutive(const std::vector<int>& leaves);

  // Makes the leaves consecutive and puts others, in any order, into their
  // place. nullopt: not possible, nothing has changed. Time is that of the
  // subtree above the leaves, and a logarithm.
  std::optional<Replaced> Replace(const std::vector<int>& leaves,
                                  const std::vector<int>& by);

  // One of the orders.
  std::vector<int> Order() const;

  // Nodes visited so far.
  int64_t work() const { return work_; }

 private:
  // Children of a P-node may stand in any order; those of a Q-node in one order
  // or its reverse. Two children are both.
  enum class Kind : uint8_t { kUnused, kLeaf, kP, kQ };
  // Which of the marked leaves are below.
  enum class Fill : uint8_t { kPartial, kFull };

  struct Node {
    Kind kind = Kind::kUnused;
    Fill fill = Fill::kPartial;  // if marked
    int parent = -1;
    // Siblings, in no direction.
    int beside[2] = {-1, -1};
    int end[2] = {-1, -1};  // of the list of children
    int children = 0;
    int leaf = -1;
    // Of the last Mark that reached this node, and its children that it
    // reached, as a list.
    int64_t mark = 0;
    int first_marked = -1, next_marked = -1, marked_children = 0;
    // For MostConsecutive: the marked leaves below that can stand at one end.
    int at_end = 0;
  };

  // Consecutive children of one Q-node, or one node (first == last). -1: none
  // on that side.
  struct Range {
    int first = -1, last = -1;
    int before = -1, after = -1;
  };

  // Where a partial child was taken out of a list.
  struct Gap {
    int node = -1;  // the parent
    int child = -1;
    int empty_side = -1, full_side = -1;  // its neighbours; -1: none
    int group = -1;  // of a P-node, in place of these three: its full children
  };

  // Nodes (pq_tree.cc).
  int New(Kind kind);
  int MakeGroup(const std::vector<int>& leaves);
  void FreeTree(int node);
  void Free(int node);
  template <typename Visit>
  void ForChildren(int node, Visit visit) const;
  void AppendLeaves(int node, std::vector<int>& leaves) const;
  int AnyLeaf(int node);
  std::vector<int> NodesOf(const Range& range) const;
  void PutInPlace(const std::vector<int>& nodes, const std::vector<int>& by);

  // Lists of children (pq_tree_list.cc). Next is the other neighbour.
  int Next(int node, int previous) const {
    const Node& here = nodes_[node];
    return here.beside[0] == previous ? here.beside[1] : here.beside[0];
  }
  void ReplaceBeside(int node, int old_node, int new_node);
  void Push(int parent, int side, int child);
  void Unlink(int node);
  void Substitute(int node, int by);
  void Tidy(int node);
  void SetParents(int from, int previous, int to, int parent);

  // What is above a set of leaves (pq_tree_mark.cc).
  bool Marked(int node) const {
    return node >= 0 && nodes_[node].mark == mark_;
  }
  bool Full(int node) const {
    return Marked(node) && nodes_[node].fill == Fill::kFull;
  }
  void Mark(const std::vector<int>& leaves);
  bool MarkParent(int node);
  void ListMarked();
  bool CheckMarked();
  bool Check(int node, bool is_top);
  bool CheckChain(int node, bool is_top);
  int MarkedFrom(int node, int previous);
  void SplitMarked(int node, std::vector<int>& full,
                   std::vector<int>& partial) const;

  // For MostConsecutive (pq_tree_most.cc).
  std::vector<int> RowFrom(int node, int previous);
  int Leaves(const std::vector<int>& row) const;
  std::vector<int> RowAtEnd(int node);
  std::vector<int> LongestRow(int node);
  std::vector<int> LongestRowP(int node) const;
  std::vector<int> LongestRowQ(int node);
  std::vector<int> LeavesInRow(std::vector<int> row);

  // For Replace (pq_tree_gather.cc).
  int Group(const std::vector<int>& nodes);
  std::vector<Gap> TakeApart(int node);
  int Linearize(int node);
  int LinearizeP(const Gap& gap, int q);
  Gap TakeOut(int q, int child);
  int Splice(const Gap& gap, int inner);
  int Concatenate(int a, int b);
  Range Gather();
  Range GatherP(int node);
  Range GatherQ(int node);
  Range FullAround(int node) const;

  std::vector<Node> nodes_;
  std::vector<int> unused_;
  std::vector<int> node_of_leaf_;
  int root_ = -1;
  int64_t mark_ = 0;
  int top_ = -1;  // of the marked nodes: all marked leaves are below
  int64_t work_ = 0;
  std::vector<int> rising_, still_rising_, stack_, marked_;  // scratch
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PQ_TREE_H_
