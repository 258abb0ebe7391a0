// Turns an integer codec into a template argument, and describes its errors.
#ifndef LOADLINE_EXECUTOR_OPS_CODEC_TYPES_H_
#define LOADLINE_EXECUTOR_OPS_CODEC_TYPES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/ops/prepare.h"
#include "models/ops/codec.h"

namespace loadline::executor {

// Calls body(T{}) with the type that an integer codec stores.
template <typename Body>
PreparedKernel WithStored(const models::CodecSpec& codec, const Body& body) {
  const bool has_sign = codec.least < 0;
  if (codec.bits == 8) return has_sign ? body(int8_t{}) : body(uint8_t{});
  if (codec.bits == 16) return has_sign ? body(int16_t{}) : body(uint16_t{});
  return body(int32_t{});
}

// The error of an element that a lossless codec cannot hold.
inline absl::Status DoesNotFit(const std::string& value,
                               const std::string& codec, int64_t position) {
  return absl::OutOfRangeError(
      absl::StrCat("value ", value, ": the element at position ", position,
                   " cannot be stored by the codec ", codec,
                   ": it is outside of the range that its readers allow"));
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_CODEC_TYPES_H_
