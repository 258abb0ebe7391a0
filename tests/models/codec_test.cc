// The table of codecs, and the nodes that apply them.
#include "models/ops/codec.h"

#include <limits>

#include "gtest/gtest.h"
#include "models/codec_nodes.h"
#include "models/graph.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

TEST(IntegerCodec, IsTheSmallestThatHoldsTheRange) {
  EXPECT_EQ(IntegerCodec(DType::kI64, 0, 255), "u8");
  EXPECT_EQ(IntegerCodec(DType::kI64, -100, 9), "i8");
  EXPECT_EQ(IntegerCodec(DType::kI64, 0, 256), "u16");
  EXPECT_EQ(IntegerCodec(DType::kI32, -100, 50256), "");
  EXPECT_EQ(IntegerCodec(DType::kI64, -100, 50256), "i32");
  EXPECT_EQ(IntegerCodec(DType::kI32, 0, 65536), "");
  EXPECT_EQ(IntegerCodec(DType::kI64, 0, int64_t{1} << 31), "");
  EXPECT_EQ(IntegerCodec(DType::kF32, 0, 1), "");
}

TEST(EncodedBytes, CountsWholeBytesAndHeadersOfGroups) {
  const CodecSpec group2 = *CodecFromName("group2");
  EXPECT_EQ(EncodedBytes(*CodecFromName("bits"), 9), 2);
  EXPECT_EQ(EncodedBytes(*CodecFromName("u16"), 9), 18);
  EXPECT_EQ(EncodedBytes(group2, 256), 8 + 64);
  EXPECT_EQ(EncodedBytes(group2, 257), 16 + 65);
  EXPECT_EQ(EncodedBytes(group2, 0), 0);
  // The largest tensor of f32: no overflow on the way.
  const int64_t most = std::numeric_limits<int64_t>::max() / 4;
  EXPECT_GT(EncodedBytes(*CodecFromName("group8"), most), most);
}

TEST(AddCodecNodes, MakesTheInverseWithASaltOfItsOwn) {
  Graph of;
  of.AddInput("a", F32({4}));
  const ValueId b = of.AddInput("b", F32({4, 3}));
  Graph graph;
  const auto nodes = AddCodecNodes(of, b, "group4", &graph);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  const Node& encode = graph.node(nodes->encode);
  const Node& decode = graph.node(nodes->decode);
  EXPECT_EQ(graph.value(decode.outputs[0]).type, F32({4, 3}));
  EXPECT_EQ(decode.inputs, encode.outputs);
  EXPECT_EQ(nodes->encoded_bytes, 8 + 6);
  // Above the salts of dropouts, which are counted from 0.
  EXPECT_EQ(encode.attributes.Int("salt", 0), (int64_t{1} << 31) + 1);
  EXPECT_FALSE(AddCodecNodes(of, b, "positive", &graph).ok());
  EXPECT_FALSE(AddCodecNodes(of, b, "u8", &graph).ok());
}

}  // namespace
}  // namespace loadline::models
