#include "models/compare_graphs.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/text.h"

namespace loadline::models {
namespace {

constexpr char kGraph[] = R"(loadline.graph/1 "g"
%0 = input "x" f32[2,3]
%1 = parameter "w" f32[3,2] {1, 2, 3, 4, 5, 6}
%2 = constant "c" f32[2] {1, 2}
%3 "m" f32[2,2] = MatMul "m" (%0, %1) {} forward
%4 "a" f32[2,2] = Add "a" (%3, %2) {} forward
%5 "s" f32[2,2] = Sub "s" (%4, %3) {} forward
inputs %0
outputs %5
)";

Graph With(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kGraph, {{from, to}});
  EXPECT_TRUE(from == to || text != kGraph) << from;
  auto graph = GraphFromText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph{};
}

std::string Difference(const std::string& from, const std::string& to) {
  return std::string(CompareGraphs(With("", ""), With(from, to)).message());
}

TEST(CompareGraphs, NamesOfNodesAndConstantsMayDiffer) {
  EXPECT_EQ(Difference("\"a\"", "\"b\""), "");
  EXPECT_EQ(Difference("\"c\"", "\"d\""), "");
}

TEST(CompareGraphs, NamesTheFirstDifference) {
  using ::testing::HasSubstr;
  EXPECT_THAT(Difference("\"w\"", "\"v\""),
              HasSubstr("\"v\" stands where \"w\" does"));
  EXPECT_THAT(Difference("5, 6}", "5, 7}"), HasSubstr("\"w\" has other"));
  EXPECT_THAT(Difference("{1, 2}", "{1, 3}"), HasSubstr("\"c\" has other"));
  EXPECT_THAT(Difference("Sub \"s\"", "Mul \"s\""),
              HasSubstr("node \"s\" is Mul {} instead of Sub {}"));
  EXPECT_THAT(Difference("(%4, %3)", "(%3, %4)"),
              HasSubstr("\"m\" stands where \"a\" does"));
  EXPECT_THAT(Difference("outputs %5", "outputs %4"),
              HasSubstr("\"a\" stands where \"s\" does"));
  EXPECT_THAT(Difference("parameter", "state"), HasSubstr("of another kind"));
  EXPECT_THAT(Difference("MatMul \"m\" (%0, %1) {} forward",
                         "MatMul \"m\" (%0, %1) {} loss"),
              HasSubstr("node \"m\""));
}

}  // namespace
}  // namespace loadline::models
