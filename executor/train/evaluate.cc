// Sums are in double and weighted by examples, so the result does not depend on
// the batch. Tested in tests/executor/train/evaluate_test.cc.
#include "executor/train/evaluate.h"

#include <vector>

#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

std::optional<size_t> CountOutput(const models::Graph& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const models::TensorType& type = graph.value(graph.outputs[i]).type;
    if (type.dtype == models::DType::kI64 && type.dims.empty()) return i;
  }
  return std::nullopt;
}

}  // namespace

absl::Status Evaluator::AddBatch(Program& program, int64_t batch) {
  const models::Graph& graph = program.graph();
  std::vector<const std::byte*> inputs;
  for (const Column& column : data_.columns) {
    inputs.push_back(column.data.data() + examples_ * column.row_bytes);
  }
  LOADLINE_ASSIGN_OR_RETURN(const float loss, program.Step({}, inputs));
  loss_ += static_cast<double>(loss) * static_cast<double>(batch);
  examples_ += batch;
  const std::optional<size_t> count = CountOutput(graph);
  if (!count.has_value()) return absl::OkStatus();
  int64_t correct = 0;
  LOADLINE_RETURN_IF_ERROR(program.ReadOutput(
      *count,
      absl::MakeSpan(reinterpret_cast<std::byte*>(&correct), sizeof(correct))));
  correct_ += correct;
  targets_ += graph.value(graph.inputs.back()).type.elements();
  return absl::OkStatus();
}

absl::Status Evaluator::Run(Program& program, const std::atomic<bool>* stop) {
  const int64_t batch = BatchOf(program.graph()).value_or(0);
  if (batch < 1 || data_.columns.size() != program.graph().inputs.size()) {
    return absl::InvalidArgumentError("the data does not fit the graph");
  }
  while (left() >= batch) {
    LOADLINE_RETURN_IF_ERROR(AddBatch(program, batch));
    if (stop != nullptr && stop->load(std::memory_order_relaxed) &&
        left() > 0) {
      return absl::CancelledError("interrupted");
    }
  }
  return absl::OkStatus();
}

Evaluation Evaluator::result() const {
  Evaluation result;
  result.examples = examples_;
  result.loss = loss_ / static_cast<double>(examples_);
  if (targets_ > 0) {
    result.accuracy =
        static_cast<double>(correct_) / static_cast<double>(targets_);
  }
  return result;
}

}  // namespace loadline::executor
