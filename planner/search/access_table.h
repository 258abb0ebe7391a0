// Which items access which value, in slot order, for every value and every
// encoded representation of a value.
//
// Bytes over time and most rules of a schedule depend on one value's own
// accesses only (lifetime_rules.h), so an edit of one item changes as many
// short lists as the item has uses.
#ifndef LOADLINE_PLANNER_SEARCH_ACCESS_TABLE_H_
#define LOADLINE_PLANNER_SEARCH_ACCESS_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// How an item accesses a value.
enum AccessFlag : uint8_t {
  kMakes = 1,       // a Run of the producer or of a decode, or an In
  kFromHost = 2,    // an In
  kToHost = 4,      // an Out
  kUpdates = 8,     // makes the next version of the value
  kTakesOver = 16,  // if the value dies here, an output takes its bytes
};

// One access by one item.
struct Access {
  int slot = 0;
  int item = 0;
  uint8_t flags = 0;
  bool makes() const { return (flags & kMakes) != 0; }
};

// What an item accesses, wherever it is in the sequence.
struct Use {
  int value = 0;  // or encoded representation
  uint8_t flags = 0;
  bool makes() const { return (flags & kMakes) != 0; }
};

class AccessTable {
 public:
  explicit AccessTable(const SearchModel& model);

  // The reads of the item, then what it makes. Each value at most once as read
  // and once as made.
  std::span<const Use> UsesOf(const Item& item) const {
    if (item.kind == ItemKind::kRun) {
      return {uses_.data() + begin_[item.id],
              uses_.data() + begin_[item.id + 1]};
    }
    return {&copy_uses_[2 * item.id + (item.kind == ItemKind::kIn ? 1 : 0)], 1};
  }
  // In slot order.
  const std::vector<Access>& of(int value) const { return accesses_[value]; }
  // The item that made the instance that a read at `slot` finds; -1: none, so
  // the value was there at the start.
  int MakerBefore(int value, int slot) const {
    int maker = -1;
    for (const Access& access : accesses_[value]) {
      if (access.slot >= slot) break;
      if (access.makes()) maker = access.item;
    }
    return maker;
  }
  // The copy to the host; -1: none.
  int OutItem(int value) const;
  // Accesses that make the value, and accesses by copies.
  int makes(int value) const { return counts_[value].makes; }
  int copies(int value) const { return counts_[value].copies; }

  // No accesses at all.
  void Clear();
  // Adds the last access of a value: `access` is in no slot before the others.
  void Append(int value, const Access& access) {
    accesses_[value].push_back(access);
    Count(value, access, 1);
  }
  void Add(int value, const Access& access);
  // The item must access the value.
  void Move(int value, int item, int slot);
  void Drop(int value, int item);

 private:
  struct Counts {
    int makes = 0, copies = 0;
  };
  void Count(int value, const Access& access, int sign) {
    if (access.makes()) counts_[value].makes += sign;
    if ((access.flags & (kFromHost | kToHost)) != 0) {
      counts_[value].copies += sign;
    }
  }

  std::vector<int> begin_;  // by job, into uses_
  std::vector<Use> uses_;
  std::vector<Use> copy_uses_;                 // by value: its Out, its In
  std::vector<std::vector<Access>> accesses_;  // by value
  std::vector<Counts> counts_;                 // by value
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_ACCESS_TABLE_H_
