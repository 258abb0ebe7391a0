// Turns an element type known at prepare time into a template argument.
#ifndef LOADLINE_EXECUTOR_OPS_DISPATCH_H_
#define LOADLINE_EXECUTOR_OPS_DISPATCH_H_

#include <cstdint>

#include "executor/ops/prepare.h"

namespace loadline::executor {

// Calls body(T{}) with float or the device's bf16 type; Unsupported for others.
template <typename DeviceBf16, typename Body>
PreparedKernel WithFloat(const Prepare& p, DType dtype, const Body& body) {
  if (dtype == DType::kF32) return body(float{});
  if (dtype == DType::kBF16) return body(DeviceBf16{});
  return p.Unsupported(dtype);
}

// The same with i64 and i32 added.
template <typename DeviceBf16, typename Body>
PreparedKernel WithNumber(const Prepare& p, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
    case DType::kBF16:
      return WithFloat<DeviceBf16>(p, dtype, body);
    case DType::kI64:
      return body(int64_t{});
    case DType::kI32:
      return body(int32_t{});
    default:
      return p.Unsupported(dtype);
  }
}

// Calls body(T{}) with the type of the integer.
template <typename Prepare, typename Body>
PreparedKernel WithInteger(const Prepare& p, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kI64:
      return body(int64_t{});
    case DType::kI32:
      return body(int32_t{});
    case DType::kU8:
      return body(uint8_t{});
    default:
      return p.Unsupported(dtype);
  }
}

// The same as WithNumber with bool added.
template <typename DeviceBf16, typename Body>
PreparedKernel WithNumberOrBool(const Prepare& p, DType dtype,
                                const Body& body) {
  if (dtype == DType::kBool) return body(bool{});
  return WithNumber<DeviceBf16>(p, dtype, body);
}

// The same with u8 added.
template <typename DeviceBf16, typename Body>
PreparedKernel WithNumberBoolOrByte(const Prepare& p, DType dtype,
                                    const Body& body) {
  if (dtype == DType::kU8) return body(uint8_t{});
  return WithNumberOrBool<DeviceBf16>(p, dtype, body);
}

// Calls body(T{}) with an unsigned type of the element's size, for kernels that
// only move elements.
template <typename Body>
PreparedKernel WithBits(DType dtype, const Body& body) {
  switch (models::DTypeBytes(dtype)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

// Calls body(T{}) with the type of an index tensor: i64 or i32.
template <typename Body>
PreparedKernel WithIndex(const Prepare& p, DType dtype, const Body& body) {
  if (dtype == DType::kI64) return body(int64_t{});
  if (dtype == DType::kI32) return body(int32_t{});
  return p.Unsupported(dtype);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_DISPATCH_H_
