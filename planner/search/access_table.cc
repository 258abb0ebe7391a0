// See access_table.h. Tested in access_table_test.cc.
#include "planner/search/access_table.h"

#include <cstddef>

namespace loadline::planner {

AccessTable::AccessTable(const SearchModel& model)
    : accesses_(model.representation_count()),
      counts_(model.representation_count()) {
  copy_uses_.reserve(2 * static_cast<size_t>(model.representation_count()));
  begin_.reserve(static_cast<size_t>(model.job_count()) + 1);
  for (int job = 0; job < model.job_count(); ++job) {
    begin_.push_back(static_cast<int>(uses_.size()));
    const int node = model.jobs[job].node;
    for (int v : model.reads[job]) {
      uint8_t flags = 0;
      if (node >= 0 && model.Updater(v) == node) flags |= kUpdates;
      if (model.Overwrites(job, v)) flags |= kTakesOver;
      uses_.push_back({v, flags});
    }
    for (int v : model.makes[job]) uses_.push_back({v, kMakes});
  }
  begin_.push_back(static_cast<int>(uses_.size()));
  for (int v = 0; v < model.representation_count(); ++v) {
    copy_uses_.push_back({v, kToHost});
    copy_uses_.push_back({v, kMakes | kFromHost});
  }
}

int AccessTable::OutItem(int value) const {
  for (const Access& access : accesses_[value]) {
    if (access.flags & kToHost) return access.item;
  }
  return -1;
}

void AccessTable::Clear() {
  for (std::vector<Access>& accesses : accesses_) accesses.clear();
  counts_.assign(counts_.size(), {});
}

void AccessTable::Add(int value, const Access& access) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = accesses.size();
  accesses.push_back(access);
  for (; at > 0 && accesses[at - 1].slot > access.slot; --at) {
    accesses[at] = accesses[at - 1];
  }
  accesses[at] = access;
  Count(value, access, 1);
}

void AccessTable::Move(int value, int item, int slot) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = 0;
  while (accesses[at].item != item) ++at;
  Access access = accesses[at];
  access.slot = slot;
  for (; at > 0 && accesses[at - 1].slot > slot; --at) {
    accesses[at] = accesses[at - 1];
  }
  for (; at + 1 < accesses.size() && accesses[at + 1].slot < slot; ++at) {
    accesses[at] = accesses[at + 1];
  }
  accesses[at] = access;
}

void AccessTable::Drop(int value, int item) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = 0;
  while (accesses[at].item != item) ++at;
  Count(value, accesses[at], -1);
  accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace loadline::planner
