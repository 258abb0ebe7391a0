// The parts of every operator case have the numbers of the whole, along every
// axis of every input that models::CutNode accepts; all by the reference.
#include "models/ops/cut_axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/reference/reference.h"
#include "models/ops/operator.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Ints;
using models::kWhole;
using models::TensorType;

// The fewest parts into which an axis divides; 1 if it does not.
int64_t FewestParts(int64_t size) {
  for (int64_t parts = 2; parts <= size; ++parts) {
    if (size % parts == 0) return parts;
  }
  return 1;
}

// Part `part` of an array that is cut into `parts` along `axis`.
Array Slice(const Array& whole, int64_t axis, int64_t parts, int64_t part) {
  Array slice;
  slice.type = models::PartOf(whole.type, axis, parts);
  const int64_t rows = models::ElementsBefore(whole.type, axis);
  const int64_t size = rows == 0 ? 0 : slice.type.elements() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = whole.values.begin() + (row * parts + part) * size;
    slice.values.insert(slice.values.end(), first, first + size);
  }
  return slice;
}

std::vector<Array> Evaluate(const models::Node& node,
                            const std::vector<const Array*>& inputs,
                            const std::vector<TensorType>& types) {
  std::vector<Array> outputs;
  for (const TensorType& type : types) {
    outputs.push_back(
        {type, std::vector<double>(static_cast<size_t>(type.elements()))});
  }
  References().at(node.op)({node.attributes, inputs, outputs, TestScalars()});
  return outputs;
}

// The outputs of one part, whose types must be those that the operator infers.
std::vector<Array> EvaluatePart(const models::Node& node,
                                const models::NodeCut& cut,
                                const std::vector<const Array*>& whole,
                                int64_t parts, int64_t part) {
  models::Node of_part = node;
  of_part.attributes = cut.attributes;
  std::vector<Array> slices(whole.size());
  std::vector<const Array*> inputs(whole.size());
  std::vector<const TensorType*> types(whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == nullptr) continue;
    slices[i] = cut.inputs[i] == kWhole
                    ? *whole[i]
                    : Slice(*whole[i], cut.inputs[i], parts, part);
    if (i == 1) {
      for (double& at : slices[i].values) {
        at -= static_cast<double>(part * cut.position_shift);
      }
    }
    inputs[i] = &slices[i];
    types[i] = &slices[i].type;
  }
  const auto made = models::InferTypes(of_part, types);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  if (of_part.attributes.Has("offset")) {
    // What passes/repeat_micro_batches.cc adds for later parts.
    const int64_t elements =
        node.op == "Attention"
            ? (*made)[1].elements() *
                  types[1]->dims[node.attributes.Int("interleaved", 0) != 0
                                     ? 1
                                     : types[1]->dims.size() - 2]
            : (*made)[0].elements();
    of_part.attributes.Set(
        "offset", of_part.attributes.Int("offset", 0) + part * elements);
  }
  return Evaluate(of_part, inputs, *made);
}

void ExpectSame(const Array& got, const Array& want, const std::string& what) {
  ASSERT_EQ(got.type, want.type) << what;
  for (size_t i = 0; i < want.values.size(); ++i) {
    if (std::isnan(want.values[i]) && std::isnan(got.values[i])) continue;
    ASSERT_NEAR(got.values[i], want.values[i],
                1e-12 * (1 + std::abs(want.values[i])))
        << what << " at " << i;
  }
}

void ExpectPartsOfWhole(const models::Node& node, const models::NodeCut& cut,
                        const std::vector<const Array*>& inputs,
                        const std::vector<TensorType>& types, int64_t parts,
                        const std::string& what) {
  const std::vector<Array> whole = Evaluate(node, inputs, types);
  std::vector<std::vector<double>> sums(whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    sums[i].resize(whole[i].values.size());
  }
  for (int64_t part = 0; part < parts; ++part) {
    const std::vector<Array> made =
        EvaluatePart(node, cut, inputs, parts, part);
    ASSERT_EQ(made.size(), whole.size()) << what;
    for (size_t i = 0; i < whole.size(); ++i) {
      const int64_t axis = cut.outputs[i];
      if (axis >= 0) {
        ExpectSame(made[i], Slice(whole[i], axis, parts, part), what);
      } else {
        ASSERT_EQ(made[i].type, whole[i].type) << what;
        const double share = axis == models::kMean ? parts : 1;
        for (size_t v = 0; v < sums[i].size(); ++v) {
          sums[i][v] += made[i].values[v] / share;
        }
      }
    }
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    if (cut.outputs[i] >= 0) continue;
    for (size_t v = 0; v < sums[i].size(); ++v) {
      EXPECT_NEAR(sums[i][v], whole[i].values[v],
                  1e-9 * (1 + std::abs(whole[i].values[v])))
          << what << " at " << v;
    }
  }
}

// Every part of the operator's node, with an input cut along each of its axes
// in `outer` blocks. Counts the cuts that are accepted, by operator.
void CompareCuts(const OperatorCase& c, int64_t outer,
                 std::map<std::string, int>* compared) {
  const auto graph = MakeCaseGraph(c, 3);
  if (!graph.ok()) return;
  const models::Node& node = graph->the_node();
  if (!References().contains(node.op)) return;
  const std::vector<const Array*> inputs = graph->NodeInputs();
  std::vector<const TensorType*> types;
  std::vector<TensorType> outputs;
  for (const Array* input : inputs) {
    types.push_back(input == nullptr ? nullptr : &input->type);
    if (input != nullptr && input->values.size() > 3000) return;
  }
  for (models::ValueId id : node.outputs) {
    outputs.push_back(graph->graph.value(id).type);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int64_t axis = 0; inputs[i] != nullptr && axis < types[i]->rank();
         ++axis) {
      const int64_t size = types[i]->dims[static_cast<size_t>(axis)];
      const int64_t parts = size % outer == 0 ? FewestParts(size / outer) : 1;
      if (parts == 1) continue;
      std::vector<int64_t> axes(inputs.size(), kWhole);
      axes[i] = models::InterleavedAxis(axis, outer);
      const auto cut = models::CutNode(node, types, outputs, axes, parts);
      // The case's positions are any, not those of each part.
      if (!cut.ok() || cut->position_shift != 0) continue;
      ++(*compared)[node.op];
      ExpectPartsOfWhole(node, *cut, inputs, outputs, parts,
                         c.Name() + " input " + std::to_string(i) + " axis " +
                             std::to_string(axis) + " in " +
                             std::to_string(outer));
    }
  }
}

TEST(CutNode, InterleavedPartsHaveTheNumbersOfTheWhole) {
  std::map<std::string, int> compared;
  for (const OperatorCase& c : OperatorCases()) {
    for (const int64_t outer : {2, 3}) CompareCuts(c, outer, &compared);
  }
  for (const char* op : {"Add", "MatMul", "Gemm", "Softmax", "Transpose",
                         "Gather", "Expand", "SoftmaxCrossEntropy"}) {
    EXPECT_GT(compared[op], 0) << op;
  }
  EXPECT_EQ(compared["Dropout"], 0);
}

TEST(CutNode, PartsHaveTheNumbersOfTheWhole) {
  std::map<std::string, int> compared;
  for (const OperatorCase& c : OperatorCases()) CompareCuts(c, 1, &compared);
  // The operators that models are made of were not all refused.
  for (const char* op : {"Add",
                         "Mul",
                         "Where",
                         "Relu",
                         "Gelu",
                         "HardSwish",
                         "Cast",
                         "MatMul",
                         "Gemm",
                         "Conv",
                         "MaxPool",
                         "AveragePool",
                         "BatchNormTraining",
                         "LayerNormalization",
                         "Softmax",
                         "Attention",
                         "Gather",
                         "Dropout",
                         "Transpose",
                         "Concat",
                         "Split",
                         "Slice",
                         "Expand",
                         "ReduceMean",
                         "ReduceSum",
                         "SoftmaxCrossEntropy",
                         "MseLoss"}) {
    EXPECT_GT(compared[op], 0) << op;
  }
}

// Numbers from 0 to `most`, drawn for each part from its own range.
Array PositionsByParts(Ints dims, int64_t most, int64_t parts) {
  Array positions{{models::DType::kI64, std::move(dims)}, {}};
  const int64_t count = positions.type.elements() / parts;
  const int64_t range = most / parts;
  for (int64_t i = 0; i < count * parts; ++i) {
    const int64_t own = (i * 5 + 2) % range;
    positions.values.push_back(static_cast<double>(i / count * range + own));
  }
  return positions;
}

Array Numbers(Ints dims) {
  Array numbers{{models::DType::kF32, std::move(dims)}, {}};
  for (int64_t i = 0; i < numbers.type.elements(); ++i) {
    numbers.values.push_back(static_cast<double>(i * i % 17) / 4);
  }
  return numbers;
}

TEST(CutNode, ReadsAndWritesTheRowsOfAPartAtPositionsOfItsOwn) {
  const auto check = [](const std::string& op, models::Attributes attributes,
                        const std::vector<Array>& arrays,
                        const TensorType& output, std::vector<int64_t> axes,
                        int64_t length) {
    const models::Node node{op, op, {}, {}, std::move(attributes)};
    std::vector<const Array*> inputs;
    std::vector<const TensorType*> types;
    for (const Array& array : arrays) {
      inputs.push_back(&array);
      types.push_back(&array.type);
    }
    const auto cut = models::CutNode(node, types, {output}, axes, 3);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(cut->position_shift, length) << op;
    ExpectPartsOfWhole(node, *cut, inputs, {output}, 3, op);
  };
  const Array rows = Numbers({12, 2});
  const auto f32 = [](Ints dims) {
    return TensorType{models::DType::kF32, std::move(dims)};
  };
  check("Gather", {{"axis", int64_t{0}}}, {rows, PositionsByParts({6}, 12, 3)},
        f32({6, 2}), {0, kWhole}, 4);
  check("Gather", {{"axis", int64_t{0}}},
        {rows, PositionsByParts({1, 3, 5}, 12, 3)}, f32({1, 3, 5, 2}),
        {0, kWhole}, 4);
  check("Gather", {{"axis", int64_t{1}}},
        {Numbers({2, 9}), PositionsByParts({6, 2}, 9, 3)}, f32({2, 6, 2}),
        {1, 0}, 3);
  check("Scatter", {}, {rows, PositionsByParts({6}, 12, 3), Numbers({6, 2})},
        f32({12, 2}), {kWhole, kWhole, 0}, 4);
  check("ScatterReduce", {{"reduction", std::string("max")}},
        {rows, PositionsByParts({6}, 12, 3), Numbers({6, 2})}, f32({12, 2}),
        {kWhole, kWhole, 0}, 4);
  check("GatherGrad", {{"axis", int64_t{0}}, {"shape", Ints{12, 2}}},
        {Numbers({6, 2}), PositionsByParts({6}, 12, 3)}, f32({12, 2}),
        {0, kWhole}, 4);
}

// Refused along the first axis, with a reason that has this text.
void ExpectRefused(const OperatorCase& c, const std::string& why) {
  const auto graph = MakeCaseGraph(c, 3);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const models::Node& node = graph->the_node();
  std::vector<const TensorType*> types;
  std::vector<int64_t> axes;
  std::vector<TensorType> outputs;
  for (models::ValueId id : node.inputs) {
    types.push_back(&graph->graph.value(id).type);
    axes.push_back(axes.empty() ? 0 : kWhole);
  }
  for (models::ValueId id : node.outputs) {
    outputs.push_back(graph->graph.value(id).type);
  }
  const auto cut = models::CutNode(node, types, outputs, axes, 2);
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(cut.status().message().find(why), std::string::npos)
      << cut.status();
}

TEST(CutNode, NamesWhatMixesExamples) {
  ExpectRefused({"BatchNormTraining",
                 "",
                 {F32({4, 2, 3, 3}), F32({2}), F32({2})},
                 {{"epsilon", 1e-5}}},
                "statistics over the whole batch");
  ExpectRefused({"ReduceMax", "", {F32({4, 2})}, {{"axis", int64_t{0}}}},
                "several examples");
  ExpectRefused({"Softmax", "", {F32({4, 2})}, {{"axis", int64_t{0}}}},
                "several examples");
  ExpectRefused({"Reshape", "", {F32({4, 3})}, {{"shape", Ints{3, 4}}}},
                "mixes the examples");
  ExpectRefused(
      {"MatMul", "", {F32({4, 3}), F32({4, 2})}, {{"trans_a", int64_t{1}}}},
      "several examples");
  ExpectRefused({"SoftmaxCrossEntropy",
                 "",
                 {F32({4, 3}), I64({4}, 0, 2)},
                 {{"class_axis", int64_t{1}}}},
                "averages over the examples");
}

}  // namespace
}  // namespace loadline::conformance
