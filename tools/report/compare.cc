// Converts every document to one form: figures by name, and actions by value.
// Tested by tests/tools/report/compare_test.cc.
#include "tools/report/compare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "planner/problem/plan.h"
#include "planner/solve/solve.h"
#include "tools/cli/units.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/plan_files.h"
#include "tools/report/plan_summary.h"

namespace loadline::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* field;
  const char* name;  // in the table
  bool required;
};

// In the table's order. Figures that are not required occur in runs only.
constexpr Figure kFigures[] = {
    {"budget_bytes", "budget", true},
    {"arena_bytes", "arena", true},
    {"measured_arena_bytes", "measured arena", false},
    {"predicted_peak_bytes", "peak", true},
    {"bound_peak_bytes", "proven peak", true},
    {"host_bytes", "host store", true},
    {"predicted_step_ns", "step time", true},
    {"step_ns", "measured step", false},
    {"bound_step_ns", "proven step", true},
    {"recomputed_values", "values again", true},
    {"recompute_ns", "time again", true},
    {"offloaded_values", "values copied", true},
    {"d2h_bytes", "copied out", true},
    {"h2d_bytes", "copied in", true},
    {"stall_ns", "waiting", true},
};

constexpr size_t kShownDecisions = 8;

absl::Status In(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status TakeFigures(const Json& from, Compared* compared) {
  for (const Figure& figure : kFigures) {
    const auto field = from.find(figure.field);
    if (field == from.end() && !figure.required) continue;
    if (field == from.end() || !field->is_number_integer()) {
      return In(compared->file,
                absl::StrCat(figure.field, ": expected a whole number"));
    }
    compared->figures[figure.field] = field->get<int64_t>();
  }
  if (from.contains("problem") && from["problem"].is_string()) {
    compared->problem = from["problem"].get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status TakePlan(const planner::Problem* problem, Compared* compared) {
  if (problem == nullptr) {
    return In(compared->file,
              "is a plan file: give --problem, what it was made for");
  }
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan plan,
                            ReadPlanFile(compared->file, *problem));
  LOADLINE_RETURN_IF_ERROR(VerifyPlanFile(compared->file, *problem, plan));
  // A comparison only uses the plan's own figures; either plan may be the
  // baseline.
  LOADLINE_RETURN_IF_ERROR(
      TakeFigures(PlanSummaryJson(*problem, plan, plan), compared));
  for (const planner::Decision& decision : plan.decisions) {
    const planner::Value& value = problem->value(decision.value);
    compared->decisions[value.name] = {
        value.bytes, std::string(planner::ActionName(decision.action))};
  }
  return absl::OkStatus();
}

// The text that entry `i` of a column refers to, or null.
const Json* TextAt(const Json& document, const Json& column, size_t i) {
  const auto texts = document.find("texts");
  if (texts == document.end() || !texts->is_array() || i >= column.size() ||
      !column[i].is_number_unsigned()) {
    return nullptr;
  }
  const size_t number = column[i].get<size_t>();
  if (number >= texts->size() || !(*texts)[number].is_string()) return nullptr;
  return &(*texts)[number];
}

absl::Status TakeReport(const Json& document, Compared* compared) {
  const auto summary = document.find("summary");
  const auto values = document.find("values");
  if (summary == document.end() || !summary->is_object() ||
      values == document.end() || !values->is_object()) {
    return In(compared->file, "summary, values: expected objects");
  }
  LOADLINE_RETURN_IF_ERROR(TakeFigures(*summary, compared));
  const auto measured = document.find("measured");
  if (measured != document.end() && measured->is_object()) {
    for (const auto& [from, to] :
         {std::pair("arena_bytes", "measured_arena_bytes"),
          std::pair("step_ns", "step_ns")}) {
      const auto field = measured->find(from);
      if (field == measured->end() || !field->is_number_integer()) continue;
      compared->figures[to] = field->get<int64_t>();
    }
  }
  for (const char* column : {"path", "name", "bytes", "action"}) {
    if (!values->contains(column) || !(*values)[column].is_array()) {
      return In(compared->file,
                absl::StrCat("values.", column, ": expected a column"));
    }
  }
  const Json& names = (*values)["name"];
  for (size_t v = 0; v < names.size(); ++v) {
    const Json* path = TextAt(document, (*values)["path"], v);
    const Json* action = TextAt(document, (*values)["action"], v);
    const Json& bytes = (*values)["bytes"];
    if (path == nullptr || action == nullptr || !names[v].is_string() ||
        v >= bytes.size() || !bytes[v].is_number_integer()) {
      return In(compared->file, absl::StrCat("values: row ", v));
    }
    if (action->get_ref<const std::string&>().empty()) continue;
    compared
        ->decisions[path->get<std::string>() + names[v].get<std::string>()] = {
        bytes[v].get<int64_t>(), action->get<std::string>()};
  }
  return absl::OkStatus();
}

std::string Formatted(const std::string& field, int64_t number) {
  const std::string sign = number < 0 ? "-" : "";
  const int64_t size = number < 0 ? -number : number;
  if (absl::EndsWith(field, "_bytes")) return sign + FormatBytes(size);
  if (absl::EndsWith(field, "_ns")) return sign + FormatNs(size);
  return FormatCount(number);
}

std::string Difference(const std::string& field, int64_t a, int64_t b) {
  if (a == b) return "same";
  std::string text = absl::StrCat(b > a ? "+" : "", Formatted(field, b - a));
  if (a == 0) return text;
  return fmt::format("{}  ({:+.1f} %)", text,
                     100 * static_cast<double>(b - a) / static_cast<double>(a));
}

struct DifferingDecision {
  std::string value;
  int64_t bytes = 0;
  std::string a;
  std::string b;
};

// Largest first. Omits values that one of the two does not mention.
std::vector<DifferingDecision> Differing(const Compared& a, const Compared& b) {
  std::vector<DifferingDecision> differing;
  for (const auto& [name, decision] : a.decisions) {
    const auto other = b.decisions.find(name);
    if (other == b.decisions.end() || other->second.action == decision.action) {
      continue;
    }
    differing.push_back(
        {name, decision.bytes, decision.action, other->second.action});
  }
  std::stable_sort(
      differing.begin(), differing.end(),
      [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
  return differing;
}

bool BothDecide(const Compared& a, const Compared& b) {
  return !a.decisions.empty() && !b.decisions.empty();
}

int64_t BytesOf(const std::vector<DifferingDecision>& decisions) {
  int64_t bytes = 0;
  for (const DifferingDecision& decision : decisions) bytes += decision.bytes;
  return bytes;
}

std::string DecisionTable(const Compared& a, const Compared& b) {
  if (!BothDecide(a, b)) {
    return "Decisions are in plan files and reports only.\n";
  }
  const auto differing = Differing(a, b);
  if (differing.empty()) return "Both decide the same about every value.\n";
  std::string out =
      fmt::format("They differ in the decision about {} {} of {}:\n",
                  FormatCount(static_cast<int64_t>(differing.size())),
                  differing.size() == 1 ? "value" : "values",
                  FormatBytes(BytesOf(differing)));
  for (size_t i = 0; i < differing.size() && i < kShownDecisions; ++i) {
    const DifferingDecision& one = differing[i];
    out += fmt::format("{:>12}  {:<9} -> {:<9}  {}\n", FormatBytes(one.bytes),
                       one.a, one.b, one.value);
  }
  if (differing.size() > kShownDecisions) {
    out += fmt::format("{:>12}  more\n", differing.size() - kShownDecisions);
  }
  return out;
}

}  // namespace

absl::StatusOr<Compared> ReadCompared(const std::string& path,
                                      const planner::Problem* problem) {
  Compared compared;
  compared.file = path;
  LOADLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object()) {
    return In(path, "is no JSON document");
  }
  const std::string format =
      document.contains("format") && document["format"].is_string()
          ? document["format"].get<std::string>()
          : "";
  absl::Status status;
  if (format == "loadline.plan/1") {
    compared.kind = "plan file";
    status = TakePlan(problem, &compared);
  } else if (format == "loadline.report/1") {
    compared.kind = "report";
    status = TakeReport(document, &compared);
  } else if (format == "loadline.summary/1" || format == "loadline.run/1") {
    compared.kind = format == "loadline.run/1" ? "run" : "plan";
    status = TakeFigures(document, &compared);
  } else {
    status = In(path, absl::StrCat("format '", format,
                                   "': expected a plan file, or what plan, run "
                                   "or report print with --json"));
  }
  if (!status.ok()) return status;
  return compared;
}

std::string CompareTable(const Compared& a, const Compared& b) {
  std::string out =
      fmt::format("a  {} ({})\nb  {} ({})\n", a.file, a.kind, b.file, b.kind);
  if (a.problem != b.problem) {
    out +=
        fmt::format("The problems differ: {} and {}.\n", a.problem, b.problem);
  }
  out += fmt::format("\n{:<16}{:>13}{:>13}   {}\n", "", "a", "b", "b - a");
  for (const Figure& figure : kFigures) {
    const auto in_a = a.figures.find(figure.field);
    const auto in_b = b.figures.find(figure.field);
    const bool has_a = in_a != a.figures.end();
    const bool has_b = in_b != b.figures.end();
    if (!has_a && !has_b) continue;
    out += fmt::format(
        "{:<16}{:>13}{:>13}   {}\n", figure.name,
        has_a ? Formatted(figure.field, in_a->second) : "-",
        has_b ? Formatted(figure.field, in_b->second) : "-",
        has_a && has_b ? Difference(figure.field, in_a->second, in_b->second)
                       : "");
  }
  return absl::StrCat(out, "\n", DecisionTable(a, b));
}

Json CompareJson(const Compared& a, const Compared& b) {
  Json out;
  out["format"] = "loadline.compare/1";
  for (const auto& [name, side] : {std::pair("a", &a), std::pair("b", &b)}) {
    out[name] = {
        {"file", side->file}, {"kind", side->kind}, {"problem", side->problem}};
  }
  out["figures"] = Json::array();
  for (const Figure& figure : kFigures) {
    const auto in_a = a.figures.find(figure.field);
    const auto in_b = b.figures.find(figure.field);
    Json row = {{"field", figure.field}};
    if (in_a != a.figures.end()) row["a"] = in_a->second;
    if (in_b != b.figures.end()) row["b"] = in_b->second;
    if (row.size() > 1) out["figures"].push_back(std::move(row));
  }
  if (!BothDecide(a, b)) return out;
  const auto differing = Differing(a, b);
  out["decisions"]["differing"] = differing.size();
  out["decisions"]["bytes"] = BytesOf(differing);
  out["decisions"]["values"] = Json::array();
  for (const DifferingDecision& one : differing) {
    out["decisions"]["values"].push_back({{"value", one.value},
                                          {"bytes", one.bytes},
                                          {"a", one.a},
                                          {"b", one.b}});
  }
  return out;
}

}  // namespace loadline::tools
