// Of all layers that are planned like one of the few, the first gives its
// items; those of the others are dropped. Tested in restrict_layers_test.cc.
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
  const auto in_few = [&](int layer, int role, int left,
                          const std::vector<std::vector<int>>& table) {
    if (layer < 0) return left;
    return few_of[layer] < 0 ? -1 : table[role][few_of[layer]];
  };
  Schedule restricted;
  const auto value_in_few = [&](int v) {
    return in_few(all.layers->value_layer[v], all.layers->value_role[v],
                  shrunk.value_left[v], few.layers->values);
  };
  for (const Item& item : schedule.items) {
    Subject subject = SubjectOf(*all.model, item);
    if (subject.node >= 0) {
      subject.node = in_few(all.layers->node_layer[subject.node],
                            all.layers->node_role[subject.node],
                            shrunk.node_left[subject.node], few.layers->nodes);
    } else {
      subject.value = value_in_few(subject.value);
    }
    const Item same = MapItem(*all.model, item, *few.model, subject);
    if (same.id >= 0) restricted.items.push_back(same);
  }
  restricted.host_home.assign(few.model->chains.size(), 0);
  for (size_t c = 0; c < schedule.host_home.size(); ++c) {
    const int value = value_in_few(all.model->chains[c].versions.front());
    if (schedule.host_home[c] && value >= 0) {
      restricted.host_home[few.model->chain_of[value]] = 1;
    }
  }
  return RepairOrder(*few.model, std::move(restricted));
}

}  // namespace loadline::planner
