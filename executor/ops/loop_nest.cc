// Broadcasting as strides. Tested through the broadcast operators in
// tests/conformance/.
#include "executor/ops/loop_nest.h"

#include "executor/ops/prepare.h"

namespace loadline::executor {

models::Ints BroadcastStrides(absl::Span<const int64_t> dims,
                              absl::Span<const int64_t> out) {
  const models::Ints dense = DenseStrides(dims);
  const size_t missing = out.size() - dims.size();
  models::Ints strides(out.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) strides[missing + d] = dense[d];
  }
  return strides;
}

}  // namespace loadline::executor
