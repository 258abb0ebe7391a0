// Tested in tests/planner/bound/bound_needs_test.cc.
#include "planner/bound/bound_needs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace loadline::planner {
namespace {

// The epochs in which a value is needed: [first, second).
std::vector<std::pair<int, int>> FindNeeds(const BoundContext& context, int v,
                                           int birth) {
  const CutEpochs& epochs = context.epochs;
  std::vector<std::pair<int, int>> needs;
  if (context.model.is_output[v] && epochs.to_end()) {
    needs.push_back({epochs.count(), epochs.count() + 1});
  }
  for (const NodeId id : context.model.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (!epochs.Counts(n)) continue;
    if (epochs.IsCut(n)) {
      // There when the cut starts, even if nothing reads it any more.
      if (epochs.From(n) > birth) {
        needs.push_back({epochs.From(n) - 1, epochs.From(n)});
      }
    } else if (epochs.From(n) >= birth) {
      needs.push_back({epochs.From(n), epochs.Until(n)});
    }
  }
  std::sort(needs.begin(), needs.end());
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  return needs;
}

void AddFreeNeeds(const BoundContext& context, const ValueColumns& values,
                  int v) {
  const int producer = context.model.producer[v];
  const int made = producer < 0 ? -1 : context.free.Ran(producer);
  // ran[maker] - ran[reader] <= available; -1: surely made, or surely later.
  const auto add = [&](int reader) {
    Terms terms = values.Available(v, 1);
    if (made >= 0) terms.push_back({made, -1});
    if (reader >= 0) terms.push_back({reader, 1});
    context.rows.AtLeast(made >= 0 ? 0 : 1, terms);
  };
  if (made >= 0 && context.model.is_output[v] && context.epochs.to_end()) {
    add(-1);
  }
  for (const NodeId id : context.model.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (!context.epochs.Counts(n)) continue;
    if (context.free.Has(n)) {
      add(context.free.Ran(n));
    } else if (made >= 0 && context.epochs.From(n) >= 1 &&
               !context.epochs.IsCut(n)) {
      add(-1);
    }
  }
}

}  // namespace

void AddCarryRows(const BoundContext& context, const ValueColumns& values) {
  BoundRows& rows = context.rows;
  for (int i = 1; i < context.epochs.count(); ++i) {
    for (const auto& [v, later] : values.In(i + 1)) {
      const ValueColumn* now = values.Find(v, i);
      if (now == nullptr) continue;
      Terms terms = values.Available(v, i);
      terms.push_back({later.keep, -1});
      rows.AtLeast(0, terms);
      if (later.host >= 0) {
        rows.AtLeast(0, {{later.host, 1}, {now->host, -1}});
      }
      // The encoded value may have been on the host when the epoch began.
      if (later.in >= 0) continue;
      for (size_t c = 0; c < later.encoded.size(); ++c) {
        Terms encoded = values.Available(v, i);
        encoded.push_back({now->encoded[c], 1});
        encoded.push_back({later.encoded[c], -1});
        rows.AtLeast(0, encoded);
      }
    }
  }
}

void AddNeedRows(const BoundContext& context, const TrackedValues& tracked,
                 const ValueColumns& values) {
  for (int v = 0; v < context.model.value_count; ++v) {
    if (tracked.Birth(v) > context.epochs.count()) continue;
    if (context.free.enabled()) AddFreeNeeds(context, values, v);
    const int producer = context.model.producer[v];
    if (producer >= 0 && context.free.Has(producer)) continue;
    for (const auto& [from, until] : FindNeeds(context, v, tracked.Birth(v))) {
      Terms terms = values.Available(v, from);
      for (int i = from + 1; i < until; ++i) {
        Append(terms, values.Arrivals(v, i), 1);
      }
      context.rows.AtLeast(1, terms);
    }
  }
}

}  // namespace loadline::planner
