// Tested in tests/passes/check_plan_matches_test.cc.
#include "passes/structure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/micro_batches.h"

namespace loadline::passes {
namespace {

constexpr char kMicroBatches[] = " micro-batches";
constexpr char kSeparator[] = ", ";

// The structure that a problem's name ends with.
absl::string_view StructureIn(absl::string_view problem_name) {
  const size_t at = problem_name.rfind(kSeparator);
  if (at == absl::string_view::npos) return "";
  const absl::string_view last =
      problem_name.substr(at + sizeof(kSeparator) - 1);
  return absl::EndsWith(last, kMicroBatches) ? last : "";
}

std::string InWords(absl::string_view structure) {
  return structure.empty() ? "one piece" : std::string(structure);
}

}  // namespace

std::string StructureOf(const models::Graph& step) {
  const int64_t parts = models::MicroBatchesOf(step);
  return parts == 1 ? "" : absl::StrCat(parts, kMicroBatches);
}

std::string NameWithStructure(absl::string_view name,
                              const models::Graph& step) {
  const std::string structure = StructureOf(step);
  if (structure.empty()) return std::string(name);
  return absl::StrCat(name, kSeparator, structure);
}

absl::Status CheckNamedStructure(absl::string_view problem_name,
                                 const models::Graph& step) {
  const absl::string_view theirs = StructureIn(problem_name);
  const std::string ours = StructureOf(step);
  if (theirs == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this plan is of a step in ", InWords(theirs), ", and this step is in ",
      InWords(ours), "; give --micro-batches ",
      theirs.empty() ? "1" : theirs.substr(0, theirs.find(' '))));
}

}  // namespace loadline::passes
