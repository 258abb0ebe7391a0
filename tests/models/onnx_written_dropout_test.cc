// Dropout as exporters write it out: what becomes of it, also where dropout is
// off, and what is left as it is.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Imported ImportWritten(const std::string& body, bool dropout = true) {
  ImportOptions options;
  options.dropout = dropout;
  auto imported = ImportText(body, options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported();
}

// nn.Dropout(0.2, inplace=True) of torch's newer exporter.
constexpr char kInPlace[] =
    "g (float[4,3] x) => (float[4,3] y) {"
    " one = Constant<value_float=1.0>() s = Shape<start=0>(x)"
    " e = Expand(one, s) f = Cast<to=1>(e)"
    " r = RandomUniformLike<low=0.0, high=1.0>(f)"
    " p = Constant<value_float=0.8>() q = CastLike(p, r) c = Less(r, q)"
    " m = CastLike(c, e) d = Div(m, p) y = Mul(x, d) }";
// Stochastic depth: one number for each example.
constexpr char kScaledRows[] =
    "g (float[4,3] x) => (float[4,3] y) {"
    " s = Constant<value_ints=[4,1]>() e = ConstantOfShape(s)"
    " r = RandomUniformLike(e) p = Constant<value_float=0.75>()"
    " c = Less(r, p) m = Cast<to=1>(c) d = Div(m, p) y = Mul(d, x) }";

TEST(RestoreWrittenDropout, OfTheShapeOfItsInputIsADropoutOfIt) {
  const Graph graph = ImportWritten(kInPlace).graph;
  EXPECT_THAT(Ops(graph), ElementsAre("Dropout"));
  EXPECT_NEAR(NodeWith(graph, "Dropout").attributes.Float("ratio", 0), 0.2,
              1e-6);
  EXPECT_THAT(Ops(ImportWritten(kInPlace, /*dropout=*/false).graph), IsEmpty());
}

TEST(RestoreWrittenDropout, OfRowsIsADropoutOfOnes) {
  const Graph graph = ImportWritten(kScaledRows).graph;
  EXPECT_THAT(Ops(graph), ElementsAre("Dropout", "Mul"));
  EXPECT_NEAR(NodeWith(graph, "Dropout").attributes.Float("ratio", 0), 0.25,
              1e-6);
  EXPECT_THAT(Ops(ImportWritten(kScaledRows, /*dropout=*/false).graph),
              ElementsAre("Mul"));
}

TEST(RestoreWrittenDropout, LeavesOtherRandomNumbersAlone) {
  std::string other = kScaledRows;  // divided by another number than the share
  other.replace(other.find("Div(m, p)"), 9, "Div(m, s2)");
  other.replace(other.find(" c = "), 0, " s2 = Constant<value_float=0.5>()");
  EXPECT_EQ(Count(ImportWritten(other).graph, "Dropout"), 0);
  std::string wide = kScaledRows;  // of numbers up to 2
  wide.replace(wide.find("Like(e)"), 7, "Like<high=2.0>(e)");
  EXPECT_EQ(Count(ImportWritten(wide).graph, "Dropout"), 0);
}

}  // namespace
}  // namespace loadline::models
