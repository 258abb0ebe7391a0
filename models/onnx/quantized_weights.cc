// Codes are rounded from the trained weight with the trained scales, as in
// training; a folded normalization then changes signs and scales only. Tested
// in tests/models/onnx_export_quantized_test.cc.
#include "models/onnx/quantized_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/ops/quantize.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Codes of a bias beyond this do not fit an int32 with room for the sums.
constexpr double kMostBiasCode = 1 << 30;

absl::StatusOr<Tensor> ReadF32(const onnx::TensorProto& proto) {
  int64_t budget_bytes = std::numeric_limits<int64_t>::max();
  LOADLINE_ASSIGN_OR_RETURN(Tensor tensor,
                            ReadTensor(proto, "", &budget_bytes));
  if (tensor.type.dtype == DType::kF32) return tensor;
  return absl::InvalidArgumentError(
      absl::StrCat("initializer '", proto.name(), "' is ",
                   tensor.type.ToString(), "; only f32 is quantized"));
}

template <typename T>
void SetContents(const std::vector<T>& numbers, int type,
                 const std::vector<int64_t>& dims, onnx::TensorProto* proto) {
  const std::string name = proto->name();
  proto->Clear();
  proto->set_name(name);
  proto->set_data_type(type);
  for (int64_t dim : dims) proto->add_dims(dim);
  proto->set_raw_data(std::string(reinterpret_cast<const char*>(numbers.data()),
                                  numbers.size() * sizeof(T)));
}

void SetAxis(int64_t axis, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name("axis");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(axis);
}

}  // namespace

struct WeightWriter::Codes {
  Tensor weight;
  int64_t channels = 1;
  int64_t inner = 1;  // elements of a channel that lie together
  bool per_channel = false;
  int64_t axis = 0;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  std::vector<double> factors;  // of a folded norm; empty: none

  size_t ChannelOf(size_t i) const {
    return static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
  }
};

WeightWriter::WeightWriter(onnx::GraphProto* graph,
                           std::map<std::string, float> scales,
                           std::map<std::string, FoldedNorm> norms)
    : graph_(graph), scales_(std::move(scales)), norms_(std::move(norms)) {}

absl::StatusOr<onnx::TensorProto*> WeightWriter::Find(const std::string& name) {
  for (onnx::TensorProto& proto : *graph_->mutable_initializer()) {
    if (proto.name() == name) return &proto;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the file has no initializer named '", name, "'"));
}

std::vector<onnx::NodeProto*> WeightWriter::Readers(const std::string& name) {
  std::vector<onnx::NodeProto*> readers;
  for (onnx::NodeProto& node : *graph_->mutable_node()) {
    if (std::find(node.input().begin(), node.input().end(), name) !=
        node.input().end()) {
      readers.push_back(&node);
    }
  }
  return readers;
}

std::string WeightWriter::Origin(std::string name) const {
  for (int i = graph_->node_size(); i-- > 0;) {
    const onnx::NodeProto& node = graph_->node(i);
    if (node.op_type() == "Identity" && node.output(0) == name) {
      name = node.input(0);
    }
  }
  return name;
}

absl::StatusOr<WeightWriter::Codes> WeightWriter::MakeCodes(
    const QuantizedWeight& weight) const {
  Codes made;
  for (const onnx::TensorProto& proto : graph_->initializer()) {
    if (proto.name() != weight.initializer) continue;
    LOADLINE_ASSIGN_OR_RETURN(made.weight, ReadF32(proto));
  }
  const std::vector<int64_t>& dims = made.weight.type.dims;
  made.inner = std::max<int64_t>(1, made.weight.type.elements());
  const auto norm = norms_.find(weight.initializer);
  std::vector<float> scales = weight.scales;
  std::vector<int64_t> zeros = weight.zero_points;
  std::optional<int64_t> axis = weight.axis;
  if (norm != norms_.end() && !axis.has_value()) {
    axis = 0;  // the norm's factors differ by channel
    scales.assign(norm->second.factors.size(), scales.at(0));
    zeros.assign(norm->second.factors.size(), zeros.at(0));
  }
  if (axis.has_value()) {
    made.per_channel = true;
    made.axis = *axis;
    made.channels = dims.at(static_cast<size_t>(*axis));
    made.inner = 1;
    for (auto d = static_cast<size_t>(*axis) + 1; d < dims.size(); ++d) {
      made.inner *= dims[d];
    }
  }
  if (scales.size() != static_cast<size_t>(made.channels) ||
      zeros.size() != scales.size() ||
      (norm != norms_.end() && norm->second.factors.size() != scales.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", weight.initializer, "' is ", made.weight.type.ToString(), ", and ",
        scales.size(), " scales were given"));
  }
  const QuantGrid grid = MakeQuantGrid(weight.bits, true, weight.symmetric);
  std::vector<bool> dead(scales.size(), true);
  const absl::Span<const float> numbers = made.weight.as<float>();
  made.codes.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t c = made.ChannelOf(i);
    const auto zero = static_cast<float>(zeros[c]);
    float code =
        ChannelQuantizer{grid, scales[c], zero}.ClippedCode(numbers[i]);
    if (!(scales[c] > 0)) code = zero;
    if (norm != norms_.end()) {
      const double factor = norm->second.factors[c];
      code = factor == 0 ? 0 : factor < 0 ? -code : code;
    }
    made.codes[i] = static_cast<int8_t>(code);
    dead[c] = dead[c] && code == zero;
  }
  for (size_t c = 0; c < scales.size(); ++c) {
    if (norm != norms_.end()) {
      scales[c] =
          static_cast<float>(scales[c] * std::abs(norm->second.factors[c]));
    }
    if (dead[c] || !(scales[c] > 0)) scales[c] = 1;
  }
  if (norm != norms_.end()) made.factors = norm->second.factors;
  made.scales = std::move(scales);
  made.zero_points = std::move(zeros);
  return made;
}

// The bias of a node as it is added: with a folded norm's shift. Empty: none,
// or one that cannot be an integer.
absl::StatusOr<std::vector<double>> WeightWriter::BiasOf(
    const onnx::NodeProto& node, const QuantizedWeight& weight,
    size_t channels) const {
  std::vector<double> bias;
  if (HasInput(node, 2)) {
    for (const onnx::TensorProto& proto : graph_->initializer()) {
      if (proto.name() != node.input(2)) continue;
      LOADLINE_ASSIGN_OR_RETURN(const Tensor tensor, ReadF32(proto));
      const absl::Span<const float> numbers = tensor.as<float>();
      if (numbers.size() == channels) {
        bias.assign(numbers.begin(), numbers.end());
      }
    }
  }
  const auto norm = norms_.find(weight.initializer);
  if (norm == norms_.end()) return bias;
  bias.resize(channels, 0.0);
  for (size_t c = 0; c < channels; ++c) {
    bias[c] = bias[c] * norm->second.factors[c] + norm->second.shifts[c];
  }
  return bias;
}

absl::Status WeightWriter::WriteBias(onnx::NodeProto* node,
                                     const QuantizedWeight& weight,
                                     Codes* codes) {
  const bool is_conv = node->op_type() == "Conv";
  const bool is_gemm = node->op_type() == "Gemm" &&
                       FloatAttribute(*node, "beta", 1) == 1 &&
                       FloatAttribute(*node, "alpha", 1) == 1;
  if ((!is_conv && !is_gemm) || node->input(1) != weight.initializer) {
    return absl::OkStatus();
  }
  const bool folded = norms_.contains(weight.initializer);
  const size_t channels =
      codes->per_channel
          ? static_cast<size_t>(codes->channels)
          : static_cast<size_t>(codes->weight.type.dims.at(
                is_conv || IntAttribute(*node, "transB", 0) != 0 ? 0 : 1));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<double> bias,
                            BiasOf(*node, weight, channels));
  if (bias.empty()) return absl::OkStatus();
  const std::string name =
      absl::StrCat(weight.initializer, "_", node->output(0), "_bias");
  const auto input = scales_.find(Origin(node->input(0)));
  const auto channel_scale = [&](size_t c) {
    return codes->scales[codes->per_channel ? c : 0];
  };
  bool fits = input != scales_.end();
  for (size_t c = 0; c < channels && fits; ++c) {
    const double step = double{input->second} * double{channel_scale(c)};
    fits = std::abs(bias[c]) <= kMostBiasCode * step;
  }
  while (node->input_size() < 3) node->add_input("");
  onnx::TensorProto* proto = nullptr;
  if (!fits) {
    if (!folded) return absl::OkStatus();
    proto = graph_->add_initializer();
    proto->set_name(name);
    SetContents(std::vector<float>(bias.begin(), bias.end()),
                onnx::TensorProto::FLOAT, {static_cast<int64_t>(channels)},
                proto);
    node->set_input(2, name);
    return absl::OkStatus();
  }
  std::vector<int32_t> integers;
  std::vector<float> steps;
  for (size_t c = 0; c < channels; ++c) {
    const double step = double{input->second} * double{channel_scale(c)};
    integers.push_back(static_cast<int32_t>(std::nearbyint(bias[c] / step)));
    steps.push_back(input->second * channel_scale(c));
  }
  if (!codes->per_channel) steps.resize(1);
  proto = graph_->add_initializer();
  proto->set_name(absl::StrCat(name, "_quantized"));
  SetContents(integers, onnx::TensorProto::INT32,
              {static_cast<int64_t>(channels)}, proto);
  AddDequantize(name, steps, onnx::TensorProto::INT32,
                std::vector<int64_t>(steps.size(), 0), codes->per_channel, 0);
  node->set_input(2, name);
  return absl::OkStatus();
}

void WeightWriter::AddDequantize(const std::string& name,
                                 const std::vector<float>& scales,
                                 int zero_point_type,
                                 const std::vector<int64_t>& zero_points,
                                 bool per_channel, int64_t axis) {
  const std::vector<int64_t> dims =
      per_channel ? std::vector<int64_t>{static_cast<int64_t>(scales.size())}
                  : std::vector<int64_t>{};
  onnx::TensorProto* scale = graph_->add_initializer();
  scale->set_name(absl::StrCat(name, "_scale"));
  SetContents(scales, onnx::TensorProto::FLOAT, dims, scale);
  onnx::TensorProto* zero = graph_->add_initializer();
  zero->set_name(absl::StrCat(name, "_zero_point"));
  if (zero_point_type == onnx::TensorProto::INT32) {
    SetContents(std::vector<int32_t>(zero_points.begin(), zero_points.end()),
                zero_point_type, dims, zero);
  } else {
    SetContents(std::vector<int8_t>(zero_points.begin(), zero_points.end()),
                zero_point_type, dims, zero);
  }
  onnx::NodeProto node;
  node.set_name(absl::StrCat(name, "_DequantizeLinear"));
  node.set_op_type("DequantizeLinear");
  node.add_input(absl::StrCat(name, "_quantized"));
  node.add_input(scale->name());
  node.add_input(zero->name());
  node.add_output(name);
  if (per_channel) SetAxis(axis, &node);
  nodes_.push_back(std::move(node));
}

// ONNX Runtime with session.x64quantprecision shifts the codes of weights, once
// for each integer node, and with them the zero point: it does not load a file
// where another node reads the same zero point, as with a tied embedding.
absl::Status WeightWriter::SeparateReaders(
    const std::string& name, absl::Span<onnx::NodeProto* const> readers) {
  const onnx::NodeProto first = nodes_.back();
  for (size_t r = 1; r < readers.size(); ++r) {
    const std::string own = absl::StrCat(name, "_", readers[r]->output(0));
    LOADLINE_ASSIGN_OR_RETURN(const onnx::TensorProto* shared,
                              Find(first.input(2)));
    onnx::TensorProto zero = *shared;
    zero.set_name(absl::StrCat(own, "_zero_point"));
    *graph_->add_initializer() = zero;
    onnx::NodeProto node = first;
    node.set_name(absl::StrCat(own, "_DequantizeLinear"));
    node.set_input(2, zero.name());
    node.set_output(0, own);
    nodes_.push_back(std::move(node));
    for (std::string& input : *readers[r]->mutable_input()) {
      if (input == name) input = own;
    }
  }
  return absl::OkStatus();
}

absl::Status WeightWriter::Write(const QuantizedWeight& weight) {
  LOADLINE_RETURN_IF_ERROR(Find(weight.initializer).status());
  LOADLINE_ASSIGN_OR_RETURN(Codes codes, MakeCodes(weight));
  const std::vector<onnx::NodeProto*> readers = Readers(weight.initializer);
  for (onnx::NodeProto* reader : readers) {
    LOADLINE_RETURN_IF_ERROR(WriteBias(reader, weight, &codes));
  }
  // The first reader keeps reading the name, which a node now makes.
  LOADLINE_ASSIGN_OR_RETURN(onnx::TensorProto * proto,
                            Find(weight.initializer));
  proto->set_name(absl::StrCat(weight.initializer, "_quantized"));
  SetContents(codes.codes, onnx::TensorProto::INT8, codes.weight.type.dims,
              proto);
  AddDequantize(weight.initializer, codes.scales, onnx::TensorProto::INT8,
                codes.zero_points, codes.per_channel, codes.axis);
  return SeparateReaders(weight.initializer, readers);
}

absl::Status WeightWriter::Write(const CodebookWeight& weight) {
  LOADLINE_ASSIGN_OR_RETURN(onnx::TensorProto * proto,
                            Find(weight.initializer));
  std::vector<uint8_t> codes;
  const int64_t count = weight.entries.type.elements();
  for (int32_t code : weight.codes.as<int32_t>()) {
    if (code < 0 || code >= count || count > 256) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", weight.initializer, "' has the code ", code,
                       " for a codebook of ", count));
    }
    codes.push_back(static_cast<uint8_t>(code));
  }
  proto->set_name(absl::StrCat(weight.initializer, "_codes"));
  SetContents(codes, onnx::TensorProto::UINT8, weight.codes.type.dims, proto);
  onnx::TensorProto* entries = graph_->add_initializer();
  entries->set_name(absl::StrCat(weight.initializer, "_codebook"));
  const absl::Span<const float> numbers = weight.entries.as<float>();
  SetContents(std::vector<float>(numbers.begin(), numbers.end()),
              onnx::TensorProto::FLOAT, {count}, entries);
  // Indices of Gather are i32 or i64.
  onnx::NodeProto cast;
  cast.set_name(absl::StrCat(weight.initializer, "_Cast"));
  cast.set_op_type("Cast");
  cast.add_input(absl::StrCat(weight.initializer, "_codes"));
  cast.add_output(absl::StrCat(weight.initializer, "_indices"));
  onnx::AttributeProto* to = cast.add_attribute();
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_i(onnx::TensorProto::INT32);
  onnx::NodeProto gather;
  gather.set_name(absl::StrCat(weight.initializer, "_Gather"));
  gather.set_op_type("Gather");
  gather.add_input(entries->name());
  gather.add_input(cast.output(0));
  gather.add_output(weight.initializer);
  SetAxis(0, &gather);
  nodes_.push_back(std::move(cast));
  nodes_.push_back(std::move(gather));
  return absl::OkStatus();
}

}  // namespace loadline::models::onnx_internal
