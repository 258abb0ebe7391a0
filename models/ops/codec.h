// Codecs: ways to store a tensor in fewer bytes between its uses. The operators
// Encode and Decode apply them; passes/offer_codecs.h says where a plan may.
//
//   name             of         stores
//   bits             bool       one bit per element
//   positive         f32, bf16  one bit per element: whether it is above 0
//   u8 i8 u16 i16    i32, i64   integers of that type; others fail the step
//   i32              i64        the same
//   bf16             f32        the upper half; a nonzero lower half fails
//                               the step
//   group8 4 2 1     f32, bf16  2^b levels between minimum and maximum of 256
//                               elements, rounded stochastically (lossy)
//
// "positive" has no Decode: readers take the bits themselves (ReluMaskGrad).
// "group1_nearest" rounds to the nearest level; it is there for comparison.
// Groups: J. Chen, L. Zheng, Z. Yao, D. Wang, I. Stoica, M. Mahoney, J.
// Gonzalez, "ActNN: Reducing Training Memory Footprint via 2-Bit Activation
// Compressed Training", ICML 2021.
#ifndef LOADLINE_MODELS_OPS_CODEC_H_
#define LOADLINE_MODELS_OPS_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/types.h"

namespace loadline::models {

enum class CodecKind { kBits, kPositive, kInteger, kBf16, kGroup };

struct CodecSpec {
  CodecKind kind = CodecKind::kBits;
  int bits = 1;  // per element
  // kInteger: the range of numbers that it holds.
  int64_t least = 0;
  int64_t most = 0;
  bool stochastic = false;  // kGroup

  bool lossless() const { return kind != CodecKind::kGroup; }
};

// Elements that share a minimum and a scale, both f32.
inline constexpr int64_t kGroupElements = 256;
inline constexpr int64_t kGroupHeaderBytes = 8;

// Nothing for an unknown name.
std::optional<CodecSpec> CodecFromName(absl::string_view name);

// Layout of an encoded tensor: headers of all groups, then the packed elements,
// element e in bits [e * bits, (e + 1) * bits) of little-endian bytes.
int64_t GroupHeadersBytes(const CodecSpec& codec, int64_t elements);
int64_t EncodedBytes(const CodecSpec& codec, int64_t elements);

// InvalidArgument: no such codec, or not for this element type.
absl::StatusOr<CodecSpec> CheckedCodec(absl::string_view name,
                                       const TensorType& type);

// The name of the smallest codec that holds every integer of [least, most] in
// fewer bytes than `dtype`, i64 or i32; empty: there is none.
std::string IntegerCodec(DType dtype, int64_t least, int64_t most);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_CODEC_H_
