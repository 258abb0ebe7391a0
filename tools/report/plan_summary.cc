// A reader needs five facts about a plan: whether it fits, what it costs, what
// it recomputes, what it copies, and how close to optimal it is. Tested by
// tests/tools/report/plan_summary_test.cc.
#include "tools/report/plan_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/problem/used_codecs.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"

namespace loadline::tools {
namespace {

using planner::Action;
using planner::CodecFigures;
using planner::FiguresOf;

struct ActionCount {
  int64_t values = 0;
  int64_t bytes = 0;
};

std::map<Action, ActionCount> CountActions(const planner::Problem& problem,
                                           const planner::Plan& plan) {
  std::map<Action, ActionCount> counts;
  for (const planner::Decision& decision : plan.decisions) {
    ActionCount& count = counts[decision.action];
    ++count.values;
    count.bytes += problem.value(decision.value).bytes;
  }
  return counts;
}

std::string Row(const std::string& name, const std::string& a,
                const std::string& b) {
  return fmt::format("{:<14}{:>17}   {}\n", name, a, b);
}

std::string Values(const ActionCount& count) {
  return absl::StrCat(FormatCount(count.values),
                      count.values == 1 ? " value" : " values");
}

// A problem's errors are squares of shares (passes/make_problem.h).
double ErrorShare(const CodecFigures& stored) {
  return std::sqrt(stored.error);
}

// "2 values; 2.90 MiB saved, 80.0 % of the allowed error".
std::string CompressedText(const CodecFigures& stored) {
  std::string text = absl::StrCat(Values({stored.values, stored.bytes}), "; ",
                                  FormatBytes(stored.saved_bytes), " saved");
  if (stored.lossy) {
    absl::StrAppend(&text, ", ", FormatPercent(ErrorShare(stored), 1),
                    " of the allowed error");
  }
  return text;
}

double Overhead(const planner::Plan& keep, const planner::Plan& plan) {
  return static_cast<double>(plan.predicted.step_ns - keep.predicted.step_ns);
}

std::string OfMachine(const planner::Machine& machine,
                      const planner::Plan& plan) {
  std::string out;
  const int64_t taken_bytes = plan.arena_bytes + machine.reserved_bytes;
  if (machine.device_bytes > 0 && taken_bytes > machine.device_bytes) {
    out += fmt::format(" But {} has no more than {}, and {} would be taken.",
                       machine.name, FormatBytes(machine.device_bytes),
                       FormatBytes(taken_bytes));
  }
  if (machine.nominal) {
    out += fmt::format(
        " Times are nominal, of the data sheet of {}: nobody has measured it.",
        machine.name);
  }
  return out;
}

}  // namespace

std::string PlanTable(const planner::Problem& problem,
                      const planner::Plan& keep_everything,
                      const planner::Plan& plan) {
  const planner::Prediction& before = keep_everything.predicted;
  const planner::Prediction& after = plan.predicted;
  auto counts = CountActions(problem, plan);
  const ActionCount recomputed = counts[Action::kRecompute];
  const ActionCount copied = counts[Action::kOffload];

  std::string out =
      fmt::format("{:<14}{:>17}   {}\n", "", "keep everything", "plan");
  out += Row("peak", FormatBytes(before.peak_bytes),
             absl::StrCat(FormatBytes(after.peak_bytes), "  (",
                          FormatPercent(static_cast<double>(after.peak_bytes),
                                        static_cast<double>(before.peak_bytes)),
                          ")"));
  out += Row("arena", FormatBytes(keep_everything.arena_bytes),
             absl::StrCat(FormatBytes(plan.arena_bytes), " of a budget of ",
                          FormatBytes(plan.budget_bytes)));
  out += Row("step time", FormatNs(before.step_ns),
             absl::StrCat(FormatNs(after.step_ns), "  (+",
                          FormatPercent(Overhead(keep_everything, plan),
                                        static_cast<double>(before.step_ns)),
                          ")"));
  out += Row("recomputed", "-",
             recomputed.values == 0
                 ? "nothing"
                 : absl::StrCat(Values(recomputed), " of ",
                                FormatBytes(recomputed.bytes), ", ",
                                FormatNs(after.recompute_ns), " again"));
  out +=
      Row("copied", "-",
          copied.values == 0
              ? "nothing"
              : absl::StrCat(Values(copied), "; ", FormatBytes(after.d2h_bytes),
                             " out, ", FormatBytes(after.h2d_bytes), " in"));
  if (const CodecFigures stored = FiguresOf(problem, plan); stored.values > 0) {
    out += Row("compressed", "-", CompressedText(stored));
  }
  out += Row("waiting", FormatNs(before.stall_ns), FormatNs(after.stall_ns));
  out += Row("host store", "-", FormatBytes(plan.host_bytes));
  out += Row(
      plan.certificate ? "proven bounds" : "estimated bounds", "",
      fmt::format("peak >= {}, step >= {}", FormatBytes(plan.bounds.peak_bytes),
                  FormatNs(plan.bounds.step_ns)));
  return absl::StrCat(
      out, "\n", Wrapped(Verdict(problem, keep_everything, plan), 0), "\n");
}

std::string Verdict(const planner::Problem& problem,
                    const planner::Plan& keep_everything,
                    const planner::Plan& plan) {
  const double whole = static_cast<double>(keep_everything.predicted.step_ns);
  const double overhead = Overhead(keep_everything, plan);
  std::string out =
      fmt::format("Fits in {} with {} to spare", FormatBytes(plan.budget_bytes),
                  FormatBytes(plan.budget_bytes - plan.arena_bytes));
  if (overhead <= whole * 1e-4) {
    out += " and is predicted to cost no time.";
  } else {
    out += fmt::format(" and makes a step {} slower",
                       FormatPercent(overhead, whole));
    const char* standing = plan.certificate ? "proven" : "an estimate";
    out += plan.bounds.step_ns >= plan.predicted.step_ns
               ? fmt::format("; no plan within this budget is faster ({}).",
                             standing)
               : fmt::format(
                     ". A step within this budget takes at least {} ({}); "
                     "this plan takes {}.",
                     FormatNs(plan.bounds.step_ns), standing,
                     FormatNs(plan.predicted.step_ns));
  }
  if (problem.machine.has_value()) out += OfMachine(*problem.machine, plan);
  return out;
}

nlohmann::ordered_json PlanSummaryJson(const planner::Problem& problem,
                                       const planner::Plan& keep_everything,
                                       const planner::Plan& plan) {
  auto counts = CountActions(problem, plan);
  nlohmann::ordered_json out;
  out["problem"] = problem.name;
  out["budget_bytes"] = plan.budget_bytes;
  out["arena_bytes"] = plan.arena_bytes;
  out["host_bytes"] = plan.host_bytes;
  out["predicted_peak_bytes"] = plan.predicted.peak_bytes;
  out["predicted_step_ns"] = plan.predicted.step_ns;
  out["recompute_ns"] = plan.predicted.recompute_ns;
  out["d2h_bytes"] = plan.predicted.d2h_bytes;
  out["h2d_bytes"] = plan.predicted.h2d_bytes;
  out["stall_ns"] = plan.predicted.stall_ns;
  out["recomputed_values"] = counts[Action::kRecompute].values;
  out["offloaded_values"] = counts[Action::kOffload].values;
  if (const CodecFigures stored = FiguresOf(problem, plan); stored.values > 0) {
    out["compressed_values"] = stored.values;
    out["compressed_bytes"] = stored.bytes;
    out["compression_saved_bytes"] = stored.saved_bytes;
    if (stored.lossy) out["error_share"] = ErrorShare(stored);
  }
  out["bound_peak_bytes"] = plan.bounds.peak_bytes;
  out["bound_step_ns"] = plan.bounds.step_ns;
  out["keep_everything_peak_bytes"] = keep_everything.predicted.peak_bytes;
  out["keep_everything_arena_bytes"] = keep_everything.arena_bytes;
  out["keep_everything_step_ns"] = keep_everything.predicted.step_ns;
  out["verdict"] = Verdict(problem, keep_everything, plan);
  return out;
}

}  // namespace loadline::tools
