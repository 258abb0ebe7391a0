// If, Loop and Scan with conditions and sizes that are known, and those that
// are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/import.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The branch that is not taken may need what nobody supports.
TEST(ControlFlow, TakesTheBranchThatIsKnown) {
  for (const bool taken : {true, false}) {
    const auto imported = ImportText(absl::StrCat(
        "g (float[2,2] x) => (float[2,2] y) {"
        " n = Size(x) k = Constant<value_int=",
        taken ? 4 : 5,
        ">() c = Equal(n, k)"
        " y = If(c) <then_branch = t () => (float[2,2] p) { p = Relu(x) },"
        " else_branch = e () => (float[2,2] p) { q = Tanh(x) p = Neg(q) }> }"));
    ASSERT_TRUE(imported.ok()) << imported.status();
    if (taken) {
      EXPECT_THAT(Ops(imported->graph), ElementsAre("Relu"));
    } else {
      EXPECT_THAT(Ops(imported->graph), ElementsAre("Tanh", "Neg"));
    }
  }
}

TEST(ControlFlow, TrainsWhatABodyReads) {
  const auto imported = ImportText(
      "g (float[2,3] x) => (float[2,3] z)"
      " <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {"
      " m = Constant<value_int=2>() t = Constant<value_int=1>()"
      " c = Cast<to=9>(t)"
      " z = Loop(m, c, x) <body = b (int64 i, bool d, float[2,3] v)"
      " => (bool e, float[2,3] u) { e = Identity(d) u = MatMul(v, w) }> }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Ops(imported->graph), ElementsAre("MatMul", "MatMul"));
  EXPECT_EQ(imported->graph.value(*imported->graph.Find("w")).kind,
            ValueKind::kParameter);
}

// Layers of one shape as one tensor of weights, as JAX's scan over layers.
TEST(ControlFlow, TrainsWeightsThatAScanTakesApart) {
  const auto imported = ImportText(
      "g (float[2,3] x) => (float[2,3] z)"
      " <float[2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},"
      "  float[3,3] u = {1,2,3,4,5,6,7,8,9}> {"
      " z, same = Scan<num_scan_inputs = 1, body = b (float[2,3] v,"
      " float[3,3] kept, float[3,3] layer)"
      " => (float[2,3] next, float[3,3] handed) {"
      " p = MatMul(v, layer) next = MatMul(p, kept)"
      " handed = Identity(kept) }>(x, u, w) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Ops(imported->graph),
              ElementsAre("Split", "Reshape", "Reshape", "MatMul", "MatMul",
                          "MatMul", "MatMul"));
  for (const char* name : {"w", "u"}) {
    EXPECT_EQ(imported->graph.value(*imported->graph.Find(name)).kind,
              ValueKind::kParameter);
    EXPECT_TRUE(imported->warnings.empty());
  }
}

TEST(ControlFlow, RefusesAScanWhoseInputsDoNotFit) {
  const auto scan = [](const char* inputs, const char* attributes) {
    return ImportText(
               absl::StrCat("g (float[4,3] x, float[2,3] h) => (float[2,3] y) {"
                            " y, z = Scan<",
                            attributes,
                            "body = b (float[2,3] p, float[3] q)"
                            " => (float[2,3] r, float[3] s) { r = Add(p, q) s "
                            "= Neg(q) }>(",
                            inputs, ") }"))
        .status();
  };
  EXPECT_EQ(scan("h, x", "num_scan_inputs=1, "), absl::OkStatus());
  for (const auto& [inputs, attributes] :
       std::vector<std::array<const char*, 2>>{
           {"h, x", "num_scan_inputs=3, "},
           {"h, x", "num_scan_inputs=2, "},
           {"h, x", "num_scan_inputs=1, scan_input_axes=[2], "},
           {"h, x", "num_scan_inputs=1, scan_output_axes=[0,0], "}}) {
    const absl::Status status = scan(inputs, attributes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'y' (Scan)"));
  }
}

void ExpectUnsupported(const std::string& text, const std::string& why) {
  const auto imported = ImportText(text);
  ASSERT_TRUE(IsUnsupported(imported.status())) << imported.status();
  EXPECT_THAT(std::string(imported.status().message()), HasSubstr(why));
}

TEST(ControlFlow, RefusesWhatDataDecides) {
  ExpectUnsupported(
      "g (float[2] x, bool c) => (float[2] y) {"
      " y = If(c) <then_branch = t () => (float[2] p) { p = Relu(x) },"
      " else_branch = e () => (float[2] p) { p = Neg(x) }> }",
      "whose condition depends on data");
  ExpectUnsupported(
      "g (float[2] x, int64 m) => (float[2] y) {"
      " y = Loop(m, , x) <body = b (int64 i, bool d, float[2] v)"
      " => (bool e, float[2] u) { e = Identity(d) u = Neg(v) }> }",
      "whose number of steps depends on data");
  ExpectUnsupported(
      "g (float[1] x) => (float[1] y) {"
      " m = Constant<value_int=3>()"
      " y = Loop(m, , x) <body = b (int64 i, bool d, float[1] v)"
      " => (bool e, float[1] u) { s = Constant<value_ints=[0]>()"
      " q = Squeeze(v, s) e = Cast<to=9>(q) u = Neg(v) }> }",
      "whose end depends on data");
}

TEST(ControlFlow, RefusesALoopWithoutEnd) {
  ExpectUnsupported(
      "g (float[1] x) => (float[1] y) {"
      " y = Loop(, , x) <body = b (int64 i, bool d, float[1] v)"
      " => (bool e, float[1] u) { e = Identity(d) u = Identity(v) }> }",
      "of too many steps");
}

TEST(ControlFlow, NamesUnsupportedNodesOfABody) {
  ExpectUnsupported(
      "g (float[2,2] x) => (float y) {"
      " n = Size(x) k = Constant<value_int=4>() c = Equal(n, k)"
      " y = If(c) <then_branch = t () => (float p) { p = Det(x) },"
      " else_branch = e () => (float p) { p = ReduceSum<keepdims=0>(x) }> }",
      "Det x1");
}

}  // namespace
}  // namespace loadline::models
