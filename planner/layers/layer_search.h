// The search for problems with many equal layers: plans a few of them and
// expands.
#ifndef LOADLINE_PLANNER_LAYERS_LAYER_SEARCH_H_
#define LOADLINE_PLANNER_LAYERS_LAYER_SEARCH_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/layers/coarsen_layers.h"
#include "planner/layers/expand_layers.h"
#include "planner/search/point_search.h"

namespace loadline::planner {

class LayerSearch {
 public:
  // `model` and `few` (of its problem) must outlive it; the flags as for
  // MakeSearchModel.
  LayerSearch(const SearchModel& model, const CoarseLayers& few,
              bool allow_recompute, bool allow_offload,
              const Permissions& permissions);

  // As planner::SearchAtPoint from the start orders, but the work is spent on
  // the few layers. Remembers the few layers that its finds were expanded from.
  std::vector<FoundSchedule> SearchAtPoint(const std::vector<Schedule>& starts,
                                           const PointSearchOptions& options,
                                           const WorkBudget& outside);

 private:
  struct Expanded {
    Schedule schedule;
    double step_ns = 0;
    int64_t peak_bytes = 0;
  };
  // One of the ways to expand.
  struct Variant {
    size_t match = 0;
    bool copies_rescheduled = false;
  };
  // The state of one call of SearchAtPoint.
  struct Attempt {
    PointSearchOptions options;    // for all layers
    PointSearchOptions few;        // for the few, as corrected so far
    int64_t first_work = 0;        // of a search that is no repair
    int64_t most_bytes = 0;        // an expanded schedule above is useless
    std::vector<Schedule> starts;  // of the few
    std::vector<Variant> variants;
    // The fewest bytes of the few layers whose plan was too high, and the most
    // whose plan was not.
    int64_t too_many = INT64_MAX, enough = -1;
    int misses = 0;           // rounds in a row that gave no schedule of all
    uint64_t found_hash = 0;  // of what the last round found for the few
    std::vector<FoundSchedule> finds;
  };

  Attempt Begin(const std::vector<Schedule>& starts,
                const PointSearchOptions& options) const;
  bool Round(Attempt& attempt, const WorkBudget& outside);
  // The search of the few layers.
  std::vector<FoundSchedule> SearchFew(const Attempt& attempt,
                                       const WorkBudget& outside) const;
  // The fastest of the variants within `most_bytes`, which then is the only one
  // left; if none is within, the nearest.
  std::optional<Expanded> ExpandBest(const Schedule& schedule,
                                     int64_t most_bytes,
                                     std::vector<Variant>& variants) const;
  std::optional<FoundSchedule> Tune(const Expanded& expanded,
                                    const PointSearchOptions& options,
                                    const WorkBudget& outside) const;
  // Continues the search over all layers from the fastest find.
  void Improve(const PointSearchOptions& options, const WorkBudget& outside,
               std::vector<FoundSchedule>& finds);
  // Lowers the bytes of the few layers for the next round; false: give up.
  bool Lower(Attempt& attempt) const;
  // Corrects them by the bytes that all layers have to spare with a plan of
  // `few_bytes` for the few.
  bool Correct(Attempt& attempt, int64_t few_bytes, int64_t spare_bytes) const;

  const SearchTuning::Layers& Tuning() const { return model_.tuning.layers; }
  LayeredModel All() const { return {&model_, &layers_.all}; }
  LayeredModel Few() const { return {&few_model_, &layers_.shrunk.layers}; }
  void Remember(const Schedule& all, const Schedule& few);
  // The few layers that `all` was expanded from; null if that is not known.
  const Schedule* Remembered(const Schedule& all) const;
  std::vector<Schedule> RestrictAll(
      const std::vector<Schedule>& schedules) const;
  int64_t RepairWork(const PointSearchOptions& options) const;
  int64_t FewBytes(int64_t bytes) const;

  const SearchModel& model_;
  const CoarseLayers& layers_;
  const SearchModel few_model_;
  const std::vector<Schedule> few_orders_;
  const double part_;  // of the compute that is in the few
  // Fewest bytes of any plan, and the peak of the given order.
  int64_t least_bytes_ = 0, peak_bytes_ = 0;
  int64_t few_least_bytes_ = 0, few_peak_bytes_ = 0;
  // Hash of a schedule of all layers, and the few that it was expanded from.
  std::vector<std::pair<uint64_t, Schedule>> expanded_from_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_LAYER_SEARCH_H_
