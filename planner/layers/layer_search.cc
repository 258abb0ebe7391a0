// A schedule of a few layers, expanded to all of them, costs the same per
// layer; only its bytes must be searched for: those of the few layers are first
// interpolated between the fewest and the most that the two problems can use,
// then corrected by what the expanded schedule needs. Tested in
// layer_search_test.cc and transformer_test.cc.
#include "planner/layers/layer_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/bound/bound.h"
#include "planner/layers/restrict_layers.h"
#include "planner/layers/schedule_copies.h"
#include "planner/schedule/mix.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

uint64_t HashOf(const Schedule& schedule) {
  uint64_t hash = 0;
  for (const Item& item : schedule.items) hash = Mix(hash, item);
  return hash;
}

// Keeps the fastest first, of equally fast the first.
void Merge(std::vector<FoundSchedule> from, std::vector<FoundSchedule>& to) {
  for (FoundSchedule& found : from) to.push_back(std::move(found));
  const auto faster = [](const FoundSchedule& a, const FoundSchedule& b) {
    return a.step_ns < b.step_ns;
  };
  std::stable_sort(to.begin(), to.end(), faster);
}

}  // namespace

LayerSearch::LayerSearch(const SearchModel& model, const CoarseLayers& few,
                         bool allow_recompute, bool allow_offload,
                         const Permissions& permissions)
    : model_(model),
      layers_(few),
      few_model_(MakeSearchModel(
          few.shrunk.problem,
          {allow_recompute, allow_offload, permissions, model.tuning})),
      few_orders_(SeedOrders(few_model_)),
      part_(static_cast<double>(few_model_.compute_ns) /
            static_cast<double>(model_.compute_ns)) {
  least_bytes_ = BoundPeak(model_).bytes;
  few_least_bytes_ = BoundPeak(few_model_).bytes;
  peak_bytes_ = FindLifetimes(model_, GivenOrder(model_)).peak_bytes;
  few_peak_bytes_ =
      FindLifetimes(few_model_, GivenOrder(few_model_)).peak_bytes;
}

void LayerSearch::Remember(const Schedule& all, const Schedule& few) {
  if (expanded_from_.size() == Tuning().most_remembered) {
    expanded_from_.erase(expanded_from_.begin());
  }
  expanded_from_.emplace_back(HashOf(all), few);
}

const Schedule* LayerSearch::Remembered(const Schedule& all) const {
  const auto known = std::find_if(
      expanded_from_.begin(), expanded_from_.end(),
      [hash = HashOf(all)](const auto& k) { return k.first == hash; });
  return known == expanded_from_.end() ? nullptr : &known->second;
}

// The few layers that a start was expanded from are better than its own first
// layers, which edits have changed.
std::vector<Schedule> LayerSearch::RestrictAll(
    const std::vector<Schedule>& schedules) const {
  std::vector<Schedule> restricted;
  for (const Schedule& schedule : schedules) {
    const Schedule* known = Remembered(schedule);
    std::optional<Schedule> few =
        known != nullptr ? *known
                         : RestrictSchedule(All(), Few(), layers_.shrunk,
                                            layers_.matches.front(), schedule);
    if (few) restricted.push_back(*std::move(few));
  }
  return restricted;
}

int64_t LayerSearch::RepairWork(const PointSearchOptions& options) const {
  return std::max<int64_t>(
      Tuning().least_repair_edits_per_node * few_model_.node_count,
      static_cast<int64_t>(Tuning().repair_share *
                           static_cast<double>(options.work)));
}

int64_t LayerSearch::FewBytes(int64_t bytes) const {
  const double part =
      static_cast<double>(bytes - least_bytes_) /
      static_cast<double>(std::max<int64_t>(1, peak_bytes_ - least_bytes_));
  return few_least_bytes_ +
         static_cast<int64_t>(
             part * static_cast<double>(few_peak_bytes_ - few_least_bytes_));
}

std::optional<LayerSearch::Expanded> LayerSearch::ExpandBest(
    const Schedule& schedule, int64_t most_bytes,
    std::vector<Variant>& variants) const {
  std::optional<Expanded> best;
  Variant best_variant;
  const auto excess = [&](const Expanded& expanded) {
    return std::max<int64_t>(0, expanded.peak_bytes - most_bytes);
  };
  for (const Variant& variant : variants) {
    std::optional<Schedule> expanded = ExpandSchedule(
        All(), Few(), layers_.shrunk, layers_.matches[variant.match], schedule);
    if (expanded && variant.copies_rescheduled) {
      expanded = ScheduleCopies(model_, *expanded);
    }
    if (!expanded) continue;
    Expanded next;
    next.step_ns = FindTimes(model_, *expanded).step_ns;
    next.peak_bytes = FindLifetimes(model_, *expanded).peak_bytes;
    if (best && std::pair(excess(*best), best->step_ns) <=
                    std::pair(excess(next), next.step_ns)) {
      continue;
    }
    next.schedule = *std::move(expanded);
    best = std::move(next);
    best_variant = variant;
  }
  if (best && excess(*best) == 0) variants = {best_variant};
  return best;
}

// Lowers a schedule that is a little too high and cleans it up.
std::optional<FoundSchedule> LayerSearch::Tune(
    const Expanded& expanded, const PointSearchOptions& options,
    const WorkBudget& outside) const {
  SearchState state(model_, expanded.schedule, options.target_bytes);
  WorkBudget work = outside;
  work.left = Tuning().tuned_edits * work.PriceOf(state);
  if (!LowerPeak(state, {.lane_price = Tuning().lane_price}, work)) {
    return std::nullopt;
  }
  // Without copies to time, an edit reads little of the sequence.
  const int64_t edits =
      model_.d2h_bytes_per_ns > 0 ? Tuning().tuned_edits : model_.node_count;
  work.left = edits * work.PriceOf(state);
  CleanUp(state, work);
  const double step_ns = std::round(state.Makespan());
  return FoundSchedule{state.ToSchedule(), step_ns};
}

LayerSearch::Attempt LayerSearch::Begin(
    const std::vector<Schedule>& starts,
    const PointSearchOptions& options) const {
  Attempt attempt;
  attempt.options = options;
  if (options.repair) {
    // The first start is within the bytes and could not be laid out.
    const int64_t peak_bytes = FindLifetimes(model_, starts.front()).peak_bytes;
    attempt.options.target_bytes =
        std::min(options.target_bytes,
                 peak_bytes - options.target_bytes / Tuning().layout_step_part);
  }
  attempt.most_bytes =
      options.target_bytes + options.target_bytes / Tuning().tunable_part;
  attempt.first_work = static_cast<int64_t>(Tuning().first_share *
                                            static_cast<double>(options.work));
  attempt.few = options;
  attempt.few.target_bytes = FewBytes(attempt.options.target_bytes);
  attempt.few.floor_ns = std::floor(options.floor_ns * part_);
  attempt.few.work = attempt.first_work;
  attempt.starts = RestrictAll(starts);
  for (size_t m = 0; m < layers_.matches.size(); ++m) {
    attempt.variants.push_back({m, false});
    if (Tuning().schedule_copies && model_.d2h_bytes_per_ns > 0) {
      attempt.variants.push_back({m, true});
    }
  }
  return attempt;
}

std::vector<FoundSchedule> LayerSearch::SearchFew(
    const Attempt& attempt, const WorkBudget& outside) const {
  std::vector<FoundSchedule> finds;
  std::vector<Schedule> starts = attempt.starts;
  PointSearchOptions few = attempt.few;
  for (int parts : Tuning().target_sixteenths) {
    few.target_bytes =
        attempt.few.target_bytes - attempt.few.target_bytes / 16 * (16 - parts);
    Merge(planner::SearchAtPoint(few_model_, few_orders_, starts, few, outside),
          finds);
    if (few.repair || outside.Interrupted()) break;
    if (parts < Tuning().target_sixteenths[0] && finds.empty()) break;
    if (!finds.empty()) {
      if (finds.front().step_ns <= few.floor_ns) break;
      starts.insert(starts.begin(), finds.front().schedule);
    }
    few.seed += Tuning().most_rounds;
  }
  return finds;
}

bool LayerSearch::Lower(Attempt& attempt) const {
  if (++attempt.misses >= Tuning().most_misses) return false;
  attempt.too_many = std::min(attempt.too_many, attempt.few.target_bytes);
  attempt.few.target_bytes -= attempt.few.target_bytes / Tuning().tunable_part;
  attempt.few.repair = false;
  attempt.few.work = attempt.first_work;
  ++attempt.few.seed;
  return attempt.few.target_bytes > attempt.enough;
}

bool LayerSearch::Correct(Attempt& attempt, int64_t few_bytes,
                          int64_t spare_bytes) const {
  PointSearchOptions& few = attempt.few;
  if (spare_bytes < 0) {
    attempt.too_many = std::min(attempt.too_many, few_bytes);
  } else {
    attempt.enough = std::max(attempt.enough, few_bytes);
  }
  few.target_bytes = few_bytes + static_cast<int64_t>(
                                     part_ * static_cast<double>(spare_bytes));
  if (few.target_bytes <= attempt.enough ||
      few.target_bytes >= attempt.too_many) {
    if (attempt.enough < 0 || attempt.too_many - attempt.enough < 2)
      return false;
    few.target_bytes = attempt.enough + (attempt.too_many - attempt.enough) / 2;
  }
  few.work = RepairWork(attempt.options);
  few.repair = true;
  ++few.seed;
  return true;
}

// False after the last.
bool LayerSearch::Round(Attempt& attempt, const WorkBudget& outside) {
  const std::vector<FoundSchedule> few_finds = SearchFew(attempt, outside);
  if (few_finds.empty()) {
    if (!attempt.few.repair) return Lower(attempt);
    if (!attempt.finds.empty()) return false;
    attempt.few.repair = false;
    attempt.few.work = attempt.first_work;
    return true;
  }
  const uint64_t found_hash = HashOf(few_finds.front().schedule);
  if (found_hash == std::exchange(attempt.found_hash, found_hash) &&
      !attempt.finds.empty()) {
    return false;
  }
  // Some schedules of the few layers expand badly; then another find may not.
  std::optional<Expanded> expanded;
  const FoundSchedule* taken = nullptr;
  for (const FoundSchedule& found : few_finds) {
    expanded = ExpandBest(found.schedule, attempt.most_bytes, attempt.variants);
    if (!expanded || expanded->peak_bytes > attempt.most_bytes) continue;
    taken = &found;
    break;
  }
  if (taken == nullptr) return Lower(attempt);
  attempt.misses = 0;
  std::optional<FoundSchedule> found =
      Tune(*expanded, attempt.options, outside);
  const bool too_fast = found && found->step_ns < attempt.options.floor_ns;
  const bool usable = found && !too_fast;
  if (usable) {
    Remember(found->schedule, taken->schedule);
    attempt.finds.push_back(*std::move(found));
    if (attempt.finds.back().step_ns <=
        (1 + Tuning().negligible) * attempt.options.floor_ns) {
      return false;
    }
  }
  attempt.starts.insert(attempt.starts.begin(), taken->schedule);
  int64_t spare_bytes = attempt.options.target_bytes - expanded->peak_bytes;
  const int64_t nearly =
      attempt.options.target_bytes / Tuning().nearly_full_part;
  if (usable && std::abs(spare_bytes) < nearly) return false;
  if (!usable && !too_fast) spare_bytes = std::min(spare_bytes, -nearly);
  if (too_fast) spare_bytes = -std::max(std::abs(spare_bytes), nearly);
  const int64_t few_bytes =
      FindLifetimes(few_model_, taken->schedule).peak_bytes;
  return Correct(attempt, few_bytes, spare_bytes);
}

std::vector<FoundSchedule> LayerSearch::SearchAtPoint(
    const std::vector<Schedule>& starts, const PointSearchOptions& options,
    const WorkBudget& outside) {
  Attempt attempt = Begin(starts, options);
  for (int round = 0; round < Tuning().most_rounds && !outside.Interrupted();
       ++round) {
    if (!Round(attempt, outside)) break;
  }
  std::vector<FoundSchedule> finds;
  Merge(std::move(attempt.finds), finds);
  Improve(attempt.options, outside, finds);
  return finds;
}

void LayerSearch::Improve(const PointSearchOptions& options,
                          const WorkBudget& outside,
                          std::vector<FoundSchedule>& finds) {
  const int64_t least =
      Tuning().least_improvement_work_per_node * model_.node_count;
  if (!Tuning().improve_all || finds.empty() || options.work < least) return;
  const Schedule expanded = finds.front().schedule;
  PointSearchOptions improve = options;
  improve.repair = true;
  std::vector<FoundSchedule> better =
      planner::SearchAtPoint(model_, {expanded}, {expanded}, improve, outside);
  if (const Schedule* few = Remembered(expanded)) {
    const Schedule from = *few;
    for (const FoundSchedule& found : better) Remember(found.schedule, from);
  }
  Merge(std::move(better), finds);
}

}  // namespace loadline::planner
