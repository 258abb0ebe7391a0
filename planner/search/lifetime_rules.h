// What the accesses of each value imply: over which slots the value occupies
// device memory, which rules of a schedule are broken, and how many bytes the
// host holds.
//
// Usage: before the accesses of a value change, Apply it with sign -1, and
// afterwards with sign 1. The sums are then those of the present accesses.
//
// Rules (each violation counts one): a read finds an instance; an In finds the
// value on the host and is read or needed at the end; nothing reads or makes a
// version after its SearchModel::Overwriter; a value has one Out at most, and
// none if its first version lives on the host; outputs and last versions are
// there at the end; a node runs, and more than once only if it may be
// recomputed.
#ifndef LOADLINE_PLANNER_SEARCH_LIFETIME_RULES_H_
#define LOADLINE_PLANNER_SEARCH_LIFETIME_RULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/access_table.h"
#include "planner/search/search_memory.h"

namespace loadline::planner {

class LifetimeRules {
 public:
  // The sums that an undo restores at once.
  struct Sums {
    int64_t broken = 0;  // violations; 0: the schedule is valid
    // Of all values that are copied out or live there. The first and the last
    // version of one that lives there have one place.
    int64_t host_bytes = 0;
  };

  explicit LifetimeRules(const SearchModel& model);

  // No item and no access. host_home by chain: lives on the host between steps.
  void Reset(const std::vector<char>& host_home);

  // Adds (sign 1) or removes (-1) what the accesses of one value imply,
  // together with those of all versions of the value if there are three or
  // more; bytes are noted in `memory`, which has `slot_count` slots.
  void Apply(int value, const AccessTable& table, int sign, int slot_count,
             SearchMemory& memory);
  // Over which slots the value occupies memory where Apply implies no more than
  // that: one instance, made by its first access or there at the start, without
  // copies and other versions. Empty elsewhere.
  struct Extent {
    int lower = 0, upper = 0;
  };
  std::optional<Extent> PlainExtent(int value, const AccessTable& table,
                                    int slot_count) const {
    const ValueFacts& facts = facts_[value];
    const std::vector<Access>& accesses = table.of(value);
    if (facts.chain >= 0 || accesses.empty() || table.copies(value) != 0 ||
        table.makes(value) != (facts.input ? 0 : 1)) {
      return std::nullopt;
    }
    const Access& first = accesses.front();
    if (first.makes() == facts.input) return std::nullopt;
    const Access& last = accesses.back();
    const bool takes_over = (last.flags & kTakesOver) != 0;
    return Extent{facts.input ? 0 : first.slot,
                  facts.output ? slot_count : last.slot + 1 - takes_over};
  }
  // Adds (sign 1) or removes (-1) the bytes of such an extent.
  void Note(int value, const Extent& extent, int sign,
            SearchMemory& memory) const {
    const double bytes = facts_[value].bytes;
    if (bytes == 0 || extent.upper <= extent.lower) return;
    memory.Note(extent.lower, extent.upper, sign * bytes);
  }
  // The same where one such extent takes the place of another.
  void NoteChange(int value, const Extent& before, const Extent& after,
                  SearchMemory& memory) const {
    const double bytes = facts_[value].bytes;
    if (bytes == 0) return;
    const auto note = [&](int from, int to, double more) {
      if (from < to) memory.Note(from, to, more);
      if (to < from) memory.Note(to, from, -more);
    };
    note(after.lower, before.lower, bytes);
    note(before.upper, after.upper, bytes);
  }
  // Of values that Apply takes together, one; true for every other value.
  bool Leads(int value) const {
    return facts_[value].versions == nullptr || facts_[value].first;
  }
  // One more (sign 1) or one fewer (-1) run of the item's node; nothing for a
  // copy or a codec.
  void CountRun(const Item& item, int sign) {
    if (item.kind != ItemKind::kRun) return;
    const int node = model_.jobs[item.id].node;
    if (node < 0) return;
    int& runs = run_count_[node];
    const auto violations = [&] {
      return (runs == 0) + (runs > 1 && !model_.may_rerun[node]);
    };
    sums_.broken -= violations();
    runs += sign;
    sums_.broken += violations();
  }
  int run_count(int node) const { return run_count_[node]; }

  // Apply the chain's versions before and after.
  void SetHome(int chain, bool host) { host_home_[chain] = host; }
  bool host_home(int chain) const { return host_home_[chain] != 0; }
  const std::vector<char>& host_homes() const { return host_home_; }
  // Whether the value is the first version of a chain that lives on the host.
  bool StartsOnHost(int value) const {
    return facts_[value].first && HostHome(facts_[value]);
  }

  const Sums& sums() const { return sums_; }
  void Restore(const Sums& sums) { sums_ = sums; }

 private:
  struct ValueFacts {
    double bytes;
    int chain;                        // -1: not persistent
    bool input, first, last, output;  // input of the step; versions
    // Apply reads the accesses of all of them; null: of this value only.
    const std::vector<int>* versions;
  };
  // What the other versions imply for one of them.
  struct Version {
    int last_slot;  // no access may come later
    bool in_place;  // its update may write at its address
  };
  void ApplyVersions(const std::vector<int>& versions, const AccessTable& table,
                     int sign, int slot_count, SearchMemory& memory);
  void ApplyOne(int value, const std::vector<Access>& accesses, int sign,
                int slot_count, Version version, SearchMemory& memory);
  bool HostHome(const ValueFacts& facts) const {
    return facts.chain >= 0 && host_home_[facts.chain];
  }

  const SearchModel& model_;
  std::vector<ValueFacts> facts_;  // by value or encoded representation
  std::vector<char> host_home_;    // by chain
  std::vector<int> run_count_;     // by node
  Sums sums_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_LIFETIME_RULES_H_
