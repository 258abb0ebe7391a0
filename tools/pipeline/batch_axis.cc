// A time-major model, the default of nn.LSTM, imports and trains on data whose
// number of steps happens to be the batch: only names tell the axes apart.
// Tested in tests/tools/pipeline/batch_axis_test.cc.
#include "tools/pipeline/batch_axis.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace loadline::tools {
namespace {

using models::DeclaredAxis;
using models::DeclaredInput;
using Axes = std::vector<DeclaredAxis>;

constexpr char kRemedy[] =
    "export the model with the batch first (batch_first=True of nn.LSTM, "
    "nn.GRU, nn.RNN and transformer layers, or a transpose in the model)";

bool IsNamedBatch(const DeclaredAxis& axis) {
  const std::string name = absl::AsciiStrToLower(axis.name);
  return absl::StrContains(name, "batch") || name == "b" || name == "bs" ||
         name == "bsz";
}

bool IsNamedTime(const DeclaredAxis& axis) {
  const std::string name = absl::AsciiStrToLower(axis.name);
  return absl::StrContains(name, "seq") || absl::StrContains(name, "time");
}

// A name that an exporter made up, or that may mean anything.
bool SaysNothing(const DeclaredAxis& axis) {
  const std::string name = absl::AsciiStrToLower(axis.name);
  const bool letter_and_number =
      name.size() > 1 && absl::ascii_isalpha(name[0]) &&
      std::all_of(name.begin() + 1, name.end(), absl::ascii_isdigit);
  return name.empty() || name == "n" || letter_and_number ||
         absl::StrContains(name, "dynamic_axes") ||
         absl::StartsWith(name, "unk") || absl::StartsWith(name, "dim");
}

// The name of the first input's first axis, which --batch sets; may be empty.
std::string NameOfBatch(const models::DeclaredModel& declared) {
  if (declared.inputs.empty()) return "";
  const std::optional<Axes>& axes = declared.inputs[0].axes;
  return axes.has_value() && !axes->empty() ? axes->front().name : "";
}

// The axis behind `first` that is the batch by its name; 0: none, or `first` is
// it by a name that says so, or by being called as the first input's is.
size_t NamedElsewhere(const Axes& axes, size_t first,
                      const std::string& batch) {
  if (axes.size() <= first) return 0;
  const DeclaredAxis& at_first = axes[first];
  if (IsNamedBatch(at_first) || at_first.name == "N") return 0;
  for (size_t a = first + 1; a < axes.size(); ++a) {
    if (IsNamedBatch(axes[a])) return a;
    if (axes[a].name == "N" && IsNamedTime(at_first)) return a;
  }
  if (batch.empty() || at_first.name == batch) return 0;
  for (size_t a = first + 1; a < axes.size(); ++a) {
    if (axes[a].name == batch) return a;
  }
  return 0;
}

absl::Status NotFirst(absl::string_view kind, const DeclaredInput& tensor,
                      size_t axis) {
  return absl::InvalidArgumentError(absl::StrCat(
      kind, " '", tensor.name, "': the batch ('", (*tensor.axes)[axis].name,
      "') is its axis ", axis,
      ", counted from 0, and must be the first, as the examples of the data "
      "are: ",
      kRemedy));
}

// An open axis as long as the first, which is fixed, when neither has a name
// that says what it is.
absl::Status CheckNotAmbiguous(const DeclaredInput& input,
                               const models::TensorType& type) {
  const Axes& axes = *input.axes;
  if (axes.empty() || !axes[0].size.has_value() || type.dims.size() < 2 ||
      type.dims.size() != axes.size() || type.dims[0] < 2) {
    return absl::OkStatus();
  }
  for (size_t a = 1; a < axes.size(); ++a) {
    if (axes[a].size.has_value() || !SaysNothing(axes[a]) ||
        type.dims[a] != type.dims[0]) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' is ", type.ToString(), ", and its axis ", a,
        " is open in the file while the first is fixed: if axis ", a,
        " is the batch, ", kRemedy,
        "; if it is not, give it another length than ", type.dims[0],
        ", or a name in the export that says what it is"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBatchOfInputs(const models::DeclaredModel& declared,
                                const models::Graph& graph) {
  const std::string batch = NameOfBatch(declared);
  for (const DeclaredInput& input : declared.inputs) {
    if (!input.axes.has_value()) continue;
    const size_t axis = NamedElsewhere(*input.axes, 0, batch);
    if (axis > 0) return NotFirst("input", input, axis);
    if (!batch.empty()) continue;
    const auto id = graph.Find(input.name);
    if (!id.has_value()) continue;
    const absl::Status status = CheckNotAmbiguous(input, graph.value(*id).type);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckBatchOfPrediction(const models::DeclaredModel& declared,
                                    size_t prediction,
                                    std::optional<int64_t> class_axis) {
  if (prediction >= declared.outputs.size()) return absl::OkStatus();
  const DeclaredInput& output = declared.outputs[prediction];
  if (!output.axes.has_value()) return absl::OkStatus();
  // The target has the prediction's axes without the class axis.
  const size_t first = class_axis == 0 ? 1 : 0;
  const size_t axis =
      NamedElsewhere(*output.axes, first, NameOfBatch(declared));
  return axis > 0 ? NotFirst("output", output, axis) : absl::OkStatus();
}

}  // namespace loadline::tools
