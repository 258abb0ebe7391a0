// Loss and accuracy over a data set: of a model file, or of the weights that a
// run has reached.
#ifndef LOADLINE_TOOLS_PIPELINE_EVALUATION_H_
#define LOADLINE_TOOLS_PIPELINE_EVALUATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "executor/train/data.h"
#include "executor/train/evaluate.h"
#include "models/graph.h"
#include "passes/cut_batch.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/cli/flags.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

struct EvaluationFlags {
  ModelFlags model;
  LossFlags loss;  // its data are those to evaluate
  PlanFlags plan;
  bool warn = true;  // of examples that are left out, and of what is no mean
  // What is evaluated instead, made of the model in its training form. Values
  // keep their names. May be empty.
  std::function<absl::StatusOr<models::Graph>(models::Graph training)> rewrite =
      {};
};

// Evaluates any number of times; imports, plans and reads the data once. Where
// the file fixes the batch, its last batch is padded with copies of an example
// (executor::Evaluator::RunRest), or left out, with a warning, if the loss is
// not known to be a mean or a sum over examples.
class EvaluationPlan {
 public:
  // Errors: those of import, planning and LoadData.
  static absl::StatusOr<std::unique_ptr<EvaluationPlan>> Make(
      const EvaluationFlags& flags);

  // With the contents of `state` where it has a value of the graph's name, else
  // those of the file. One arena at a time, each within the plan's budget.
  // Cancelled: `stop` was set; it may be null.
  absl::StatusOr<executor::Evaluation> Run(const RunState* state,
                                           const std::atomic<bool>* stop);

  // Drops the file's contents of what `training` has too: for a run, whose
  // weights come with its state.
  void DropContents(const models::Graph& training);

  // Of the batches that are not the last.
  int64_t arena_bytes() const {
    return steps_.begin()->second.plan.arena_bytes;
  }

 private:
  // The step for one batch size.
  struct Step {
    models::Graph graph;
    planner::Problem problem;
    planner::Plan plan;
    std::map<std::string, std::string> algorithms;  // of the machine
  };

  explicit EvaluationPlan(const EvaluationFlags& flags) : flags_(flags) {}
  // None: at the batch of the flags.
  absl::StatusOr<models::Graph> ModelAt(std::optional<int64_t> batch) const;
  absl::StatusOr<Step> MakeStep(std::optional<int64_t> batch) const;

  // Sets reduction_.
  absl::Status FindReduction(bool fixed, int64_t batch);
  // Of `rest` examples, less than a batch.
  absl::Status AddRest(bool fixed, int64_t rest, Step* whole);
  // Does the loss of a padded batch say that of its examples?
  bool CanPad(const models::Graph& graph) const;
  void Warn(int64_t batch, int64_t left_out) const;

  const EvaluationFlags flags_;
  passes::LossReduction reduction_ = passes::LossReduction::kUnknown;
  bool pads_ = false;  // the last batch
  executor::DataSet data_;
  // Largest batch first: then the rest, if there is one.
  std::map<int64_t, Step, std::greater<>> steps_;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_EVALUATION_H_
