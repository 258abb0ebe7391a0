// The text form can be read back exactly; errors name their line.
#include "models/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_replace.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;

void ExpectSame(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Value& v = a.values[i];
    const Value& w = b.values[i];
    EXPECT_EQ(v.name, w.name);
    EXPECT_EQ(v.type, w.type);
    EXPECT_EQ(v.kind, w.kind);
    ASSERT_EQ(v.initial.has_value(), w.initial.has_value());
    if (v.initial.has_value()) {
      EXPECT_EQ(v.initial->type, w.initial->type);
      EXPECT_EQ(*v.initial->data, *w.initial->data);
    }
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
    EXPECT_EQ(a.nodes[i].op, b.nodes[i].op);
    EXPECT_EQ(a.nodes[i].inputs, b.nodes[i].inputs);
    EXPECT_EQ(a.nodes[i].outputs, b.nodes[i].outputs);
    EXPECT_TRUE(a.nodes[i].attributes == b.nodes[i].attributes);
    EXPECT_EQ(a.nodes[i].phase, b.nodes[i].phase);
  }
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.updates, b.updates);
}

TEST(GraphText, IsReadable) {
  EXPECT_EQ(GraphToText(SmallStep()), R"(loadline.graph/1 "small"
%0 = input "x" f32[4,3]
%1 = parameter "w" f32[3,2] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}
%2 = state "w.momentum" f32[3,2] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}
%3 "fc" f32[4,2] = MatMul "fc" (%0, %1) {} forward
%4 "relu" f32[4,2] = Relu "relu" (%3) {} forward
%5 "flat" f32[8] = Reshape "flat" (%4) {shape = [8]} forward
%6 "loss" f32[] = ReduceSum "loss" (%5) {keepdims = 0} loss
%7 "dw" f32[3,2] = MatMul "dw" (%0, %4) {trans_a = 1} backward
%8 "w.sgd" f32[3,2], %9 "w.sgd.1" f32[3,2] = Sgd "w.sgd" (%1, %7, %2) {momentum = 0.9} update
inputs %0
outputs %6
update %1 -> %8
update %2 -> %9
)");
}

TEST(GraphText, ParsesBackExactly) {
  for (int seed = 0; seed < 100; ++seed) {
    const Graph g = RandomGraph(seed, 40);
    LargeContents large;
    const std::string text = GraphToText(g, &large);
    const absl::StatusOr<Graph> parsed = GraphFromText(text, large);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    ExpectSame(g, *parsed);
    EXPECT_EQ(GraphToText(*parsed), text);
  }
}

TEST(GraphText, KeepsContentsOfEveryType) {
  Graph g;
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {-0.0f, std::nextafter(1.0f, 2.0f),
                                  std::numeric_limits<float>::denorm_min()};
  const std::vector<float> wild = {inf, -inf, std::nanf("7")};
  g.AddConstant("odd", MakeTensor(F32({3}), odd.data()));
  g.AddConstant("wild", MakeTensor(F32({3}), wild.data()));
  g.AddConstant("none", ZeroTensor(F32({0, 2})));
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16, DType::kI64,
                            DType::kI32, DType::kU8, DType::kI8}) {
    const TensorType type{dtype, {2}};
    std::vector<uint8_t> bytes(type.bytes());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = 249 - 11 * i;
    g.AddConstant("c", MakeTensor(type, bytes.data()));
    const TensorType large_type{dtype, {40}};
    g.AddConstant("big", ZeroTensor(large_type));
  }
  const uint8_t flags[] = {0, 1};
  g.AddConstant("flags", MakeTensor(Bool({2}), flags));
  LargeContents large;
  const std::string text = GraphToText(g, &large);
  const absl::StatusOr<Graph> parsed = GraphFromText(text, large);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  ExpectSame(g, *parsed);
  // Each is a zero tensor; equal bytes with different types have different
  // keys.
  EXPECT_EQ(large.size(), 7u);
  EXPECT_THAT(std::string(GraphFromText(text).status().message()),
              HasSubstr("not at hand"));
}

TEST(GraphText, NamesTheLineOfAnError) {
  const std::string good = GraphToText(SmallStep());
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } kCases[] = {
      {"graph/1", "graph/2", "line 1: expected"},
      {"%0 = input", "%0 = inpot", "line 2: \"inpot\" is no kind"},
      {"f32[4,3]", "f32[4,", "line 2: "},
      {"f32[4,3]", "f33[4,3]", "line 2: unknown element type"},
      {"{0.0, 0.0,", "{0.0,", "line 3: contents of 20 bytes"},
      {"{0.0, 0.0,", "{zero, 0.0,", "line 3: \"zero\" is not a finite"},
      {"{0.0, 0.0,", "{inf, 0.0,", "line 3: \"inf\" is not a finite"},
      {"(%0, %1)", "(%0, %6)", "line 5: value %6 is not made before"},
      {"(%0, %1)", "(%0, %1", "line 5: "},
      {"\"relu\" (%3) {} forward", "\"relu\" (%3) {} sideways",
       "line 6: \"sideways\" is no phase"},
      {"%4 \"relu\"", "%3 \"relu\"", "line 6: value %3 is made twice"},
      {"{shape = [8]}", "{shape = [8, ]}", "line 7: "},
      {"{shape = [8]}", "{shape = [8], shape = [8]}", "line 7: attribute"},
      {"{shape = [8]}", "{shape = eight}", "line 7: \"eight\""},
      {"outputs %6", "outputs %66", "line 12: value %66"},
      {"outputs %6", "outputs %6 7", "line 12: more on the line"},
      {"inputs %0", "inputs %0\ninputs %0", "line 12: listed twice"},
      {"%9 \"w.sgd.1\"", "%90 \"w.sgd.1\"", "line 14: value %9 is not made"},
      {"MatMul \"fc\"", "MetMul \"fc\"", "unknown operator MetMul"},
      {"\"relu\" f32[4,2]", "\"relu\" f32[2,4]", "value \"relu\" is f32[2,4]"},
      {"\"small\"", "\"small", "line 1: a string does not end"},
      {"\"small\"", "\"sm\\qall\"", "line 1: a string does not end"},
  };
  for (const auto& c : kCases) {
    std::string bad = good;
    const size_t at = bad.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    bad.replace(at, std::string(c.from).size(), c.to);
    const absl::Status status = GraphFromText(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.to;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_FALSE(GraphFromText("").ok());
}

TEST(GraphText, NeverCrashesOnMangledText) {
  std::mt19937 random(1);
  const std::string good = GraphToText(SmallStep());
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % bad.size();
      if (random() % 2 == 0) {
        bad[at] = good[random() % good.size()];
      } else {
        bad.erase(at, 1 + random() % 5);
      }
    }
    const absl::StatusOr<Graph> parsed = GraphFromText(bad);
    if (parsed.ok()) {
      EXPECT_TRUE(VerifyGraph(*parsed).ok());
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace loadline::models
