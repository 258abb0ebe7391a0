// Used by onnx_node_test.cc.
#include "tests/conformance/onnx_node.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "models/onnx/import.h"
#include "models/onnx/model_file.h"
#include "planner/base/status_macros.h"
#include "tests/conformance/interpreter.h"

namespace loadline::conformance {
namespace {

namespace fs = std::filesystem;
using models::DType;
using models::Imported;
using models::Tensor;
using models::ValueId;
using models::ValueKind;

// The limits of ONNX's own runner.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;
// Half of bf16's last bit.
constexpr double kRelativeBf16 = 4e-3;

absl::StatusOr<onnx::TensorProto> ReadTensorProto(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  onnx::TensorProto proto;
  if (!in || !proto.ParseFromIstream(&in)) {
    return absl::DataLossError(absl::StrCat("no tensor in ", path));
  }
  return proto;
}

// The files PREFIX_0.pb, PREFIX_1.pb, ... of a folder.
absl::StatusOr<std::vector<onnx::TensorProto>> ReadTensors(
    const std::string& prefix) {
  std::vector<onnx::TensorProto> all;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(prefix, "_", i, ".pb");
    if (!fs::exists(path)) return all;
    LOADLINE_ASSIGN_OR_RETURN(onnx::TensorProto proto, ReadTensorProto(path));
    all.push_back(std::move(proto));
  }
}

absl::StatusOr<Tensor> ToTensor(const onnx::TensorProto& proto) {
  int64_t budget_bytes = std::numeric_limits<int64_t>::max();
  return models::onnx_internal::ReadTensor(proto, "", &budget_bytes);
}

double FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 31) return sign * std::ldexp(1024 + fraction, exponent - 25);
  return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
}

template <typename T>
double At(const std::byte* data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double Element(DType dtype, const std::byte* data, size_t i) {
  switch (dtype) {
    case DType::kF32:
      return At<float>(data, i);
    case DType::kF64:
      return At<double>(data, i);
    case DType::kF16:
      return FromHalf(static_cast<uint16_t>(At<uint16_t>(data, i)));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(At<uint16_t>(data, i))
                                  << 16);
    case DType::kI64:
      return At<int64_t>(data, i);
    case DType::kI32:
      return At<int32_t>(data, i);
    case DType::kI8:
      return At<int8_t>(data, i);
    case DType::kU8:
    case DType::kBool:
      return At<uint8_t>(data, i);
  }
  return std::nan("");
}

bool Near(double got, double want, DType dtype) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  if (dtype != DType::kF32 && dtype != DType::kF64 && dtype != DType::kF16 &&
      dtype != DType::kBF16) {
    return false;
  }
  const double relative = dtype == DType::kBF16 ? kRelativeBf16 : kRelative;
  return std::abs(got - want) <= kAbsolute + relative * std::abs(want);
}

// Empty if the output equals what the test expects.
std::string Difference(const models::TensorType& type, const std::byte* got,
                       const Tensor& want) {
  if (type != want.type) {
    return absl::StrCat("type ", type.ToString(), ", not ",
                        want.type.ToString());
  }
  for (size_t i = 0; i < static_cast<size_t>(type.elements()); ++i) {
    const double g = Element(type.dtype, got, i);
    const double w = Element(type.dtype, want.data->data(), i);
    if (!Near(g, w, type.dtype)) {
      return absl::StrCat("element ", i, " is ", g, ", not ", w);
    }
  }
  return "";
}

bool IsFloat(int32_t type) {
  return type == onnx::TensorProto::FLOAT ||
         type == onnx::TensorProto::FLOAT16 ||
         type == onnx::TensorProto::BFLOAT16 ||
         type == onnx::TensorProto::DOUBLE;
}

bool IsKnown(const onnx::TensorProto& input, size_t position,
             KnownInputs known) {
  switch (known) {
    case KnownInputs::kNone:
      return false;
    case KnownInputs::kIntegers:
      return !IsFloat(input.data_type());
    case KnownInputs::kAllButFirst:
      return position > 0;
    case KnownInputs::kAll:
      return true;
  }
  return false;
}

// Normalizations and Dropout have two forms, which a node names itself.
bool InTrainingForm(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "training_mode" && attribute.i() != 0) {
        return true;
      }
    }
  }
  return false;
}

struct Sample {
  std::vector<onnx::TensorProto> inputs;
  std::vector<onnx::TensorProto> outputs;
};

absl::StatusOr<Imported> ImportWith(onnx::ModelProto model,
                                    const Sample& sample, KnownInputs known) {
  models::ImportOptions options;
  options.training = InTrainingForm(model.graph());
  auto* graph = model.mutable_graph();
  bool weights = false;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const auto& name = graph->input(static_cast<int>(i)).name();
    const onnx::TensorProto& input = sample.inputs[i];
    if (!IsKnown(input, i, known)) {
      options.input_shapes[name] = {input.dims().begin(), input.dims().end()};
      continue;
    }
    onnx::TensorProto* initializer = graph->add_initializer();
    *initializer = input;
    initializer->set_name(name);
    weights = weights || input.data_type() == onnx::TensorProto::FLOAT;
  }
  if (weights) options.freeze = {"*"};
  return models::ImportOnnxBytes(model.SerializeAsString(), options);
}

// Empty if the outputs are those of the sample. An error: the model cannot be
// run with these inputs known.
absl::StatusOr<std::string> RunWith(const onnx::ModelProto& model,
                                    const Sample& sample, KnownInputs known) {
  LOADLINE_ASSIGN_OR_RETURN(Imported imported,
                            ImportWith(model, sample, known));
  LOADLINE_ASSIGN_OR_RETURN(auto interpreter,
                            executor::Interpreter::Make(imported.graph));
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const auto& name = model.graph().input(static_cast<int>(i)).name();
    const auto found = imported.value_of.find(name);
    if (found == imported.value_of.end()) continue;
    const models::Value& value = imported.graph.value(found->second);
    if (value.kind != ValueKind::kInput) continue;
    LOADLINE_ASSIGN_OR_RETURN(Tensor tensor, ToTensor(sample.inputs[i]));
    if (tensor.type != value.type) {
      return absl::InvalidArgumentError("an input is imported as another type");
    }
    std::ranges::copy(*tensor.data,
                      interpreter->Contents<std::byte>(found->second).data());
  }
  LOADLINE_RETURN_IF_ERROR(
      interpreter->Run({.learning_rate = 0, .step = 0, .seed = 0}));
  for (size_t i = 0; i < sample.outputs.size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(Tensor want, ToTensor(sample.outputs[i]));
    const ValueId id = imported.graph.outputs[i];
    const std::string difference =
        Difference(imported.graph.value(id).type,
                   interpreter->Contents<std::byte>(id).data(), want);
    if (!difference.empty()) {
      return absl::StrCat("wrong: output ", i, ": ", difference);
    }
  }
  return "";
}

std::string OneLine(absl::string_view text) {
  const std::string line = absl::StrReplaceAll(text, {{"\n", " "}});
  return line.substr(0, 160);
}

OnnxNodeResult RunSample(const onnx::ModelProto& model, const Sample& sample) {
  OnnxNodeResult result;
  for (const KnownInputs known :
       {KnownInputs::kNone, KnownInputs::kIntegers, KnownInputs::kAllButFirst,
        KnownInputs::kAll}) {
    const absl::StatusOr<std::string> wrong = RunWith(model, sample, known);
    result.known = known;
    if (wrong.ok()) {
      result.passed = wrong->empty();
      result.why = *wrong;
      return result;
    }
    // Why the model cannot be run as it is says more than the later errors.
    if (result.why.empty()) result.why = OneLine(wrong.status().message());
  }
  return result;
}

absl::StatusOr<OnnxNodeResult> Run(const std::string& folder) {
  LOADLINE_ASSIGN_OR_RETURN(
      const onnx::ModelProto model,
      models::onnx_internal::ReadModelFile(folder + "/model.onnx", 1 << 30));
  OnnxNodeResult result;
  for (int set = 0;; ++set) {
    const std::string data = absl::StrCat(folder, "/test_data_set_", set);
    if (!fs::exists(data)) return result;
    Sample sample;
    LOADLINE_ASSIGN_OR_RETURN(sample.inputs, ReadTensors(data + "/input"));
    LOADLINE_ASSIGN_OR_RETURN(sample.outputs, ReadTensors(data + "/output"));
    if (static_cast<int>(sample.inputs.size()) > model.graph().input_size() ||
        sample.outputs.empty()) {
      return absl::DataLossError(absl::StrCat("no tensors in ", data));
    }
    result = RunSample(model, sample);
    if (!result.passed) return result;
  }
}

}  // namespace

std::vector<std::string> OnnxNodeTests(const std::string& root) {
  std::vector<std::string> names;
  if (!fs::exists(root)) return names;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.onnx")) {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

OnnxNodeResult RunOnnxNodeTest(const std::string& folder) {
  const absl::StatusOr<OnnxNodeResult> result = Run(folder);
  if (result.ok()) return *result;
  return {false, KnownInputs::kNone, OneLine(result.status().message())};
}

}  // namespace loadline::conformance
