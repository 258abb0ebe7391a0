// Facts that hold for every entry of the operator table.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "models/ops/operator.h"

namespace loadline::models {
namespace {

TEST(OperatorTable, EntriesAreWellFormed) {
  const std::vector<const Operator*> all = AllOperators();
  std::set<absl::string_view> names;
  for (const Operator* op : all) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(FindOperator(op->name), op);
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_TRUE(op->max_inputs == -1 || op->max_inputs >= op->min_inputs)
        << op->name;
    for (const auto& [input, output] : op->inplace) {
      EXPECT_GE(output, 0);
      EXPECT_LT(input, std::max(op->min_inputs, op->max_inputs)) << op->name;
    }
    std::set<absl::string_view> attributes;
    for (const AttributeSpec& spec : op->attributes) {
      EXPECT_TRUE(attributes.insert(spec.name).second) << op->name;
    }
  }
  EXPECT_EQ(FindOperator("relu"), nullptr);
  EXPECT_EQ(FindOperator(""), nullptr);
}

// Names in the first column of the table in models/ops/operators.md.
std::set<std::string> DocumentedOperators() {
  std::set<std::string> names;
  std::ifstream file("models/ops/operators.md");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| ") ||
        absl::StartsWith(line, "| operator ")) {
      continue;
    }
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (absl::string_view name : absl::StrSplit(cells[1], ',')) {
      names.insert(std::string(absl::StripAsciiWhitespace(name)));
    }
  }
  return names;
}

TEST(OperatorTable, HasExactlyTheDocumentedOperators) {
  std::set<std::string> names;
  for (const Operator* op : AllOperators()) {
    names.insert(std::string(op->name));
  }
  EXPECT_EQ(names, DocumentedOperators());
}

TEST(OperatorTable, OnlyUpdatesRunOnce) {
  const std::set<absl::string_view> updates = {"RunningStatsUpdate",
                                               "Sgd",
                                               "AdamW",
                                               "Adam",
                                               "Adagrad",
                                               "Lion",
                                               "AverageUpdate",
                                               "RangeUpdate",
                                               "Adafactor"};
  for (const Operator* op : AllOperators()) {
    EXPECT_EQ(!op->recompute, updates.count(op->name) == 1) << op->name;
    EXPECT_EQ(op->view, op->name == "Reshape" || op->name == "RowsView")
        << op->name;
  }
}

TEST(OperatorTable, ForwardOperatorsHaveGradientsAndOthersDoNot) {
  const std::set<absl::string_view> without = {"Not",
                                               "Equal",
                                               "Less",
                                               "LessOrEqual",
                                               "Greater",
                                               "GreaterOrEqual",
                                               "And",
                                               "Or",
                                               "BitwiseAnd",
                                               "BitwiseOr",
                                               "BitwiseXor",
                                               "CountCorrect",
                                               "CountTargets",
                                               "RunningStatsUpdate",
                                               "TopK",
                                               "RandomUniform",
                                               "Sgd",
                                               "AdamW",
                                               "Adam",
                                               "Adagrad",
                                               "Lion",
                                               "Adafactor",
                                               "SumSquares",
                                               "ClipFactor",
                                               "AverageUpdate",
                                               "ValueRange",
                                               "QuantizationGrid",
                                               "RangeUpdate",
                                               "Encode",
                                               "Decode",
                                               "RowsView",
                                               "WriteRows",
                                               "GemmSum",
                                               "CrossEntropyRows",
                                               "CrossEntropyMean"};
  // ONNX's ConvTranspose, Pad, and ScatterND that adds.
  const std::set<absl::string_view> forward = {"ConvInputGrad", "SliceGrad",
                                               "GatherGrad"};
  for (const Operator* op : AllOperators()) {
    const bool backward =
        absl::EndsWith(op->name, "Grad") && forward.count(op->name) == 0;
    EXPECT_EQ(op->gradient == nullptr, backward || without.count(op->name) == 1)
        << op->name;
  }
}

}  // namespace
}  // namespace loadline::models
