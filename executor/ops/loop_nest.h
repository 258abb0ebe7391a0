// Iterates over several strided tensors of one shape together.
//
// Dimensions of size 1 are dropped, and adjacent dimensions that are contiguous
// in every tensor are merged, so most nests have one or two dimensions left.
// Run calls its body with runs along the innermost dimension.
#ifndef LOADLINE_EXECUTOR_OPS_LOOP_NEST_H_
#define LOADLINE_EXECUTOR_OPS_LOOP_NEST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "models/attributes.h"

namespace loadline::executor {

// Strides, by dimension of `out`, of a tensor of shape `dims` broadcast to
// `out` as in NumPy; 0 where it repeats.
models::Ints BroadcastStrides(absl::Span<const int64_t> dims,
                              absl::Span<const int64_t> out);

template <int kTensors>
class LoopNest {
 public:
  using Strides = std::array<models::Ints, kTensors>;
  using Offsets = std::array<int64_t, kTensors>;

  // `strides[t]` has one stride per dimension, in elements.
  LoopNest(absl::Span<const int64_t> dims, const Strides& strides) {
    for (size_t d = 0; d < dims.size(); ++d) {
      elements_ *= dims[d];
      if (dims[d] != 1) Append(dims[d], strides, d);
    }
    if (dims_.empty()) {
      dims_.push_back(1);
      for (models::Ints& s : strides_) s.push_back(0);
    }
  }

  int64_t elements() const { return elements_; }
  int64_t inner() const { return dims_.back(); }
  int64_t inner_stride(int tensor) const { return strides_[tensor].back(); }
  const models::Ints& dims() const { return dims_; }
  const models::Ints& strides(int tensor) const { return strides_[tensor]; }

  // Calls body(offsets, count) for the elements [begin, end) in row-major
  // order: `count` elements from `offsets`, each tensor advancing by its
  // inner_stride.
  template <typename Body>
  void Run(int64_t begin, int64_t end, const Body& body) const {
    while (begin < end) {
      Offsets offsets{};
      const int64_t in_row = begin % inner();
      int64_t rest = begin / inner();
      for (int t = 0; t < kTensors; ++t) {
        offsets[t] = in_row * inner_stride(t);
      }
      for (size_t d = dims_.size() - 1; d-- > 0;) {
        const int64_t index = rest % dims_[d];
        rest /= dims_[d];
        for (int t = 0; t < kTensors; ++t) {
          offsets[t] += index * strides_[t][d];
        }
      }
      const int64_t count = std::min(end - begin, inner() - in_row);
      body(offsets, count);
      begin += count;
    }
  }

 private:
  void Append(int64_t dim, const Strides& strides, size_t d) {
    bool merge = !dims_.empty();
    for (int t = 0; merge && t < kTensors; ++t) {
      merge = strides_[t].back() == strides[t][d] * dim;
    }
    if (merge) {
      dims_.back() *= dim;
      for (int t = 0; t < kTensors; ++t) strides_[t].back() = strides[t][d];
    } else {
      dims_.push_back(dim);
      for (int t = 0; t < kTensors; ++t) {
        strides_[t].push_back(strides[t][d]);
      }
    }
  }

  int64_t elements_ = 1;
  models::Ints dims_;
  std::array<models::Ints, kTensors> strides_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_LOOP_NEST_H_
