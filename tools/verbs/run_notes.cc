// Tested by tests/end_to_end.
#include "tools/verbs/run_notes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "spdlog/spdlog.h"

namespace loadline::tools {
namespace {

template <typename Add>
void AddLine(executor::MetricsFile* metrics, int64_t step, const Add& add) {
  if (metrics == nullptr || !metrics->status().ok()) return;
  add(*metrics);
  const absl::Status status = metrics->status();
  if (status.ok()) return;
  spdlog::warn("{}; lines from step {} on are missing, and the run goes on",
               std::string(status.message()), step);
}

}  // namespace

void AddProgress(executor::MetricsFile* metrics,
                 const executor::TrainProgress& progress) {
  AddLine(metrics, progress.step,
          [&](executor::MetricsFile& file) { file.Add(progress); });
}

void AddEvaluation(executor::MetricsFile* metrics, int64_t step,
                   const executor::Evaluation& evaluation) {
  AddLine(metrics, step, [&](executor::MetricsFile& file) {
    file.AddEvaluation(step, evaluation);
  });
}

void ShowEvaluation(int64_t step, const executor::Evaluation& evaluation) {
  spdlog::info(
      "step {}: evaluation loss {:.6f}{}", step, evaluation.loss,
      evaluation.accuracy.has_value()
          ? absl::StrFormat(", accuracy %.2f %%", 100 * *evaluation.accuracy)
          : "");
}

void WarnNotWritten(const absl::Status& status) {
  spdlog::warn("{}; the run goes on", std::string(status.message()));
}

void NoteIfNothingIsSaved(const RunFlags& flags) {
  for (const std::string& path :
       {flags.out, flags.checkpoint, flags.training.best,
        flags.training.average, flags.training.adapters}) {
    if (!path.empty()) return;
  }
  spdlog::info(
      "the trained model will not be saved; -o trained.onnx or --checkpoint "
      "FILE saves it");
}

absl::Status InterruptedError(const RunFlags& flags) {
  return absl::CancelledError(
      flags.checkpoint.empty()
          ? "interrupted; nothing was saved, as no --checkpoint was given"
          : absl::StrCat("interrupted; go on with --checkpoint ",
                         flags.checkpoint, " --resume"));
}

}  // namespace loadline::tools
