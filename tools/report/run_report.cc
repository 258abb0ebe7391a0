// Compares predicted and measured figures. Tested by
// tests/end_to_end/training_test.cc and tests/tools/report/run_report_test.cc.
#include "tools/report/run_report.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tools/cli/json_text.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"
#include "tools/report/plan_summary.h"
#include "tools/report/structure_output.h"

namespace loadline::tools {
namespace {

std::string ErrorOf(double measured, double predicted) {
  if (predicted == 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (measured - predicted) / predicted);
}

int64_t ReservedBytes(const PlannedStep& step) {
  const auto& machine = step.problem.machine;
  return machine.has_value() ? machine->reserved_bytes : 0;
}

std::string ResidentText(const PlannedStep& step,
                         const ResidentMemory& resident) {
  return fmt::format(
      "Resident is what the process takes of this machine's memory: {} before "
      "the arena (libraries, model, data), and the arena{}; planning and "
      "measuring took up to {}. Keeping everything would take {}.",
      FormatBytes(resident.base_bytes),
      resident.store_bytes > 0
          ? absl::StrCat(", and ", FormatBytes(resident.store_bytes),
                         " of copies, which an emulated device has in memory")
          : "",
      FormatBytes(resident.planning_bytes),
      FormatBytes(resident.base_bytes + step.keep_everything.arena_bytes));
}

}  // namespace

void PrintRunTable(const PlannedStep& step, const Replanned& first_plan,
                   const executor::TrainResult& result,
                   const ResidentMemory& resident) {
  Print("{}\n{}", PlanTable(step.problem, step.keep_everything, step.plan),
        StructureText(step));
  Print("{:<14}{:>12}{:>14}{:>10}\n", "", "predicted", "measured", "error");
  const auto print = [](const std::string& what, auto format, int64_t predicted,
                        int64_t measured) {
    Print(
        "{:<14}{:>12}{:>14}{:>10}\n", what, format(predicted), format(measured),
        ErrorOf(static_cast<double>(measured), static_cast<double>(predicted)));
  };
  print("arena", FormatBytes, step.plan.arena_bytes, result.arena_bytes);
  if (result.device_bytes > 0) {
    print("whole device", FormatBytes,
          step.plan.arena_bytes + ReservedBytes(step), result.device_bytes);
  }
  if (resident.base_bytes > 0) {
    print("resident", FormatBytes,
          std::max(resident.planning_bytes, resident.base_bytes +
                                                resident.store_bytes +
                                                step.plan.arena_bytes),
          resident.peak_bytes);
  }
  if (first_plan.steps > 0) {
    print(absl::StrCat("first ", first_plan.steps, " steps"), FormatNs,
          first_plan.predicted_step_ns, first_plan.step_ns);
  }
  if (!result.losses.empty()) {
    print("step time", FormatNs, step.plan.predicted.step_ns, result.step_ns);
    print("data wait", FormatNs, 0, result.data_wait_ns);
  }
  if (first_plan.steps > 0) {
    Print(
        "\nPlanned again with the times of {} steps, in which the first plan "
        "takes\n{} and {}.\n",
        first_plan.steps, FormatNs(first_plan.repriced_step_ns),
        first_plan.same_plan
            ? std::string("no other was faster")
            : absl::StrCat("this one ", FormatNs(step.plan.predicted.step_ns)));
  }
  if (resident.base_bytes > 0) {
    Print("\n{}\n", Wrapped(ResidentText(step, resident), 0));
  }
  if (result.losses.empty()) {
    Print("\nNo step was trained: the run is at step {} already.\n",
          result.first_step);
  } else {
    Print(
        "\nloss {:.6f} -> {:.6f} over steps {} to {}, {:.1f} "
        "examples/s\n",
        result.losses.front(), result.losses.back(), result.first_step + 1,
        result.first_step + static_cast<int64_t>(result.losses.size()),
        result.examples_per_s);
  }
  Print("\n{}", ReproduceWith());
}

nlohmann::ordered_json RunJson(const PlannedStep& step,
                               const Replanned& first_plan,
                               const executor::TrainResult& result,
                               const ResidentMemory& resident) {
  nlohmann::ordered_json out = {{"format", "loadline.run/1"}};
  out.update(PlanSummaryJson(step.problem, step.keep_everything, step.plan));
  AddStructure(step, &out);
  out["first_step"] = result.first_step;
  // Nine digits suffice to read back the same float.
  out["losses"] = nlohmann::ordered_json::array();
  for (float loss : result.losses) {
    out["losses"].push_back(static_cast<double>(loss));
  }
  out["measured_arena_bytes"] = result.arena_bytes;
  if (result.device_bytes > 0) {
    out["measured_device_bytes"] = result.device_bytes;
    out["reserved_bytes"] = ReservedBytes(step);
  }
  if (resident.base_bytes > 0) {
    out["measured_resident_bytes"] = resident.peak_bytes;
    out["resident_base_bytes"] = resident.base_bytes;
    out["resident_planning_bytes"] = resident.planning_bytes;
  }
  out["step_ns"] = result.step_ns;
  out["data_wait_ns"] = result.data_wait_ns;
  out["examples_per_s"] = result.examples_per_s;
  out["weights_sha256"] = result.weights_sha256;
  out["interrupted"] = result.interrupted;
  if (first_plan.steps > 0) {
    out["replan"] = {{"steps", first_plan.steps},
                     {"predicted_step_ns", first_plan.predicted_step_ns},
                     {"step_ns", first_plan.step_ns},
                     {"repriced_step_ns", first_plan.repriced_step_ns},
                     {"same_plan", first_plan.same_plan}};
  }
  return out;
}

void PrintRunJson(const PlannedStep& step, const Replanned& first_plan,
                  const executor::TrainResult& result,
                  const ResidentMemory& resident) {
  Print("{}\n", JsonText(RunJson(step, first_plan, result, resident)));
}

}  // namespace loadline::tools
