// The table of codecs, and the operators that apply them: Encode, Decode, and
// ReluMaskGrad, which reads the codec "positive". Tested in
// tests/models/codec_test.cc and tests/conformance/.
#include "models/ops/codec.h"

#include <array>
#include <limits>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

template <typename T>
CodecSpec Integers() {
  return {.kind = CodecKind::kInteger,
          .bits = 8 * static_cast<int>(sizeof(T)),
          .least = std::numeric_limits<T>::min(),
          .most = std::numeric_limits<T>::max()};
}

CodecSpec Groups(int bits, bool stochastic) {
  return {.kind = CodecKind::kGroup, .bits = bits, .stochastic = stochastic};
}

struct NamedCodec {
  absl::string_view name;
  CodecSpec spec;
};

// Integers of the fewest bits first.
const std::array<NamedCodec, 13>& Codecs() {
  static const std::array<NamedCodec, 13> codecs = {{
      {"bits", {.kind = CodecKind::kBits, .bits = 1}},
      {"positive", {.kind = CodecKind::kPositive, .bits = 1}},
      {"u8", Integers<uint8_t>()},
      {"i8", Integers<int8_t>()},
      {"u16", Integers<uint16_t>()},
      {"i16", Integers<int16_t>()},
      {"i32", Integers<int32_t>()},
      {"bf16", {.kind = CodecKind::kBf16, .bits = 16}},
      {"group8", Groups(8, true)},
      {"group4", Groups(4, true)},
      {"group2", Groups(2, true)},
      {"group1", Groups(1, true)},
      {"group1_nearest", Groups(1, false)},
  }};
  return codecs;
}

bool IsFor(const CodecSpec& codec, DType dtype) {
  switch (codec.kind) {
    case CodecKind::kBits:
      return dtype == DType::kBool;
    case CodecKind::kPositive:
    case CodecKind::kGroup:
      return dtype == DType::kF32 || dtype == DType::kBF16;
    case CodecKind::kInteger:
      return (dtype == DType::kI64 || dtype == DType::kI32) &&
             codec.bits < 8 * DTypeBytes(dtype);
    case CodecKind::kBf16:
      return dtype == DType::kF32;
  }
  return false;
}

TensorType BytesOf(const CodecSpec& codec, int64_t elements) {
  return {DType::kU8, {EncodedBytes(codec, elements)}};
}

absl::StatusOr<OutputTypes> InferEncode(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(
      const CodecSpec codec,
      CheckedCodec(node.attributes.String("codec", ""), *inputs[0]));
  return OutputTypes{BytesOf(codec, inputs[0]->elements())};
}

absl::StatusOr<OutputTypes> InferDecode(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(const DType to,
                            DTypeFromName(node.attributes.String("to", "")));
  LOADLINE_ASSIGN_OR_RETURN(const TensorType y, CheckedShape(node, to));
  const std::string name = node.attributes.String("codec", "");
  LOADLINE_ASSIGN_OR_RETURN(const CodecSpec codec, CheckedCodec(name, y));
  if (codec.kind == CodecKind::kPositive) {
    return Refuse("the codec ", name, " cannot be decoded");
  }
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, 0, BytesOf(codec, y.elements())));
  return OutputTypes{y};
}

absl::StatusOr<OutputTypes> InferReluMaskGrad(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0, {DType::kF32, DType::kBF16}));
  const CodecSpec positive = {.kind = CodecKind::kPositive, .bits = 1};
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, 1, BytesOf(positive, inputs[0]->elements())));
  return OutputTypes{*inputs[0]};
}

}  // namespace

std::optional<CodecSpec> CodecFromName(absl::string_view name) {
  for (const NamedCodec& codec : Codecs()) {
    if (codec.name == name) return codec.spec;
  }
  return std::nullopt;
}

int64_t GroupHeadersBytes(const CodecSpec& codec, int64_t elements) {
  if (codec.kind != CodecKind::kGroup) return 0;
  return (elements + kGroupElements - 1) / kGroupElements * kGroupHeaderBytes;
}

int64_t EncodedBytes(const CodecSpec& codec, int64_t elements) {
  // Without elements * bits, which may not fit.
  return GroupHeadersBytes(codec, elements) + elements / 8 * codec.bits +
         (elements % 8 * codec.bits + 7) / 8;
}

absl::StatusOr<CodecSpec> CheckedCodec(absl::string_view name,
                                       const TensorType& type) {
  const std::optional<CodecSpec> codec = CodecFromName(name);
  if (!codec.has_value()) return Refuse("there is no codec \"", name, "\"");
  if (!IsFor(*codec, type.dtype)) {
    return Refuse("the codec ", name, " is not for ", DTypeName(type.dtype));
  }
  return *codec;
}

std::string IntegerCodec(DType dtype, int64_t least, int64_t most) {
  for (const NamedCodec& codec : Codecs()) {
    const CodecSpec& spec = codec.spec;
    if (spec.kind == CodecKind::kInteger && IsFor(spec, dtype) &&
        spec.least <= least && most <= spec.most) {
      return std::string(codec.name);
    }
  }
  return "";
}

std::vector<Operator> CodecOperators() {
  Operator encode;
  encode.name = "Encode";
  encode.infer = InferEncode;
  encode.attributes = {{"codec", AttributeKind::kString, true},
                       {"salt", AttributeKind::kInt}};
  Operator decode;
  decode.name = "Decode";
  decode.infer = InferDecode;
  decode.attributes = {{"codec", AttributeKind::kString, true},
                       {"to", AttributeKind::kString, true},
                       {"shape", AttributeKind::kInts, true}};
  Operator relu_mask_grad;
  relu_mask_grad.name = "ReluMaskGrad";
  relu_mask_grad.min_inputs = relu_mask_grad.max_inputs = 2;
  relu_mask_grad.infer = InferReluMaskGrad;
  relu_mask_grad.cost = PerElement<1>;
  relu_mask_grad.inplace = {{0, 0}};
  return {encode, decode, relu_mask_grad};
}

}  // namespace loadline::models
