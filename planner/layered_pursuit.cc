// What the search finds for a few layers, stitched onto all of them, costs the
// same per layer; only its bytes must be searched for: those of the few are
// first guessed between the least and the most that the two problems can use,
// then corrected by what the stitched schedule turns out to need. Tested in
// layers_test.cc and transformer_test.cc.
#include "planner/layered_pursuit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/bound.h"
#include "planner/retime.h"
#include "planner/simulate.h"

namespace loadline::planner {
namespace {

// What the few layers come to; the search is quick and good at that size.
constexpr int kFewNodes = 1200;
constexpr int kFewLayers = 8, kMostLayers = 100;
constexpr int kBlocks[] = {1, 2, 4};
constexpr int kRounds = 5;
// Of the work: the first search, and each after it with corrected bytes. More
// than for one of the ordinary searches, for all layers gain by it.
constexpr double kFirstShare = 1.5;
constexpr double kRepairShare = 0.25;
constexpr int64_t kLeastRepair = 50;  // per node
// In parts of the target: near enough to it, and so near above it that the
// whole is lowered edit by edit.
constexpr int64_t kNearlyFull = 500;
constexpr int64_t kTunable = 20;
constexpr int64_t kTunedEdits = 1000;
constexpr double kLanePrice = 0.05;

}  // namespace

LayeredPursuit::LayeredPursuit(const Model& model, const Layers& layers,
                               Shrunk shrunk, bool allow_recompute,
                               bool allow_offload, const Choices& choices)
    : model_(model),
      layers_(layers),
      shrunk_(std::move(shrunk)),
      few_model_(
          MakeModel(shrunk_.problem, allow_recompute, allow_offload, choices)),
      few_orders_(StartOrders(few_model_)) {
  for (int blocks : kBlocks) {
    matches_.push_back(MatchLayers(layers_, shrunk_.layers, blocks));
  }
  least_bytes_ = BoundPeak(model_).bytes;
  few_least_bytes_ = BoundPeak(few_model_).bytes;
  peak_bytes_ = FindLifetimes(model_, GivenOrder(model_)).peak_bytes;
  few_peak_bytes_ =
      FindLifetimes(few_model_, GivenOrder(few_model_)).peak_bytes;
}

std::unique_ptr<LayeredPursuit> LayeredPursuit::Make(const Model& model,
                                                     const Layers& layers,
                                                     bool allow_recompute,
                                                     bool allow_offload,
                                                     const Choices& choices) {
  const int alike = layers.alike_upper - layers.alike_lower;
  int in_layers = 0;
  for (int layer : layers.node_layer) {
    in_layers += layer >= layers.alike_lower && layer < layers.alike_upper;
  }
  const int few = static_cast<int>(
      std::clamp<int64_t>(static_cast<int64_t>(kFewNodes) * alike / in_layers,
                          kFewLayers, kMostLayers));
  if (2 * few > alike) return nullptr;
  std::optional<Shrunk> shrunk =
      Shrink(*model.problem, layers, layers.count - alike + few);
  if (!shrunk ||
      2 * static_cast<int>(shrunk->problem.nodes.size()) > model.node_count) {
    return nullptr;
  }
  return std::unique_ptr<LayeredPursuit>(
      new LayeredPursuit(model, layers, *std::move(shrunk), allow_recompute,
                         allow_offload, choices));
}

std::vector<Schedule> LayeredPursuit::FoldAll(
    const std::vector<Schedule>& schedules) const {
  std::vector<Schedule> folded;
  for (const Schedule& schedule : schedules) {
    std::optional<Schedule> few =
        Fold(All(), Few(), shrunk_, matches_.front(), schedule);
    if (few) folded.push_back(*std::move(few));
  }
  return folded;
}

int64_t LayeredPursuit::FewBytes(int64_t bytes) const {
  const double part =
      static_cast<double>(bytes - least_bytes_) /
      static_cast<double>(std::max<int64_t>(1, peak_bytes_ - least_bytes_));
  return few_least_bytes_ +
         static_cast<int64_t>(
             part * static_cast<double>(few_peak_bytes_ - few_least_bytes_));
}

std::optional<LayeredPursuit::Stitched> LayeredPursuit::StitchBest(
    const Schedule& schedule, int64_t most_bytes,
    std::vector<Way>& ways) const {
  std::optional<Stitched> best;
  Way best_way;
  const auto excess = [&](const Stitched& stitched) {
    return std::max<int64_t>(0, stitched.peak_bytes - most_bytes);
  };
  for (const Way& way : ways) {
    std::optional<Schedule> stitched =
        Stitch(All(), Few(), shrunk_, matches_[way.match], schedule);
    if (stitched && way.retimed) stitched = Retime(model_, *stitched);
    if (!stitched) continue;
    Stitched next;
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
std::optional<Found> LayeredPursuit::Tune(const Stitched& stitched,
                                          const PursuitOptions& options,
                                          const Effort& outside) const {
  SearchState state(model_, stitched.schedule, options.target_bytes);
  Effort effort = outside;
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
  return Found{state.ToSchedule(), step_ns};
}

std::vector<Found> LayeredPursuit::Pursue(const std::vector<Schedule>& starts,
                                          const PursuitOptions& options,
                                          const Effort& outside) const {
  const double part = static_cast<double>(few_model_.compute_ns) /
                      static_cast<double>(model_.compute_ns);
  PursuitOptions few = options;
  few.target_bytes = FewBytes(options.target_bytes);
  few.floor_ns = std::floor(options.floor_ns * part);
  const int64_t first_work =
      static_cast<int64_t>(kFirstShare * static_cast<double>(options.work));
  const int64_t repair_work = std::max<int64_t>(
      kLeastRepair * few_model_.node_count,
      static_cast<int64_t>(kRepairShare * static_cast<double>(options.work)));
  few.work = first_work;
  const int64_t most_bytes =
      options.target_bytes + options.target_bytes / kTunable;
  std::vector<Schedule> few_starts = FoldAll(starts);
  std::vector<Way> ways;
  for (size_t m = 0; m < matches_.size(); ++m) {
    ways.push_back({m, false});
    if (model_.d2h_bytes_per_ns > 0) ways.push_back({m, true});
  }
  std::vector<Found> finds;
  // Bytes of the few whose plan turned out too high, and not.
  int64_t too_many = std::numeric_limits<int64_t>::max(), enough = -1;
  for (int round = 0; round < kRounds && !outside.Interrupted(); ++round) {
    const std::vector<Found> few_finds =
        planner::Pursue(few_model_, few_orders_, few_starts, few, outside);
    if (few_finds.empty()) {
      if (!few.repair) break;
      few.repair = false;
      few.work = first_work;
      continue;
    }
    // Some schedules of the few repeat badly; then another find may do.
    std::optional<Stitched> stitched;
    size_t taken = 0;
    for (; taken < few_finds.size(); ++taken) {
      stitched = StitchBest(few_finds[taken].schedule, most_bytes, ways);
      if (stitched && stitched->peak_bytes <= most_bytes) break;
    }
    if (taken == few_finds.size()) {
      too_many = std::min(too_many, few.target_bytes);
      few.target_bytes -= few.target_bytes / kTunable;
      if (few.target_bytes <= enough) break;
      few.repair = false;
      few.work = first_work;
      ++few.seed;
      continue;
    }
    const int64_t spare = options.target_bytes - stitched->peak_bytes;
    std::optional<Found> found = Tune(*stitched, options, outside);
    const bool too_fast = found && found->step_ns < options.floor_ns;
    if (spare < 0 || too_fast) {
      too_many = std::min(too_many, few.target_bytes);
    } else {
      enough = std::max(enough, few.target_bytes);
    }
    if (found && !too_fast) {
      finds.push_back(*std::move(found));
      if (finds.back().step_ns <= options.floor_ns) break;
    }
    if (std::abs(spare) < options.target_bytes / kNearlyFull) break;
    few.target_bytes += static_cast<int64_t>(
        part * static_cast<double>(too_fast ? -std::abs(spare) : spare));
    if (few.target_bytes <= enough || few.target_bytes >= too_many) {
      if (enough < 0 || too_many - enough < 2) break;
      few.target_bytes = enough + (too_many - enough) / 2;
    }
    few.work = repair_work;
    few.repair = true;
    ++few.seed;
    few_starts.insert(few_starts.begin(), few_finds[taken].schedule);
  }
  std::stable_sort(
      finds.begin(), finds.end(),
      [](const Found& a, const Found& b) { return a.step_ns < b.step_ns; });
  return finds;
}

}  // namespace loadline::planner
