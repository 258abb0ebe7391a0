// Tested through both in solve_test.cc and find_layers_test.cc.
#include "planner/solve/schedule_search.h"

#include <limits>

#include "planner/layers/layer_search.h"

namespace loadline::planner {
namespace {

class WholeSearch : public ScheduleSearch {
 public:
  WholeSearch(const SearchModel& model, const std::vector<Schedule>& orders)
      : model_(model), orders_(orders) {
    policy_.most_finds = std::numeric_limits<int>::max();
    policy_.retry_step = model.tuning.bisection.retry_step;
  }

  std::vector<FoundSchedule> Find(const std::vector<Schedule>& starts,
                                  PointSearchOptions options,
                                  const WorkBudget& outside) override {
    options.proof = &proof_;
    return SearchAtPoint(model_, orders_, starts, options, outside);
  }
  bool IsCostly() const override { return false; }
  const LayoutPolicy& layout_policy() const override { return policy_; }
  const PointBound& proof() const override { return proof_; }

 private:
  const SearchModel& model_;
  const std::vector<Schedule>& orders_;
  LayoutPolicy policy_;
  PointBound proof_;
};

class LayeredSearch : public ScheduleSearch {
 public:
  LayeredSearch(const SearchModel& model, const CoarseLayers& layers,
                const SearchModelOptions& options)
      : search_(model, layers, options.allow_recompute, options.allow_offload,
                options.permissions) {
    const SearchTuning::Bisection& tuning = model.tuning.bisection;
    policy_.most_finds = tuning.layered_finds;
    policy_.retry_step = tuning.layered_retry_step;
    policy_.negligible = tuning.layered_negligible;
  }

  std::vector<FoundSchedule> Find(const std::vector<Schedule>& starts,
                                  PointSearchOptions options,
                                  const WorkBudget& outside) override {
    options.proof = nullptr;  // a proof of the few layers is none of all
    return search_.SearchAtPoint(starts, options, outside);
  }
  bool IsCostly() const override { return true; }
  const LayoutPolicy& layout_policy() const override { return policy_; }
  const PointBound& proof() const override { return no_proof_; }

 private:
  LayerSearch search_;
  LayoutPolicy policy_;
  const PointBound no_proof_;
};

}  // namespace

std::unique_ptr<ScheduleSearch> MakeWholeSearch(
    const SearchModel& model, const std::vector<Schedule>& orders) {
  return std::make_unique<WholeSearch>(model, orders);
}

std::unique_ptr<ScheduleSearch> MakeLayeredSearch(
    const SearchModel& model, const CoarseLayers& layers,
    const SearchModelOptions& options) {
  return std::make_unique<LayeredSearch>(model, layers, options);
}

}  // namespace loadline::planner
