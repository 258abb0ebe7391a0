// The search for problems with many equal layers: plans a few of them and
// stitches.
#ifndef LOADLINE_PLANNER_LAYERED_PURSUIT_H_
#define LOADLINE_PLANNER_LAYERED_PURSUIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/layers.h"
#include "planner/pursuit.h"
#include "planner/stitch.h"

namespace loadline::planner {

class LayeredPursuit {
 public:
  // Null if cutting layers out of the middle leaves too much. `model` and
  // `layers` (of its problem) must outlive it; the flags as for MakeModel.
  static std::unique_ptr<LayeredPursuit> Make(const Model& model,
                                              const Layers& layers,
                                              bool allow_recompute,
                                              bool allow_offload,
                                              const Choices& choices);

  // As planner::Pursue from the start orders, but the work is spent on the few
  // layers.
  std::vector<Found> Pursue(const std::vector<Schedule>& starts,
                            const PursuitOptions& options,
                            const Effort& outside) const;

 private:
  LayeredPursuit(const Model& model, const Layers& layers, Shrunk shrunk,
                 bool allow_recompute, bool allow_offload,
                 const Choices& choices);

  struct Stitched {
    Schedule schedule;
    double step_ns = 0;
    int64_t peak_bytes = 0;
  };
  // A way to stitch.
  struct Way {
    size_t match = 0;
    bool retimed = false;
  };
  // The fastest of the ways within `most_bytes`, which then is the only one
  // left; if none is within, the nearest.
  std::optional<Stitched> StitchBest(const Schedule& schedule,
                                     int64_t most_bytes,
                                     std::vector<Way>& ways) const;
  std::optional<Found> Tune(const Stitched& stitched,
                            const PursuitOptions& options,
                            const Effort& outside) const;

  LayeredModel All() const { return {&model_, &layers_}; }
  LayeredModel Few() const { return {&few_model_, &shrunk_.layers}; }
  std::vector<Schedule> FoldAll(const std::vector<Schedule>& schedules) const;
  int64_t FewBytes(int64_t bytes) const;

  const Model& model_;
  const Layers& layers_;
  const Shrunk shrunk_;
  const Model few_model_;
  const std::vector<Schedule> few_orders_;
  std::vector<std::vector<int>> matches_;  // see MatchLayers
  // Fewest bytes of any plan, and the peak of the given order.
  int64_t least_bytes_ = 0, peak_bytes_ = 0;
  int64_t few_least_bytes_ = 0, few_peak_bytes_ = 0;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERED_PURSUIT_H_
