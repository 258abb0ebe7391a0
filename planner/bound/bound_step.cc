// The lower bound on the step time: which cuts are tried, how hard, and what
// their programs prove. The cheap looks come first: a ranking of all cuts, then
// linear programs for the best of them, then branch and bound for the best of
// those; then spans from one cut to the next, whose costs add up (reruns
// between two cuts belong to one span only); last, many comparable cuts in one
// program: what is dropped for one cut and is there again for the next was made
// or copied in between. Tested in tests/planner/bound/bound_test.cc and
// bound_span_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "planner/base/align.h"
#include "planner/bound/bound.h"
#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_program.h"

namespace loadline::planner {
namespace {

// Cuts that are looked at, in a large problem evenly spread.
constexpr int kMostCuts = 2048;
// Of those, the best ranked that get a linear program.
constexpr int kLinearCuts = 12;
// Where so many show nothing, the others are not tried.
constexpr size_t kFewCuts = 4;
// Of those, the best that get branch and bound.
constexpr int kExactCuts = 3;
// Cuts that get branch and bound over the nodes on either side, too.
constexpr size_t kFreeCuts = 32;
// Cuts that are tried for spans whose bounds add up: no two nearer to each
// other than this part of the order.
constexpr int kMostPeaks = 32;
// Of the work: for all of them, of what is left then; and for one.
constexpr int64_t kSpansShare = 3;
constexpr int64_t kSpanShare = 6;
// Cuts that are tried jointly: so many of the best ranked, then all the others.
constexpr size_t kMostJointCuts = 80;
constexpr size_t kJointCuts[] = {4, 16, kMostJointCuts};
constexpr size_t kMostJointTerms = 150'000;
// Branch and bound: the work of a start, and of one iteration.
constexpr int64_t kStartWork = 100;
constexpr int64_t kBranchWork = 4;
// Larger programs get none: HiGHS spends there what no iteration counts.
constexpr size_t kMostBranchTerms = 30'000;
constexpr size_t kMostFreeTerms = 6'000;
// Building a program costs work too: as much as an iteration for so many terms.
constexpr int64_t kTermsPerIteration = 200;
// Where nothing is known, a plan takes less than this many times compute and
// every copy.
constexpr double kHorizon = 100;

class StepBounder {
 public:
  StepBounder(const SearchModel& model, const StepBoundOptions& options)
      : model_(model),
        options_(options),
        least_(FindLeastCosts(model)),
        precedence_(model) {
    bound_.step_ns = least_.compute_ns;
    double copies_ns = 0;
    for (int v = 0; v < model.value_count; ++v) {
      copies_ns += model.out_ns[v] + model.in_ns[v];
      copies_ = copies_ || model.may_copy[v];
    }
    bound_.no_plan = options.budget_bytes < BoundPeak(model).bytes;
    horizon_ns_ = std::min(
        static_cast<double>(options.known_step_ns),
        kHorizon * (static_cast<double>(least_.compute_ns) + copies_ns));
  }

  StepBound Bound() {
    if (bound_.no_plan || bound_.step_ns >= options_.known_step_ns) {
      return bound_;
    }
    const std::vector<Cut> cuts = FindCuts(
        model_, precedence_, least_.node_ns,
        AlignUp(options_.budget_bytes, model_.alignment_bytes), kMostCuts);
    for (const Cut& cut : cuts) TakeKnapsack(cut);
    std::vector<std::pair<double, int>> by_bound;
    for (const Cut& cut : cuts) {
      if (by_bound.size() == kLinearCuts || Done()) break;
      if (cut.excess_bytes <= 0 || Pointless(by_bound)) break;
      const double ns = Linear({cut.node});
      by_bound.push_back({-ns, cut.node});
    }
    std::stable_sort(by_bound.begin(), by_bound.end());
    for (size_t i = 0; i < by_bound.size() && i < kExactCuts; ++i) {
      if (Done()) break;
      Exact({by_bound[i].second}, false);
    }
    // Where many cuts are comparable, few nodes are free, and the other way.
    const size_t tried = std::min(kMostJointCuts, cuts.size());
    const bool chain = 2 * ComparableCuts(cuts, tried).size() > tried;
    if (!copies_) AddSpans(cuts);
    if (chain) TryJointCuts(cuts);
    for (size_t i = 0; i < cuts.size() && i < kFreeCuts; ++i) {
      if (Done() || copies_) break;
      const int node = cuts[i].node;
      if (std::count(known_.begin(), known_.end(), node) == 0) {
        Exact({node}, true);
      }
    }
    if (!chain) TryJointCuts(cuts);
    return bound_;
  }

 private:
  int64_t WorkLeft() const { return options_.work_limit - bound_.work; }
  bool Done() const {
    return bound_.no_plan || WorkLeft() <= 0 ||
           bound_.step_ns >= options_.known_step_ns;
  }

  // Reruns come on top of compute; times are whole.
  void TakeKnapsack(const Cut& cut) {
    const double reruns_ns = std::ceil(cut.proven_ns * (1 - 1e-9) - 1e-3);
    if (reruns_ns <= 0) return;
    const double ns = std::min(
        static_cast<double>(least_.compute_ns) + reruns_ns, horizon_ns_);
    if (ns <= static_cast<double>(bound_.step_ns)) return;
    bound_.step_ns = static_cast<int64_t>(ns);
    bound_.cuts = {cut.node};
  }

  // Raises the bound by what the program's cost proves.
  double Take(const BoundProgram& program, const MipBound& bound, double margin,
              const std::vector<int>& cuts) {
    if (bound.infeasible) {
      // With copies there is a horizon, which may be what cannot be met.
      if (!copies_) {
        bound_.no_plan = true;
      } else if (horizon_ns_ > static_cast<double>(bound_.step_ns)) {
        bound_.step_ns = static_cast<int64_t>(horizon_ns_);
        bound_.cuts = cuts;
      }
    }
    if (bound.cost <= 0) return program.offset_ns;
    const double extra_ns = bound.cost * program.unit_ns;
    const double ns = program.offset_ns + extra_ns;
    // A margin for rounding, and for the solver's tolerances where its word is
    // taken. Compute times are whole, and so is a step without copies; with
    // copies Replay rounds to the nearest.
    const double safe_ns = ns - margin * extra_ns - 1e-9 * ns - 1e-3;
    const double proven_ns = std::min(
        copies_ ? std::round(safe_ns) : std::ceil(safe_ns), horizon_ns_);
    if (proven_ns > static_cast<double>(bound_.step_ns)) {
      bound_.step_ns = static_cast<int64_t>(proven_ns);
      bound_.cuts = cuts;
    }
    return ns;
  }

  // Do several of the best show nothing?
  bool Pointless(const std::vector<std::pair<double, int>>& by_bound) const {
    return by_bound.size() >= kFewCuts && bound_.cuts.empty();
  }

  BoundProgram Make(const std::vector<int>& cuts, bool free_nodes,
                    int until = -1) const {
    // A hair more, so that a known plan itself stays possible.
    return MakeBoundProgram(model_, least_, precedence_, cuts, until,
                            options_.budget_bytes, horizon_ns_ * (1 + 1e-9) + 1,
                            free_nodes);
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

  // What must run again from the node's first run to that of `until` (-1: to
  // the end).
  double SpanNs(int node, int until) {
    const BoundProgram program = Make({node}, true, until);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() > kMostFreeTerms) return 0;
    const MipBound bound =
        SolveMip(program.program,
                 options_.work_limit / kSpanShare / kBranchWork + 1, kNoLimit);
    bound_.work += kStartWork + kBranchWork * bound.iterations;
    if (bound.infeasible) bound_.no_plan = true;
    if (bound.optimal && until < 0) known_.push_back(node);
    return std::max(0.0, bound.cost * program.unit_ns * (1 - 1e-6) - 1e-3);
  }

  // A peak of memory asks for reruns before the next peak, which asks for
  // others. Peaks are taken as long as the sum grows.
  void AddSpans(const std::vector<Cut>& cuts) {
    // No program of many more nodes is small enough.
    if (model_.node_count > static_cast<int>(kMostFreeTerms)) return;
    std::vector<std::pair<int, double>> spans;  // first node, its time
    const int64_t most_work = bound_.work + WorkLeft() / kSpansShare;
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
    const double proven_ns = std::min(std::ceil(ns - 1e-9 * ns), horizon_ns_);
    if (proven_ns <= static_cast<double>(bound_.step_ns)) return;
    bound_.step_ns = static_cast<int64_t>(proven_ns);
    bound_.cuts = cuts;
  }

  // Ranked cuts that lie apart in the given order.
  std::vector<int> Peaks(const std::vector<Cut>& cuts) const {
    const int apart = std::max(1, model_.node_count / kMostPeaks);
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
           kTermsPerIteration;
  }

  double Linear(const std::vector<int>& cuts) {
    const BoundProgram program = Make(cuts, false);
    const MipBound bound = SolveLp(program.program, WorkLeft());
    bound_.work += BuildWork(program) + bound.iterations;
    return Take(program, bound, 0, cuts);
  }

  void Exact(const std::vector<int>& cuts, bool free_nodes) {
    const BoundProgram program = Make(cuts, free_nodes);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() <=
        (free_nodes ? kMostFreeTerms : kMostBranchTerms)) {
      Branch(program, cuts);
    }
  }

  void TryJointCuts(const std::vector<Cut>& cuts) {
    for (size_t most : kJointCuts) {
      const std::vector<int> chain = ComparableCuts(cuts, most);
      if (Done() || chain.size() < 2) break;
      Joint(chain);
      if (chain.size() < most) break;
    }
  }

  // The linear program first: it may do, and it is safe.
  void Joint(const std::vector<int>& cuts) {
    const BoundProgram program = Make(cuts, false);
    bound_.work += BuildWork(program);
    if (program.program.terms.size() > kMostJointTerms) return;
    const MipBound linear = SolveLp(program.program, WorkLeft());
    bound_.work += linear.iterations;
    Take(program, linear, 0, cuts);
    if (Done() || program.program.terms.size() > kMostBranchTerms) return;
    Branch(program, cuts);
  }

  void Branch(const BoundProgram& program, const std::vector<int>& cuts) {
    const double enough = (horizon_ns_ - program.offset_ns) / program.unit_ns;
    const MipBound bound =
        SolveMip(program.program, WorkLeft() / kBranchWork + 1, enough);
    bound_.work += kStartWork + kBranchWork * bound.iterations;
    Take(program, bound, 1e-6, cuts);
  }

  const SearchModel& model_;
  const StepBoundOptions& options_;
  const LeastCosts least_;
  const Precedence precedence_;
  bool copies_ = false;
  double horizon_ns_ = 0;
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
