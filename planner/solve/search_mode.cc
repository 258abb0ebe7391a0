// Where recomputation and copies are both allowed, each is also searched alone,
// and its plans are starts of the joint search: joint is never worse than the
// better of the two. Where the copy lanes slow each other down, part of a large
// joint search uses lanes that are always slow: an edit costs far less to price
// there. Where nothing can be copied, orders alone are searched before
// recomputation. Where codecs may be used, all modes come first without them,
// and then one more with them. Tested in solve_test.cc.
#include "planner/solve/search_mode.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

// Of a point's work, on top of it: the search with codecs starts from what was
// found without. Lossy ones are worth more: they suit most values, and a user
// who allows them wants little memory. So are all where edits are cheap.
constexpr double kCodecsShare = 0.25;
constexpr double kLongCodecsShare = 1;
constexpr size_t kFewNodes = 100;
// Codecs that could save less than this part of the peak, if all were used at
// once, get less work in proportion, down to a small rest. In steps of fp32
// only the positions of pools and the inputs have codecs without loss: 0.1 to
// 0.3 % of the peak.
constexpr double kWorthSearching = 0.1;
constexpr double kLeastPart = 0.05;

double CodecsShare(const SearchModel& all, bool long_search) {
  std::vector<int64_t> saved_bytes(static_cast<size_t>(all.value_count), 0);
  for (int r = all.value_count; r < all.representation_count(); ++r) {
    int64_t& most = saved_bytes[static_cast<size_t>(all.value_of[r])];
    most = std::max(most, all.bytes[all.value_of[r]] - all.bytes[r]);
  }
  const auto saved = static_cast<double>(
      std::accumulate(saved_bytes.begin(), saved_bytes.end(), int64_t{0}));
  const auto peak_bytes =
      static_cast<double>(FindLifetimes(all, GivenOrder(all)).raw_peak_bytes);
  const double part = std::clamp(
      saved / (kWorthSearching * std::max(1.0, peak_bytes)), kLeastPart, 1.0);
  return part * (long_search ? kLongCodecsShare : kCodecsShare);
}

class ModeBuilder {
 public:
  ModeBuilder(const Problem& problem, const SearchModelOptions& options,
              const std::vector<Schedule>& orders, const CoarseLayers* layers)
      : problem_(problem),
        asked_(options),
        orders_(orders),
        layers_(layers),
        tuning_(options.tuning.bisection) {}

  std::vector<std::unique_ptr<SearchMode>> Build() {
    const SearchModel all = MakeSearchModel(
        problem_, {.permissions = asked_.permissions, .tuning = asked_.tuning});
    const bool codecs = all.representation_count() > all.value_count;
    // A schedule without codecs means the same to a model with them: their jobs
    // come last.
    permissions_ = asked_.permissions;
    if (codecs) permissions_.codecs = permissions_.lossy = false;
    if (!problem_.machine || !problem_.machine->CanCopy()) {
      AddWithoutCopies();
    } else {
      AddWithCopies(all.bidirectional < 1);
    }
    if (codecs) {
      permissions_ = asked_.permissions;
      const bool long_search =
          permissions_.lossy || problem_.nodes.size() < kFewNodes;
      Add(asked_.allow_recompute, asked_.allow_offload,
          CodecsShare(all, long_search))
          .codecs = true;
    }
    return std::move(modes_);
  }

 private:
  void AddWithoutCopies() {
    if (tuning_.orders_mode || !asked_.allow_recompute) {
      Add(false, false, tuning_.orders_share);
    }
    if (asked_.allow_recompute) Add(true, false, 1);
  }

  void AddWithCopies(bool coupled_lanes) {
    const bool both = asked_.allow_recompute && asked_.allow_offload;
    // A mode gets the same work whether or not the others are allowed, so that
    // more permissions never give a worse plan.
    double share = 1;
    if (asked_.allow_recompute && (tuning_.recompute_mode || !both)) {
      Add(true, false, tuning_.recompute_share);
      share -= tuning_.recompute_share;
    }
    if (asked_.allow_offload && (tuning_.copies_mode || !both)) {
      Add(false, true, tuning_.copies_share);
      share -= tuning_.copies_share;
    }
    if (!asked_.allow_recompute && !asked_.allow_offload) {
      Add(false, false, tuning_.recompute_share);
    }
    if (!both) return;
    if (tuning_.apart_lanes_mode && coupled_lanes && layers_ == nullptr &&
        problem_.nodes.size() >= tuning_.least_apart_lanes_nodes) {
      SearchMode& mode = Add(true, true, tuning_.apart_lanes_share * share);
      share *= 1 - tuning_.apart_lanes_share;
      mode.apart_lanes = true;
      mode.model = WithApartLanes(mode.model);
    }
    Add(true, true, share);
  }

  SearchMode& Add(bool recompute, bool offload, double share) {
    modes_.push_back(std::make_unique<SearchMode>());
    SearchMode& mode = *modes_.back();
    const SearchModelOptions options = {recompute, offload, permissions_,
                                        asked_.tuning};
    mode.model = MakeSearchModel(problem_, options);
    mode.share = share;
    mode.bound_bytes = BoundPeak(mode.model).bytes;
    mode.least_target_bytes = BoundChargedPeak(mode.model);
    mode.search = layers_ != nullptr
                      ? MakeLayeredSearch(mode.model, *layers_, options)
                      : MakeWholeSearch(mode.model, orders_);
    return mode;
  }

  const Problem& problem_;
  const SearchModelOptions& asked_;
  const std::vector<Schedule>& orders_;
  const CoarseLayers* layers_;
  const SearchTuning::Bisection& tuning_;
  Permissions permissions_;
  std::vector<std::unique_ptr<SearchMode>> modes_;
};

}  // namespace

std::vector<std::unique_ptr<SearchMode>> MakeSearchModes(
    const Problem& problem, const SearchModelOptions& options,
    const std::vector<Schedule>& orders, const CoarseLayers* layers) {
  return ModeBuilder(problem, options, orders, layers).Build();
}

}  // namespace loadline::planner
