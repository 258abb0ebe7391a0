// Lower bounds on peak and step time. Tested in
// tests/planner/brute_force_test.cc against brute force on tiny problems and
// against every plan found on random ones.
#include "planner/bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/bound_cuts.h"
#include "planner/bound_program.h"

namespace loadline::planner {
namespace {

// The persistent values of which something is on the device at any time.
std::vector<int> NeverLeaving(const Model& model) {
  std::vector<int> values;
  for (size_t c = 0; c < model.chains.size(); ++c) {
    const int chain = static_cast<int>(c);
    if (!MayLeave(model, chain) && !MayLiveOnHost(model, chain)) {
      values.push_back(model.chains[c].versions.front());
    }
  }
  return values;
}

int64_t RawBytes(const Model& model, int value) {
  return model.problem->values[value].bytes;
}

// Bytes of the least form in which some version may be kept.
int64_t LeastBytes(const Model& model, const Chain& chain) {
  int64_t bytes = INT64_MAX;
  for (int version : chain.versions) {
    bytes = std::min(bytes, RawBytes(model, version));
    for (const Codec& codec : model.problem->values[version].stash) {
      bytes = std::min(bytes, codec.bytes);
    }
  }
  return bytes;
}

int64_t LeastWorkspaceBytes(const Node& node) {
  int64_t bytes = node.workspace_bytes;
  for (const Variant& variant : node.variants) {
    bytes = std::min(bytes, variant.workspace_bytes);
  }
  return bytes;
}

// Most bytes that outputs may share with inputs while the node runs.
int64_t SharedBytes(const Model& model, int node) {
  std::vector<int> from, to;
  for (const auto& [in, out] : model.problem->nodes[node].inplace) {
    from.push_back(static_cast<int>(in));
    to.push_back(static_cast<int>(out));
  }
  int64_t least = INT64_MAX;
  for (std::vector<int>* side : {&from, &to}) {
    std::sort(side->begin(), side->end());
    side->erase(std::unique(side->begin(), side->end()), side->end());
    int64_t bytes = 0;
    for (int v : *side) bytes += RawBytes(model, v);
    least = std::min(least, bytes);
  }
  return least;
}

void Raise(const Model& model, int64_t bytes, int node, std::vector<int> values,
           PeakBound& bound) {
  if (bytes < bound.bytes || (bytes == bound.bytes && !bound.values.empty())) {
    return;
  }
  std::stable_sort(values.begin(), values.end(), [&](int a, int b) {
    return RawBytes(model, a) > RawBytes(model, b);
  });
  bound = {bytes, node, std::move(values)};
}

}  // namespace

PeakBound BoundPeak(const Model& model) {
  PeakBound bound;
  const std::vector<int> staying = NeverLeaving(model);
  for (int node = 0; node < model.node_count; ++node) {
    std::vector<int> values = model.reads[node];
    values.insert(values.end(), model.makes[node].begin(),
                  model.makes[node].end());
    std::vector<char> touched(model.chains.size(), 0);
    int64_t bytes = LeastWorkspaceBytes(model.problem->nodes[node]) -
                    SharedBytes(model, node);
    for (int v : values) {
      bytes += RawBytes(model, v);
      if (model.chain_of[v] >= 0) touched[model.chain_of[v]] = 1;
    }
    for (int v : staying) {
      if (touched[model.chain_of[v]]) continue;
      bytes += LeastBytes(model, model.chains[model.chain_of[v]]);
      values.push_back(v);
    }
    Raise(model, bytes, node, std::move(values), bound);
  }
  std::vector<int> at_start, at_end;
  int64_t start_bytes = 0, end_bytes = 0;
  for (int v = 0; v < model.value_count; ++v) {
    const bool kept =
        model.chain_of[v] >= 0 && !MayLiveOnHost(model, model.chain_of[v]);
    const bool read = !model.index.consumers[v].empty();
    if (model.producer[v] < 0 && (model.chain_of[v] >= 0 ? kept : read)) {
      at_start.push_back(v);
      start_bytes += RawBytes(model, v);
    }
    if (model.is_output[v] || (kept && model.LastVersion(v))) {
      at_end.push_back(v);
      end_bytes += RawBytes(model, v);
    }
  }
  Raise(model, start_bytes, -1, std::move(at_start), bound);
  Raise(model, end_bytes, -1, std::move(at_end), bound);
  return bound;
}

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
// Branch and bound: the work of a start, and of one iteration.
constexpr int64_t kStartWork = 100;
constexpr int64_t kBranchWork = 4;
// Larger programs get none: HiGHS spends there what no iteration counts.
constexpr size_t kMostBranchTerms = 20'000;
constexpr size_t kMostFreeTerms = 6'000;
// Building a program costs work too: as much as an iteration for so many terms.
constexpr int64_t kTermsPerIteration = 200;
// Where nothing is known, a plan takes less than this many times compute and
// every copy.
constexpr double kHorizon = 100;

class StepBounder {
 public:
  StepBounder(const Model& model, const StepBoundOptions& options)
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
    if (Done()) return bound_;
    const std::vector<Cut> cuts = FindCuts(
        model_, precedence_, least_.node_ns,
        AlignUp(options_.budget_bytes, model_.alignment_bytes), kMostCuts);
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
    for (size_t i = 0; i < cuts.size() && i < kFreeCuts; ++i) {
      if (Done() || copies_) break;
      Exact({cuts[i].node}, true);
    }
    return bound_;
  }

 private:
  int64_t WorkLeft() const { return options_.work_limit - bound_.work; }
  bool Done() const {
    return bound_.no_plan || WorkLeft() <= 0 ||
           bound_.step_ns >= options_.known_step_ns;
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

  BoundProgram Make(const std::vector<int>& cuts, bool free_nodes) const {
    // A hair more, so that a known plan itself stays possible.
    return MakeBoundProgram(model_, least_, cuts, options_.budget_bytes,
                            horizon_ns_ * (1 + 1e-9) + 1, free_nodes);
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
    if (program.program.terms.size() >
        (free_nodes ? kMostFreeTerms : kMostBranchTerms)) {
      bound_.work += BuildWork(program);
      return;
    }
    const double enough = (horizon_ns_ - program.offset_ns) / program.unit_ns;
    const MipBound bound =
        SolveMip(program.program, WorkLeft() / kBranchWork + 1, enough);
    bound_.work +=
        BuildWork(program) + kStartWork + kBranchWork * bound.iterations;
    Take(program, bound, 1e-6, cuts);
  }

  const Model& model_;
  const StepBoundOptions& options_;
  const LeastCosts least_;
  const Precedence precedence_;
  bool copies_ = false;
  double horizon_ns_ = 0;
  StepBound bound_;
};

}  // namespace

int64_t BoundStep(const Model& model) {
  return FindLeastCosts(model).compute_ns;
}

StepBound BoundStepAt(const Model& model, const StepBoundOptions& options) {
  return StepBounder(model, options).Bound();
}

}  // namespace loadline::planner
