// See persistent_placement.h. A greedy descent chooses where a persistent value
// lives when it first frees that value, with the lead that was best then;
// copies placed later crowd the lanes. So each choice is made again, one value
// after the other, until no change gains. Tested in
// persistent_placement_test.cc.
#include "planner/search/persistent_placement.h"

#include <cmath>

#include "absl/functional/function_ref.h"
#include "planner/search/edits.h"

namespace loadline::planner {
namespace {

class Placement {
 public:
  Placement(SearchState& state, WorkBudget& effort, double floor_ns)
      : state_(state),
        model_(state.model()),
        tuning_(model_.tuning.persistent_placement),
        effort_(effort),
        floor_ns_(floor_ns) {}

  bool Run() {
    bool any = false;
    for (int sweep = 0; sweep < tuning_.most_sweeps; ++sweep) {
      bool improved = false;
      for (size_t c = 0; c < model_.chains.size(); ++c) {
        if (effort_.Spent()) return any;
        if (c % tuning_.respread_values == 0) state_.Respread();
        improved = PlaceAgain(static_cast<int>(c)) || improved;
      }
      any = any || improved;
      if (!improved) break;
    }
    return any;
  }

 private:
  // The highest run at which a version of the chain is on the host only.
  struct Absence {
    int version = -1, run = -1;  // -1: there is none
  };

  bool PlaceAgain(int chain) {
    if (!Leaves(chain)) return false;
    Absence absence = AbsenceOf(chain);
    bool improved = false;
    const auto attempt = [&](absl::FunctionRef<bool()> edit) {
      if (!Try(chain, edit)) return;
      improved = true;
      absence = AbsenceOf(chain);
    };
    attempt([] { return true; });
    for (const double lead : tuning_.leads) {
      attempt([&] { return Leave(absence, lead); });
      attempt([&] { return LiveOnHost(chain, absence, lead); });
    }
    return improved;
  }

  // Brings the chain home, makes the edit, and keeps it if the step gets
  // shorter.
  bool Try(int chain, absl::FunctionRef<bool()> edit) {
    if (effort_.Spent()) return false;
    effort_.left -= effort_.PriceOf(state_);
    const double excess_area = state_.excess_area();
    const double step_ns = state_.Makespan();
    EditStay(state_, chain);
    if (edit() && state_.valid() && state_.excess_area() <= excess_area &&
        Gains(step_ns)) {
      state_.Commit();
      return true;
    }
    state_.Undo(0);
    return false;
  }

  bool Gains(double step_ns) {
    const double now_ns = state_.Makespan(step_ns);
    return now_ns < step_ns && std::round(now_ns) >= floor_ns_;
  }

  Absence AbsenceOf(int chain) const {
    const Chain& versions = model_.chains[chain];
    const bool host = state_.host_home(chain);
    Absence absence;
    for (int version : versions.versions) {
      int from = host && version == versions.versions.front() ? 0 : -1;
      for (const Access& access : state_.accesses(version)) {
        const ItemKind kind = state_.item(access.item).kind;
        if (kind == ItemKind::kIn && from >= 0) {
          Raise(version, from, access.slot, &absence);
          from = -1;
        } else if (kind == ItemKind::kOut) {
          from = access.slot;
        }
      }
      if (from >= 0 && state_.OutItem(version) >= 0) {
        Raise(version, from, state_.slot_count(), &absence);
      }
    }
    return absence;
  }

  // Sets the absence to the highest run of [from, to), if that is higher.
  void Raise(int version, int from, int to, Absence* absence) const {
    for (int slot = from; slot < to; ++slot) {
      const int item = state_.item_at(slot);
      if (item < 0 || state_.item(item).kind != ItemKind::kRun) continue;
      if (absence->run >= 0 &&
          state_.BytesAt(slot) <=
              state_.BytesAt(state_.slot_of(absence->run))) {
        continue;
      }
      *absence = {version, item};
    }
  }

  bool Leaves(int chain) const {
    bool leaves = state_.host_home(chain);
    for (int version : model_.chains[chain].versions) {
      leaves = leaves || state_.OutItem(version) >= 0;
    }
    return leaves;
  }

  // Lives on the host.
  bool LiveOnHost(int chain, const Absence& absence, double lead) {
    return absence.run >= 0 && model_.chains[chain].can_host &&
           EditHome(state_, chain, state_.slot_of(absence.run), lead);
  }

  // Lives on the device, and is copied out around that run.
  bool Leave(const Absence& absence, double lead) {
    if (absence.run < 0) return false;
    const int slot = state_.slot_of(absence.run);
    Gap gap;
    return FindGap(state_, absence.version, slot, &gap) &&
           EditCopy(state_, gap, slot, lead);
  }

  SearchState& state_;
  const SearchModel& model_;
  const SearchTuning::PersistentPlacement& tuning_;
  WorkBudget& effort_;
  const double floor_ns_;
};

}  // namespace

bool PlacePersistentValues(SearchState& state, WorkBudget& effort,
                           double floor_ns) {
  return Placement(state, effort, floor_ns).Run();
}

}  // namespace loadline::planner
