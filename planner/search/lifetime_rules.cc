// See lifetime_rules.h. Tested in lifetime_rules_test.cc.
#include "planner/search/lifetime_rules.h"

namespace loadline::planner {

LifetimeRules::LifetimeRules(const SearchModel& model) : model_(model) {
  for (int v = 0; v < model_.representation_count(); ++v) {
    facts_.push_back({static_cast<double>(model_.bytes[v]), model_.chain_of[v],
                      model_.producer[v] < 0, model_.FirstVersion(v),
                      model_.LastVersion(v), model_.is_output[v] != 0});
  }
}

void LifetimeRules::Reset(const std::vector<char>& host_home) {
  host_home_ = host_home;
  host_home_.resize(model_.chains.size(), 0);
  run_count_.assign(model_.node_count, 0);
  // No node has run yet.
  sums_ = {.broken = model_.node_count, .host_bytes = 0};
}

void LifetimeRules::Apply(int value, const std::vector<Access>& accesses,
                          int sign, int slot_count, SearchMemory& memory) {
  const ValueFacts& facts = facts_[value];
  const double bytes = facts.bytes * sign;
  const bool home = HostHome(facts);
  int lower = facts.input && !home ? 0 : -1;
  int upper = lower;  // exclusive end of the accessed part
  bool read = false, takes_over = false, from_copy = false;
  bool on_host = home && facts.first;
  bool out_seen = false, updated = false;
  int broken = 0;
  const auto add = [&](int end) __attribute__((always_inline)) {
    if (end <= lower || bytes == 0) return;
    memory.Note(lower, end, bytes);
  };
  for (const Access& access : accesses) {
    broken += updated;
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
    updated = updated || (access.flags & kUpdates) != 0;
    if (access.flags & kToHost) {
      broken += out_seen || (home && facts.first);
      out_seen = on_host = true;
      sums_.host_bytes += sign * model_.bytes[value];
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
