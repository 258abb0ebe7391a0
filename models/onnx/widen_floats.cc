// Types are changed before the onnx library checks and infers them, so that it
// sees an f32 model. Tested in tests/models/onnx_widen_floats_test.cc.
#include "models/onnx/widen_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/model_file.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int kMostSubgraphDepth =
    16;  // of subgraphs; others are refused later

float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  float value;
  if (exponent == 31) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

// To nearest even; infinite beyond the range.
uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
  if (size >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
  // Below 2^-14 the spacing is 2^-24, above it 2^-10 of the power of two.
  int exponent = -14;
  if (size >= 0x1p-14f) exponent = std::ilogb(size);
  const auto steps =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A carry of the mantissa goes into the exponent.
  const uint32_t biased = (static_cast<uint32_t>(exponent + 14) << 10) + steps;
  return static_cast<uint16_t>(sign | biased);
}

float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename From, typename To, typename Convert>
std::shared_ptr<const std::vector<std::byte>> Converted(
    const std::vector<std::byte>& from, const Convert& convert) {
  const size_t count = from.size() / sizeof(From);
  std::vector<std::byte> to(count * sizeof(To));
  for (size_t i = 0; i < count; ++i) {
    From x;
    std::memcpy(&x, from.data() + i * sizeof(From), sizeof(From));
    const To y = convert(x);
    std::memcpy(to.data() + i * sizeof(To), &y, sizeof(To));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(to));
}

bool IsOf(const std::set<DType>& types, int32_t onnx_type) {
  const auto dtype = DTypeFromOnnx(onnx_type, "");
  return dtype.ok() && types.count(*dtype) > 0;
}

void CollectType(int32_t onnx_type, std::set<DType>* types) {
  const auto dtype = DTypeFromOnnx(onnx_type, "");
  if (!dtype.ok()) return;
  if (*dtype == DType::kF16 || *dtype == DType::kBF16 ||
      *dtype == DType::kF64) {
    types->insert(*dtype);
  }
}

// Whether a node casts to f16, or has a constant of it.
bool MakesHalf(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_t() &&
        attribute.t().data_type() == onnx::TensorProto::FLOAT16) {
      return true;
    }
    if ((attribute.name() == "to" || attribute.name() == "dtype") &&
        attribute.i() == onnx::TensorProto::FLOAT16) {
      return true;
    }
  }
  return false;
}

// Whether a node computes with what another has cast to bf16, as a model that
// was exported under autocast does. A value that is cast there and back is
// rounded on purpose.
template <typename Nodes>
bool ComputesInBf16(const Nodes& nodes) {
  std::set<std::string> rounded;
  for (const auto& node : nodes) {
    const bool casts = node.op_type() == "Cast";
    const bool reads =
        std::any_of(node.input().begin(), node.input().end(),
                    [&](const auto& name) { return rounded.count(name) > 0; });
    if (reads && !casts && node.op_type() != "Shape") return true;
    for (const auto& attribute : node.attribute()) {
      if (casts && attribute.name() == "to" &&
          attribute.i() == onnx::TensorProto::BFLOAT16) {
        rounded.insert(node.output().begin(), node.output().end());
      }
    }
  }
  return false;
}

bool CastsToDouble(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "to") {
      return attribute.i() == onnx::TensorProto::DOUBLE;
    }
  }
  return false;
}

// Whether a node casts a value that depends on the elements of inputs or
// weights to f64, as exporters write isinf. Arithmetic of shapes stays in f64.
bool ComputesInDouble(const onnx::GraphProto& graph,
                      const std::set<std::string>& initializers) {
  std::set<std::string> data;
  for (const auto& tensor : graph.initializer()) {
    if (tensor.data_type() == onnx::TensorProto::FLOAT &&
        std::any_of(tensor.dims().begin(), tensor.dims().end(),
                    [](int64_t dim) { return dim > 1; })) {
      data.insert(tensor.name());
    }
  }
  for (const auto& input : graph.input()) {
    if (initializers.count(input.name()) == 0) data.insert(input.name());
  }
  for (const auto& node : graph.node()) {
    const bool reads =
        std::any_of(node.input().begin(), node.input().end(),
                    [&](const auto& name) { return data.count(name) > 0; });
    if (!reads || node.op_type() == "Shape" || node.op_type() == "Size") {
      continue;
    }
    if (CastsToDouble(node)) return true;
    data.insert(node.output().begin(), node.output().end());
  }
  return false;
}

// Changes the types that a file declares.
class Widener {
 public:
  explicit Widener(const std::set<DType>& types) : types_(types) {}

  void Type(onnx::TypeProto* type) const {
    if (type->has_sequence_type()) {
      Type(type->mutable_sequence_type()->mutable_elem_type());
    }
    if (!type->has_tensor_type()) return;
    auto* tensor = type->mutable_tensor_type();
    if (IsOf(types_, tensor->elem_type())) {
      tensor->set_elem_type(onnx::TensorProto::FLOAT);
    }
  }

  template <typename Infos>
  void Declared(Infos* infos) const {
    for (auto& info : *infos) {
      if (info.has_type()) Type(info.mutable_type());
    }
  }

  absl::Status Constant(onnx::TensorProto* proto) const {
    if (!IsOf(types_, proto->data_type())) return absl::OkStatus();
    int64_t budget_bytes = int64_t{1} << 31;
    LOADLINE_ASSIGN_OR_RETURN(const Tensor tensor,
                              ReadTensor(*proto, /*folder=*/"", &budget_bytes));
    proto->set_data_type(onnx::TensorProto::FLOAT);
    WriteTensor(AsF32(tensor), proto);
    return absl::OkStatus();
  }

  absl::Status Node(onnx::NodeProto* node, int depth) const {
    for (auto& attribute : *node->mutable_attribute()) {
      if ((attribute.name() == "to" || attribute.name() == "dtype" ||
           attribute.name() == "output_dtype" ||
           attribute.name() == "stash_type") &&
          attribute.type() == onnx::AttributeProto::INT &&
          IsOf(types_, static_cast<int32_t>(attribute.i()))) {
        attribute.set_i(onnx::TensorProto::FLOAT);
      }
      if (attribute.has_t()) {
        LOADLINE_RETURN_IF_ERROR(Constant(attribute.mutable_t()));
      }
      if (attribute.has_g()) {
        LOADLINE_RETURN_IF_ERROR(Graph(attribute.mutable_g(), depth + 1));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Graph(onnx::GraphProto* graph, int depth) const {
    if (depth > kMostSubgraphDepth) return absl::OkStatus();
    Declared(graph->mutable_input());
    Declared(graph->mutable_output());
    Declared(graph->mutable_value_info());
    for (auto& node : *graph->mutable_node()) {
      LOADLINE_RETURN_IF_ERROR(Node(&node, depth));
    }
    for (auto& tensor : *graph->mutable_initializer()) {
      // Those of the main graph are read one by one.
      if (depth > 0) LOADLINE_RETURN_IF_ERROR(Constant(&tensor));
    }
    return absl::OkStatus();
  }

 private:
  const std::set<DType>& types_;
};

// A cast to f32 of an initializer that becomes f32 is an Identity: what decides
// by the operands of a node sees the initializer.
void DropCastsOfWeights(const std::set<DType>& types, onnx::GraphProto* graph) {
  const auto becomes_f32 = [&](int64_t onnx_type) {
    return onnx_type == onnx::TensorProto::FLOAT ||
           IsOf(types, static_cast<int32_t>(onnx_type));
  };
  std::set<std::string> weights;
  for (const auto& tensor : graph->initializer()) {
    if (becomes_f32(tensor.data_type())) weights.insert(tensor.name());
  }
  for (auto& node : *graph->mutable_node()) {
    if (node.input_size() != 1 || node.output_size() != 1 ||
        weights.count(node.input(0)) == 0) {
      continue;
    }
    if (node.op_type() == "Cast") {
      int64_t to = 0;
      for (const auto& attribute : node.attribute()) {
        if (attribute.name() == "to") to = attribute.i();
      }
      if (!becomes_f32(to)) continue;
      node.set_op_type("Identity");
      node.clear_attribute();
    }
    if (node.op_type() == "Identity") weights.insert(node.output(0));
  }
}

}  // namespace

std::set<DType> TypesToWiden(const onnx::ModelProto& model,
                             const std::set<std::string>& unread) {
  std::set<DType> types;
  const onnx::GraphProto& graph = model.graph();
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) {
    initializers.insert(tensor.name());
    int64_t most = 1;
    for (int64_t dim : tensor.dims()) most = std::max(most, dim);
    if (most > 1 || tensor.data_type() == onnx::TensorProto::FLOAT16) {
      CollectType(tensor.data_type(), &types);
    }
  }
  for (const auto& input : graph.input()) {
    if (initializers.count(input.name()) == 0 &&
        unread.count(input.name()) == 0 && input.type().has_tensor_type()) {
      CollectType(input.type().tensor_type().elem_type(), &types);
    }
  }
  const auto collect = [&types](const auto& nodes) {
    for (const auto& node : nodes) {
      if (MakesHalf(node)) types.insert(DType::kF16);
    }
    if (ComputesInBf16(nodes)) types.insert(DType::kBF16);
  };
  collect(graph.node());
  if (ComputesInDouble(graph, initializers)) types.insert(DType::kF64);
  for (const auto& function : model.functions()) collect(function.node());
  // Without inputs everything is computed at import.
  const bool has_input = std::any_of(
      graph.input().begin(), graph.input().end(),
      [&](const auto& input) { return initializers.count(input.name()) == 0; });
  return has_input ? types : std::set<DType>();
}

absl::Status WidenFloats(const std::set<DType>& types,
                         onnx::ModelProto* model) {
  if (types.empty()) return absl::OkStatus();
  DropCastsOfWeights(types, model->mutable_graph());
  const Widener widener(types);
  for (auto& function : *model->mutable_functions()) {
    widener.Declared(function.mutable_value_info());
    for (auto& node : *function.mutable_node()) {
      LOADLINE_RETURN_IF_ERROR(widener.Node(&node, 0));
    }
  }
  return widener.Graph(model->mutable_graph(), 0);
}

Tensor AsF32(const Tensor& tensor) {
  Tensor wide{{DType::kF32, tensor.type.dims}, nullptr};
  if (tensor.data == nullptr) return wide;
  switch (tensor.type.dtype) {
    case DType::kF16:
      wide.data = Converted<uint16_t, float>(*tensor.data, HalfToFloat);
      break;
    case DType::kBF16:
      wide.data = Converted<uint16_t, float>(*tensor.data, Bf16ToFloat);
      break;
    default:
      LOADLINE_CHECK(tensor.type.dtype == DType::kF64);
      wide.data = Converted<double, float>(
          *tensor.data, [](double x) { return static_cast<float>(x); });
  }
  return wide;
}

absl::StatusOr<Tensor> FromF32(const Tensor& tensor, DType dtype) {
  LOADLINE_CHECK(tensor.type.dtype == DType::kF32);
  Tensor narrow{{dtype, tensor.type.dims}, nullptr};
  bool beyond = false;
  switch (dtype) {
    case DType::kF16:
      narrow.data = Converted<float, uint16_t>(*tensor.data, [&](float x) {
        const uint16_t half = FloatToHalf(x);
        beyond = beyond || (std::isfinite(x) && (half & 0x7fffu) == 0x7c00u);
        return half;
      });
      break;
    case DType::kBF16:
      narrow.data = Converted<float, uint16_t>(*tensor.data, FloatToBf16);
      break;
    default:
      LOADLINE_CHECK(dtype == DType::kF64);
      narrow.data = Converted<float, double>(
          *tensor.data, [](float x) { return static_cast<double>(x); });
  }
  if (beyond) {
    return absl::InvalidArgumentError(
        "a number is beyond 65504, the largest of f16");
  }
  return narrow;
}

std::string WidenedWarning(const std::set<DType>& types) {
  if (types.empty()) return "";
  std::vector<std::string> names;
  for (DType dtype : types) names.emplace_back(DTypeName(dtype));
  return absl::StrCat(
      "the model is in ", absl::StrJoin(names, " and "),
      "; it is trained in f32 (--precision bf16 computes in bf16), and its "
      "weights are written back in the file's types");
}

}  // namespace loadline::models::onnx_internal
