// Lifetimes of a Schedule from scratch: bind every read to the latest earlier
// instance, then cut each instance to its last read. Tested in
// search_state_test.cc (against the incremental search) and solve_test.cc
// (against Verify).
#include "planner/schedule/simulate.h"

#include <algorithm>

namespace loadline::planner {
namespace {

class Binder {
 public:
  Binder(const SearchModel& model, const Schedule& schedule)
      : model_(model),
        schedule_(schedule),
        current_(model.representation_count(), -1),
        out_at_(model.value_count, -1),
        runs_(model.node_count, 0),
        replaced_(model.representation_count(), 0),
        ended_(model.chains.size(), 0),
        apart_(model.chains.size(), 0) {}

  Lifetimes Bind() {
    lives_.valid = true;
    const size_t length = schedule_.items.size();
    for (int v = 0; v < model_.value_count; ++v) {
      if (model_.producer[v] < 0 && !HostHome(v)) Make(v, -1);
    }
    for (size_t p = 0; p < length; ++p) {
      const Item& item = schedule_.items[p];
      const int position = static_cast<int>(p);
      if (item.kind == ItemKind::kRun) BindRun(item.id, position);
      if (item.kind == ItemKind::kOut) BindOut(item.id, position);
      if (item.kind == ItemKind::kIn) BindIn(item.id, position);
      lives_.reads.CloseList();
      lives_.makes.CloseList();
    }
    Finish();
    SumLiveBytes();
    return std::move(lives_);
  }

 private:
  bool HostHome(int value) const {
    const int chain = model_.chain_of[value];
    return chain >= 0 && schedule_.host_home[chain];
  }

  // Before every access: may this version be accessed here?
  void CheckVersion(int value) {
    if (!replaced_[value]) return;
    const int chain = model_.chain_of[value];
    apart_[chain] = 1;
    if (ended_[chain] && model_.Overwriter(value) >= 0) {
      lives_.valid = false;
    }
  }

  int Make(int value, int position) {
    CheckVersion(value);
    const int id = static_cast<int>(lives_.instances.size());
    Instance instance;
    instance.value = value;
    instance.made_at = position;
    lives_.instances.push_back(instance);
    current_[value] = id;
    return id;
  }

  void Read(int value, int position) {
    CheckVersion(value);
    const int id = current_[value];
    if (id < 0) {
      lives_.valid = false;
      return;
    }
    lives_.instances[id].last_read = position;
    lives_.reads.Add(id);
  }

  void BindRun(int job, int position) {
    for (int v : model_.reads[job]) Read(v, position);
    for (int v : model_.makes[job]) {
      lives_.makes.Add(Make(v, position));
      const ValueId old = model_.index.previous_version[v];
      if (old == kNoValue) continue;
      replaced_[Index(old)] = 1;
      if (model_.LastVersion(v)) ended_[model_.chain_of[v]] = 1;
    }
    const int node = model_.jobs[job].node;
    if (node >= 0 && ++runs_[node] > 1 && !model_.may_rerun[node]) {
      lives_.valid = false;
    }
  }

  void BindOut(int value, int position) {
    if (out_at_[value] >= 0 || !model_.may_copy[value] ||
        (HostHome(value) && model_.FirstVersion(value))) {
      lives_.valid = false;
    }
    out_at_[value] = position;
    Read(value, position);
  }

  void BindIn(int value, int position) {
    const bool at_home = HostHome(value) && model_.FirstVersion(value);
    if ((!at_home && out_at_[value] < 0) || !model_.may_copy[value]) {
      lives_.valid = false;
    }
    lives_.makes.Add(Make(value, position));
  }

  // A step without nodes has one moment all the same.
  size_t Length() const { return std::max<size_t>(schedule_.items.size(), 1); }

  void Finish() {
    const int length = static_cast<int>(Length());
    for (int node = 0; node < model_.node_count; ++node) {
      if (runs_[node] == 0) lives_.valid = false;
    }
    for (int v = 0; v < model_.value_count; ++v) {
      const bool last_version = model_.LastVersion(v);
      if (last_version && HostHome(v)) {
        if (!model_.FirstVersion(v) && out_at_[v] < 0) lives_.valid = false;
        continue;
      }
      if (!last_version && !model_.is_output[v]) continue;
      if (current_[v] < 0) {
        lives_.valid = false;
      } else {
        lives_.instances[current_[v]].last = true;
      }
    }
    for (Instance& instance : lives_.instances) {
      instance.lower = std::max(instance.made_at, 0);
      const bool from_copy =
          instance.made_at >= 0 &&
          schedule_.items[instance.made_at].kind == ItemKind::kIn;
      if (from_copy && instance.last_read < 0 && !instance.last) {
        lives_.valid = false;
      }
      // A value of the step's start that nobody reads has no buffer.
      const int touched = std::max(instance.made_at, instance.last_read);
      instance.upper = instance.last ? length : touched + 1;
    }
    TakeOver();
  }

  // An input that dies at a node gives its bytes to the paired output.
  void TakeOver() {
    for (size_t p = 0; p < schedule_.items.size(); ++p) {
      const Item& item = schedule_.items[p];
      if (item.kind != ItemKind::kRun) continue;
      for (const auto& [in, out] : model_.overwrites[item.id]) {
        const int chain = model_.chain_of[out];
        if (chain >= 0 && apart_[chain] &&
            !model_.InPlaceWhileApart(in, HostHome(in))) {
          continue;
        }
        for (int from : lives_.reads[p]) {
          Instance& old = lives_.instances[from];
          if (old.value != in || old.last ||
              old.last_read != static_cast<int>(p)) {
            continue;
          }
          for (int to : lives_.makes[p]) {
            if (lives_.instances[to].value == out) {
              lives_.instances[to].overwrites = from;
              old.upper = static_cast<int>(p);
            }
          }
        }
      }
    }
  }

  void SumLiveBytes() {
    const size_t length = Length();
    std::vector<int64_t> change(length + 1, 0), raw_change(length + 1, 0);
    for (const Instance& instance : lives_.instances) {
      if (instance.upper <= instance.lower) continue;
      change[instance.lower] += model_.bytes[instance.value];
      change[instance.upper] -= model_.bytes[instance.value];
      const int64_t raw = model_.raw_bytes[instance.value];
      raw_change[instance.lower] += raw;
      raw_change[instance.upper] -= raw;
    }
    lives_.live_bytes.resize(length);
    int64_t live = 0, raw_live = 0;
    for (size_t p = 0; p < length; ++p) {
      live += change[p];
      const bool runs = p < schedule_.items.size() &&
                        schedule_.items[p].kind == ItemKind::kRun;
      const int job = runs ? schedule_.items[p].id : -1;
      lives_.live_bytes[p] = live + (runs ? model_.workspace_bytes[job] : 0);
      raw_live += raw_change[p];
      lives_.raw_peak_bytes =
          std::max(lives_.raw_peak_bytes,
                   raw_live + (runs ? model_.raw_workspace_bytes[job] : 0));
      lives_.peak_bytes = std::max(lives_.peak_bytes, lives_.live_bytes[p]);
    }
  }

  const SearchModel& model_;
  const Schedule& schedule_;
  Lifetimes lives_;
  std::vector<int> current_;  // by representation: latest instance
  std::vector<int> out_at_;   // by value: position of its Out
  std::vector<int> runs_;     // by node
  // By representation: its next version has been made.
  std::vector<char> replaced_;
  // By chain: its last version has been made; a version was accessed after its
  // update.
  std::vector<char> ended_, apart_;
};

}  // namespace

Schedule GivenOrder(const SearchModel& model) {
  Schedule schedule;
  for (int node = 0; node < model.node_count; ++node) {
    schedule.items.push_back({ItemKind::kRun, model.jobs_of[node].front()});
  }
  schedule.host_home.assign(model.chains.size(), 0);
  return schedule;
}

Lifetimes FindLifetimes(const SearchModel& model, const Schedule& schedule) {
  return Binder(model, schedule).Bind();
}

}  // namespace loadline::planner
