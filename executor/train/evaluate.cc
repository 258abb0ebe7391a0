// Sums are in double and weighted by examples, or by the share of them that has
// a target, so the result does not depend on the batch. A batch that is padded
// with copies of one example has its loss and theirs in known shares. Tested in
// tests/executor/train/evaluate_test.cc.
#include "executor/train/evaluate.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/device/ignored_target.h"
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

template <typename T>
int64_t CountIgnored(const std::byte* data, int64_t elements) {
  int64_t ignored = 0;
  for (int64_t i = 0; i < elements; ++i) {
    T number;
    std::memcpy(&number, data + i * int64_t{sizeof(T)}, sizeof(T));
    ignored += number == kIgnoredTarget;
  }
  return ignored;
}

// Elements of a target that a loss counts.
int64_t CountTargets(const models::TensorType& type, const std::byte* data) {
  const int64_t elements = type.elements();
  if (type.dtype == models::DType::kI64) {
    return elements - CountIgnored<int64_t>(data, elements);
  }
  if (type.dtype == models::DType::kI32) {
    return elements - CountIgnored<int32_t>(data, elements);
  }
  return elements;
}

// The weights of classes in the loss; empty: all are 1.
absl::Span<const float> ClassWeights(const models::Graph& graph) {
  for (const models::Node& node : graph.nodes) {
    if (node.op != "SoftmaxCrossEntropy" || node.inputs.size() < 4) continue;
    const models::Value& weights = graph.value(node.inputs[3]);
    if (weights.initial.has_value()) return weights.initial->as<float>();
  }
  return {};
}

// A step has checked that targets are classes or ignored.
template <typename T>
double SumOfWeights(const std::byte* data, int64_t elements,
                    absl::Span<const float> weights) {
  double sum = 0;
  for (int64_t i = 0; i < elements; ++i) {
    T target;
    std::memcpy(&target, data + i * int64_t{sizeof(T)}, sizeof(T));
    if (target != kIgnoredTarget) sum += weights[static_cast<size_t>(target)];
  }
  return sum;
}

// Sets the targets from a byte of `data` on.
void IgnoreTargets(models::DType dtype, int64_t first_byte,
                   std::vector<std::byte>* data) {
  const auto ignored_i32 = static_cast<int32_t>(kIgnoredTarget);
  const auto bytes = static_cast<size_t>(models::DTypeBytes(dtype));
  for (auto at = static_cast<size_t>(first_byte); at < data->size();
       at += bytes) {
    if (dtype == models::DType::kI64) {
      std::memcpy(data->data() + at, &kIgnoredTarget, bytes);
    } else {
      std::memcpy(data->data() + at, &ignored_i32, bytes);
    }
  }
}

// What the mean of a loss is divided by.
double DivisorOf(const models::TensorType& target, const std::byte* data,
                 absl::Span<const float> weights) {
  if (weights.empty()) {
    return static_cast<double>(CountTargets(target, data));
  }
  return target.dtype == models::DType::kI64
             ? SumOfWeights<int64_t>(data, target.elements(), weights)
             : SumOfWeights<int32_t>(data, target.elements(), weights);
}

}  // namespace

bool IgnoresTargets(const models::Graph& graph) {
  bool any = false;
  for (const models::Node& node : graph.nodes) {
    if (node.op != "SoftmaxCrossEntropy") continue;
    if (graph.inputs.empty() || node.inputs[1] != graph.inputs.back()) {
      return false;
    }
    any = true;
  }
  return any;
}

absl::Status CheckHasTargets(const DataSet& data, const models::Graph& graph) {
  if (data.columns.empty()) return absl::OkStatus();
  const Column& column = data.columns.back();
  const models::DType dtype = graph.value(graph.inputs.back()).type.dtype;
  if (dtype != models::DType::kI64 && dtype != models::DType::kI32) {
    return absl::OkStatus();
  }
  const models::TensorType row_type = {
      dtype, {column.row_bytes / models::DTypeBytes(dtype)}};
  const absl::Span<const float> weights = ClassWeights(graph);
  std::vector<std::byte> row(static_cast<size_t>(column.row_bytes));
  const int64_t rows = column.rows(data.examples);
  for (int64_t i = 0; i < rows; ++i) {
    LOADLINE_RETURN_IF_ERROR(ReadRows(column, i, 1, row.data()));
    if (DivisorOf(row_type, row.data(), weights) > 0) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("array '", column.name, "': no target of the ",
                   data.examples, " examples counts: each is ", kIgnoredTarget,
                   weights.empty() ? "" : ", or of a class whose weight is 0"));
}

absl::Status Evaluator::AddBatch(Program& program, int64_t batch) {
  std::vector<const std::byte*> inputs;
  buffers_.resize(data_.columns.size());
  for (size_t c = 0; c < buffers_.size(); ++c) {
    const Column& column = data_.columns[c];
    const int64_t first = column.every_step ? 0 : examples_;
    const int64_t rows = column.rows(batch);
    if (!column.stored.has_value()) {
      inputs.push_back(column.data.data() + first * column.row_bytes);
      continue;
    }
    buffers_[c].resize(static_cast<size_t>(rows * column.row_bytes));
    LOADLINE_RETURN_IF_ERROR(ReadRows(column, first, rows, buffers_[c].data()));
    inputs.push_back(buffers_[c].data());
  }
  return AddStep(program, batch, inputs);
}

absl::Status Evaluator::AddStep(Program& program, int64_t examples,
                                absl::Span<const std::byte* const> inputs) {
  const models::Graph& graph = program.graph();
  LOADLINE_ASSIGN_OR_RETURN(const float loss, program.Step({}, inputs));
  const models::TensorType& target = graph.value(graph.inputs.back()).type;
  const int64_t counted = CountTargets(target, inputs.back());
  const double divisor = DivisorOf(target, inputs.back(), ClassWeights(graph));
  examples_ += examples;
  if (sum_) {
    loss_ += static_cast<double>(loss);
  } else if (divisor > 0) {  // the mean over no targets is NaN
    const double weight = static_cast<double>(BatchOf(graph).value_or(0)) *
                          (divisor / static_cast<double>(target.elements()));
    loss_ += static_cast<double>(loss) * weight;
    weight_ += weight;
  }
  const std::optional<size_t> count = CountOutput(graph);
  if (!count.has_value()) return absl::OkStatus();
  int64_t correct = 0;
  LOADLINE_RETURN_IF_ERROR(program.ReadOutput(
      *count,
      absl::MakeSpan(reinterpret_cast<std::byte*>(&correct), sizeof(correct))));
  correct_ += correct;
  targets_ += counted;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<const std::byte*>> Evaluator::Padded(
    int64_t examples, int64_t batch) {
  std::vector<const std::byte*> inputs;
  buffers_.resize(data_.columns.size());
  for (size_t c = 0; c < buffers_.size(); ++c) {
    const Column& column = data_.columns[c];
    const auto row_bytes = static_cast<size_t>(column.row_bytes);
    std::vector<std::byte>& buffer = buffers_[c];
    buffer.resize(static_cast<size_t>(column.rows(batch)) * row_bytes);
    inputs.push_back(buffer.data());
    const auto read = [&](int64_t row, int64_t rows, std::byte* to) {
      if (column.stored.has_value()) return ReadRows(column, row, rows, to);
      std::memcpy(to, column.data.data() + row * column.row_bytes,
                  static_cast<size_t>(rows) * row_bytes);
      return absl::OkStatus();
    };
    if (column.every_step) {
      LOADLINE_RETURN_IF_ERROR(read(0, 1, buffer.data()));
      continue;
    }
    if (examples > 0) {
      LOADLINE_RETURN_IF_ERROR(read(examples_, examples, buffer.data()));
    }
    std::byte* pad = buffer.data() + examples * column.row_bytes;
    LOADLINE_RETURN_IF_ERROR(read(data_.examples - 1, 1, pad));
    for (int64_t i = examples + 1; i < batch; ++i) {
      std::memcpy(buffer.data() + i * column.row_bytes, pad, row_bytes);
    }
  }
  return inputs;
}

absl::Status Evaluator::Check(const Program& program) const {
  if (BatchOf(program.graph()).value_or(0) < 1 ||
      data_.columns.size() != program.graph().inputs.size()) {
    return absl::InvalidArgumentError("the data does not fit the graph");
  }
  return CheckBytes(data_, program.graph());
}

absl::Status Evaluator::RunRest(Program& program) {
  LOADLINE_RETURN_IF_ERROR(Check(program));
  const models::Graph& graph = program.graph();
  const int64_t batch = *BatchOf(graph);
  const int64_t rest = left();
  if (rest == 0) return absl::OkStatus();
  if (rest >= batch) {
    return absl::InvalidArgumentError("a whole batch of examples is left");
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<const std::byte*> inputs,
                            Padded(rest, batch));
  if (IgnoresTargets(graph)) {
    const models::TensorType& target = graph.value(graph.inputs.back()).type;
    IgnoreTargets(target.dtype, rest * data_.columns.back().row_bytes,
                  &buffers_.back());
    return AddStep(program, rest, inputs);
  }
  LOADLINE_ASSIGN_OR_RETURN(const float padded, program.Step({}, inputs));
  LOADLINE_ASSIGN_OR_RETURN(inputs, Padded(0, batch));
  LOADLINE_ASSIGN_OR_RETURN(const float copies, program.Step({}, inputs));
  const auto size = static_cast<double>(batch);
  // In units of the loss of a batch.
  const double loss =
      static_cast<double>(padded) -
      static_cast<double>(copies) * (static_cast<double>(batch - rest) / size);
  examples_ += rest;
  loss_ += sum_ ? loss : loss * size;
  weight_ += static_cast<double>(rest);
  return absl::OkStatus();
}

absl::Status Evaluator::Run(Program& program, const std::atomic<bool>* stop) {
  LOADLINE_RETURN_IF_ERROR(Check(program));
  const int64_t batch = *BatchOf(program.graph());
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
  result.loss = sum_ ? loss_ : loss_ / weight_;
  result.sum = sum_;
  if (targets_ > 0) {
    result.accuracy =
        static_cast<double>(correct_) / static_cast<double>(targets_);
  }
  return result;
}

}  // namespace loadline::executor
