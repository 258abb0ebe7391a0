// `loadline pack`: assigns addresses only, for the CSV files of the literature.
// Parts are tested by tests/planner/pack/pack_test.cc and
// tests/tools/pipeline/buffers_csv_test.cc.
#include "planner/pack/pack.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "fmt/format.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/command.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/number_checks.h"
#include "tools/cli/units.h"
#include "tools/pipeline/buffers_csv.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/output_paths.h"

namespace loadline::tools {
namespace {

struct PackVerbFlags {
  std::string in;
  std::string capacity;
  std::string out = "-";
  int64_t alignment_bytes = 1;
  uint64_t seed = 0;
};

// A capacity in bytes. A number without unit is allowed, as in the files'
// names.
absl::StatusOr<int64_t> ParseCapacity(const std::string& text) {
  const bool bare =
      !text.empty() && std::all_of(text.begin(), text.end(),
                                   [](char c) { return c >= '0' && c <= '9'; });
  const absl::StatusOr<planner::Budget> budget =
      ParseBudget(bare ? text + "B" : text);
  if (!budget.ok()) {
    return absl::Status(
        budget.status().code(),
        absl::StrCat("--capacity",
                     absl::StripPrefix(budget.status().message(), "--budget")));
  }
  if (budget->kind != planner::Budget::Kind::kBytes) {
    return absl::InvalidArgumentError(
        "--capacity: expected bytes, not a share");
  }
  return budget->bytes;
}

absl::Status RunPack(const PackVerbFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(
      CheckOutputPaths({{"BUFFERS", flags.in}}, {{"-o", flags.out}}));
  LOADLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.in));
  auto buffers = ReadBuffersCsv(text);
  if (!buffers.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.in, ": ", buffers.status().message()));
  }
  planner::PackOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.capacity_bytes,
                            ParseCapacity(flags.capacity));
  options.alignment_bytes = flags.alignment_bytes;
  options.seed = flags.seed;
  std::vector<planner::PackItem> items;
  for (const CsvBuffer& buffer : *buffers) {
    planner::PackItem item;
    item.id = static_cast<int64_t>(items.size());
    item.lower = buffer.lower;
    item.upper = buffer.upper;
    item.size = buffer.size;
    items.push_back(item);
  }
  planner::PackReport report;
  auto offsets = planner::Pack(items, options, &report);
  if (offsets.status().code() == absl::StatusCode::kResourceExhausted) {
    // Not an input error, and not the planner's verdict on a whole step.
    return CannotFitError(
        absl::StrCat(flags.in, ": ", offsets.status().message()));
  }
  LOADLINE_RETURN_IF_ERROR(offsets.status());
  spdlog::info("{} buffers in {} of {}; no layout needs less than {}",
               FormatCount(static_cast<int64_t>(items.size())),
               FormatBytes(report.height_bytes),
               FormatBytes(options.capacity_bytes),
               FormatBytes(report.lower_bound_bytes));
  return WriteFile(flags.out, WriteBuffersCsv(*buffers, *offsets));
}

}  // namespace

VerbBody AddPack(CLI::App* app) {
  auto flags = std::make_shared<PackVerbFlags>();
  app->add_option("buffers", flags->in, "CSV with id,lower,upper,size")
      ->required();
  app->add_option("--capacity", flags->capacity, "Bytes of the arena")
      ->type_name("BYTES")
      ->required()
      ->take_last();
  AddOutputFlag(app, &flags->out, "CSV with offsets; - is stdout (default)");
  app->add_option("--alignment", flags->alignment_bytes,
                  "Offsets are multiples of this many bytes (default 1)")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--seed", flags->seed, "Seed of the search")
      ->check(CheckSeed)
      ->take_last();
  return [flags] { return RunPack(*flags); };
}

}  // namespace loadline::tools
