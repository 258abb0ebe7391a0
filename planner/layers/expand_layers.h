// From a schedule of a few layers to one of all layers; restrict_layers.h is
// the reverse.
#ifndef LOADLINE_PLANNER_LAYERS_EXPAND_LAYERS_H_
#define LOADLINE_PLANNER_LAYERS_EXPAND_LAYERS_H_

#include <optional>
#include <vector>

#include "planner/layers/find_layers.h"
#include "planner/layers/shrink.h"
#include "planner/schedule/schedule.h"

namespace loadline::planner {

// A model and its layers.
struct LayeredModel {
  const SearchModel* model = nullptr;
  const Layers* layers = nullptr;
};

// By layer: which of the few layers it is planned like. The equal layers in the
// middle of the few are divided into `blocks` parts; each represents an equal
// part of all layers, over which it repeats. Within a block the copies keep
// their balance, and several blocks allow early layers other decisions than
// late ones.
std::vector<int> MatchLayers(const Layers& all, const Layers& few, int blocks);

// Repeats every item of `schedule` (valid, of `few`) for each layer that
// `match` plans like the item's layer, at the same distance in layers from the
// nodes it serves. None if the result is not valid.
std::optional<Schedule> ExpandSchedule(const LayeredModel& all,
                                       const LayeredModel& few,
                                       const CoarseProblem& shrunk,
                                       const std::vector<int>& match,
                                       const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_EXPAND_LAYERS_H_
