// The algorithms that the libraries offer on this GPU, and that the fastest is
// found and used. operators_test.cc compares the results of every algorithm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/cuda/make_device.h"
#include "executor/measure/calibrate.h"
#include "models/graph.h"
#include "models/ops/operator.h"
#include "planner/base/check.h"

namespace loadline {
namespace {

using models::DType;
using models::Ints;
using testing::Contains;
using testing::StartsWith;

constexpr DType kBF16 = DType::kBF16;

void Add(models::Graph& graph, const std::string& op,
         const std::vector<models::TensorType>& inputs,
         const models::Attributes& attributes = {}) {
  std::vector<models::ValueId> ids;
  for (const models::TensorType& type : inputs) {
    ids.push_back(graph.AddInput("x", type));
  }
  LOADLINE_CHECK(graph.AddNode(op, op, ids, attributes).ok());
}

// GPT-2's attention, forward and backward.
models::Graph Attention() {
  const models::TensorType x{kBF16, {2, 1024, 12, 64}};
  const models::TensorType lse{DType::kF32, {2, 12, 1024}};
  const models::Attributes attributes = {
      {"scale", 0.125}, {"causal", int64_t{1}}, {"interleaved", int64_t{1}}};
  models::Graph graph;
  Add(graph, "Attention", {x, x, x}, attributes);
  Add(graph, "AttentionGrad", {x, x, x, x, x, lse}, attributes);
  return graph;
}

// One of ResNet-50's convolutions, with both gradients.
models::Graph Convolution() {
  const models::TensorType x{kBF16, {32, 128, 28, 28}};
  const models::TensorType w{kBF16, {128, 128, 3, 3}};
  models::Attributes attributes = {{"kernel_shape", Ints{3, 3}},
                                   {"strides", Ints{1, 1}},
                                   {"pads", Ints{1, 1, 1, 1}},
                                   {"dilations", Ints{1, 1}},
                                   {"group", int64_t{1}}};
  models::Graph graph;
  Add(graph, "Conv", {x, w}, attributes);
  attributes.Set("shape", x.dims);
  Add(graph, "ConvInputGrad", {x, w}, attributes);
  attributes.Set("shape", w.dims);
  Add(graph, "ConvWeightGrad", {x, x}, attributes);
  return graph;
}

std::vector<std::string> Offered(executor::Device& device,
                                 const models::Graph& graph,
                                 const models::Node& node) {
  const auto kernel = device.Prepare(graph, node);
  EXPECT_TRUE(kernel.ok()) << node.op << ": " << kernel.status();
  return kernel.ok() ? (*kernel)->algorithms() : std::vector<std::string>();
}

TEST(GpuAlgorithms, CudnnHasTheAttentionOfATransformer) {
  const auto device = executor::MakeCudaDevice();
  ASSERT_TRUE(device.ok()) << device.status();
  const models::Graph graph = Attention();
  for (const models::Node& node : graph.nodes) {
    const std::vector<std::string> offered = Offered(**device, graph, node);
    EXPECT_THAT(offered, Contains(StartsWith("cudnn "))) << node.op;
    EXPECT_THAT(offered, Contains("own")) << node.op;
  }
}

TEST(GpuAlgorithms, ConvolutionsOfferChannelsLast) {
  const auto device = executor::MakeCudaDevice();
  ASSERT_TRUE(device.ok()) << device.status();
  const models::Graph graph = Convolution();
  for (const models::Node& node : graph.nodes) {
    EXPECT_THAT(Offered(**device, graph, node), Contains(StartsWith("nhwc ")))
        << node.op;
  }
}

// The gradients of the two linear layers in a block of GPT-2.
TEST(GpuAlgorithms, GradientsAreJoinedToTheirProducts) {
  models::Graph graph;
  Add(graph, "GemmBiasGrad", {{kBF16, {2048, 3072}}, {kBF16, {2048, 768}}},
      {{"transA", int64_t{1}}, {"dy", std::string("a")}});
  Add(graph, "GemmGeluGrad",
      {{kBF16, {2048, 768}}, {kBF16, {768, 3072}}, {kBF16, {2048, 3072}}},
      {{"approximate", std::string("tanh")}});
  const auto device = executor::MakeCudaDevice();
  ASSERT_TRUE(device.ok()) << device.status();
  for (const models::Node& node : graph.nodes) {
    const std::vector<std::string> offered = Offered(**device, graph, node);
    EXPECT_THAT(offered, Contains(StartsWith("joined "))) << node.op;
    EXPECT_THAT(offered, Contains(StartsWith("apart "))) << node.op;
  }
}

TEST(GpuAlgorithms, TheFastestIsChosenAndPrepared) {
  models::Graph products;
  Add(products, "MatMul", {{kBF16, {1024, 768}}, {kBF16, {768, 3072}}});
  Add(products, "Gemm",
      {{kBF16, {512, 256}}, {kBF16, {256, 64}}, {kBF16, {64}}});
  for (const models::Graph& graph : {Attention(), Convolution(), products}) {
    const auto chosen = executor::ChooseAlgorithms(
        graph, [] { return executor::MakeCudaDevice(); });
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    const auto device = executor::MakeCudaDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    for (const models::Node& node : graph.nodes) {
      const std::string key = models::OperatorKey(graph, node);
      const std::vector<std::string> offered = Offered(**device, graph, node);
      if (offered.empty()) continue;
      ASSERT_EQ(chosen->count(key), 1u) << key;
      EXPECT_THAT(offered, Contains(chosen->at(key)));
    }
    (*device)->SetAlgorithms(*chosen);
    for (const models::Node& node : graph.nodes) {
      EXPECT_TRUE((*device)->Prepare(graph, node).ok()) << node.op;
    }
  }
}

}  // namespace
}  // namespace loadline
