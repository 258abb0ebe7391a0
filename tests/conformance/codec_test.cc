// Codecs there and back, on the CPU and on the emulated GPU: lossless ones give
// every bit, groups are within a step and right on average, and what does not
// fit is an error.
#include "models/ops/codec.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "executor/ops/bf16.h"
#include "gtest/gtest.h"
#include "models/codec_nodes.h"
#include "tests/conformance/cuda_emulated.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::TensorType;

struct Stored {
  std::vector<std::byte> encoded;
  std::vector<std::byte> decoded;
};

absl::StatusOr<std::vector<std::byte>> RunNode(
    const models::Graph& graph, models::NodeId id,
    const std::vector<std::byte>& input, const executor::StepScalars& scalars,
    const Backend& backend) {
  const models::Node& node = graph.node(id);
  auto kernel = backend.prepare(graph, node);
  if (!kernel.ok()) return kernel.status();
  GuardedBuffer in(static_cast<int64_t>(input.size()));
  std::memcpy(in.data(), input.data(), input.size());
  GuardedBuffer out(graph.value(node.outputs[0]).type.bytes());
  const std::byte* from = in.data();
  std::byte* to = out.data();
  const absl::Status status = backend.run(**kernel, {.inputs = {&from, 1},
                                                     .outputs = {&to, 1},
                                                     .workspace = nullptr,
                                                     .scalars = &scalars});
  if (!status.ok()) return status;
  EXPECT_TRUE(out.Intact());
  return std::vector<std::byte>(to, to + out.bytes());
}

absl::StatusOr<Stored> Store(const Array& x, const std::string& codec,
                             const Backend& backend, int64_t step = 1) {
  models::Graph of;
  of.AddInput("earlier", x.type);
  const models::ValueId id = of.AddInput("x", x.type);
  models::Graph graph;
  const auto nodes = models::AddCodecNodes(of, id, codec, &graph);
  if (!nodes.ok()) return nodes.status();
  executor::StepScalars scalars = TestScalars();
  scalars.step = step;
  auto encoded = RunNode(graph, nodes->encode, ToBytes(x), scalars, backend);
  if (!encoded.ok()) return encoded.status();
  EXPECT_EQ(static_cast<int64_t>(encoded->size()), nodes->encoded_bytes);
  auto decoded = RunNode(graph, nodes->decode, *encoded, scalars, backend);
  if (!decoded.ok()) return decoded.status();
  return Stored{*encoded, *decoded};
}

Array MakeArray(DType dtype, std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  Array a{TensorType{dtype, {count}}, std::move(values)};
  return ToArray(a.type, ToBytes(a).data());  // rounds to the type
}

// Of several ranges, one group constant, one with an odd size at the end.
Array Floats(DType dtype, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double scale = std::pow(10.0, static_cast<double>(i / 256 % 5) - 2);
    const bool constant = i / 256 == 1;
    values.push_back(constant ? 3.25 : scale * std::sin(0.7 * i + i * i));
  }
  return MakeArray(dtype, values);
}

const std::vector<const Backend*> kBackends = {&kCpu, &kEmulated};

TEST(Codecs, LosslessOnesGiveEveryBit) {
  struct Case {
    std::string codec;
    DType dtype;
    double low, high;
  };
  for (const Case& c :
       std::vector<Case>{{"bits", DType::kBool, 0, 1},
                         {"u8", DType::kI32, 0, 255},
                         {"i8", DType::kI32, -128, 127},
                         {"u8", DType::kI64, 0, 255},
                         {"u16", DType::kI64, 0, 65535},
                         {"i16", DType::kI32, -32768, 32767},
                         {"i32", DType::kI64, -2147483648.0, 2147483647.0}}) {
    SCOPED_TRACE(c.codec);
    std::vector<double> values;
    for (int i = 0; i < 1003; ++i) {
      values.push_back(std::round(c.low + (c.high - c.low) * (i % 59) / 58));
    }
    const Array x = MakeArray(c.dtype, values);
    for (const Backend* backend : kBackends) {
      const auto stored = Store(x, c.codec, *backend);
      ASSERT_TRUE(stored.ok()) << stored.status();
      EXPECT_EQ(stored->decoded, ToBytes(x));
      EXPECT_LT(stored->encoded.size(), stored->decoded.size());
    }
  }
}

TEST(Codecs, FloatsThatHoldBf16KeepEveryBit) {
  Array x = Floats(DType::kBF16, 1000);
  x.type.dtype = DType::kF32;
  x.values[3] = -0.0;
  x.values[4] = std::numeric_limits<double>::infinity();
  for (const Backend* backend : kBackends) {
    const auto stored = Store(x, "bf16", *backend);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->decoded, ToBytes(x));
    EXPECT_EQ(2 * stored->encoded.size(), stored->decoded.size());
  }
}

TEST(Codecs, WhatDoesNotFitIsAnErrorWithItsPosition) {
  struct Case {
    std::string codec;
    DType dtype;
    double fits, wrong;
  };
  for (const Case& c : std::vector<Case>{{"u8", DType::kI64, 255, 256},
                                         {"u8", DType::kI32, 0, -1},
                                         {"i16", DType::kI64, -100, 40000},
                                         {"i32", DType::kI64, 7, 1e10},
                                         {"bf16", DType::kF32, 1.5, 1.01}}) {
    std::vector<double> values(50000, c.fits);
    values[41234] = values[49999] = c.wrong;
    for (const Backend* backend : kBackends) {
      const auto stored = Store(MakeArray(c.dtype, values), c.codec, *backend);
      EXPECT_EQ(stored.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_TRUE(absl::StrContains(stored.status().message(),
                                    "value x: the element at position 41234"))
          << stored.status();
    }
  }
}

TEST(Codecs, GroupsHaveTheSameBitsOnBothDevices) {
  for (const char* codec :
       {"group8", "group4", "group2", "group1", "group1_nearest"}) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const Array x = Floats(dtype, 2001);
      const auto cpu = Store(x, codec, kCpu);
      const auto gpu = Store(x, codec, kEmulated);
      ASSERT_TRUE(cpu.ok() && gpu.ok()) << cpu.status() << gpu.status();
      EXPECT_EQ(cpu->encoded, gpu->encoded) << codec;
      EXPECT_EQ(cpu->decoded, gpu->decoded) << codec;
    }
  }
}

// Chen et al. 2021: unbiased, with a variance of at most step^2 / 4.
TEST(Codecs, StochasticRoundingIsWithinAStepAndRightOnAverage) {
  const Array x = Floats(DType::kF32, 1300);
  constexpr int kSteps = 400;
  for (int bits : {8, 4, 2, 1}) {
    std::vector<double> sums(x.values.size());
    const std::string codec = "group" + std::to_string(bits);
    for (int step = 1; step <= kSteps; ++step) {
      const auto stored = Store(x, codec, kCpu, step);
      ASSERT_TRUE(stored.ok()) << stored.status();
      const Array y = ToArray(x.type, stored->decoded.data());
      for (size_t e = 0; e < sums.size(); ++e) sums[e] += y.values[e];
    }
    for (size_t first = 0; first < sums.size(); first += 256) {
      const size_t end = std::min(sums.size(), first + 256);
      const auto [least, most] =
          std::minmax_element(x.values.begin() + first, x.values.begin() + end);
      const double step = (*most - *least) / ((1 << bits) - 1);
      // Five standard deviations of a mean, at most.
      const double allowed = 5 * 0.5 * step / std::sqrt(kSteps) + 1e-6;
      double bias = 0;
      for (size_t e = first; e < end; ++e) {
        EXPECT_NEAR(sums[e] / kSteps, x.values[e], allowed) << codec;
        bias += sums[e] / kSteps - x.values[e];
      }
      EXPECT_NEAR(bias / static_cast<double>(end - first), 0,
                  allowed / std::sqrt(static_cast<double>(end - first)) + 1e-6);
    }
  }
}

TEST(Codecs, RoundingDependsOnStepAndValueAndNothingElse) {
  const Array x = Floats(DType::kF32, 600);
  const auto one = Store(x, "group2", kCpu, 1);
  const auto again = Store(x, "group2", kCpu, 1);
  const auto two = Store(x, "group2", kCpu, 2);
  ASSERT_TRUE(one.ok() && again.ok() && two.ok());
  EXPECT_EQ(one->encoded, again->encoded);
  EXPECT_NE(one->encoded, two->encoded);
}

TEST(Codecs, AGroupWithNumbersThatAreNotFiniteBecomesNan) {
  for (double odd : {std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity()}) {
    Array x = Floats(DType::kF32, 600);
    x.values[300] = odd;
    for (const Backend* backend : kBackends) {
      const auto stored = Store(x, "group4", *backend);
      ASSERT_TRUE(stored.ok()) << stored.status();
      const Array y = ToArray(x.type, stored->decoded.data());
      for (size_t e = 0; e < 600; ++e) {
        EXPECT_EQ(std::isnan(y.values[e]), e >= 256 && e < 512) << e;
      }
    }
  }
}

TEST(Codecs, ReluMaskGradHasTheBitsOfReluGrad) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Array y = Floats(dtype, 1003);
    y.values[5] = 0;
    y.values[6] = -0.0;
    const Array dy = Floats(dtype, 1003);
    models::Graph graph;
    const models::ValueId dy_id = graph.AddInput("dy", dy.type);
    const models::ValueId y_id = graph.AddInput("y", y.type);
    const auto bits = graph.AddNode(
        "Encode", "bits", {y_id},
        {{"codec", std::string("positive")}, {"salt", int64_t{0}}});
    ASSERT_TRUE(bits.ok()) << bits.status();
    const auto masked =
        graph.AddNode("ReluMaskGrad", "masked", {dy_id, (*bits)[0]});
    const auto plain = graph.AddNode("ReluGrad", "plain", {dy_id, y_id});
    ASSERT_TRUE(masked.ok() && plain.ok());
    const auto values = RunGraph(graph, {dy, y});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(ToBytes((*values)[models::Index((*masked)[0])]),
              ToBytes((*values)[models::Index((*plain)[0])]));
  }
}

}  // namespace
}  // namespace loadline::conformance
