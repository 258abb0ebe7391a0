#include "tests/planner/support/random_edits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/search/edits.h"

namespace loadline::planner {

void EditAtRandom(SearchState& state, TestRandom& random) {
  const SearchModel& model = state.model();
  const int slot = static_cast<int>(random.In(0, state.slot_count() - 1));
  const int kind = static_cast<int>(random.In(0, 7));
  Gap gap;
  const int value = static_cast<int>(random.In(0, model.value_count - 1));
  if (kind == 0 && FindGap(state, value, slot, &gap)) {
    EditRecompute(state, gap,
                  {.items = static_cast<int>(random.In(1, 6)),
                   .copies = static_cast<uint32_t>(random.In(0, 7))});
  } else if (kind == 1 && FindGap(state, value, slot, &gap)) {
    EditCopy(state, gap, slot, static_cast<double>(random.In(1, 40)) / 10);
  } else if (kind == 6 && FindGap(state, value, slot, &gap)) {
    const auto codings = static_cast<int64_t>(model.codings[value].size());
    if (codings == 0) return;
    EditStash(state, gap, static_cast<int>(random.In(0, codings - 1)),
              random.OneIn(3));
  } else if (kind == 7 && state.item_at(slot) >= 0) {
    const Item& what = state.item(state.item_at(slot));
    if (what.kind != ItemKind::kRun || model.jobs[what.id].node < 0) return;
    const std::vector<int>& ways = model.jobs_of[model.jobs[what.id].node];
    EditVariant(state, state.item_at(slot),
                ways[random.In(0, static_cast<int64_t>(ways.size()) - 1)]);
  } else if (kind == 2 && !model.chains.empty()) {
    const int chain = static_cast<int>(
        random.In(0, static_cast<int64_t>(model.chains.size()) - 1));
    if (state.host_home(chain)) {
      EditUnhome(state, chain);
    } else {
      EditHome(state, chain, slot, 1.0);
    }
  } else if (state.item_at(slot) >= 0) {
    if (kind == 3) {
      EditDrop(state, state.item_at(slot));
    } else {
      const int item = state.item_at(slot);
      const int gap_slot = state.GapBefore(static_cast<int>(std::clamp<int64_t>(
          slot + random.In(-12, 12), 0, state.slot_count())));
      if (gap_slot >= 0) state.Move(item, gap_slot);
    }
  }
}

Schedule RandomSchedule(const SearchModel& model, TestRandom& random,
                        int edits) {
  SearchState state(model, GivenOrder(model), 0);
  for (int edit = 0; edit < edits; ++edit) {
    EditAtRandom(state, random);
    if (state.valid()) {
      state.Commit();
    } else {
      state.Undo(0);
    }
    if (edit % 16 == 15) state.Respread();
  }
  return state.ToSchedule();
}

}  // namespace loadline::planner
