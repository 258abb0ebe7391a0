// Of all layers that are planned like one of the few, the first gives its
// items; those of the others go. Tested in find_layers_test.cc.
#include "planner/layers/restrict_layers.h"

#include <utility>

#include "planner/layers/map_item.h"
#include "planner/layers/repair_order.h"

namespace loadline::planner {

std::optional<Schedule> RestrictSchedule(const LayeredModel& all,
                                         const LayeredModel& few,
                                         const CoarseProblem& shrunk,
                                         const std::vector<int>& match,
                                         const Schedule& schedule) {
  std::vector<int> few_of(match.size(), -1);  // by layer
  std::vector<char> taken(few.layers->count, 0);
  for (size_t layer = 0; layer < match.size(); ++layer) {
    if (taken[match[layer]]) continue;
    taken[match[layer]] = 1;
    few_of[layer] = match[layer];
  }
  const auto fold = [&](int layer, int role, int left,
                        const std::vector<std::vector<int>>& table) {
    if (layer < 0) return left;
    return few_of[layer] < 0 ? -1 : table[role][few_of[layer]];
  };
  Schedule folded;
  const auto fold_value = [&](int v) {
    return fold(all.layers->value_layer[v], all.layers->value_role[v],
                shrunk.value_left[v], few.layers->values);
  };
  for (const Item& item : schedule.items) {
    Subject subject = SubjectOf(*all.model, item);
    if (subject.node >= 0) {
      subject.node = fold(all.layers->node_layer[subject.node],
                          all.layers->node_role[subject.node],
                          shrunk.node_left[subject.node], few.layers->nodes);
    } else {
      subject.value = fold_value(subject.value);
    }
    const Item same = MapItem(*all.model, item, *few.model, subject);
    if (same.id >= 0) folded.items.push_back(same);
  }
  folded.host_home.assign(few.model->chains.size(), 0);
  for (size_t c = 0; c < schedule.host_home.size(); ++c) {
    const int value = fold_value(all.model->chains[c].versions.front());
    if (schedule.host_home[c] && value >= 0) {
      folded.host_home[few.model->chain_of[value]] = 1;
    }
  }
  return RepairOrder(*few.model, std::move(folded));
}

}  // namespace loadline::planner
