// Plans small random problems of all kinds at random budgets with little work,
// and holds every plan against everything that can judge it: Verify, a second
// reading of the rules (plan_judge.h), two walks through it (walk_plan.h), its
// certificate, its file, and the other plans of the problem: no bound may be
// above what another plan within the budget reaches, and no budget may be said
// to be impossible that another plan meets.
//
//   random_plans --seed S --count N
//
// Case i of --seed S is case 0 of --seed S+i: a finding prints its command, and
// a single case that is one prints its problem too.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/certificate/check_certificate.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/campaign/arguments.h"
#include "tests/campaign/odd_problem.h"
#include "tests/campaign/plan_judge.h"
#include "tests/campaign/run_campaign.h"
#include "tests/campaign/walk_plan.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int kMostSolves = 4;

absl::Status Found(absl::string_view what) { return absl::AbortedError(what); }

absl::Status Found(absl::string_view what, const absl::Status& status) {
  return absl::AbortedError(absl::StrCat(what, ": ", status.ToString()));
}

class Case {
 public:
  Case(uint64_t seed, std::map<std::string, int64_t>& count)
      : random_(seed), count_(count) {}

  std::string Describe() const {
    return absl::StrCat(
        ProblemToJson(problem_), "\nbudget ", options_.budget_bytes,
        " recompute ", options_.allow_recompute, " offload ",
        options_.allow_offload, " start ", options_.allow_smallest_start,
        " work ", *options_.work_limit);
  }

  absl::Status Run() {
    problem_ = DrawProblem();
    const absl::StatusOr<Plan> keep = KeepEverything(problem_);
    if (!keep.ok()) return Found("keep", keep.status());
    LOADLINE_RETURN_IF_ERROR(Judge(*keep, keep->budget_bytes));
    keep_ = *keep;
    for (int64_t i = random_.In(1, kMostSolves); i > 0; --i) {
      LOADLINE_RETURN_IF_ERROR(SolveOnce());
    }
    return Compare();
  }

 private:
  // Mostly tiny: the more of them, the more ways to combine what is odd.
  Problem DrawProblem() {
    const bool is_tiny = !random_.OneIn(6);
    if (!random_.OneIn(3)) {
      const int64_t most_nodes = is_tiny ? 5 : 12;
      return OddProblem(random_.Next(),
                        static_cast<int>(random_.In(0, most_nodes)));
    }
    Problem problem = RandomProblem(
        random_.Next(), static_cast<int>(random_.In(3, is_tiny ? 7 : 14)),
        random_.OneIn(2), !random_.OneIn(4));
    if (random_.OneIn(2)) AddRandomChoices(random_.Next(), problem);
    return problem;
  }

  SolveOptions DrawOptions() {
    SolveOptions options;
    options.seed = random_.Next();
    options.threads = 1;
    options.work_limit = random_.OneIn(20) ? 0 : random_.In(1, 200);
    options.bound_work_limit = random_.OneIn(8) ? random_.In(1, 100) : 0;
    options.allow_retries = random_.OneIn(10);
    options.allow_smallest_start = !random_.OneIn(3);
    options.allow_recompute = !random_.OneIn(4);
    options.allow_offload = !random_.OneIn(4);
    options.permissions = {.codecs = !random_.OneIn(4),
                           .lossy = random_.OneIn(3),
                           .variants = !random_.OneIn(4),
                           .inexact = random_.OneIn(3)};
    const int64_t most = keep_.arena_bytes;
    const int64_t a = problem_.alignment_bytes;
    // Mostly where something has to be done, and can be.
    const int64_t least = std::min(most, CertifiedPeakBytes(problem_));
    options.budget_bytes = random_.OneIn(8)   ? random_.In(0, most)
                           : random_.OneIn(8) ? most + random_.In(-1, 1) * a
                                              : random_.In(least, most);
    options.budget_bytes = std::max<int64_t>(0, options.budget_bytes);
    return options;
  }

  absl::Status SolveOnce() {
    SolveOptions options = DrawOptions();
    options_ = options;
    absl::StatusOr<Plan> plan = Solve(problem_, options);
    bool is_again = false;
    if (absl::IsResourceExhausted(plan.status())) {
      ++count_["budgets that cannot be met"];
      const auto facts = InfeasibilityOf(plan.status());
      if (!facts.has_value()) return Found("an error without facts");
      if (facts->budget_bytes != options.budget_bytes ||
          facts->smallest_met_bytes <= options.budget_bytes ||
          facts->proven_bound_bytes > facts->smallest_met_bytes) {
        return Found(absl::StrCat("odd facts: budget ", facts->budget_bytes,
                                  " of ", options.budget_bytes, ", met ",
                                  facts->smallest_met_bytes, ", bound ",
                                  facts->proven_bound_bytes));
      }
      bound_bytes_ = std::max(bound_bytes_, facts->proven_bound_bytes);
      if (random_.OneIn(2)) return absl::OkStatus();
      is_again = true;
      options.budget_bytes = facts->smallest_met_bytes;
      plan = Solve(problem_, options);
    }
    // Only a plan made from the smallest one is sure to be found again.
    if (is_again && !options.allow_smallest_start &&
        absl::IsResourceExhausted(plan.status())) {
      ++count_["smallest budgets not met again"];
      return absl::OkStatus();
    }
    if (!plan.ok()) return Found("Solve", plan.status());
    LOADLINE_RETURN_IF_ERROR(Judge(*plan, options.budget_bytes));
    LOADLINE_RETURN_IF_ERROR(CheckPermissions(*plan, options));
    if (random_.OneIn(30)) {
      ++count_["planned again"];
      options.threads = 2;
      const absl::StatusOr<Plan> again = Solve(problem_, options);
      if (!again.ok() ||
          PlanToJson(*again, problem_) != PlanToJson(*plan, problem_)) {
        return Found("planned again it differs");
      }
    }
    if (random_.OneIn(6)) {
      LOADLINE_RETURN_IF_ERROR(SolveWithMore(*plan, options));
    }
    plans_.push_back(*std::move(plan));
    return absl::OkStatus();
  }

  // Invariant 3 of ARCHITECTURE.md.
  absl::Status SolveWithMore(const Plan& plan, SolveOptions options) {
    ++count_["planned with more bytes"];
    options.budget_bytes +=
        random_.In(0, std::max<int64_t>(1, options.budget_bytes / 2));
    const absl::StatusOr<Plan> more = Solve(problem_, options);
    if (!more.ok()) return Found("more bytes", more.status());
    LOADLINE_RETURN_IF_ERROR(Judge(*more, options.budget_bytes));
    if (more->predicted.step_ns <= plan.predicted.step_ns) {
      return absl::OkStatus();
    }
    // The exception that ARCHITECTURE.md names.
    if (options.allow_smallest_start) {
      ++count_["slower with more bytes than a plan made from the smallest"];
      return absl::OkStatus();
    }
    return Found(
        absl::StrCat("slower with more bytes: ", more->predicted.step_ns,
                     " ns in ", options.budget_bytes, ", ",
                     plan.predicted.step_ns, " in ", plan.budget_bytes));
  }

  // Everything that one plan can be held against.
  absl::Status Judge(const Plan& plan, int64_t budget_bytes) {
    ++count_["plans"];
    count_["plans with a certificate"] += plan.certificate.has_value();
    const absl::Status verdict = Verify(problem_, plan);
    if (!verdict.ok()) return Found("Verify", verdict);
    if (plan.budget_bytes != budget_bytes || plan.arena_bytes > budget_bytes) {
      return Found(absl::StrCat("arena ", plan.arena_bytes, " of a budget of ",
                                plan.budget_bytes, " asked ", budget_bytes));
    }
    for (int walk = 0; walk < 2; ++walk) {
      const std::string wrong = WalkPlan(problem_, plan, random_.Next());
      if (!wrong.empty()) return Found(absl::StrCat("walk: ", wrong));
    }
    LOADLINE_RETURN_IF_ERROR(CheckBounds(plan));
    const std::string json = PlanToJson(plan, problem_);
    const absl::StatusOr<Plan> read = PlanFromJson(json, problem_);
    if (!read.ok()) return Found("read", read.status());
    Plan stripped = plan;
    stripped.certificate.reset();
    const int rule = BrokenRule(problem_, stripped);
    if (rule != 0) return Found(absl::StrCat("the judge says rule ", rule));
    // What is not read.
    Plan same = *read;
    same.searched = plan.searched;
    if (PlanToJson(same, problem_) != json) return Found("the file differs");
    return absl::OkStatus();
  }

  absl::Status CheckBounds(const Plan& plan) {
    const int64_t peak_bytes = CertifiedPeakBytes(problem_);
    if (peak_bytes > plan.predicted.peak_bytes) {
      return Found("the certified peak is above the plan's");
    }
    if (!plan.certificate.has_value()) return absl::OkStatus();
    const absl::StatusOr<int64_t> step_ns =
        CertifiedStepNs(problem_, plan.budget_bytes, *plan.certificate);
    if (!step_ns.ok() || *step_ns < plan.bounds.step_ns ||
        peak_bytes < plan.bounds.peak_bytes) {
      return Found("the certificate proves less than the bounds");
    }
    return *step_ns <= plan.predicted.step_ns + 1
               ? absl::OkStatus()
               : Found("the certificate proves more than the plan takes");
  }

  absl::Status CheckPermissions(const Plan& plan, const SolveOptions& options) {
    std::vector<int> runs(problem_.nodes.size(), 0);
    for (const Step& step : plan.steps) {
      if (step.kind == StepKind::kCopy && !options.allow_offload) {
        return Found("a copy that is not permitted");
      }
      if (step.kind == StepKind::kEncode) {
        const Value& value = problem_.value(plan.buffer(step.from).value);
        const auto codec =
            std::find_if(value.stash.begin(), value.stash.end(),
                         [&](const Codec& c) { return c.name == step.codec; });
        if (!(codec->lossless ? options.permissions.codecs
                              : options.permissions.lossy)) {
          return Found("a codec that is not permitted");
        }
      }
      if (step.kind != StepKind::kNode) continue;
      if (++runs[Index(step.node)] > 1 && !options.allow_recompute) {
        return Found("a rerun that is not permitted");
      }
      for (const Variant& variant : problem_.node(step.node).variants) {
        if (variant.name == step.variant &&
            !(variant.exact ? options.permissions.variants
                            : options.permissions.inexact)) {
          return Found("a variant that is not permitted");
        }
      }
    }
    return absl::OkStatus();
  }

  // Bounds are about every plan, whatever it was permitted (certified ones) and
  // however it was found.
  absl::Status Compare() {
    plans_.push_back(keep_);
    for (const Plan& plan : plans_) {
      if (plan.predicted.peak_bytes < bound_bytes_) {
        return Found(absl::StrCat("bytes proven impossible, ", bound_bytes_,
                                  ", but a plan takes ",
                                  plan.predicted.peak_bytes));
      }
      for (const Plan& other : plans_) {
        if (other.arena_bytes > plan.budget_bytes || !plan.certificate) {
          continue;
        }
        ++count_["bounds against another plan"];
        if (plan.bounds.step_ns > other.predicted.step_ns + 1 ||
            plan.bounds.peak_bytes > other.predicted.peak_bytes) {
          return Found(
              absl::StrCat("a bound of ", plan.bounds.step_ns, " ns in ",
                           plan.budget_bytes, " bytes, but a plan takes ",
                           other.predicted.step_ns, " in ", other.arena_bytes));
        }
      }
    }
    return absl::OkStatus();
  }

  TestRandom random_;
  std::map<std::string, int64_t>& count_;
  Problem problem_;
  SolveOptions options_ = {.work_limit = 0};  // the last ones
  Plan keep_;
  std::vector<Plan> plans_;
  int64_t bound_bytes_ = 0;
};

int Main(int argc, char** argv) {
  const auto arguments = campaign::ReadArguments(argc, argv, 1000);
  if (!arguments.has_value()) return 2;
  std::map<std::string, int64_t> count;
  const int64_t findings =
      campaign::RunCases(*arguments, "problems", [&](uint64_t seed) {
        Case drawn(seed, count);
        const int64_t found = campaign::PrintIfFound(seed, drawn.Run());
        if (found > 0 && arguments->count == 1) {
          std::printf("%s\n", drawn.Describe().c_str());
        }
        return found;
      });
  campaign::PrintCounts(count);
  return findings > 0 ? 1 : 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
