// Loop: run a step, check the loss, report progress, save. The batch of a step
// and its random numbers depend on the step's number alone, so a resumed run
// equals one that never stopped. Tested in tests/executor/train/train_test.cc.
#include "executor/train/train.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "executor/train/check_finite.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data_digest.h"
#include "models/micro_batches.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Times that are kept for their median.
constexpr size_t kMostTimes = size_t{1} << 16;

absl::Status TooManySteps() {
  return absl::InvalidArgumentError(
      absl::StrCat("a run has at most ", kMostSteps, " steps"));
}

absl::Status CheckOptions(const TrainOptions& options) {
  if (options.steps < 0 || options.checkpoint_interval < 0 ||
      options.first_step < 0 || options.most_steps < 0 ||
      options.pause_step < 0) {
    return absl::InvalidArgumentError("a negative number of steps");
  }
  if (options.steps > kMostSteps) return TooManySteps();
  if (!std::isfinite(options.learning_rate)) {
    return absl::InvalidArgumentError("the learning rate is no number");
  }
  if (options.schedule.has_value()) {
    LOADLINE_RETURN_IF_ERROR(CheckSchedule(*options.schedule));
  }
  if (options.checkpoint_path.empty() &&
      (options.resume || options.checkpoint_interval > 0)) {
    return absl::InvalidArgumentError(
        "checkpoints need a path to be written to or resumed from");
  }
  return absl::OkStatus();
}

// The notes of a run under a recipe.
std::map<std::string, std::string> NotesOfCompression(
    const std::map<std::string, std::string>& notes) {
  std::map<std::string, std::string> own;
  for (const auto& [key, value] : notes) {
    if (absl::StartsWith(key, "compression")) own.emplace(key, value);
  }
  return own;
}

// Is the checkpoint one of the run that the options describe?
absl::Status CheckPosition(const RunPosition& position,
                           const TrainOptions& options, int64_t batch) {
  const auto differs = [&](absl::string_view what, uint64_t there,
                           uint64_t here) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", options.checkpoint_path, ": its run had ",
                     what, " ", there, ", this one has ", here));
  };
  if (position.seed != options.seed) {
    return differs("seed", position.seed, options.seed);
  }
  if (position.batch != batch) return differs("batch", position.batch, batch);
  if (position.shuffle != options.shuffle) {
    return differs("shuffle", position.shuffle, options.shuffle);
  }
  if (NotesOfCompression(position.notes) != NotesOfCompression(options.notes)) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", options.checkpoint_path,
                     ": its run had another recipe, or none (--recipe)"));
  }
  if (position.examples_seen != position.step * batch) {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint ", options.checkpoint_path, ": step ", position.step,
        " and ", position.examples_seen, " examples contradict each other"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Resume(Program& program, const TrainOptions& options,
                               int64_t batch) {
  LOADLINE_ASSIGN_OR_RETURN(const RunPosition position,
                            LoadCheckpoint(options.checkpoint_path, program));
  LOADLINE_RETURN_IF_ERROR(CheckPosition(position, options, batch));
  return position.step;
}

absl::StatusOr<std::unique_ptr<Batcher>> MakeBatcher(
    const models::Graph& graph, const DataSet& data,
    const TrainOptions& options, bool always_ahead) {
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  const std::optional<int64_t> batch = BatchOf(graph);
  if (!batch.has_value()) {
    return absl::InvalidArgumentError("the graph has no input with a batch");
  }
  LOADLINE_RETURN_IF_ERROR(CheckBytes(data, graph));
  return Batcher::Create(data, *batch, options.seed, options.shuffle,
                         models::MicroBatchesOf(graph), always_ahead);
}

// One call of Train.
class Run {
 public:
  Run(Program& program, Batcher& batcher, std::string data_digest,
      const TrainOptions& options)
      : program_(program),
        batcher_(batcher),
        data_digest_(std::move(data_digest)),
        options_(options) {}

  absl::StatusOr<TrainResult> From(int64_t first_step) {
    result_.first_step = first_step;
    result_.arena_bytes = program_.device().arena().arena_bytes;
    int64_t end = options_.steps;
    if (options_.most_steps > 0) {
      end = std::min(end, first_step + options_.most_steps);
    }
    if (options_.pause_step > 0) end = std::min(end, options_.pause_step);
    const auto todo = static_cast<size_t>(std::clamp(
        end - first_step, int64_t{0}, static_cast<int64_t>(kMostTimes)));
    result_.losses.reserve(todo);
    step_ns_.reserve(todo);
    data_wait_ns_.reserve(todo);
    start_ns_ = absl::GetCurrentTimeNanos();
    int64_t step = first_step;
    for (; step < end && !Stopped(); ++step) {
      LOADLINE_RETURN_IF_ERROR(OneStep(step));
    }
    LOADLINE_ASSIGN_OR_RETURN(result_.device_bytes,
                              program_.device().UsedBytes());
    result_.interrupted = step < end;
    result_.step_ns = step_ns_.empty() ? 0 : planner::MedianNs(step_ns_);
    result_.data_wait_ns =
        data_wait_ns_.empty() ? 0 : planner::MedianNs(data_wait_ns_);
    result_.examples_per_s = ExamplesPerSecond();
    const bool pauses = !result_.interrupted && step < options_.steps &&
                        options_.pause_step == 0;
    LOADLINE_RETURN_IF_ERROR(CheckWeights(step));
    if (!options_.checkpoint_path.empty() && !pauses && saved_step_ != step) {
      LOADLINE_RETURN_IF_ERROR(Save(step));
    }
    if (step == options_.steps || step == options_.pause_step) Rescue(step);
    LOADLINE_ASSIGN_OR_RETURN(result_.weights_sha256, WeightsSha256(program_));
    return std::move(result_);
  }

 private:
  bool Stopped() const {
    return options_.stop != nullptr &&
           options_.stop->load(std::memory_order_relaxed);
  }

  absl::Status OneStep(int64_t step) {
    const int64_t asked_ns = absl::GetCurrentTimeNanos();
    LOADLINE_ASSIGN_OR_RETURN(const absl::Span<const std::byte* const> batch,
                              batcher_.Batch(step));
    const int64_t begin_ns = absl::GetCurrentTimeNanos();
    LOADLINE_ASSIGN_OR_RETURN(const float loss,
                              program_.Step({.learning_rate = RateOf(step),
                                             .step = step + 1,
                                             .seed = options_.seed},
                                            batch));
    AddTimes(absl::GetCurrentTimeNanos() - begin_ns, begin_ns - asked_ns);
    if (!std::isfinite(loss)) {
      return Diverged(absl::StrCat("the loss is ", loss), step + 1,
                      CauseInData(step, batch));
    }
    result_.losses.push_back(loss);
    ReportProgress(step + 1, loss);
    if (options_.between_steps) {
      LOADLINE_RETURN_IF_ERROR(options_.between_steps(step + 1, program_));
    }
    if (options_.checkpoint_interval > 0 &&
        (step + 1) % options_.checkpoint_interval == 0) {
      LOADLINE_RETURN_IF_ERROR(CheckWeights(step + 1));
      LOADLINE_RETURN_IF_ERROR(Save(step + 1));
    }
    return absl::OkStatus();
  }

  // Of the time of each step, then of each second one, and so on.
  void AddTimes(int64_t step_ns, int64_t data_wait_ns) {
    if (times_seen_++ % times_every_ != 0) return;
    step_ns_.push_back(step_ns);
    data_wait_ns_.push_back(data_wait_ns);
    if (step_ns_.size() < kMostTimes) return;
    for (std::vector<int64_t>* times : {&step_ns_, &data_wait_ns_}) {
      for (size_t i = 0; i < kMostTimes / 2; ++i) (*times)[i] = (*times)[2 * i];
      times->resize(kMostTimes / 2);
    }
    times_every_ *= 2;
  }

  float RateOf(int64_t step) const {
    return options_.schedule.has_value()
               ? static_cast<float>(LearningRate(*options_.schedule, step))
               : options_.learning_rate;
  }

  absl::Status CheckWeights(int64_t steps_done) {
    const absl::Status status = CheckFinite(program_);
    if (!absl::IsInvalidArgument(status)) return status;
    return Diverged(status.message(), steps_done);
  }

  // What in the data of a step is no number: "; 'image' has an infinity or NaN
  // in example 5 of the data"; or "".
  std::string CauseInData(int64_t step,
                          absl::Span<const std::byte* const> batch) {
    const models::Graph& graph = program_.graph();
    const std::optional<InputRow> found = FirstNotFinite(graph, batch);
    if (!found.has_value()) return "";
    const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
    const size_t part = found->input % parts;
    const size_t row = part * static_cast<size_t>(found->rows) +
                       static_cast<size_t>(found->row);
    // An input that every step gets has other rows.
    const bool has_examples =
        found->rows * static_cast<int64_t>(parts) == batcher_.batch();
    const std::string where =
        has_examples ? absl::StrCat("example ", batcher_.Examples(step)[row],
                                    " of the data")
                     : "this step's data";
    const models::ValueId array = graph.inputs[found->input - part];
    return absl::StrCat("; '", graph.value(array).name,
                        "' has an infinity or NaN in ", where);
  }

  absl::Status Diverged(absl::string_view what, int64_t step,
                        absl::string_view cause = "") const {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " at step ", step, " of ", options_.steps, cause,
        "; nothing was saved since the last checkpoint (try a smaller learning "
        "rate, and look for a batch without a target that counts)"));
  }

  double ExamplesPerSecond() const {
    const double elapsed_s =
        static_cast<double>(absl::GetCurrentTimeNanos() - start_ns_) / 1e9;
    const double examples =
        static_cast<double>(result_.losses.size()) * batcher_.batch();
    return elapsed_s > 0 ? examples / elapsed_s : 0;
  }

  void ReportProgress(int64_t done, float loss) const {
    if (!options_.progress) return;
    const double rate = ExamplesPerSecond();
    const double left =
        static_cast<double>(options_.steps - done) * batcher_.batch();
    options_.progress({.step = done,
                       .steps = options_.steps,
                       .loss = loss,
                       .learning_rate = RateOf(done - 1),
                       .examples_per_s = rate,
                       .left_s = rate > 0 ? left / rate : 0});
  }

  absl::Status SaveTo(const std::string& path, int64_t steps_done) {
    if (constants_.empty()) constants_ = DigestOfConstants(program_.graph());
    return SaveCheckpoint(path, program_,
                          {.step = steps_done,
                           .seed = options_.seed,
                           .shuffle = options_.shuffle,
                           .batch = batcher_.batch(),
                           .examples_seen = steps_done * batcher_.batch(),
                           .notes = options_.notes,
                           .constants = constants_,
                           .data = data_digest_});
  }

  void Rescue(int64_t steps_done) {
    if (!options_.checkpoint_path.empty() || !options_.rescue_paths) return;
    for (const std::string& path : options_.rescue_paths(
             program_.graph(), steps_done == options_.steps)) {
      const absl::Status saved = SaveTo(path, steps_done);
      if (saved.ok()) {
        result_.rescue_path = path;
        return;
      }
      if (options_.not_saved) options_.not_saved(saved);
    }
  }

  absl::Status Save(int64_t steps_done) {
    result_.unsaved = SaveTo(options_.checkpoint_path, steps_done);
    if (result_.unsaved.ok()) {
      saved_step_ = steps_done;
    } else if (!options_.not_saved || Stopped()) {
      return result_.unsaved;
    } else {
      options_.not_saved(result_.unsaved);
    }
    return absl::OkStatus();
  }

  Program& program_;
  Batcher& batcher_;
  const std::string data_digest_;
  const TrainOptions& options_;
  TrainResult result_;
  std::vector<int64_t> step_ns_;
  std::vector<int64_t> data_wait_ns_;
  int64_t times_seen_ = 0;
  int64_t times_every_ = 1;  // of how many times step_ns_ has one
  int64_t start_ns_ = 0;
  int64_t saved_step_ = -1;
  std::string constants_;  // DigestOfConstants; empty until something is saved
};

}  // namespace

absl::StatusOr<int64_t> StepsOfRun(int64_t steps, int64_t epochs,
                                   int64_t steps_per_epoch) {
  if (steps <= 0 && __builtin_mul_overflow(std::max<int64_t>(epochs, 1),
                                           steps_per_epoch, &steps)) {
    return TooManySteps();
  }
  if (steps > kMostSteps) return TooManySteps();
  return steps;
}

absl::Status CheckTrainable(const models::Graph& graph, const DataSet& data,
                            const TrainOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckHasContents(graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto batcher,
                            MakeBatcher(graph, data, options, false));
  if (!options.resume) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(
      const RunPosition position,
      ReadCheckpointPosition(options.checkpoint_path, graph));
  return CheckPosition(position, options, batcher->batch());
}

absl::StatusOr<TrainResult> Train(Program& program, const DataSet& data,
                                  const TrainOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      const auto batcher,
      MakeBatcher(program.graph(), data, options, !program.device().is_host()));
  // Before a thread reads the data ahead.
  std::string digest = options.data_digest;
  if (digest.empty() &&
      (!options.checkpoint_path.empty() || options.rescue_paths)) {
    digest = DigestOfData(data);
  }
  int64_t first_step = options.first_step;
  if (options.resume) {
    LOADLINE_ASSIGN_OR_RETURN(first_step,
                              Resume(program, options, batcher->batch()));
  }
  return Run(program, *batcher, std::move(digest), options).From(first_step);
}

}  // namespace loadline::executor
