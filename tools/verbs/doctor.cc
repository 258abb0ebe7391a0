// `loadline doctor`: measures this machine's profile, or prints that of a known
// machine. Tested by tests/executor/measure/measure_test.cc, and
// tests/end_to_end/known_machine_test.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/measure/other_programs.h"
#include "planner/base/status_macros.h"
#include "planner/problem/known_machines.h"
#include "planner/problem/machine.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/warn_of_other_programs.h"

namespace loadline::tools {
namespace {

struct DoctorVerbFlags {
  std::optional<std::string> name;  // known machine; none: this one
  std::string device = kCpu;
  std::string out;
  bool json = false;
};

void PrintTable(const executor::MeasuredMachine& measured,
                const std::string& path) {
  const planner::Machine& machine = measured.machine;
  Print("{:<22}{}{}\n", "machine", machine.name,
        machine.nominal ? " (nominal: from its data sheet)" : "");
  if (machine.rates.has_value()) {
    for (const auto& [type, rate] : machine.rates->matmul_flop_per_s) {
      Print("{:<22}{:.1f} GFLOP/s\n", "matmul " + type, rate / 1e9);
    }
    Print("{:<22}{:.1f} GB/s\n", "memory",
          machine.rates->memory_bytes_per_s / 1e9);
    Print("{:<22}{}\n", "launch", FormatNs(machine.rates->launch_ns));
  }
  Print("{:<22}{:.1f} GB/s\n", "copy to the host",
        machine.d2h.bytes_per_s / 1e9);
  Print("{:<22}{:.1f} GB/s\n", "copy from the host",
        machine.h2d.bytes_per_s / 1e9);
  Print("{:<22}{:.0f} % of their rates\n", "both at once",
        machine.d2h_h2d_factor * 100);
  for (const executor::CopyRates& rates : measured.copies) {
    Print("{:<22}{:.1f} GB/s out, {:.1f} in, {:.0f} % of that together\n",
          "copies of " + FormatBytes(rates.bytes), rates.d2h_bytes_per_s / 1e9,
          rates.h2d_bytes_per_s / 1e9, rates.d2h_h2d_factor * 100);
  }
  Print("{:<22}{}\n", "latency of a copy", FormatNs(machine.d2h.latency_ns));
  if (machine.copy_overhead_ns > 0) {
    Print("{:<22}{} of computing\n", "each copy costs",
          FormatNs(machine.copy_overhead_ns));
  }
  Print("{:<22}{}\n", "copies and computing",
        machine.copies_exclude_compute ? "one after the other"
                                       : "beside each other");
  Print("{:<22}{}\n", "device memory", FormatBytes(machine.device_bytes));
  if (machine.reserved_bytes > 0) {
    Print("{:<22}{}\n", "of it reserved", FormatBytes(machine.reserved_bytes));
  }
  Print("{:<22}{}\n", "host store", FormatBytes(machine.host_bytes));
  if (!path.empty()) Print("{:<22}{}\n", "kept in", path);
}

absl::Status RunDoctor(const DoctorVerbFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(
      {}, {{"-o", flags.out}, {"--json", flags.json ? "-" : ""}}));
  executor::MeasuredMachine measured;
  if (flags.name.has_value()) {
    LOADLINE_ASSIGN_OR_RETURN(measured.machine,
                              planner::KnownMachine(*flags.name));
  }
  // The profile of this machine is not overwritten with a known machine's.
  const std::string path = flags.out.empty() && !flags.name.has_value()
                               ? OwnProfilePath(flags.device)
                               : flags.out;
  const bool keep = path != "-" && !path.empty();
  // Fails before some seconds of measuring.
  if (keep) LOADLINE_RETURN_IF_ERROR(MakeFolderOf(path));
  if (!flags.name.has_value()) {
    const executor::OtherPrograms others;
    LOADLINE_ASSIGN_OR_RETURN(measured, MeasureDevice(flags.device));
    WarnOfOtherPrograms(others, "this machine was", flags.device, flags.out);
  }
  const planner::Machine& machine = measured.machine;
  if (keep) LOADLINE_RETURN_IF_ERROR(KeepProfile(path, machine));
  if (flags.json || path == "-") {
    Print("{}\n", planner::MachineToJson(machine));
  } else {
    PrintTable(measured, path);
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddDoctor(CLI::App* app) {
  auto flags = std::make_shared<DoctorVerbFlags>();
  app->add_option(
         "name", flags->name,
         absl::StrCat("Instead of measuring, what the data sheet of a GPU "
                      "says: ",
                      absl::StrJoin(planner::KnownMachineNames(), ", ")))
      ->type_name("NAME");
  AddDeviceFlag(app, &flags->device);
  AddOutputFlag(
      app, &flags->out,
      "Profile file; - is stdout (default: this machine's own, which plans "
      "use)");
  app->add_flag("--json", flags->json, "The profile on stdout");
  return [flags] { return RunDoctor(*flags); };
}

}  // namespace loadline::tools
