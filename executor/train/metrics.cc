// A line is flushed as soon as it is written, so that others can follow the
// run. Tested in tests/executor/train/metrics_test.cc.
#include "executor/train/metrics.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using Line = nlohmann::ordered_json;

absl::Status Failed(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text)
                                            : absl::InvalidArgumentError(text);
}

// The lines of the first `done` steps, with `evaluates_again` without the
// evaluation of the last of them. A last line that was not finished is
// dropped.
absl::StatusOr<std::string> LinesUpTo(const std::string& path, int64_t done,
                                      bool evaluates_again) {
  std::ifstream in(path);
  std::string kept;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const Line parsed = Line::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object() || !parsed.contains("step") ||
        !parsed["step"].is_number_integer()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": not a file of metrics; name another file"));
    }
    const auto step = parsed["step"].get<int64_t>();
    const bool again =
        evaluates_again && step == done && parsed.contains("eval_loss");
    if (step <= done && !again) absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

// The shortest decimal that reads back as the same float.
double Shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  double shortest = value;
  std::from_chars(text, end, shortest);
  return shortest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Open(
    const std::string& path, int64_t done, bool evaluates_again) {
  std::string kept;
  if (done > 0) {
    LOADLINE_ASSIGN_OR_RETURN(kept, LinesUpTo(path, done, evaluates_again));
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return Failed(path, errno);
  std::unique_ptr<MetricsFile> metrics(new MetricsFile(path, file));
  if (!kept.empty()) metrics->Write(kept);
  LOADLINE_RETURN_IF_ERROR(metrics->status());
  return metrics;
}

MetricsFile::~MetricsFile() { std::fclose(file_); }

void MetricsFile::Write(const std::string& text) {
  if (error_ != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() ||
      std::fflush(file_) != 0) {
    error_ = errno != 0 ? errno : EIO;
  }
}

void MetricsFile::Add(const TrainProgress& progress) {
  const Line line = {{"step", progress.step},
                     {"loss", Shortest(progress.loss)},
                     {"learning_rate", Shortest(progress.learning_rate)},
                     {"examples_per_s", std::round(progress.examples_per_s)}};
  Write(line.dump() + "\n");
}

void MetricsFile::AddEvaluation(int64_t step, const Evaluation& evaluation) {
  Line line = {{"step", step}, {"eval_loss", evaluation.loss}};
  if (evaluation.accuracy.has_value()) {
    line["eval_accuracy"] = *evaluation.accuracy;
  }
  line["eval_examples"] = evaluation.examples;
  Write(line.dump() + "\n");
}

absl::Status MetricsFile::status() const {
  return error_ == 0 ? absl::OkStatus() : Failed(path_, error_);
}

}  // namespace loadline::executor
