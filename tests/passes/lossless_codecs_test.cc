#include "passes/lossless_codecs.h"

#include <gtest/gtest.h>

#include <string>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::DType;
using models::Ints;
using models::ValueId;

std::string CodecOf(const Builder& b, ValueId id) {
  return LosslessCodecs(b.graph)[models::Index(id)];
}

Attributes To(const std::string& type) { return {{"to", type}}; }

TEST(LosslessCodecs, BoolsAreBits) {
  Builder b;
  const ValueId x = b.Input("x", {8});
  EXPECT_EQ(CodecOf(b, b.Op("Greater", {x, b.Scalar(0)})), "bits");
  EXPECT_EQ(CodecOf(b, b.Input("mask", {8}, DType::kBool)), "bits");
  EXPECT_EQ(CodecOf(b, x), "");
}

TEST(LosslessCodecs, PositionsOfMaximaFitThePlane) {
  const Attributes pool = {{"kernel_shape", Ints{2, 2}}};
  Builder b;
  const auto of = [&](const char* name, Ints dims) {
    return b.Ops("MaxPool", {b.Input(name, dims)}, pool)[1];
  };
  EXPECT_EQ(CodecOf(b, of("a", {1, 3, 16, 16})), "u8");
  EXPECT_EQ(CodecOf(b, of("b", {1, 3, 16, 17})), "u16");
  EXPECT_EQ(CodecOf(b, of("c", {1, 3, 256, 256})), "u16");
  EXPECT_EQ(CodecOf(b, of("d", {1, 3, 256, 257})), "");
}

TEST(LosslessCodecs, InputsHaveTheRangeThatTheirReadersCheck) {
  Builder b;
  const ValueId table = b.Parameter("table", {65, 4});
  const ValueId ids = b.Input("ids", {2, 3}, DType::kI64);
  b.Op("Gather", {table, ids}, {{"axis", int64_t{0}}});
  EXPECT_EQ(CodecOf(b, ids), "i8");  // indices may count from the end

  const ValueId large = b.Parameter("large", {50257, 4});
  const ValueId tokens = b.Input("tokens", {2, 3}, DType::kI64);
  const ValueId view = b.Op("Reshape", {tokens}, {{"shape", Ints{6}}});
  b.Op("Gather", {large, view}, {{"axis", int64_t{0}}});
  EXPECT_EQ(CodecOf(b, tokens), "i32");
  EXPECT_EQ(CodecOf(b, view), "");  // stored with what it is a view of

  const ValueId logits = b.Input("logits", {6, 1000});
  const ValueId target = b.Input("target", {6}, DType::kI64);
  b.Op("SoftmaxCrossEntropy", {logits, target}, {{"class_axis", int64_t{1}}});
  EXPECT_EQ(CodecOf(b, target), "i16");  // -100 to 999

  EXPECT_EQ(CodecOf(b, b.Input("anything", {6}, DType::kI64)), "");
}

TEST(LosslessCodecs, RangesFollowElementsThatMove) {
  Builder b;
  const ValueId x = b.Input("x", {4, 300});
  const ValueId top =
      b.Op("TopK", {x}, {{"axis", int64_t{1}}, {"k", int64_t{2}}});
  EXPECT_EQ(CodecOf(b, top), "u16");
  const ValueId turned = b.Op("Transpose", {top}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(CodecOf(b, turned), "u16");
  const ValueId other = b.Input("other", {2, 4}, DType::kI64);
  EXPECT_EQ(CodecOf(b, b.Op("Concat", {turned, other}, {{"axis", int64_t{0}}})),
            "");
  EXPECT_EQ(CodecOf(b, b.Op("Add", {turned, turned})), "");
}

TEST(LosslessCodecs, FloatsFromBf16StayBf16WhereNothingIsComputed) {
  Builder b;
  const ValueId x = b.Input("x", {2, 8}, DType::kBF16);
  const ValueId wide = b.Op("Cast", {x}, To("f32"));
  EXPECT_EQ(CodecOf(b, wide), "bf16");
  const ValueId moved = b.Op("Transpose", {wide}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(CodecOf(b, moved), "bf16");
  EXPECT_EQ(CodecOf(b, b.Op("Relu", {moved})), "bf16");
  EXPECT_EQ(CodecOf(b, b.Op("Add", {wide, wide})), "");
  EXPECT_EQ(CodecOf(b, x), "");
  const ValueId number =
      b.Op("Cast", {b.Input("i", {8}, DType::kI64)}, To("f32"));
  EXPECT_EQ(CodecOf(b, number), "");
}

}  // namespace
}  // namespace loadline::passes
