// From a schedule of a few layers to one of all layers; restrict_layers.h leads
// back.
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

// Which of the few layers each of all layers is planned like. The alike layers
// in the middle of the few are divided into `blocks` stretches; each stands
// for an equal part of all layers, over which it repeats: within a block the
// copies keep their balance, and the blocks tell early layers from late ones.
std::vector<int> MatchLayers(const Layers& all, const Layers& few, int blocks);

// Every item of `schedule` (valid, of `few`) for each layer that `match` says
// is planned like the item's, as many layers before or after its own nodes as
// there. None if what comes out is not valid.
std::optional<Schedule> ExpandSchedule(const LayeredModel& all,
                                       const LayeredModel& few,
                                       const CoarseProblem& shrunk,
                                       const std::vector<int>& match,
                                       const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_EXPAND_LAYERS_H_
