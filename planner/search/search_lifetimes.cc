// What the accesses of a value say of a SearchState: over which slots it is
// alive, which rules are broken, how many bytes it takes on the host. An edit
// takes out what the accesses said before and adds what they say after. Tested
// in search_state_test.cc.
#include <algorithm>

#include "planner/search/search_state.h"

namespace loadline::planner {

void SearchState::Sweep(int value, int sign) {
  const ValueFacts& facts = facts_[value];
  const double bytes = facts.bytes * sign;
  const bool home = HostHome(facts);
  int lower = facts.input && !home ? 0 : -1;
  int upper = lower;  // exclusive end of the touched part
  bool read = false, takes_over = false, from_copy = false;
  bool on_host = home && facts.first;
  bool out_seen = false, updated = false;
  int broken = 0;
  const auto add = [&](int end) {
    if (end <= lower || bytes == 0) return;
    memory_.Note(lower, end, bytes);
  };
  for (const Access& touch : accesses_[value]) {
    broken += updated;
    if (touch.flags & kMakes) {
      if (lower >= 0) {
        broken += from_copy && !read;
        add(upper - (read && takes_over));
      }
      lower = touch.slot;
      upper = touch.slot + 1;
      read = false;
      from_copy = (touch.flags & kFromHost) != 0;
      broken += from_copy && !on_host;
      continue;
    }
    broken += lower < 0;
    upper = touch.slot + 1;
    read = true;
    takes_over = (touch.flags & kTakesOver) != 0;
    updated = updated || (touch.flags & kUpdates) != 0;
    if (touch.flags & kToHost) {
      broken += out_seen || (home && facts.first);
      out_seen = on_host = true;
      host_bytes_ += sign * model_.bytes[value];
    }
  }
  const bool ends = !home && (facts.last || facts.output);
  if (lower >= 0) {
    broken += from_copy && !read && !ends;
    add(ends ? slot_count() : upper - (read && takes_over));
  } else {
    broken += ends;
  }
  broken += home && facts.last && !facts.first && !out_seen;
  if (home && facts.first) host_bytes_ += sign * model_.bytes[value];
  broken_ += sign * broken;
}

void SearchState::NoteWorkspace(const Item& item, int slot, int sign) {
  if (item.kind != ItemKind::kRun) return;
  const int64_t bytes = sign * model_.workspace_bytes[item.id];
  if (bytes == 0) return;
  memory_.Note(slot, slot + 1, static_cast<double>(bytes));
}

void SearchState::CountItem(const Item& item, int sign) {
  if (item.kind == ItemKind::kRun) {
    compute_ns_ += sign * model_.node_ns[item.id];
    const int node = model_.jobs[item.id].node;
    if (node < 0) return;
    int& runs = run_count_[node];
    const auto faults = [&] {
      return (runs == 0) + (runs > 1 && !model_.may_rerun[node]);
    };
    broken_ -= faults();
    runs += sign;
    broken_ += faults();
    return;
  }
  copy_count_ += sign;
  if (item.kind == ItemKind::kIn) {
    in_ns_ += sign * model_.in_ns[item.id];
  } else {
    out_ns_ += sign * model_.out_ns[item.id];
  }
  (item.kind == ItemKind::kIn ? in_count_ : out_count_)[item.id] += sign;
}

// Another maker before `slot`, or none any more: the next read may wait for
// something else, and so may a copy out. Reads after it never wait: compute has
// then passed one of the same instance.
void SearchState::NoteWaiters(const Use& use, int slot) {
  if ((use.flags & kMakes) == 0 ||
      (in_count_[use.value] == 0 && out_count_[use.value] == 0)) {
    return;
  }
  bool next = true;
  for (const Access& touch : accesses_[use.value]) {
    if (touch.slot <= slot) continue;
    if (next || (touch.flags & kToHost) != 0) {
      last_changed_ = std::max(last_changed_, touch.slot);
    }
    next = false;
  }
  // What is only there at the end is waited for there.
  if (next && (use.flags & kFromHost) != 0 && model_.bidirectional < 1) {
    last_changed_ = slot_count() - 1;
  }
}

void SearchState::AddAccess(int value, Access touch) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = accesses.size();
  accesses.push_back(touch);
  for (; at > 0 && accesses[at - 1].slot > touch.slot; --at) {
    accesses[at] = accesses[at - 1];
  }
  accesses[at] = touch;
}

void SearchState::MoveAccess(int value, int item, int slot) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = 0;
  while (accesses[at].item != item) ++at;
  Access touch = accesses[at];
  touch.slot = slot;
  for (; at > 0 && accesses[at - 1].slot > slot; --at) {
    accesses[at] = accesses[at - 1];
  }
  for (; at + 1 < accesses.size() && accesses[at + 1].slot < slot; ++at) {
    accesses[at] = accesses[at + 1];
  }
  accesses[at] = touch;
}

void SearchState::DropAccess(int value, int item) {
  std::vector<Access>& accesses = accesses_[value];
  size_t at = 0;
  while (accesses[at].item != item) ++at;
  accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace loadline::planner
