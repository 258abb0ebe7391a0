// Tested in late_homes_test.cc, and by the schedules of eviction_start_test.cc.
#include "planner/search/late_homes.h"

#include <cstddef>
#include <utility>

namespace loadline::planner {

LateHomes::LateHomes(const SearchModel& model, bool allowed)
    : model_(model),
      allowed_(allowed),
      moved_(model.chains.size(), 0),
      first_read_(model.chains.size(), -1) {}

bool LateHomes::MayMove(int value) const {
  const int chain = model_.chain_of[value];
  return allowed_ && chain >= 0 && moved_[chain] == 0 &&
         model_.chains[chain].can_host &&
         (model_.FirstVersion(value) || model_.LastVersion(value));
}

void LateHomes::NoteRead(int value, int item) {
  int& first = first_read_[model_.chain_of[value]];
  if (first < 0) first = item;
}

void LateHomes::Move(int value) { moved_[model_.chain_of[value]] = 1; }

Schedule LateHomes::Finish(const std::vector<Item>& items,
                           const std::vector<char>& cancelled,
                           const std::vector<int>& outs) const {
  std::vector<std::vector<int>> ins(items.size());
  for (size_t c = 0; c < moved_.size(); ++c) {
    if (moved_[c] == 0 || first_read_[c] < 0) continue;
    ins[first_read_[c]].push_back(model_.chains[c].versions.front());
  }
  Schedule schedule = {{}, moved_};
  for (size_t i = 0; i < items.size(); ++i) {
    for (int value : ins[i]) schedule.items.push_back({ItemKind::kIn, value});
    if (cancelled[i] == 0) schedule.items.push_back(items[i]);
  }
  for (int value : outs) schedule.items.push_back({ItemKind::kOut, value});
  return schedule;
}

}  // namespace loadline::planner
