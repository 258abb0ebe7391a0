// Sums in double, weighted by examples, so that the batch does not show in the
// result. Tested in tests/executor/train_test.cc.
#include "executor/evaluate.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

struct Sums {
  double loss = 0;
  int64_t examples = 0;
  int64_t correct = 0;
  int64_t targets = 0;
};

int64_t BatchOf(const models::Graph& graph) {
  if (graph.inputs.empty()) return 0;
  const models::TensorType& type = graph.value(graph.inputs[0]).type;
  return type.dims.empty() ? 0 : type.dims[0];
}

std::optional<size_t> CountOutput(const models::Graph& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const models::TensorType& type = graph.value(graph.outputs[i]).type;
    if (type.dtype == models::DType::kI64 && type.dims.empty()) return i;
  }
  return std::nullopt;
}

absl::Status AddBatch(Program& program, const DataSet& data, Sums* sums) {
  const models::Graph& graph = program.graph();
  std::vector<const std::byte*> inputs;
  for (const Column& column : data.columns) {
    inputs.push_back(column.data.data() + sums->examples * column.row_bytes);
  }
  LOADLINE_ASSIGN_OR_RETURN(const float loss, program.Step({}, inputs));
  const int64_t batch = BatchOf(graph);
  sums->loss += static_cast<double>(loss) * static_cast<double>(batch);
  sums->examples += batch;
  const std::optional<size_t> count = CountOutput(graph);
  if (!count.has_value()) return absl::OkStatus();
  int64_t correct = 0;
  LOADLINE_RETURN_IF_ERROR(program.ReadOutput(
      *count,
      absl::MakeSpan(reinterpret_cast<std::byte*>(&correct), sizeof(correct))));
  sums->correct += correct;
  sums->targets += graph.value(graph.inputs.back()).type.elements();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(Program& full, Program* remainder,
                                    const DataSet& data,
                                    const std::atomic<bool>* stop) {
  const int64_t batch = BatchOf(full.graph());
  if (batch < 1 || data.columns.size() != full.graph().inputs.size()) {
    return absl::InvalidArgumentError("the data does not fit the graph");
  }
  const int64_t left = data.examples % batch;
  if (left != 0 &&
      (remainder == nullptr || BatchOf(remainder->graph()) != left)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last ", left, " of ", data.examples,
                     " examples need a program of that batch"));
  }
  Sums sums;
  bool interrupted = false;
  while (sums.examples < data.examples && !interrupted) {
    const bool whole = data.examples - sums.examples >= batch;
    LOADLINE_RETURN_IF_ERROR(AddBatch(whole ? full : *remainder, data, &sums));
    interrupted = stop != nullptr && stop->load(std::memory_order_relaxed) &&
                  sums.examples < data.examples;
  }
  Evaluation result;
  result.examples = sums.examples;
  result.loss = sums.loss / static_cast<double>(sums.examples);
  result.interrupted = interrupted;
  if (sums.targets > 0) {
    result.accuracy =
        static_cast<double>(sums.correct) / static_cast<double>(sums.targets);
  }
  return result;
}

}  // namespace loadline::executor
