#include "passes/add_lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using models::ValueKind;
using ::testing::HasSubstr;

// Products in both layouts, through a Transpose and with a bias.
models::Graph Products() {
  Builder b;
  const ValueId x = b.Input("x", {2, 3, 8});
  const ValueId q = b.Op("MatMul", {x, b.Parameter("q", {8, 6})});
  const ValueId k =
      b.Op("MatMul", {q, b.Parameter("k", {10, 6})}, {{"trans_b", int64_t{1}}});
  const ValueId turned = b.Op("Transpose", {b.Parameter("v", {7, 10})},
                              {{"perm", models::Ints{1, 0}}});
  const ValueId v = b.Op("MatMul", {k, turned});
  const ValueId flat =
      b.Op("Reshape", {b.Op("Add", {v, b.Parameter("bias", {7})})},
           {{"shape", models::Ints{6, 7}}});
  b.Output(
      b.Op("Gemm",
           {flat, b.Parameter("head", {5, 7}), b.Parameter("head_bias", {5})},
           {{"transB", int64_t{1}}}));
  return b.graph;
}

LoraOptions Options(std::vector<std::string> targets = {}) {
  LoraOptions options;
  options.rank = 2;
  options.alpha = 2;
  options.targets = std::move(targets);
  return options;
}

ValueKind KindOf(const models::Graph& graph, const char* name) {
  return graph.value(*graph.Find(name)).kind;
}

models::Ints DimsOf(const models::Graph& graph, const char* name) {
  return graph.value(*graph.Find(name)).type.dims;
}

TEST(AddLora, AddsAdaptersInTheLayoutOfTheWeight) {
  models::Graph graph = Products();
  ASSERT_EQ(AddLora(graph, Options({"q"})), absl::OkStatus());
  EXPECT_TRUE(models::VerifyGraph(graph).ok());
  EXPECT_THAT(Describe(graph), HasSubstr("%0 = MatMul(x, q)\n"
                                         "%1 = MatMul(x, q.lora_A)\n"
                                         "%2 = MatMul(%1, q.lora_B)\n"
                                         "%3 = Add(%0, %2)\n"));
  EXPECT_EQ(DimsOf(graph, "q.lora_A"), (models::Ints{8, 2}));
  EXPECT_EQ(DimsOf(graph, "q.lora_B"), (models::Ints{2, 6}));
  graph = Products();
  ASSERT_EQ(AddLora(graph, Options({"k", "v"})), absl::OkStatus());
  EXPECT_TRUE(models::VerifyGraph(graph).ok());
  EXPECT_EQ(DimsOf(graph, "k.lora_A"), (models::Ints{2, 6}));
  EXPECT_EQ(DimsOf(graph, "k.lora_B"), (models::Ints{10, 2}));
  EXPECT_EQ(DimsOf(graph, "v.lora_A"), (models::Ints{2, 10}));
  EXPECT_EQ(DimsOf(graph, "v.lora_B"), (models::Ints{7, 2}));
}

TEST(AddLora, TrainsAdaptersAndWhatIsNamedOnly) {
  models::Graph graph = Products();
  LoraOptions options = Options();
  options.train = {"*bias"};
  ASSERT_EQ(AddLora(graph, options), absl::OkStatus());
  for (const char* name : {"q", "k", "v", "head"}) {
    EXPECT_EQ(KindOf(graph, name), ValueKind::kState) << name;
  }
  for (const char* name :
       {"q.lora_A", "q.lora_B", "k.lora_A", "v.lora_B", "bias", "head_bias"}) {
    EXPECT_EQ(KindOf(graph, name), ValueKind::kParameter) << name;
  }
  // Without targets, the layer of the model's output has none.
  EXPECT_FALSE(graph.Find("head.lora_A").has_value());
}

TEST(AddLora, ScalesByAlpha) {
  models::Graph graph = Products();
  LoraOptions options = Options({"head"});
  options.alpha = 6;
  ASSERT_EQ(AddLora(graph, options), absl::OkStatus());
  EXPECT_THAT(Describe(graph), HasSubstr(", 3)\n"));
}

TEST(AddLora, StartsWithNumbersOfTheNameAndZeros) {
  models::Graph graph = Products();
  models::Graph again = Products();
  ASSERT_TRUE(AddLora(graph, Options()).ok() && AddLora(again, Options()).ok());
  const auto bytes = [](const models::Graph& g, const char* name) {
    return *g.value(*g.Find(name)).initial->data;
  };
  EXPECT_EQ(bytes(graph, "q.lora_A"), bytes(again, "q.lora_A"));
  EXPECT_NE(bytes(graph, "k.lora_A"), bytes(graph, "q.lora_A"));
  double sum = 0;
  double largest = 0;
  for (size_t i = 0; i < 16; ++i) {
    float number;
    std::memcpy(&number, bytes(graph, "q.lora_A").data() + 4 * i, 4);
    sum += number;
    largest = std::max<double>(largest, std::abs(number));
  }
  EXPECT_LT(largest, 1 / std::sqrt(8.0));
  EXPECT_GT(largest, 0.1);
  EXPECT_LT(std::abs(sum / 16), 0.2);
  for (const std::byte byte : bytes(graph, "q.lora_B")) {
    EXPECT_EQ(byte, std::byte{0});
  }
}

std::string Refused(models::Graph graph, LoraOptions options) {
  const absl::Status status = AddLora(graph, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(AddLora, RefusesWhatItCannotAdapt) {
  EXPECT_THAT(Refused(Products(), Options({"q", "z*"})),
              HasSubstr("matches 'z*'; there are q, k, v, head"));
  LoraOptions wide = Options({"head"});
  wide.rank = 5;
  EXPECT_THAT(Refused(Products(), wide), HasSubstr("no wider than the rank 5"));
  Builder b;
  const ValueId w = b.Parameter("tied", {4, 4});
  const ValueId y = b.Op("MatMul", {b.Input("x", {3, 4}), w});
  b.Output(b.Op("MatMul", {y, w}));
  EXPECT_THAT(Refused(b.graph, Options({"tied"})),
              HasSubstr("read by several nodes"));
  EXPECT_THAT(Refused(b.graph, Options()), HasSubstr("no weight"));
  LoraOptions none = Options();
  none.rank = 0;
  EXPECT_THAT(Refused(Products(), none), HasSubstr("above zero"));
}

TEST(MergedWeight, AddsTheProductInBothLayouts) {
  const auto tensor = [](models::Ints dims, std::vector<float> numbers) {
    return models::MakeTensor({models::DType::kF32, std::move(dims)},
                              numbers.data());
  };
  const auto numbers = [](const models::Tensor& t) {
    std::vector<float> out(t.data->size() / 4);
    std::memcpy(out.data(), t.data->data(), t.data->size());
    return out;
  };
  const models::Tensor w = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  // [k,n]: w + 2 A B.
  EXPECT_EQ(numbers(MergedWeight(w, tensor({2, 1}, {1, 10}),
                                 tensor({1, 3}, {1, 2, 3}), 2)),
            (std::vector<float>{3, 6, 9, 24, 45, 66}));
  // [n,k]: w + 2 B A.
  EXPECT_EQ(numbers(MergedWeight(w, tensor({1, 3}, {1, 2, 3}),
                                 tensor({2, 1}, {1, 10}), 2)),
            (std::vector<float>{3, 6, 9, 24, 45, 66}));
}

}  // namespace
}  // namespace loadline::passes
