// Greedy descents choose where a persistent value lives when they first meet
// it, and place its copies with the lead that was best then; what is placed
// later crowds the lanes. So each is asked again, one value after the other,
// until nobody gains. Tested in persistent_placement_test.cc.
#include "planner/search/persistent_placement.h"

#include <cmath>

#include "absl/functional/function_ref.h"
#include "planner/search/edits.h"

namespace loadline::planner {
namespace {

constexpr int kMostSweeps = 4;
constexpr size_t kRespreadEvery = 8;
constexpr double kLeads[] = {1.2, 0.2, 3, 8, 20, 50};

class Rehomer {
 public:
  Rehomer(SearchState& state, WorkBudget& effort, double floor_ns)
      : state_(state),
        model_(state.model()),
        effort_(effort),
        floor_ns_(floor_ns) {}

  bool Run() {
    bool any = false;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool improved = false;
      for (size_t c = 0; c < model_.chains.size(); ++c) {
        if (effort_.Spent()) return any;
        if (c % kRespreadEvery == 0) state_.Respread();
        improved = AskAgain(static_cast<int>(c)) || improved;
      }
      any = any || improved;
      if (!improved) break;
    }
    return any;
  }

 private:
  // A version that only the host has while a run is at the highest point.
  struct Absence {
    int version = -1, run = -1;  // -1: there is none
  };

  bool AskAgain(int chain) {
    if (!Leaves(chain)) return false;
    Absence absence = AbsenceOf(chain);
    bool improved = false;
    const auto ask = [&](absl::FunctionRef<bool()> edit) {
      if (!Try(chain, edit)) return;
      improved = true;
      absence = AbsenceOf(chain);
    };
    ask([] { return true; });
    for (const double lead : kLeads) {
      ask([&] { return Leave(absence, lead); });
      ask([&] { return Settle(chain, absence, lead); });
    }
    return improved;
  }

  // Makes the edit of a chain that stays, and keeps it if it makes the step
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
      for (const Access& touch : state_.accesses(version)) {
        const ItemKind kind = state_.item(touch.item).kind;
        if (kind == ItemKind::kIn && from >= 0) {
          Raise(version, from, touch.slot, &absence);
          from = -1;
        } else if (kind == ItemKind::kOut) {
          from = touch.slot;
        }
      }
      if (from >= 0 && state_.OutItem(version) >= 0) {
        Raise(version, from, state_.slot_count(), &absence);
      }
    }
    return absence;
  }

  // To the highest run of [from, to), if that is higher.
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

  // At home on the host.
  bool Settle(int chain, const Absence& absence, double lead) {
    return absence.run >= 0 && model_.chains[chain].can_host &&
           EditHome(state_, chain, state_.slot_of(absence.run), lead);
  }

  // At home on the device, away around that run.
  bool Leave(const Absence& absence, double lead) {
    if (absence.run < 0) return false;
    const int slot = state_.slot_of(absence.run);
    Gap gap;
    return FindGap(state_, absence.version, slot, &gap) &&
           EditCopy(state_, gap, slot, lead);
  }

  SearchState& state_;
  const SearchModel& model_;
  WorkBudget& effort_;
  const double floor_ns_;
};

}  // namespace

bool PlacePersistentValues(SearchState& state, WorkBudget& effort,
                           double floor_ns) {
  return Rehomer(state, effort, floor_ns).Run();
}

}  // namespace loadline::planner
