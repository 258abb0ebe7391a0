// The report lists every assumption that a reader might question. Tested by
// tests/tools/report/report_document_test.cc.
#include "tools/report/assumptions.h"

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "tools/cli/device_names.h"
#include "tools/cli/units.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

std::string LatencyText(const planner::Machine& machine) {
  const std::string out = FormatNs(machine.d2h.latency_ns);
  const std::string in = FormatNs(machine.h2d.latency_ns);
  return out == in ? out : absl::StrCat(out, " and ", in);
}

std::string Copies(const planner::Machine& machine) {
  if (!machine.CanCopy()) return "The profile has no copy rates: no copies.";
  std::string text =
      fmt::format("Copies: {:.3g} GB/s out, {:.3g} GB/s in, {} of latency each",
                  machine.d2h.bytes_per_s / 1e9, machine.h2d.bytes_per_s / 1e9,
                  LatencyText(machine));
  if (machine.copies_exclude_compute) {
    return text +
           ". They share cores or memory with computing, so neither runs "
           "beside "
           "the other.";
  }
  if (machine.d2h_h2d_factor < 1) {
    text += fmt::format("; while both lanes copy, each at {:.0f} % of that",
                        100 * machine.d2h_h2d_factor);
  }
  if (machine.copy_overhead_ns > 0) {
    text += fmt::format(
        "; {} of computing for each, which the step time counts and the "
        "timeline does not show",
        FormatNs(machine.copy_overhead_ns));
  }
  return text +
         ". They are taken to slow no kernel; where they share cores or memory "
         "with computing, as on a CPU, a step that copies much takes longer.";
}

std::string Times(const StepFlags* flags) {
  if (flags == nullptr) return "Times of nodes: as the problem file has them.";
  if (flags->plan.calibrate) {
    return "Times of nodes: measured on this machine, in a step that keeps "
           "everything or, on a CPU, fits in the budget (very large steps: "
           "each operator alone).";
  }
  return "Times of nodes: as the machine's profile has measured them; those it "
         "has not are estimated from its rates (--calibrate measures them).";
}

}  // namespace

std::vector<std::string> Assumptions(const planner::Problem& problem,
                                     const StepFlags* flags) {
  std::vector<std::string> lines = {Times(flags)};
  if (problem.machine.has_value()) {
    lines.push_back(absl::StrCat(
        "Machine profile: ", problem.machine->name,
        problem.machine->nominal
            ? ", nominal: from its data sheet; loadline doctor measures one."
            : "."));
    if (flags != nullptr &&
        IsElsewhere(*problem.machine, flags->plan.device != kCuda)) {
      lines.push_back(
          "Workspaces: those of its kernels are not known here, and none are "
          "counted.");
    }
    lines.push_back(Copies(*problem.machine));
    const bool counts =
        flags != nullptr &&
        ReservedInBudget(problem, flags->plan.device == kCuda) > 0;
    lines.push_back(absl::StrCat(
        "Outside the plan, and ",
        counts ? "taken off a budget in bytes: " : "not in the budget: ",
        FormatBytes(problem.machine->reserved_bytes),
        " of device memory that libraries take for themselves."));
  }
  lines.push_back(
      problem.addresses
          ? absl::StrCat("Buffers start at multiples of ",
                         problem.alignment_bytes, " bytes.")
          : "The budget limits the sum of live bytes; there are no addresses.");
  if (flags != nullptr) {
    lines.push_back(absl::StrCat(
        "Optimizer: ", flags->optimizer.optimizer,
        flags->optimizer.state_bits == 8 ? ", its states in 8 bits" : "",
        "; loss: ", flags->loss.loss, "."));
  }
  return lines;
}

std::string PlanNote(const PlannedStep& step, const StepFlags& flags) {
  if (IsElsewhere(step.machine, flags.plan.device != kCuda)) {
    return "Workspaces of that machine's kernels are not known, so none are "
           "counted.\n";
  }
  const OperatorCount count = CountOperators(step.graph, step.machine);
  if (flags.plan.calibrate || count.unmeasured == 0) return "";
  return fmt::format(
      "Times of {} of {} operators are estimated; --calibrate measures them.\n",
      count.unmeasured, count.all);
}

}  // namespace loadline::tools
