// Tested in eviction_start_test.cc.
#include "planner/search/next_uses.h"

namespace loadline::planner {

NextUses::NextUses(const SearchModel& model, const Schedule& order)
    : end_(static_cast<int>(order.items.size())),
      begin_(model.value_count + 1, 0),
      held_to_(model.value_count, -1) {
  const auto stays = [&](int v) {
    return model.is_output[v] != 0 || model.LastVersion(v);
  };
  for (const Item& item : order.items) {
    for (int v : model.reads[item.id]) ++begin_[v + 1];
  }
  for (int v = 0; v < model.value_count; ++v) {
    begin_[v + 1] += begin_[v] + (stays(v) ? 1 : 0);
  }
  uses_.resize(begin_.back());
  next_.assign(begin_.begin(), begin_.end() - 1);
  for (int p = 0; p < end_; ++p) {
    for (int v : model.reads[order.items[p].id]) uses_[next_[v]++] = p;
  }
  for (int v = 0; v < model.value_count; ++v) {
    if (stays(v)) uses_[next_[v]] = end_;
  }
  next_.assign(begin_.begin(), begin_.end() - 1);
}

int NextUses::Next(int value) {
  int& next = next_[value];
  while (next < begin_[value + 1] && uses_[next] < clock_) ++next;
  if (next < begin_[value + 1]) return uses_[next];
  return held_to_[value] >= clock_ ? held_to_[value] : kNever;
}

}  // namespace loadline::planner
