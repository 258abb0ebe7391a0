// Helpers of this folder's tests, to make types, nodes and graphs.
#ifndef LOADLINE_TESTS_MODELS_GRAPH_TEST_UTIL_H_
#define LOADLINE_TESTS_MODELS_GRAPH_TEST_UTIL_H_

#include <string>
#include <vector>

#include "models/graph.h"

namespace loadline::models {

inline TensorType F32(std::vector<int64_t> dims) {
  return {DType::kF32, std::move(dims)};
}
inline TensorType I64(std::vector<int64_t> dims) {
  return {DType::kI64, std::move(dims)};
}
inline TensorType I32(std::vector<int64_t> dims) {
  return {DType::kI32, std::move(dims)};
}
inline TensorType U8(std::vector<int64_t> dims) {
  return {DType::kU8, std::move(dims)};
}
inline TensorType Bool(std::vector<int64_t> dims) {
  return {DType::kBool, std::move(dims)};
}

// Types that many cases share: an image of 4 channels, and one number a
// channel.
inline const TensorType kX = F32({2, 4, 8, 8});
inline const TensorType kC = F32({4});

// A small handmade training step: two layers, a view, an update.
Graph SmallStep();

// A random valid graph of `nodes` nodes: pointwise, broadcasting, shape and
// product operators over values of few shapes, with every kind of value.
Graph RandomGraph(int seed, int nodes);

}  // namespace loadline::models

#endif  // LOADLINE_TESTS_MODELS_GRAPH_TEST_UTIL_H_
