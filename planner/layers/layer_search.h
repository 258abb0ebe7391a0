// The search for problems with many equal layers: plans a few of them and
// stitches.
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
  // the few layers. Remembers what its finds were stitched from.
  std::vector<FoundSchedule> SearchAtPoint(const std::vector<Schedule>& starts,
                                           const PointSearchOptions& options,
                                           const WorkBudget& outside);

 private:
  struct Expanded {
    Schedule schedule;
    double step_ns = 0;
    int64_t peak_bytes = 0;
  };
  // A way to stitch.
  struct Way {
    size_t match = 0;
    bool copies_rescheduled = false;
  };
  // One call of SearchAtPoint: what is looked for, and how far it has come.
  struct Attempt {
    PointSearchOptions options;    // for all layers
    PointSearchOptions few;        // for the few, as corrected so far
    int64_t first_work = 0;        // of a search that is no repair
    int64_t most_bytes = 0;        // above, a stitched schedule is no use
    std::vector<Schedule> starts;  // of the few
    std::vector<Way> ways;
    // Bytes of the few whose plan turned out too high, and not.
    int64_t too_many = INT64_MAX, enough = -1;
    int misses = 0;           // rounds in a row that gave no schedule of all
    uint64_t found_hash = 0;  // of what the last round found for the few
    std::vector<FoundSchedule> finds;
  };

  Attempt Begin(const std::vector<Schedule>& starts,
                const PointSearchOptions& options) const;
  bool Round(Attempt& hunt, const WorkBudget& outside);
  // The search of the few, from one order after the other.
  std::vector<FoundSchedule> SearchFew(const Attempt& hunt,
                                       const WorkBudget& outside) const;
  // The fastest of the ways within `most_bytes`, which then is the only one
  // left; if none is within, the nearest.
  std::optional<Expanded> ExpandBest(const Schedule& schedule,
                                     int64_t most_bytes,
                                     std::vector<Way>& ways) const;
  std::optional<FoundSchedule> Tune(const Expanded& stitched,
                                    const PointSearchOptions& options,
                                    const WorkBudget& outside) const;
  // Searches all layers on from the fastest find.
  void Improve(const PointSearchOptions& options, const WorkBudget& outside,
               std::vector<FoundSchedule>& finds);
  // Bytes of the few for the next round; false: there is none.
  static bool Lower(Attempt& hunt);
  // By what all layers have to spare with a plan of so many bytes of the few.
  bool Correct(Attempt& hunt, int64_t few_bytes, int64_t spare_bytes) const;

  LayeredModel All() const { return {&model_, &layers_.all}; }
  LayeredModel Few() const { return {&few_model_, &layers_.shrunk.layers}; }
  void Remember(const Schedule& all, const Schedule& few);
  // The few that all were stitched from; null if that is not known.
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
  // Items of a schedule of all layers, hashed, and what it was stitched from.
  std::vector<std::pair<uint64_t, Schedule>> expanded_from_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_LAYER_SEARCH_H_
