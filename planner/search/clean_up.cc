// Drops reruns, codecs and copies that later edits made useless, the most
// expensive first; then runs each node as its fastest variant that fits. Tested
// in clean_up_test.cc.
#include <algorithm>
#include <cmath>

#include "planner/search/edits.h"
#include "planner/search/search.h"

namespace loadline::planner {

namespace {

bool Encodes(const SearchModel& model, const Item& what) {
  return what.kind == ItemKind::kRun && model.jobs[what.id].node < 0 &&
         !model.jobs[what.id].decodes;
}

// Whether the pending edits lengthen neither excess area nor step, and keep the
// step at or above the floor.
bool Pays(SearchState& state, double excess_area, double step_ns,
          double floor_ns) {
  if (!state.valid() || state.excess_area() > excess_area) return false;
  const double now_ns = state.Makespan();
  return now_ns <= step_ns && std::round(now_ns) >= floor_ns;
}

// Runs every node as its fastest variant that still fits.
void UseFasterVariants(SearchState& state, WorkBudget& effort,
                       double floor_ns) {
  const SearchModel& model = state.model();
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item what = state.item(item);
    if (what.kind != ItemKind::kRun || model.jobs[what.id].node < 0) continue;
    for (int job : model.jobs_of[model.jobs[what.id].node]) {
      if (job == what.id || effort.Spent()) break;
      effort.left -= effort.PriceOf(state);
      const double excess_area = state.excess_area();
      const double step_ns = state.Makespan();
      EditVariant(state, item, job);
      if (Pays(state, excess_area, step_ns, floor_ns)) {
        state.Commit();
        break;
      }
      state.Undo(0);
    }
  }
}

}  // namespace

void CleanUp(SearchState& state, WorkBudget& effort, double floor_ns) {
  const SearchModel& model = state.model();
  if (!model.tuning.clean_up.enabled) return;
  state.Respread();
  struct Extra {
    int item;   // -1: the host home of a chain
    int chain;  // -1: an item
    double cost_ns;
  };
  std::vector<Extra> extras;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item& what = state.item(item);
    if (what.kind == ItemKind::kIn) {
      extras.push_back({item, -1, model.in_ns[what.id]});
    } else if (state.Spare(item) || Encodes(model, what)) {
      extras.push_back({item, -1, static_cast<double>(model.node_ns[what.id])});
    }
  }
  for (size_t c = 0; c < model.chains.size(); ++c) {
    if (!state.host_home(static_cast<int>(c))) continue;
    const int first = model.chains[c].versions.front();
    extras.push_back({-1, static_cast<int>(c), 2 * model.in_ns[first]});
  }
  std::stable_sort(
      extras.begin(), extras.end(),
      [](const Extra& a, const Extra& b) { return a.cost_ns > b.cost_ns; });
  for (const Extra& extra : extras) {
    if (effort.Spent()) return;
    effort.left -= effort.PriceOf(state);
    if (extra.item >= 0) {
      if (!state.alive(extra.item)) continue;  // dropped with another
    }
    const double excess_area = state.excess_area();
    const double step_ns = state.Makespan();
    const bool done = extra.item >= 0 ? EditDrop(state, extra.item)
                                      : EditUnhome(state, extra.chain);
    if (done && Pays(state, excess_area, step_ns, floor_ns)) {
      state.Commit();
    } else {
      state.Undo(0);
    }
  }
  if (model.tuning.clean_up.faster_variants) {
    UseFasterVariants(state, effort, floor_ns);
  }
}

}  // namespace loadline::planner
