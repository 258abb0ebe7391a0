// Only one of the two programs is loaded at a time, as each may use the whole
// budget. A step is evaluated after its checkpoint is saved; a run that goes on
// from that checkpoint therefore evaluates first. Tested in
// tests/tools/pipeline/evaluated_run_test.cc.
#include "tools/pipeline/evaluated_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace loadline::tools {
namespace {

constexpr char kLast[] = "eval.last_step";
constexpr char kBest[] = "eval.best_loss_bits";
constexpr char kBestStep[] = "eval.best_step";
constexpr char kWithout[] = "eval.without_gain";

template <typename T>
bool Read(const Notes& notes, const char* key, T* number) {
  const auto found = notes.find(key);
  return found != notes.end() && absl::SimpleAtoi(found->second, number);
}

// Appends the steps of `part` to the result of the parts before.
void Append(executor::TrainResult part, executor::TrainResult* all) {
  const auto seconds = [](const executor::TrainResult& result) {
    return result.examples_per_s > 0
               ? static_cast<double>(result.losses.size()) /
                     result.examples_per_s
               : 0;
  };
  const double total_s = seconds(*all) + seconds(part);
  part.first_step = all->first_step;
  // In this order, many short parts take linear time.
  all->losses.insert(all->losses.end(), part.losses.begin(), part.losses.end());
  part.losses = std::move(all->losses);
  if (total_s > 0) {
    part.examples_per_s = static_cast<double>(part.losses.size()) / total_s;
  }
  if (part.step_ns == 0) {
    part.step_ns = all->step_ns;
    part.data_wait_ns = all->data_wait_ns;
  }
  *all = std::move(part);
}

// False: interrupted; then the step counts as not evaluated.
absl::StatusOr<bool> Evaluate(int64_t step, const EvaluatedRunActions& actions,
                              EvaluationHistory* history) {
  LOADLINE_ASSIGN_OR_RETURN(RunState state, actions.unload());
  const absl::StatusOr<executor::Evaluation> evaluation =
      actions.evaluate(state);
  if (absl::IsCancelled(evaluation.status())) {
    LOADLINE_RETURN_IF_ERROR(actions.load(std::move(state)));
    LOADLINE_RETURN_IF_ERROR(actions.save(step, history->ToNotes()));
    return false;
  }
  LOADLINE_RETURN_IF_ERROR(evaluation.status());
  const bool best = history->Add(step, evaluation->loss);
  LOADLINE_RETURN_IF_ERROR(actions.evaluated(step, *evaluation, best, state));
  LOADLINE_RETURN_IF_ERROR(actions.load(std::move(state)));
  return true;
}

}  // namespace

bool EvaluationHistory::Add(int64_t step, double loss) {
  last_step = step;
  if (!(loss < best_loss)) {
    ++without_gain;
    return false;
  }
  best_loss = loss;
  best_step = step;
  without_gain = 0;
  return true;
}

Notes EvaluationHistory::ToNotes() const {
  return {{kLast, absl::StrCat(last_step)},
          {kBest, absl::StrCat(std::bit_cast<uint64_t>(best_loss))},
          {kBestStep, absl::StrCat(best_step)},
          {kWithout, absl::StrCat(without_gain)}};
}

EvaluationHistory EvaluationHistory::FromNotes(const Notes& notes) {
  EvaluationHistory history;
  uint64_t bits = 0;
  if (!Read(notes, kLast, &history.last_step) || !Read(notes, kBest, &bits) ||
      !Read(notes, kBestStep, &history.best_step) ||
      !Read(notes, kWithout, &history.without_gain)) {
    return EvaluationHistory();
  }
  history.best_loss = std::bit_cast<double>(bits);
  return history;
}

absl::StatusOr<executor::TrainResult> TrainEvaluated(
    const EvaluatedRunOptions& options, const EvaluatedRunActions& actions) {
  EvaluationHistory history = options.history;
  executor::TrainResult all;
  all.first_step = options.first_step;
  const auto due = [&](int64_t step) {
    return step > 0 && step > history.last_step &&
           (step % options.every == 0 || step >= options.steps);
  };
  const auto patient = [&] {
    return options.patience == 0 || history.without_gain < options.patience;
  };
  int64_t done = options.first_step;
  while (true) {
    if (due(done)) {
      LOADLINE_ASSIGN_OR_RETURN(const bool complete,
                                Evaluate(done, actions, &history));
      all.interrupted = !complete;
      if (!complete) return all;
      if (!patient()) {
        spdlog::info(
            "step {}: the run ends, as {} evaluations were no better than that "
            "of step {}",
            done, history.without_gain, history.best_step);
        LOADLINE_RETURN_IF_ERROR(actions.save(done, history.ToNotes()));
      }
    }
    if (!all.weights_sha256.empty() && (done >= options.steps || !patient()))
      return all;
    // A resumed run that had ended trains nothing, but has a result.
    const int64_t next =
        patient() ? std::min(options.steps,
                             (done / options.every + 1) * options.every)
                  : done;
    LOADLINE_ASSIGN_OR_RETURN(
        executor::TrainResult part,
        actions.train(done, next - done, history.ToNotes()));
    const auto steps = static_cast<int64_t>(part.losses.size());
    const bool interrupted = part.interrupted;
    Append(std::move(part), &all);
    done += steps;
    if (interrupted) return all;
  }
}

}  // namespace loadline::tools
