// Kernels refuse a bad index too, but only in the step that meets it, which may
// be hours later. Tested in tests/executor/train/data_test.cc.
#include "executor/train/check_indices.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/device/ignored_target.h"
#include "models/micro_batches.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using models::DType;

// The indices that a node accepts: [lowest, size).
struct Range {
  int64_t lowest = 0;
  int64_t size = 0;
  std::string meaning;
  bool targets = false;  // kIgnoredTarget is accepted too
};

int64_t AxisSize(const models::Graph& graph, const models::Node& node,
                 const char* axis) {
  const std::vector<int64_t>& dims = graph.value(node.inputs[0]).type.dims;
  int64_t at = node.attributes.Int(axis, 0);
  if (at < 0) at += static_cast<int64_t>(dims.size());
  return dims[static_cast<size_t>(at)];
}

// What the node demands of its input 1; size 0: nothing.
Range RangeOf(const models::Graph& graph, const models::Node& node) {
  if (node.op == "SoftmaxCrossEntropy" || node.op == "CountCorrect") {
    const int64_t classes = AxisSize(graph, node, "class_axis");
    return {0, classes, absl::StrCat("one of ", classes, " classes"), true};
  }
  if (node.op == "Gather") {
    const int64_t rows = AxisSize(graph, node, "axis");
    return {-rows, rows,
            absl::StrCat("a row of '", graph.value(node.inputs[0]).name,
                         "', which has ", rows)};
  }
  return {};
}

template <typename T>
absl::Status CheckColumn(const Column& column, int64_t examples,
                         const Range& range) {
  const size_t count = static_cast<size_t>(column.row_bytes) / sizeof(T);
  std::vector<std::byte> row(static_cast<size_t>(column.row_bytes));
  const int64_t rows = column.rows(examples);
  for (int64_t example = 0; example < rows; ++example) {
    LOADLINE_RETURN_IF_ERROR(ReadRows(column, example, 1, row.data()));
    for (size_t i = 0; i < count; ++i) {
      T number;
      std::memcpy(&number, row.data() + i * sizeof(T), sizeof(T));
      if (number >= range.lowest && number < range.size) continue;
      if (range.targets && number == kIgnoredTarget) continue;
      const std::string where =
          column.every_step ? absl::StrCat("at position ", i)
          : count > 1 ? absl::StrCat("in example ", example, ", position ", i)
                      : absl::StrCat("in example ", example);
      return absl::InvalidArgumentError(
          absl::StrCat("array '", column.name, "': ", int64_t{number}, " ",
                       where, " (counted from 0) is not ", range.meaning));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIndices(const DataSet& data, const models::Graph& graph) {
  // The column whose numbers a value has; -1: none.
  std::vector<int> column_of(graph.values.size(), -1);
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const DType dtype = graph.value(graph.inputs[i]).type.dtype;
    if (dtype == DType::kI64 || dtype == DType::kI32) {
      column_of[Index(graph.inputs[i])] = static_cast<int>(i / parts);
    }
  }
  for (const models::Node& node : graph.nodes) {
    if (models::IsView(node) || node.op == "Cast") {
      column_of[Index(node.outputs[0])] = column_of[Index(node.inputs[0])];
    }
    const Range range = RangeOf(graph, node);
    if (range.size == 0) continue;
    const int c = column_of[Index(node.inputs[1])];
    if (c < 0) continue;
    const Column& column = data.columns[static_cast<size_t>(c)];
    if (range.targets && column.holds_booleans && range.size > 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "array '", column.name,
          "': found booleans, which name two classes, "
          "and the model has ",
          range.size, "; give the number of each example's class"));
    }
    const bool wide =
        graph.value(graph.inputs[static_cast<size_t>(c) * parts]).type.dtype ==
        DType::kI64;
    LOADLINE_RETURN_IF_ERROR(
        wide ? CheckColumn<int64_t>(column, data.examples, range)
             : CheckColumn<int32_t>(column, data.examples, range));
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor
