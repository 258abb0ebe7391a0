// The payload is the numbers in order, separated by spaces: budget, smallest
// met, bound, node, values. Tested in
// infeasible_test.cc.
#include "planner/solve/infeasible.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/units.h"
#include "planner/bound/bound.h"

namespace loadline::planner {
namespace {

constexpr char kPayload[] = "loadline.planner/infeasibility";
constexpr size_t kNamedValues = 4;

std::string BytesText(int64_t bytes) {
  return absl::StrCat(bytes, " bytes (", FormatBytes(bytes), ")");
}

}  // namespace

PeakFloor FloorOf(const SearchModel& model) {
  const PeakBound bound = BoundPeak(model);
  PeakFloor floor;
  floor.bytes = bound.bytes;
  floor.node = NodeId{bound.node};
  for (int v : bound.values) floor.values.push_back(ValueId{v});
  return floor;
}

std::string DescribeTightest(const Problem& problem, const PeakFloor& floor) {
  std::vector<std::string> names;
  for (ValueId id : floor.values) {
    if (names.size() == kNamedValues) {
      names.push_back(
          absl::StrCat(floor.values.size() - kNamedValues, " more"));
      break;
    }
    const Value& value = problem.value(id);
    names.push_back(
        absl::StrCat(value.name, " (", FormatBytes(value.bytes), ")"));
  }
  return absl::StrCat(
      floor.node == NodeId{-1}
          ? std::string("the start or end of the step")
          : absl::StrCat("node ", problem.node(floor.node).name),
      ", which needs ", absl::StrJoin(names, ", "));
}

absl::Status InfeasibleError(const Problem& problem,
                             const Infeasibility& facts) {
  const PeakFloor floor = {facts.proven_bound_bytes, facts.tightest_node,
                           facts.tightest_values};
  std::string met = "no plan was found at any budget";
  if (facts.smallest_met_bytes > 0) {
    met = absl::StrCat("the smallest budget met is ",
                       BytesText(facts.smallest_met_bytes));
  }
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("no plan within ", BytesText(facts.budget_bytes), "; ", met,
                   "; proven: no plan needs fewer than ",
                   BytesText(facts.proven_bound_bytes), ", tightest at ",
                   DescribeTightest(problem, floor)));
  std::vector<int64_t> numbers = {facts.budget_bytes, facts.smallest_met_bytes,
                                  facts.proven_bound_bytes,
                                  static_cast<int64_t>(facts.tightest_node)};
  for (ValueId id : facts.tightest_values) {
    numbers.push_back(static_cast<int64_t>(id));
  }
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(numbers, " ")));
  return status;
}

std::optional<Infeasibility> InfeasibilityOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  std::vector<int64_t> numbers;
  for (absl::string_view part : absl::StrSplit(text, ' ')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() < 4) return std::nullopt;
  Infeasibility facts;
  facts.budget_bytes = numbers[0];
  facts.smallest_met_bytes = numbers[1];
  facts.proven_bound_bytes = numbers[2];
  facts.tightest_node = NodeId{static_cast<int32_t>(numbers[3])};
  for (size_t i = 4; i < numbers.size(); ++i) {
    facts.tightest_values.push_back(ValueId{static_cast<int32_t>(numbers[i])});
  }
  return facts;
}

}  // namespace loadline::planner
