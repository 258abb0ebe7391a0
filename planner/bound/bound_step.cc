// The lower bound on the step time: which cuts are tried, how hard, and what
// their programs prove. Cheap stages come first (bound_tuning.h has them and
// their limits):
// - rank all cuts; the knapsack of the ranking is a proof without a solver;
// - linear programs for the best ranked cuts;
// - branch and bound for the best of those;
// - spans from one cut to the next: reruns between two cuts belong to one span
//   only, so the costs of spans add up;
// - many comparable cuts in one program: what is dropped for one cut and is
//   there again for the next was made or copied in between;
// - branch and bound with free nodes.
// Tested in tests/planner/bound/bound_test.cc, bound_span_test.cc and
// bound_step_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "planner/base/align.h"
#include "planner/bound/bound.h"
#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_program.h"

namespace loadline::planner {
namespace {

class StepBounder {
 public:
  StepBounder(const SearchModel& model, const StepBoundOptions& options)
      : model_(model),
        options_(options),
        tuning_(options.tuning),
        least_(FindLeastCosts(model)),
        precedence_(model) {
    bound_.step_ns = least_.compute_ns;
    double copies_ns = 0;
    for (int v = 0; v < model.value_count; ++v) {
      copies_ns += model.out_ns[v] + model.in_ns[v];
      copies_ = copies_ || model.may_copy[v];
    }
    bound_.no_plan = options.budget_bytes < BoundPeak(model).bytes;
    const double long_ns = tuning_.horizon_factor *
                           (static_cast<double>(least_.compute_ns) + copies_ns);
    const double known_ns = static_cast<double>(options.known_step_ns);
    horizon_ns_ = std::min(known_ns, long_ns);
    if (long_ns < known_ns) most_ns_ = long_ns;
  }

  StepBound Bound() {
    if (bound_.no_plan || bound_.step_ns >= options_.known_step_ns) {
      return bound_;
    }
    const std::vector<Cut> cuts =
        FindCuts(model_, precedence_, least_.node_ns,
                 AlignUp(options_.budget_bytes, model_.alignment_bytes),
                 tuning_.most_cuts);
    for (const Cut& cut : cuts) TakeKnapsack(cut);
    std::vector<std::pair<double, int>> by_bound = TryLinear(cuts);
    std::stable_sort(by_bound.begin(), by_bound.end());
    for (size_t i = 0; i < by_bound.size() && i < tuning_.exact_cuts; ++i) {
      if (Done() || !tuning_.exact_stage) break;
      Exact({by_bound[i].second}, false);
    }
    if (!copies_ && tuning_.span_stage) AddSpans(cuts);
    // If many cuts are comparable, few nodes are free, and vice versa: the more
    // promising stage runs first.
    const bool joint_first = MostlyComparable(cuts);
    if (joint_first) TryJointCuts(cuts);
    TryFreeNodes(cuts);
    if (!joint_first) TryJointCuts(cuts);
    return bound_;
  }

 private:
  int64_t WorkLeft() const { return options_.work_limit - bound_.work; }
  MipLimit Limit(int64_t iterations) const {
    return {iterations, options_.stop};
  }
  bool Done() const {
    return bound_.no_plan || WorkLeft() <= 0 || options_.stop.Now() ||
           bound_.step_ns >= options_.known_step_ns;
  }

  // Reruns add to compute; times are integers.
  void TakeKnapsack(const Cut& cut) {
    const double reruns_ns = std::ceil(cut.proven_ns * (1 - 1e-9) - 1e-3);
    if (reruns_ns <= 0) return;
    RaiseTo(static_cast<double>(least_.compute_ns) + reruns_ns, {cut.node});
  }

  void RaiseTo(double ns, const std::vector<int>& cuts, bool free_nodes = false,
               bool spans = false) {
    ns = std::min(ns, most_ns_);
    if (ns <= static_cast<double>(bound_.step_ns)) return;
    bound_.step_ns = static_cast<int64_t>(ns);
    bound_.cuts = cuts;
    bound_.free_nodes = free_nodes;
    bound_.spans = spans;
  }

  // Raises the bound by what the program's cost proves.
  double Take(const BoundProgram& program, const MipBound& bound, double margin,
              const std::vector<int>& cuts, bool free_nodes = false) {
    if (bound.infeasible) {
      // With copies the program is infeasible also if every plan takes longer
      // than the horizon.
      if (!copies_) {
        bound_.no_plan = true;
      } else {
        RaiseTo(horizon_ns_, cuts, free_nodes);
      }
    }
    const double cost = bound.cost - bound.error;
    if (cost <= 0) return program.offset_ns;
    const double extra_ns = cost * program.unit_ns;
    const double ns = program.offset_ns + extra_ns;
    // A margin for the rounding of coefficients and, for branch and bound, the
    // solver's gap (mip.h has what its tolerances take).
    // Without copies a step is an integer; with copies Replay rounds to the
    // nearest.
    const double safe_ns = ns - margin * extra_ns - 1e-9 * ns - 1e-3;
    RaiseTo(copies_ ? std::round(safe_ns) : std::ceil(safe_ns), cuts,
            free_nodes);
    return ns;
  }

  // Negative bound and node of each cut tried.
  std::vector<std::pair<double, int>> TryLinear(const std::vector<Cut>& cuts) {
    std::vector<std::pair<double, int>> by_bound;
    for (const Cut& cut : cuts) {
      if (!tuning_.linear_stage || Done()) break;
      if (by_bound.size() == tuning_.linear_cuts) break;
      if (cut.excess_bytes <= 0 || Pointless(by_bound)) break;
      const double ns = Linear({cut.node});
      by_bound.push_back({-ns, cut.node});
    }
    return by_bound;
  }

  bool MostlyComparable(const std::vector<Cut>& cuts) const {
    if (tuning_.joint_cuts.empty()) return false;
    const size_t tried = std::min(tuning_.joint_cuts.back(), cuts.size());
    return 2 * ComparableCuts(cuts, tried).size() > tried;
  }

  void TryFreeNodes(const std::vector<Cut>& cuts) {
    for (size_t i = 0; i < cuts.size() && i < tuning_.free_cuts; ++i) {
      if (Done() || copies_ || !tuning_.free_stage) break;
      const int node = cuts[i].node;
      if (std::count(known_.begin(), known_.end(), node) == 0) {
        Exact({node}, true);
      }
    }
  }

  // Have several of the best ranked cuts proven nothing?
  bool Pointless(const std::vector<std::pair<double, int>>& by_bound) const {
    return by_bound.size() >= tuning_.few_cuts && bound_.cuts.empty();
  }

  BoundProgram Make(const std::vector<int>& cuts, bool free_nodes,
                    int until = -1) const {
    // Slightly more, so that rounding cannot exclude the known plan itself.
    return MakeBoundProgram(model_, least_, precedence_,
                            {.cuts = cuts,
                             .until = until,
                             .budget_bytes = options_.budget_bytes,
                             .horizon_ns = horizon_ns_ * (1 + 1e-9) + 1,
                             .free_nodes = free_nodes});
  }

  // The best ranked cuts of which each is an ancestor of the next.
  std::vector<int> ComparableCuts(const std::vector<Cut>& cuts,
                                  size_t most) const {
    std::vector<int> chain;
    for (const Cut& cut : cuts) {
      if (chain.size() == most) break;
      const std::vector<char> before = precedence_.Ancestors(cut.node);
      const std::vector<char> after = precedence_.Descendants(cut.node);
      // The chain is in order: first those before the cut, then those after.
      size_t place = 0;
      while (place < chain.size() && before[chain[place]]) ++place;
      if (place < chain.size() && !after[chain[place]]) continue;
      chain.insert(chain.begin() + static_cast<std::ptrdiff_t>(place),
                   cut.node);
    }
    return chain;
  }

  // Least time of reruns from the node's first run to that of `until` (-1: to
  // the end).
  double SpanNs(int node, int until) {
    const BoundProgram program = Make({node}, true, until);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() > tuning_.most_free_terms) return 0;
    const MipBound bound =
        SolveMip(program.program,
                 Limit(options_.work_limit / tuning_.span_share /
                           tuning_.branch_iteration_work +
                       1),
                 kNoLimit);
    bound_.work += tuning_.branch_start_work +
                   tuning_.branch_iteration_work * bound.iterations;
    if (bound.infeasible) bound_.no_plan = true;
    if (bound.optimal && until < 0) known_.push_back(node);
    const double ns = (bound.cost - bound.error) * program.unit_ns;
    return std::max(0.0, ns * (1 - 1e-6) - 1e-3);
  }

  // Each peak of memory forces reruns after it; those before the next peak and
  // those after it add up. Peaks are added while the sum grows.
  void AddSpans(const std::vector<Cut>& cuts) {
    // The program of a larger problem would exceed most_free_terms.
    if (model_.node_count > static_cast<int>(tuning_.most_free_terms)) return;
    std::vector<std::pair<int, double>> spans;  // first node, its time
    const int64_t most_work = bound_.work + WorkLeft() / tuning_.spans_share;
    for (int peak : Peaks(cuts)) {
      if (Done() || bound_.work > most_work) return;
      size_t place = 0;
      const std::vector<char> before = precedence_.Ancestors(peak);
      const std::vector<char> after = precedence_.Descendants(peak);
      while (place < spans.size() && before[spans[place].first]) ++place;
      if (place < spans.size() && !after[spans[place].first]) continue;
      const double ns =
          SpanNs(peak, place < spans.size() ? spans[place].first : -1);
      if (ns <= 0) continue;
      if (place > 0) {
        auto& [last, last_ns] = spans[place - 1];
        const double shorter_ns = SpanNs(last, peak);
        if (ns + shorter_ns <= last_ns) continue;
        last_ns = shorter_ns;
      }
      spans.insert(spans.begin() + static_cast<std::ptrdiff_t>(place),
                   {peak, ns});
      TakeSpans(spans);
    }
  }

  void TakeSpans(const std::vector<std::pair<int, double>>& spans) {
    double ns = static_cast<double>(least_.compute_ns);
    std::vector<int> cuts;
    for (const auto& [node, span_ns] : spans) {
      ns += span_ns;
      cuts.push_back(node);
    }
    RaiseTo(std::ceil(ns - 1e-9 * ns), cuts, false, true);
  }

  // Ranked cuts that lie apart in the given order.
  std::vector<int> Peaks(const std::vector<Cut>& cuts) const {
    const int apart = std::max(1, model_.node_count / tuning_.most_peaks);
    std::vector<int> peaks;
    for (const Cut& cut : cuts) {
      const bool near = std::any_of(peaks.begin(), peaks.end(), [&](int peak) {
        return std::abs(peak - cut.node) < apart;
      });
      if (!near) peaks.push_back(cut.node);
    }
    return peaks;
  }

  int64_t BuildWork(const BoundProgram& program) const {
    return static_cast<int64_t>(program.program.terms.size()) /
           tuning_.terms_per_work;
  }

  double Linear(const std::vector<int>& cuts) {
    const BoundProgram program = Make(cuts, false);
    const MipBound bound = SolveLp(program.program, Limit(WorkLeft()));
    bound_.work += BuildWork(program) + bound.iterations;
    return Take(program, bound, 0, cuts);
  }

  void Exact(const std::vector<int>& cuts, bool free_nodes) {
    const BoundProgram program = Make(cuts, free_nodes);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() <=
        (free_nodes ? tuning_.most_free_terms : tuning_.most_branch_terms)) {
      Branch(program, cuts, free_nodes);
    }
  }

  void TryJointCuts(const std::vector<Cut>& cuts) {
    for (size_t most : tuning_.joint_cuts) {
      if (!tuning_.joint_stage) break;
      const std::vector<int> chain = ComparableCuts(cuts, most);
      if (Done() || chain.size() < 2) break;
      Joint(chain);
      if (chain.size() < most) break;
    }
  }

  // The linear program first: it may prove enough, and exactly (mip.h).
  void Joint(const std::vector<int>& cuts) {
    const BoundProgram program = Make(cuts, false);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() > tuning_.most_joint_terms) return;
    const MipBound linear = SolveLp(program.program, Limit(WorkLeft()));
    bound_.work += linear.iterations;
    Take(program, linear, 0, cuts);
    if (Done() || program.program.terms.size() > tuning_.most_branch_terms)
      return;
    Branch(program, cuts, false);
  }

  void Branch(const BoundProgram& program, const std::vector<int>& cuts,
              bool free_nodes) {
    const double enough = (horizon_ns_ - program.offset_ns) / program.unit_ns;
    const MipBound bound =
        SolveMip(program.program,
                 Limit(WorkLeft() / tuning_.branch_iteration_work + 1), enough);
    bound_.work += tuning_.branch_start_work +
                   tuning_.branch_iteration_work * bound.iterations;
    Take(program, bound, 1e-6, cuts, free_nodes);
  }

  const SearchModel& model_;
  const StepBoundOptions& options_;
  const BoundTuning& tuning_;
  const LeastCosts least_;
  const Precedence precedence_;
  bool copies_ = false;
  // The programs hold for plans that end by the horizon. Beyond it nothing is
  // proven, unless a known plan ends there: then no cap, so that a bound above
  // that plan is seen.
  double horizon_ns_ = 0;
  double most_ns_ = std::numeric_limits<double>::max();
  std::vector<int> known_;  // nodes whose spans to the end have been solved
  StepBound bound_;
};

}  // namespace

int64_t BoundStep(const SearchModel& model) {
  return FindLeastCosts(model).compute_ns;
}

StepBound BoundStepAt(const SearchModel& model,
                      const StepBoundOptions& options) {
  return StepBounder(model, options).Bound();
}

}  // namespace loadline::planner
