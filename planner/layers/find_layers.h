// Repeated structure of a problem: equal stretches of the given order, such as
// the forward and the backward nodes of each layer, and which stretches belong
// to the same layer.
#ifndef LOADLINE_PLANNER_LAYERS_FIND_LAYERS_H_
#define LOADLINE_PLANNER_LAYERS_FIND_LAYERS_H_

#include <optional>
#include <vector>

#include "planner/problem/problem.h"
#include "planner/schedule/search_tuning.h"

namespace loadline::planner {

// The same part of every layer: equal stretches that follow each other in the
// given order.
struct Run {
  int start = 0;   // position of its first node in the given order
  int period = 0;  // nodes of a stretch
  int count = 0;   // stretches
  // Stretch u belongs to layer first_layer + direction * u; 0: not linked.
  int first_layer = 0;
  int direction = 0;
  int first_role = 0;  // of the first node of a stretch
  // A position in the stretch whose nodes depend on each other from stretch to
  // stretch, so that their order is the same in every schedule; -1: none.
  int anchor = -1;

  int LayerOf(int stretch) const { return first_layer + direction * stretch; }
  int StretchOf(int layer) const { return direction * (layer - first_layer); }
};

// Layers 0 .. count - 1. Corresponding nodes of two layers have the same role,
// and so have values; a role may be missing near the ends (-1 in the tables).
struct Layers {
  int count = 0;
  // Layers [alike_lower, alike_upper) are equal except for the shift: each
  // input of a node has the role of the same input one layer before.
  int alike_lower = 0, alike_upper = 0;
  std::vector<Run> runs;         // those of known layers, in the given order
  std::vector<int> node_layer;   // by node; -1: in no layer
  std::vector<int> node_role;    // by node; -1: in no layer
  std::vector<int> node_run;     // by node; -1: in no layer
  std::vector<int> value_layer;  // by value; -1: in no layer
  std::vector<int> value_role;   // by value; -1: in no layer
  std::vector<std::vector<int>> nodes;  // by role and layer
  std::vector<std::vector<int>> values;
};

// None if nothing repeats often enough. Nodes are compared by hashes of
// themselves and their neighbourhood, refined as in Weisfeiler and Leman's test
// of graph isomorphism; a run is a part of the order whose hashes have a
// period.
std::optional<Layers> FindLayers(const Problem& problem,
                                 const ProblemIndex& index,
                                 const SearchTuning::Layers& tuning = {});

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_FIND_LAYERS_H_
