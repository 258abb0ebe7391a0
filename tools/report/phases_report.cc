// Tested by tests/tools/report/phases_report_test.cc and
// tests/end_to_end/recipe_test.cc.
#include "tools/report/phases_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_text.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"
#include "tools/report/run_report.h"

namespace loadline::tools {
namespace {

std::string StepsText(const PhaseRecord& phase) {
  if (phase.end_step == passes::kOpenEnd) {
    return absl::StrCat("from ", phase.first_step + 1);
  }
  return absl::StrCat(phase.first_step + 1, " to ", phase.end_step);
}

// "1.2 ms", or "-" for none.
std::string NsOrDash(int64_t ns) { return ns == 0 ? "-" : FormatNs(ns); }
std::string BytesOrDash(int64_t bytes) {
  return bytes == 0 ? "-" : FormatBytes(bytes);
}

bool IsMasking(const passes::RecipeEntry& entry) {
  return entry.prune() != nullptr &&
         !passes::IsStructured(entry.prune()->granularity);
}

}  // namespace

namespace {

constexpr size_t kMostRows = 24;
constexpr int64_t kBar = 24;

// The width of each group that loses channels, with a bar of what is left.
std::string WidthsTable(const std::vector<PhaseRecord>& phases) {
  if (phases.empty()) return "";
  std::map<std::string, int64_t> after;
  for (const GroupWidth& group : phases.back().widths) {
    after[group.name] = group.width;
  }
  std::string out;
  size_t rows = 0;
  for (const GroupWidth& group : phases.front().widths) {
    const auto found = after.find(group.name);
    // A group of one channel is no longer listed.
    const int64_t left = found == after.end() ? 1 : found->second;
    if (left == group.width || ++rows > kMostRows) continue;
    const int64_t full =
        std::clamp<int64_t>(left * kBar / group.width, 1, kBar);
    out += fmt::format("{:<30}{:>8}{:>8}  {}\n", group.name, group.width, left,
                       std::string(static_cast<size_t>(full), '#') +
                           std::string(static_cast<size_t>(kBar - full), '.'));
  }
  if (rows == 0) return "";
  if (rows > kMostRows) {
    out += fmt::format("and {} more; --json has all\n", rows - kMostRows);
  }
  return absl::StrCat(
      fmt::format("{:<30}{:>8}{:>8}\n", "channels of", "first", "last"), out,
      "\n");
}

}  // namespace

std::string PhasesTable(const passes::Recipe& recipe,
                        const std::vector<PhaseRecord>& phases,
                        const std::vector<double>& targets, bool has_all) {
  std::string out =
      fmt::format("{:<7}{:<14}{:>11}{:>11}{:>10}{:>10}{:>10}\n", "phase",
                  "steps", "parameters", "peak", "step", "again", "copied");
  for (const PhaseRecord& phase : phases) {
    const planner::Prediction& predicted = phase.predicted;
    out += fmt::format(
        "{:<7}{:<14}{:>11}{:>11}{:>10}{:>10}{:>10}\n", phase.number,
        StepsText(phase), FormatCount(phase.figures.parameters),
        FormatBytes(predicted.peak_bytes), FormatNs(predicted.step_ns),
        NsOrDash(predicted.recompute_ns),
        BytesOrDash(predicted.d2h_bytes + predicted.h2d_bytes));
  }
  const int64_t from = KeepsEverythingFrom(phases);
  out += "\n";
  out += WidthsTable(phases);
  out += Wrapped(
      from == passes::kOpenEnd
          ? "Something is recomputed or copied in every step, to the last."
          : absl::StrCat("From step ", from + 1,
                         " on nothing is recomputed or copied."),
      0);
  out += "\n";
  for (const PhaseRecord& phase : phases) {
    if (phase.compressed_values == 0) continue;
    std::string text = absl::StrCat(
        "Phase ", phase.number, " stores ", phase.compressed_values,
        phase.compressed_values == 1 ? " value" : " values",
        " compressed, which saves ", FormatBytes(phase.compression_saved_bytes),
        ".");
    if (phase.gradient_error > 0) {
      absl::StrAppend(&text, " The expected error of its gradient is ",
                      fmt::format("{:.2g}", 100 * phase.gradient_error), " %.");
    }
    out += Wrapped(text, 0);
    out += "\n";
  }
  for (size_t e = 0; e < recipe.entries.size(); ++e) {
    const passes::RecipeEntry& entry = recipe.entries[e];
    if (const passes::QuantizeSpec* spec = entry.quantize()) {
      const bool after = has_all && !phases.empty() &&
                         phases.back().end_step == spec->start_step;
      out += Wrapped(
          absl::StrCat(
              "Entry '", entry.name, "' quantizes ",
              after ? std::string("after the last step.")
                    : absl::StrCat("from step ", spec->start_step + 1, " on.")),
          0);
      out += "\n";
      continue;
    }
    if (entry.prune()->target.kind != passes::PruneTarget::Kind::kSparsity) {
      out += Wrapped(fmt::format("Entry '{}' reaches its target with {:.1f} % "
                                 "of the channels removed.",
                                 entry.name, 100 * targets[e]),
                     0);
      out += "\n";
    }
    if (IsMasking(entry)) {
      out += Wrapped(fmt::format("Entry '{}' only sets weights to zero: no "
                                 "bytes and no time are saved, in training or "
                                 "in the file.",
                                 entry.name),
                     0);
      out += "\n";
    }
  }
  return out;
}

nlohmann::ordered_json PhasesJson(const passes::Recipe& recipe,
                                  const std::vector<PhaseRecord>& phases,
                                  const std::vector<double>& targets) {
  nlohmann::ordered_json out;
  nlohmann::ordered_json& list = out["phases"] =
      nlohmann::ordered_json::array();
  for (const PhaseRecord& phase : phases) {
    nlohmann::ordered_json one = {{"phase", phase.number},
                                  {"first_step", phase.first_step}};
    if (phase.end_step != passes::kOpenEnd) one["end_step"] = phase.end_step;
    one["channels"] = phase.channels;
    one["parameters"] = phase.figures.parameters;
    one["macs"] = phase.figures.macs;
    one["widths"] = nlohmann::ordered_json::object();
    for (const GroupWidth& group : phase.widths) {
      one["widths"][group.name] = group.width;
    }
    one["keep_everything_bytes"] = phase.keep_everything_bytes;
    one["budget_bytes"] = phase.budget_bytes;
    one["arena_bytes"] = phase.arena_bytes;
    one["peak_bytes"] = phase.predicted.peak_bytes;
    one["step_ns"] = phase.predicted.step_ns;
    one["recompute_ns"] = phase.predicted.recompute_ns;
    one["d2h_bytes"] = phase.predicted.d2h_bytes;
    one["h2d_bytes"] = phase.predicted.h2d_bytes;
    if (phase.compressed_values > 0) {
      one["compressed_values"] = phase.compressed_values;
      one["compression_saved_bytes"] = phase.compression_saved_bytes;
      one["gradient_error"] = phase.gradient_error;
    }
    one["carried_bytes"] = phase.carried_bytes;
    if (phase.measured_arena_bytes > 0) {
      one["steps_done"] = phase.steps_done;
      one["measured_arena_bytes"] = phase.measured_arena_bytes;
      one["measured_step_ns"] = phase.measured_step_ns;
    }
    list.push_back(std::move(one));
  }
  nlohmann::ordered_json& entries = out["targets"] =
      nlohmann::ordered_json::object();
  for (size_t e = 0; e < recipe.entries.size(); ++e) {
    if (recipe.entries[e].prune() == nullptr) continue;
    entries[recipe.entries[e].name] = targets[e];
  }
  const int64_t from = KeepsEverythingFrom(phases);
  if (from == passes::kOpenEnd) {
    out["nothing_recomputed_from"] = nullptr;
  } else {
    out["nothing_recomputed_from"] = from;
  }
  return out;
}

std::string BeforeAfterTable(const PhasedResult& result, FileBytes files) {
  if (result.phases.empty()) return "";
  const PhaseRecord& before = result.before;
  const PhaseRecord& after = result.phases.back();
  std::string out =
      fmt::format("{:<18}{:>14}{:>14}{:>10}\n", "", "before", "after", "left");
  const auto row = [&](const char* what, auto format, int64_t a, int64_t b) {
    out += fmt::format(
        "{:<18}{:>14}{:>14}{:>10}\n", what, format(a), format(b),
        FormatPercent(static_cast<double>(b), static_cast<double>(a)));
  };
  row("channels", FormatCount, before.channels, after.channels);
  row("parameters", FormatCount, before.figures.parameters,
      after.figures.parameters);
  row("MACs (a batch)", FormatCount, before.figures.macs, after.figures.macs);
  row("training peak", FormatBytes, before.keep_everything_bytes,
      after.keep_everything_bytes);
  if (files.after > 0) {
    row("file", FormatBytes, files.before, files.after);
  }
  int64_t carried = 0;
  for (const PhaseRecord& phase : result.phases) {
    carried = std::max(carried, phase.carried_bytes);
  }
  if (carried > 0) {
    out += "\n";
    out +=
        Wrapped(absl::StrCat("Training peak is what keeping everything needs. "
                             "Between two phases the arena is free, and up to ",
                             FormatBytes(carried),
                             " of parameters and optimizer state are in host "
                             "memory."),
                0);
    out += "\n";
  }
  return out;
}

namespace {

std::string EvaluationsTable(const std::vector<PhaseEvaluation>& evaluations) {
  if (evaluations.empty()) return "";
  std::string out = fmt::format("\n{:<10}{:>8}{:>11}{:>13}\n", "evaluated",
                                "steps", "loss", "accuracy");
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const PhaseEvaluation& one = evaluations[i];
    // The last of each phase.
    if (i + 1 < evaluations.size() && evaluations[i + 1].phase == one.phase) {
      continue;
    }
    const auto& accuracy = one.result.accuracy;
    out += fmt::format(
        "{:<10}{:>8}{:>11.6f}{:>13}\n",
        one.phase == 0 ? "export" : absl::StrCat("phase ", one.phase), one.step,
        one.result.loss,
        accuracy.has_value() ? fmt::format("{:.2f} %", 100 * *accuracy) : "-");
  }
  return out;
}

}  // namespace

void PrintPhasedRunTable(const PhasedResult& result, FileBytes files) {
  const executor::TrainResult& train = result.train;
  const int64_t done =
      train.first_step + static_cast<int64_t>(train.losses.size());
  if (train.interrupted) {
    Print("Interrupted after step {}; the phases so far:\n\n", done);
  }
  Print("{}\n", PhasesTable(result.recipe, result.phases, result.targets,
                            /*has_all=*/!train.interrupted));
  Print("{:<7}{:>7}{:>13}{:>13}{:>13}{:>13}\n", "phase", "steps", "arena",
        "measured", "step", "measured");
  for (const PhaseRecord& phase : result.phases) {
    Print("{:<7}{:>7}{:>13}{:>13}{:>13}{:>13}\n", phase.number,
          phase.steps_done, FormatBytes(phase.arena_bytes),
          FormatBytes(phase.measured_arena_bytes),
          FormatNs(phase.predicted.step_ns), FormatNs(phase.measured_step_ns));
  }
  Print("{}", EvaluationsTable(result.evaluations));
  if (!train.interrupted) Print("\n{}", BeforeAfterTable(result, files));
  if (!train.losses.empty()) {
    Print("\nloss {:.6f} -> {:.6f} over steps {} to {}\n", train.losses.front(),
          train.losses.back(), train.first_step + 1, done);
  }
  Print("\n{}", ReproduceWith());
}

void PrintPhasedRunJson(const PhasedResult& result, FileBytes files) {
  nlohmann::ordered_json out =
      RunJson(result.step, Replanned(), result.train, ResidentMemory());
  out.update(PhasesJson(result.recipe, result.phases, result.targets));
  out["before"] = {
      {"channels", result.before.channels},
      {"parameters", result.before.figures.parameters},
      {"macs", result.before.figures.macs},
      {"keep_everything_bytes", result.before.keep_everything_bytes}};
  if (!result.evaluations.empty()) {
    out["evaluations"] = nlohmann::ordered_json::array();
  }
  for (const PhaseEvaluation& one : result.evaluations) {
    nlohmann::ordered_json evaluation = {{"step", one.step},
                                         {"phase", one.phase},
                                         {"loss", one.result.loss},
                                         {"examples", one.result.examples}};
    if (one.result.accuracy.has_value()) {
      evaluation["accuracy"] = *one.result.accuracy;
    }
    out["evaluations"].push_back(std::move(evaluation));
  }
  if (files.after > 0) {
    out["before"]["file_bytes"] = files.before;
    out["file_bytes"] = files.after;
  }
  Print("{}\n", JsonText(out));
}

absl::Status CheckPhaseBudgets(const std::vector<PhaseRecord>& phases) {
  for (const PhaseRecord& phase : phases) {
    if (phase.measured_arena_bytes <= phase.budget_bytes) continue;
    return AboveBudgetError(absl::StrCat(
        "phase ", phase.number, ": measured ", phase.measured_arena_bytes,
        " bytes, above the budget of ", phase.budget_bytes));
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
