// Homes of persistent values that are chosen while a schedule is made.
#ifndef LOADLINE_PLANNER_SEARCH_LATE_HOMES_H_
#define LOADLINE_PLANNER_SEARCH_LATE_HOMES_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Every chain lives on the device until it is moved, which may be long after
// its first version was read: that version is then copied in just before the
// first item that read it, so no position has more bytes than before.
class LateHomes {
 public:
  // `allowed`: whether any chain may be moved.
  LateHomes(const SearchModel& model, bool allowed);

  bool OnHost(int value) const {
    const int chain = model_.chain_of[value];
    return chain >= 0 && moved_[chain] != 0;
  }
  // May the home of this first or last version move to the host?
  bool MayMove(int value) const;
  // Has the version that is there at the start of the step been read?
  bool WasRead(int value) const {
    return first_read_[model_.chain_of[value]] >= 0;
  }
  bool IsUpdated(int value) const {
    return model_.chains[model_.chain_of[value]].versions.size() > 1;
  }
  int First(int value) const {
    return model_.chains[model_.chain_of[value]].versions.front();
  }
  int Last(int value) const {
    return model_.chains[model_.chain_of[value]].versions.back();
  }

  // The item reads the instance of a first version that no copy has made.
  void NoteRead(int value, int item);
  void Move(int value);

  // The items, without those that are cancelled, with the copies in that moved
  // homes need. `outs`: last versions that are still to be copied out.
  Schedule Finish(const std::vector<Item>& items,
                  const std::vector<char>& cancelled,
                  const std::vector<int>& outs) const;

 private:
  const SearchModel& model_;
  const bool allowed_;
  std::vector<char> moved_;      // by chain
  std::vector<int> first_read_;  // by chain: the first item that reads it; -1
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_LATE_HOMES_H_
