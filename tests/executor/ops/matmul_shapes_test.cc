// Runs of products compared with each product by itself.
#include "executor/ops/matmul_shapes.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "models/graph.h"

namespace loadline::executor {
namespace {

// (a, b, y) offsets of every product, from a loop over all leading dimensions.
std::vector<std::array<int64_t, 3>> EachProduct(const MatMulShapes& s) {
  const size_t leading = s.y.dims.size() - 2;
  std::vector<std::array<int64_t, 3>> products = {{0, 0, 0}};
  for (size_t d = 0; d < leading; ++d) {
    std::vector<std::array<int64_t, 3>> next;
    for (const auto& at : products) {
      for (int64_t i = 0; i < s.y.dims[d]; ++i) {
        next.push_back({at[0] + (s.a.dims[d] == 1 ? 0 : i * s.a.strides[d]),
                        at[1] + (s.b.dims[d] == 1 ? 0 : i * s.b.strides[d]),
                        at[2] + i * s.y.strides[d]});
      }
    }
    products = std::move(next);
  }
  return products;
}

TEST(MakeProductRuns, AreEveryProductInOrder) {
  std::mt19937 random(3);
  int64_t runs_seen = 0;
  for (int round = 0; round < 300; ++round) {
    const size_t rank = 2 + random() % 4;
    Ints a(rank), b(rank);
    for (size_t d = 0; d < rank; ++d) {
      const int64_t n = 1 + static_cast<int64_t>(random() % 3);
      a[d] = random() % 3 == 0 ? 1 : n;
      b[d] = random() % 3 == 0 ? 1 : n;
    }
    a[rank - 2] = 2;
    a[rank - 1] = b[rank - 2] = 3;
    b[rank - 1] = 5;
    models::Graph graph;
    const auto x = graph.AddInput("a", {DType::kF32, a});
    const auto w = graph.AddInput("b", {DType::kF32, b});
    ASSERT_TRUE(graph.AddNode("MatMul", "y", {x, w}).ok());
    const MatMulShapes s =
        MakeMatMulShapes(Prepare(graph, graph.nodes[0], "test"));
    const ProductRuns runs = MakeProductRuns(s);
    const int64_t matrix = s.y.dims[s.y.dims.size() - 2] * s.y.dims.back();
    std::vector<std::array<int64_t, 3>> products;
    for (const ProductRuns::Start& start : runs.starts) {
      for (int64_t i = 0; i < runs.count; ++i) {
        products.push_back({start.a + i * runs.a_step,
                            start.b + i * runs.b_step, start.y + i * matrix});
      }
    }
    EXPECT_EQ(products, EachProduct(s));
    runs_seen += static_cast<int64_t>(runs.starts.size());
  }
  EXPECT_GT(runs_seen, 300);  // some cases need several runs
}

}  // namespace
}  // namespace loadline::executor
