// What the search finds for a few layers, stitched onto all of them, costs the
// same per layer; only its bytes must be searched for: those of the few are
// first guessed between the least and the most that the two problems can use,
// then corrected by what the stitched schedule turns out to need. Tested in
// find_layers_test.cc and transformer_test.cc.
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

constexpr int kRounds = 6;
// Where nothing was found so often in a row, nothing is.
constexpr int kMostMisses = 2;
// Where greedy descents get stuck, they often do not a little lower, and from
// there the way up is easy: searches at so many sixteenths of the bytes.
constexpr int kSearchParts[] = {16, 14, 16};
// Of the work: each of the first searches, and each after it with corrected
// bytes. More than for one of the ordinary searches, for all layers gain by it.
constexpr double kFirstShare = 1.5;
constexpr double kRepairShare = 0.25;
constexpr int64_t kLeastRepair = 50;  // per node
// In parts of the target: near enough to it, and so near above it that the
// whole is lowered edit by edit.
constexpr int64_t kNearlyFull = 500;
constexpr int64_t kTunable = 20;
// What could not be laid out is followed by something lower by this part.
constexpr int64_t kLayoutStep = 1000;
constexpr int64_t kTunedEdits = 1000;
constexpr double kLanePrice = 0.05;
constexpr size_t kRemembered = 64;
// All layers at once are searched on where there is so much work for each node:
// then single layers gain by it.
constexpr int64_t kLeastImprovement = 50;
constexpr double kNegligible = 1e-5;  // of the step: not worth another round

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
  if (expanded_from_.size() == kRemembered) {
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

// What a start was stitched from is better than what is left when its edits
// are folded.
std::vector<Schedule> LayerSearch::RestrictAll(
    const std::vector<Schedule>& schedules) const {
  std::vector<Schedule> folded;
  for (const Schedule& schedule : schedules) {
    const Schedule* known = Remembered(schedule);
    std::optional<Schedule> few =
        known != nullptr ? *known
                         : RestrictSchedule(All(), Few(), layers_.shrunk,
                                            layers_.matches.front(), schedule);
    if (few) folded.push_back(*std::move(few));
  }
  return folded;
}

int64_t LayerSearch::RepairWork(const PointSearchOptions& options) const {
  return std::max<int64_t>(
      kLeastRepair * few_model_.node_count,
      static_cast<int64_t>(kRepairShare * static_cast<double>(options.work)));
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
    std::vector<Way>& ways) const {
  std::optional<Expanded> best;
  Way best_way;
  const auto excess = [&](const Expanded& stitched) {
    return std::max<int64_t>(0, stitched.peak_bytes - most_bytes);
  };
  for (const Way& way : ways) {
    std::optional<Schedule> stitched = ExpandSchedule(
        All(), Few(), layers_.shrunk, layers_.matches[way.match], schedule);
    if (stitched && way.copies_rescheduled)
      stitched = ScheduleCopies(model_, *stitched);
    if (!stitched) continue;
    Expanded next;
    next.step_ns = FindTimes(model_, *stitched).step_ns;
    next.peak_bytes = FindLifetimes(model_, *stitched).peak_bytes;
    if (best && std::pair(excess(*best), best->step_ns) <=
                    std::pair(excess(next), next.step_ns)) {
      continue;
    }
    next.schedule = *std::move(stitched);
    best = std::move(next);
    best_way = way;
  }
  if (best && excess(*best) == 0) ways = {best_way};
  return best;
}

// Lowers what is a little too high, takes out what is no longer needed.
std::optional<FoundSchedule> LayerSearch::Tune(
    const Expanded& stitched, const PointSearchOptions& options,
    const WorkBudget& outside) const {
  SearchState state(model_, stitched.schedule, options.target_bytes);
  WorkBudget effort = outside;
  effort.left = kTunedEdits * effort.PriceOf(state);
  if (!LowerPeak(state, {.lane_price = kLanePrice}, effort)) {
    return std::nullopt;
  }
  // Without copies to time, an edit reads little of the sequence.
  const int64_t edits =
      model_.d2h_bytes_per_ns > 0 ? kTunedEdits : model_.node_count;
  effort.left = edits * effort.PriceOf(state);
  CleanUp(state, effort);
  const double step_ns = std::round(state.Makespan());
  return FoundSchedule{state.ToSchedule(), step_ns};
}

LayerSearch::Attempt LayerSearch::Begin(
    const std::vector<Schedule>& starts,
    const PointSearchOptions& options) const {
  Attempt hunt;
  hunt.options = options;
  if (options.repair) {
    // The first start is within the bytes and could not be laid out.
    const int64_t peak_bytes = FindLifetimes(model_, starts.front()).peak_bytes;
    hunt.options.target_bytes = std::min(
        options.target_bytes, peak_bytes - options.target_bytes / kLayoutStep);
  }
  hunt.most_bytes = options.target_bytes + options.target_bytes / kTunable;
  hunt.first_work =
      static_cast<int64_t>(kFirstShare * static_cast<double>(options.work));
  hunt.few = options;
  hunt.few.target_bytes = FewBytes(hunt.options.target_bytes);
  hunt.few.floor_ns = std::floor(options.floor_ns * part_);
  hunt.few.work = hunt.first_work;
  hunt.starts = RestrictAll(starts);
  for (size_t m = 0; m < layers_.matches.size(); ++m) {
    hunt.ways.push_back({m, false});
    if (model_.d2h_bytes_per_ns > 0) hunt.ways.push_back({m, true});
  }
  return hunt;
}

std::vector<FoundSchedule> LayerSearch::SearchFew(
    const Attempt& hunt, const WorkBudget& outside) const {
  std::vector<FoundSchedule> finds;
  std::vector<Schedule> starts = hunt.starts;
  PointSearchOptions few = hunt.few;
  for (int parts : kSearchParts) {
    few.target_bytes =
        hunt.few.target_bytes - hunt.few.target_bytes / 16 * (16 - parts);
    Merge(planner::SearchAtPoint(few_model_, few_orders_, starts, few, outside),
          finds);
    if (few.repair || outside.Interrupted()) break;
    if (parts < kSearchParts[0] && finds.empty()) break;
    if (!finds.empty()) {
      if (finds.front().step_ns <= few.floor_ns) break;
      starts.insert(starts.begin(), finds.front().schedule);
    }
    few.seed += kRounds;
  }
  return finds;
}

bool LayerSearch::Lower(Attempt& hunt) {
  if (++hunt.misses >= kMostMisses) return false;
  hunt.too_many = std::min(hunt.too_many, hunt.few.target_bytes);
  hunt.few.target_bytes -= hunt.few.target_bytes / kTunable;
  hunt.few.repair = false;
  hunt.few.work = hunt.first_work;
  ++hunt.few.seed;
  return hunt.few.target_bytes > hunt.enough;
}

bool LayerSearch::Correct(Attempt& hunt, int64_t few_bytes,
                          int64_t spare_bytes) const {
  PointSearchOptions& few = hunt.few;
  if (spare_bytes < 0) {
    hunt.too_many = std::min(hunt.too_many, few_bytes);
  } else {
    hunt.enough = std::max(hunt.enough, few_bytes);
  }
  few.target_bytes = few_bytes + static_cast<int64_t>(
                                     part_ * static_cast<double>(spare_bytes));
  if (few.target_bytes <= hunt.enough || few.target_bytes >= hunt.too_many) {
    if (hunt.enough < 0 || hunt.too_many - hunt.enough < 2) return false;
    few.target_bytes = hunt.enough + (hunt.too_many - hunt.enough) / 2;
  }
  few.work = RepairWork(hunt.options);
  few.repair = true;
  ++few.seed;
  return true;
}

// False after the last.
bool LayerSearch::Round(Attempt& hunt, const WorkBudget& outside) {
  const std::vector<FoundSchedule> few_finds = SearchFew(hunt, outside);
  if (few_finds.empty()) {
    if (!hunt.few.repair) return Lower(hunt);
    if (!hunt.finds.empty()) return false;
    hunt.few.repair = false;
    hunt.few.work = hunt.first_work;
    return true;
  }
  const uint64_t found_hash = HashOf(few_finds.front().schedule);
  if (found_hash == std::exchange(hunt.found_hash, found_hash) &&
      !hunt.finds.empty()) {
    return false;
  }
  // Some schedules of the few repeat badly; then another find may do.
  std::optional<Expanded> stitched;
  const FoundSchedule* taken = nullptr;
  for (const FoundSchedule& found : few_finds) {
    stitched = ExpandBest(found.schedule, hunt.most_bytes, hunt.ways);
    if (!stitched || stitched->peak_bytes > hunt.most_bytes) continue;
    taken = &found;
    break;
  }
  if (taken == nullptr) return Lower(hunt);
  hunt.misses = 0;
  std::optional<FoundSchedule> found = Tune(*stitched, hunt.options, outside);
  const bool too_fast = found && found->step_ns < hunt.options.floor_ns;
  const bool usable = found && !too_fast;
  if (usable) {
    Remember(found->schedule, taken->schedule);
    hunt.finds.push_back(*std::move(found));
    if (hunt.finds.back().step_ns <=
        (1 + kNegligible) * hunt.options.floor_ns) {
      return false;
    }
  }
  hunt.starts.insert(hunt.starts.begin(), taken->schedule);
  int64_t spare_bytes = hunt.options.target_bytes - stitched->peak_bytes;
  const int64_t nearly = hunt.options.target_bytes / kNearlyFull;
  if (usable && std::abs(spare_bytes) < nearly) return false;
  if (!usable && !too_fast) spare_bytes = std::min(spare_bytes, -nearly);
  if (too_fast) spare_bytes = -std::max(std::abs(spare_bytes), nearly);
  const int64_t few_bytes =
      FindLifetimes(few_model_, taken->schedule).peak_bytes;
  return Correct(hunt, few_bytes, spare_bytes);
}

std::vector<FoundSchedule> LayerSearch::SearchAtPoint(
    const std::vector<Schedule>& starts, const PointSearchOptions& options,
    const WorkBudget& outside) {
  Attempt hunt = Begin(starts, options);
  for (int round = 0; round < kRounds && !outside.Interrupted(); ++round) {
    if (!Round(hunt, outside)) break;
  }
  std::vector<FoundSchedule> finds;
  Merge(std::move(hunt.finds), finds);
  Improve(hunt.options, outside, finds);
  return finds;
}

void LayerSearch::Improve(const PointSearchOptions& options,
                          const WorkBudget& outside,
                          std::vector<FoundSchedule>& finds) {
  const int64_t least = kLeastImprovement * model_.node_count;
  if (finds.empty() || options.work < least) return;
  const Schedule stitched = finds.front().schedule;
  PointSearchOptions improve = options;
  improve.repair = true;
  std::vector<FoundSchedule> better =
      planner::SearchAtPoint(model_, {stitched}, {stitched}, improve, outside);
  if (const Schedule* few = Remembered(stitched)) {
    const Schedule from = *few;
    for (const FoundSchedule& found : better) Remember(found.schedule, from);
  }
  Merge(std::move(better), finds);
}

}  // namespace loadline::planner
