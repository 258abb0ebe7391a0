// See lifetime_rules.h. Tested in lifetime_rules_test.cc.
#include "planner/search/lifetime_rules.h"

#include <limits>

namespace loadline::planner {

LifetimeRules::LifetimeRules(const SearchModel& model) : model_(model) {
  for (int v = 0; v < model_.representation_count(); ++v) {
    const int chain = model_.chain_of[v];
    const bool together =
        chain >= 0 && model_.chains[chain].versions.size() > 2;
    facts_.push_back({static_cast<double>(model_.bytes[v]), chain,
                      model_.producer[v] < 0, model_.FirstVersion(v),
                      model_.LastVersion(v), model_.is_output[v] != 0,
                      together ? &model_.chains[chain].versions : nullptr});
  }
}

void LifetimeRules::Reset(const std::vector<char>& host_home) {
  host_home_ = host_home;
  host_home_.resize(model_.chains.size(), 0);
  run_count_.assign(model_.node_count, 0);
  // No node has run yet.
  sums_ = {.broken = model_.node_count, .host_bytes = 0};
}

void LifetimeRules::Apply(int value, const AccessTable& table, int sign,
                          int slot_count, SearchMemory& memory) {
  const ValueFacts& facts = facts_[value];
  if (facts.versions != nullptr) {
    ApplyVersions(*facts.versions, table, sign, slot_count, memory);
    return;
  }
  ApplyOne(value, table.of(value), sign, slot_count,
           {std::numeric_limits<int>::max(), true}, memory);
}

// The node that makes the last version reads neither the first version nor, in
// general, those in between: so their lists alone do not tell when it runs.
void LifetimeRules::ApplyVersions(const std::vector<int>& versions,
                                  const AccessTable& table, int sign,
                                  int slot_count, SearchMemory& memory) {
  const int first = versions.front();
  const bool home = HostHome(facts_[first]);
  bool apart = false;
  for (int v : versions) {
    const std::vector<Access>& accesses = table.of(v);
    for (size_t i = 0; i + 1 < accesses.size(); ++i) {
      apart = apart || (accesses[i].flags & kUpdates) != 0;
    }
  }
  int last_slot = std::numeric_limits<int>::max();
  const std::vector<Access>& last = table.of(versions.back());
  if (model_.Overwriter(first) >= 0 && !last.empty() && last.front().makes()) {
    last_slot = last.front().slot;
  }
  for (int v : versions) {
    const bool in_place =
        v == versions.back() || !apart || model_.InPlaceWhileApart(v, home);
    const int until = v == first ? last_slot : std::numeric_limits<int>::max();
    ApplyOne(v, table.of(v), sign, slot_count, {until, in_place}, memory);
  }
}

// `version.last_slot` is infinite where the update that reads the value may be
// its Overwriter.
void LifetimeRules::ApplyOne(int value, const std::vector<Access>& accesses,
                             int sign, int slot_count, Version version,
                             SearchMemory& memory) {
  const ValueFacts& facts = facts_[value];
  const double bytes = facts.bytes * sign;
  const bool home = HostHome(facts);
  int lower = facts.input && !home ? 0 : -1;
  int upper = lower;  // exclusive end of the accessed part
  bool read = false, takes_over = false, from_copy = false;
  bool on_host = home && facts.first;
  bool out_seen = false;
  int broken = 0;
  const bool alone = facts.versions == nullptr;
  int last_slot = version.last_slot;
  const auto add = [&](int end) __attribute__((always_inline)) {
    if (end <= lower || bytes == 0) return;
    memory.Note(lower, end, bytes);
  };
  for (const Access& access : accesses) {
    broken += access.slot > last_slot;
    if (access.flags & kMakes) {
      if (lower >= 0) {
        broken += from_copy && !read;
        add(upper - (read && takes_over));
      }
      lower = access.slot;
      upper = access.slot + 1;
      read = false;
      from_copy = (access.flags & kFromHost) != 0;
      broken += from_copy && !on_host;
      continue;
    }
    broken += lower < 0;
    upper = access.slot + 1;
    read = true;
    takes_over = (access.flags & kTakesOver) != 0;
    if (access.flags & kUpdates) {
      takes_over = takes_over && version.in_place;
      if (alone && model_.Overwriter(value) >= 0) last_slot = access.slot;
    }
    if (access.flags & kToHost) {
      broken += out_seen || (home && facts.first);
      out_seen = on_host = true;
      // The last version goes to the place of the first.
      if (!home || !facts.last) sums_.host_bytes += sign * model_.bytes[value];
    }
  }
  const bool ends = !home && (facts.last || facts.output);
  if (lower >= 0) {
    broken += from_copy && !read && !ends;
    add(ends ? slot_count : upper - (read && takes_over));
  } else {
    broken += ends;
  }
  broken += home && facts.last && !facts.first && !out_seen;
  if (home && facts.first) sums_.host_bytes += sign * model_.bytes[value];
  sums_.broken += sign * broken;
}

}  // namespace loadline::planner
