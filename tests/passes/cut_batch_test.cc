// Batches that are cut, and those that cannot be.
#include "passes/cut_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "passes/add_loss.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Ints;
using models::ValueId;

models::Graph WithLoss(models::Graph graph) {
  LossOptions loss;
  loss.target = {DType::kI64, {graph.value(graph.outputs[0]).type.dims[0]}};
  EXPECT_TRUE(AddLoss(graph, loss).ok());
  return graph;
}

void ExpectRefused(models::Graph graph, int64_t parts, absl::StatusCode code,
                   const std::string& why) {
  const absl::Status status = CutBatch(graph, parts);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(status.message().find(why), std::string::npos) << status;
}

TEST(CutBatch, CutsInputsAndCountsTargets) {
  models::Graph graph = WithLoss(SmallMlp());
  EXPECT_EQ(MostParts(graph), 4);
  ASSERT_TRUE(CutBatch(graph, 2).ok());
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  EXPECT_EQ(graph.value(graph.inputs[0]).type.ToString(), "f32[2,8]");
  EXPECT_EQ(graph.value(graph.inputs[1]).type.ToString(), "i64[2]");
  const models::Node& loss = graph.nodes.back();
  EXPECT_EQ(loss.op, "SoftmaxCrossEntropy");
  ASSERT_EQ(loss.inputs.size(), 3u);
  EXPECT_EQ(graph.nodes[graph.nodes.size() - 2].op, "CountTargets");
}

TEST(CutBatch, OnePartChangesNothing) {
  models::Graph graph = WithLoss(SmallMlp());
  const std::string before = Describe(graph);
  ASSERT_TRUE(CutBatch(graph, 1).ok());
  EXPECT_EQ(Describe(graph), before);
}

TEST(CutBatch, GivesEachPartItsShareOfAMean) {
  Builder b;
  const ValueId x = b.Input("x", {6, 3});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 2})}));
  LossOptions loss;
  loss.kind = LossKind::kMse;
  loss.target = {DType::kF32, {6, 2}};
  ASSERT_TRUE(AddLoss(b.graph, loss).ok());
  ASSERT_TRUE(CutBatch(b.graph, 3).ok());
  ASSERT_TRUE(models::VerifyGraph(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = MatMul(x, w)\n"
            "%1 = MseLoss(%0, target)\n"
            "%2 = Div(%1, 3)\n"
            "output %2\n");
}

// sum(y) - sum(w^2) + mean(y): each part takes off its share of the penalty.
TEST(CutBatch, SharesTheTermsOfASum) {
  const models::Attributes all = {{"axes", Ints{0, 1}},
                                  {"keepdims", int64_t{0}}};
  Builder b;
  const ValueId x = b.Input("x", {6, 3});
  const ValueId w = b.Parameter("w", {3, 2});
  const ValueId y = b.Op("MatMul", {x, w});
  const ValueId sum = b.Op("ReduceSum", {y}, all);
  const ValueId penalty = b.Op("ReduceSum", {b.Op("Mul", {w, w})}, all);
  const ValueId mean = b.Op("ReduceMean", {y}, all);
  b.Output(b.Op("Add", {mean, b.Op("Sub", {sum, penalty})}));
  const absl::Status cut = CutBatch(b.graph, 3);
  ASSERT_TRUE(cut.ok()) << cut;
  ASSERT_TRUE(models::VerifyGraph(b.graph).ok());
  EXPECT_NE(Describe(b.graph).find("%5 = Div(%3, 3)\n"
                                   "%6 = Sub(%1, %5)\n"
                                   "%7 = Div(%4, 3)\n"
                                   "%8 = Add(%7, %6)\n"
                                   "output %8\n"),
            std::string::npos)
      << Describe(b.graph);
}

// Groups as channels of a batch of one, as GroupNormalization is imported.
TEST(CutBatch, FollowsExamplesThroughGroups) {
  Builder b;
  const ValueId x = b.Input("x", {4, 6});
  const ValueId scale =
      b.Op("Reshape",
           {b.Op("Expand", {b.Parameter("s", {2})}, {{"shape", Ints{4, 2}}})},
           {{"shape", Ints{8}}});
  const ValueId bias = b.Op("Expand", {b.Scalar(0)}, {{"shape", Ints{8}}});
  const ValueId groups = b.Op("Reshape", {x}, {{"shape", Ints{1, 8, 3}}});
  const ValueId y =
      b.Ops("BatchNormTraining", {groups, scale, bias}, {{"epsilon", 1e-5}})[0];
  const ValueId back = b.Op("Reshape", {y}, {{"shape", Ints{4, 6}}});
  b.Output(b.Op("MatMul", {back, b.Parameter("w", {6, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  ASSERT_TRUE(CutBatch(graph, 2).ok());
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  EXPECT_EQ(graph.value(groups).type.ToString(), "f32[1,4,3]");
}

TEST(CutBatch, CutsConstantsWhoseExamplesAreEqual) {
  for (const bool equal : {true, false}) {
    Builder b;
    const ValueId x = b.Input("x", {2, 2});
    const float contents[] = {1, 2, 1, equal ? 2.0f : 3.0f};
    const ValueId mask = b.graph.AddConstant(
        "mask", models::MakeTensor({DType::kF32, {2, 2}}, contents));
    const ValueId y = b.Op("Mul", {x, mask});
    b.Output(b.Op("MatMul", {y, b.Parameter("w", {2, 2})}));
    models::Graph graph = WithLoss(std::move(b.graph));
    if (equal) {
      ASSERT_TRUE(CutBatch(graph, 2).ok());
      EXPECT_TRUE(models::VerifyGraph(graph).ok());
      EXPECT_EQ(graph.value(*graph.Find("mask.part")).type.ToString(),
                "f32[1,2]");
    } else {
      ExpectRefused(std::move(graph), 2, absl::StatusCode::kFailedPrecondition,
                    "'mask' f32[2,2] has other contents for other examples");
    }
  }
}

ValueId Positions(Builder& b, absl::string_view name, const Ints& numbers) {
  return b.graph.AddConstant(
      name,
      models::MakeTensor({DType::kI64, {static_cast<int64_t>(numbers.size())}},
                         numbers.data()));
}

// `first` + `index`, and `outside` where the index is not in [0, 3).
ValueId Checked(Builder& b, ValueId index, const Ints& first,
                const Ints& outside) {
  const ValueId at = b.Op("Add", {index, Positions(b, "first", first)});
  const ValueId inside =
      b.Op("And", {b.Op("GreaterOrEqual", {index, Positions(b, "zero", {0})}),
                   b.Op("Less", {index, Positions(b, "size", {3})})});
  return b.Op("Where", {inside, at, Positions(b, "outside", outside)});
}

// A linear layer of the elements of `flat` at four positions.
models::Graph LayerOfElements(Builder& b, ValueId flat, ValueId at) {
  const ValueId y = b.Op("Gather", {flat, at}, {{"axis", int64_t{0}}});
  const ValueId column = b.Op("Reshape", {y}, {{"shape", Ints{4, 1}}});
  b.Output(b.Op("MatMul", {column, b.Parameter("w", {1, 2})}));
  return WithLoss(std::move(b.graph));
}

models::Graph FlatRows(Builder& b, ValueId x, ValueId at) {
  return LayerOfElements(b, b.Op("Reshape", {x}, {{"shape", Ints{12}}}), at);
}

// GatherElements of x f32[4,3], as it is imported: rows of the flat x at
// positions that count through all examples.
// `trained`: x depends on a parameter.
models::Graph ElementsOfExamples(const Ints& first, const Ints& outside,
                                 bool trained = false) {
  Builder b;
  ValueId x = b.Input("x", {4, 3});
  if (trained) x = b.Op("Add", {x, b.Parameter("offset", {3})});
  const ValueId index = b.Input("index", {4}, DType::kI64);
  return FlatRows(b, x, Checked(b, index, first, outside));
}

TEST(CutBatch, ReadsExamplesAtPositionsFromTheirOwnPartOn) {
  models::Graph graph = ElementsOfExamples({0, 3, 6, 9}, {12});
  const absl::Status cut = CutBatch(graph, 2);
  ASSERT_TRUE(cut.ok()) << cut;
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  const auto& first = graph.value(*graph.Find("first.part")).initial;
  EXPECT_EQ(first->as<int64_t>()[0], 0);
  EXPECT_EQ(first->as<int64_t>()[1], 3);
}

// As GridSample is imported: the number of the image times its pixels, and a
// place that Clip keeps inside.
TEST(CutBatch, ReadsComputedPositionsOfNumberedExamples) {
  for (const double least : {0.0, -1.0}) {
    Builder b;
    const ValueId x = b.Input("x", {4, 3});
    const ValueId place = b.Input("place", {4});
    const ValueId inside =
        b.Op("Cast", {b.Op("Clip", {place}, {{"min", least}, {"max", 2.0}})},
             {{"to", std::string("i64")}});
    const ValueId start = b.Op("Mul", {Positions(b, "number", {0, 1, 2, 3}),
                                       Positions(b, "size", {3})});
    models::Graph graph = FlatRows(b, x, b.Op("Add", {start, inside}));
    if (least < 0) {
      ExpectRefused(std::move(graph), 2, absl::StatusCode::kFailedPrecondition,
                    "may read other examples");
      continue;
    }
    const absl::Status cut = CutBatch(graph, 2);
    ASSERT_TRUE(cut.ok()) << cut;
    EXPECT_TRUE(models::VerifyGraph(graph).ok());
  }
}

// GatherND reads the columns of its index before they are joined.
TEST(CutBatch, PermitsAnythingThatNothingReads) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId index = b.Input("index", {4, 1}, DType::kI64);
  const ValueId number = b.Op("Reshape", {Positions(b, "number", {0, 1, 2, 3})},
                              {{"shape", Ints{4, 1}}});
  b.Op("Concat", {number, index}, {{"axis", int64_t{1}}});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  const absl::Status cut = CutBatch(graph, 2);
  EXPECT_TRUE(cut.ok()) << cut;
}

// As RoBERTa reads its token types: the same row for each example, of a buffer
// that has one for each.
TEST(CutBatch, CutsRowsThatAreReadAtPositionsOfExamples) {
  for (const bool alike : {true, false}) {
    Builder b;
    const ValueId index = b.Input("index", {4}, DType::kI64);
    const ValueId at = Checked(b, index, {0, 3, 6, 9}, {12});
    const float rows[] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, alike ? 3.0f : 4.0f};
    const ValueId flat = b.graph.AddConstant(
        "rows", models::MakeTensor({DType::kF32, {12}}, rows));
    models::Graph graph = LayerOfElements(b, flat, at);
    if (!alike) {
      ExpectRefused(std::move(graph), 2, absl::StatusCode::kFailedPrecondition,
                    "'rows' f32[12] has other contents for other examples");
      continue;
    }
    const absl::Status cut = CutBatch(graph, 2);
    ASSERT_TRUE(cut.ok()) << cut;
    ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
    EXPECT_EQ(graph.value(*graph.Find("rows.part")).type.ToString(), "f32[6]");
  }
}

TEST(CutBatch, RefusesPositionsOfOtherExamples) {
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  ExpectRefused(ElementsOfExamples({0, 3, 6, 8}, {12}), 2, kRefused,
                "'first' i64[4] has other contents for other examples");
  // All of the first part, and rows that begin elsewhere.
  ExpectRefused(ElementsOfExamples({0, 3, 0, 3}, {12}, true), 2, kRefused,
                "may read other examples");
  models::Graph first_part = ElementsOfExamples({0, 3, 0, 3}, {12});
  EXPECT_TRUE(CutBatch(first_part, 2).ok());  // of the whole x
  ExpectRefused(ElementsOfExamples({0, 1, 2, 3}, {12}), 2, kRefused,
                "may read other examples");
  // A position of the whole batch that is none beyond it.
  ExpectRefused(ElementsOfExamples({0, 3, 6, 9}, {11}), 2, kRefused,
                "computes with numbers of examples");
  // Negative positions count from the end of the part, not of the whole.
  ExpectRefused(ElementsOfExamples({-1, 2, 5, 8}, {12}), 2, kRefused,
                "may read other examples");
}

TEST(CutBatch, RefusesComputedPositionsThatMayBeNegative) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId index = b.Input("index", {4}, DType::kI64);
  const ValueId at = b.Op("Add", {index, Positions(b, "first", {0, 3, 6, 9})});
  ExpectRefused(FlatRows(b, x, at), 2, absl::StatusCode::kFailedPrecondition,
                "may read other examples");
}

// Where(...) has 4 for no position, which an Add makes one again.
TEST(CutBatch, RefusesToComputeWithNumbersThatAreNoPositions) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId index = b.Input("index", {4}, DType::kI64);
  const ValueId example = Checked(b, index, {0, 1, 2, 3}, {4});
  const ValueId at = b.Op("Add", {example, Positions(b, "rest", {0, 2, 4, 6})});
  ExpectRefused(FlatRows(b, x, at), 2, absl::StatusCode::kFailedPrecondition,
                "may read other examples");
}

TEST(CutBatch, RefusesPositionsWhoseSumOverflows) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const char* op : {"Add", "Sub"}) {
    Builder b;
    const ValueId x = b.Input("x", {4, 3});
    const ValueId index = b.Input("index", {4}, DType::kI64);
    const int64_t sign = std::string(op) == "Add" ? 1 : -1;
    ValueId at = b.Op("Add", {index, Positions(b, "a", {0, 0, kHuge, kHuge})});
    const Ints more = {0, 0, sign * kHuge, sign * kHuge};
    at = b.Op(op, {at, Positions(b, "b", more)});
    ExpectRefused(FlatRows(b, x, at), 2, absl::StatusCode::kFailedPrecondition,
                  "computes with numbers of examples");
  }
}

TEST(CutBatch, ReadsConstantPositionsOfTheirOwnPartOnly) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  ExpectRefused(FlatRows(b, x, Positions(b, "at", {0, 6, 6, 12})), 2,
                absl::StatusCode::kFailedPrecondition,
                "may read other examples");
  Builder own;
  const ValueId y = own.Input("x", {4, 3});
  models::Graph graph = FlatRows(own, y, Positions(own, "at", {0, 5, 6, 11}));
  EXPECT_TRUE(CutBatch(graph, 2).ok());
}

TEST(CutBatch, RefusesWhatNeedsTheWholeBatch) {
  Builder b;
  const ValueId x = b.Input("x", {4, 2});
  const ValueId y = b.Op("MatMul", {x, b.Parameter("w", {2, 2})});
  const ValueId mean =
      b.Op("ReduceMean", {y}, {{"axes", Ints{0}}, {"keepdims", int64_t{1}}});
  b.Output(b.Op("Sub", {y, mean}));
  ExpectRefused(WithLoss(std::move(b.graph)), 2,
                absl::StatusCode::kFailedPrecondition,
                "reads a number that is taken over all examples");
}

// Time first, and rows of time and batch together, as nn.MultiheadAttention and
// nn.GRU have them by default.
TEST(CutBatch, FollowsExamplesBehindTime) {
  Builder b;
  const ValueId x = b.Input("x", {4, 5, 6});  // batch, time, features
  const ValueId time_first = b.Op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}});
  const ValueId rows = b.Op("Reshape", {time_first}, {{"shape", Ints{20, 6}}});
  const ValueId product = b.Op("MatMul", {rows, b.Parameter("w", {6, 6})});
  const ValueId sum = b.Op("Add", {product, b.Parameter("b", {6})});
  const ValueId heads = b.Op("Reshape", {sum}, {{"shape", Ints{5, 8, 3}}});
  const ValueId last = b.Op("Transpose", {heads}, {{"perm", Ints{1, 0, 2}}});
  const ValueId flat = b.Op("Reshape", {last}, {{"shape", Ints{4, 30}}});
  b.Output(b.Op("MatMul", {flat, b.Parameter("v", {30, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  ASSERT_TRUE(CutBatch(graph, 2).ok());
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  EXPECT_EQ(graph.value(product).type.ToString(), "f32[10,6]");
  EXPECT_EQ(graph.value(last).type.ToString(), "f32[4,5,3]");
}

// Steps of a recurrent layer, as rows of the time-major product, and two views
// of each example behind one another.
TEST(CutBatch, FollowsBlocksOfExamples) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3, 6});
  const ValueId time_first = b.Op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}});
  const ValueId rows = b.Op("Reshape", {time_first}, {{"shape", Ints{12, 6}}});
  const std::vector<ValueId> steps =
      b.Ops("Split", {rows}, {{"axis", int64_t{0}}, {"sizes", Ints{8, 4}}});
  const ValueId last = b.Op("Slice", {steps[0]},
                            {{"starts", Ints{4}},
                             {"ends", Ints{8}},
                             {"axes", Ints{0}},
                             {"steps", Ints{1}}});
  const ValueId both = b.Op("Concat", {last, steps[1]}, {{"axis", int64_t{0}}});
  const ValueId pairs = b.Op("Reshape", {both}, {{"shape", Ints{2, 4, 6}}});
  const ValueId back = b.Op("Transpose", {pairs}, {{"perm", Ints{1, 0, 2}}});
  const ValueId flat = b.Op("Reshape", {back}, {{"shape", Ints{4, 12}}});
  b.Output(b.Op("MatMul", {flat, b.Parameter("w", {12, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  const absl::Status cut = CutBatch(graph, 2);
  ASSERT_TRUE(cut.ok()) << cut;
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  EXPECT_EQ(graph.value(last).type.ToString(), "f32[2,6]");
  EXPECT_EQ(graph.value(both).type.ToString(), "f32[4,6]");
}

// The product of a constant initial state, which has a row for each example.
TEST(CutBatch, CutsWhatIsComputedWithoutTheBatch) {
  Builder b;
  const ValueId x = b.Input("x", {4, 6});
  const std::vector<float> zeros(12);
  const ValueId state = b.graph.AddConstant(
      "state", models::MakeTensor({DType::kF32, {4, 3}}, zeros.data()));
  const ValueId recurrent = b.Op("MatMul", {state, b.Parameter("r", {3, 6})});
  const ValueId gates = b.Op("Add", {recurrent, b.Parameter("c", {6})});
  // A table is read whole, also where its rows could be cut.
  const ValueId kind =
      b.Op("Gather",
           {b.Parameter("table", {2, 6}), Positions(b, "kinds", {1, 0, 1, 0})},
           {{"axis", int64_t{0}}});
  const ValueId sum = b.Op("Add", {b.Op("Add", {x, kind}), gates});
  b.Output(b.Op("MatMul", {sum, b.Parameter("w", {6, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  const absl::Status cut = CutBatch(graph, 2);
  ASSERT_TRUE(cut.ok()) << cut;
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  EXPECT_EQ(graph.value(sum).type.ToString(), "f32[2,6]");
}

TEST(CutBatch, RefusesRowsInDifferentOrders) {
  Builder b;
  const ValueId x = b.Input("x", {4, 5, 6});
  const ValueId time_first = b.Op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}});
  const ValueId rows = b.Op("Reshape", {time_first}, {{"shape", Ints{20, 6}}});
  const ValueId other = b.Op("Reshape", {x}, {{"shape", Ints{20, 6}}});
  const ValueId sum = b.Op("Add", {rows, other});
  b.Output(b.Op("MatMul", {b.Op("Reshape", {sum}, {{"shape", Ints{4, 30}}}),
                           b.Parameter("w", {30, 2})}));
  ExpectRefused(WithLoss(std::move(b.graph)), 2,
                absl::StatusCode::kFailedPrecondition, "different orders");
}

TEST(CutBatch, CutsEveryLossThatIsASumOrAMean) {
  for (const LossKind kind :
       {LossKind::kL1, LossKind::kHuber, LossKind::kBce}) {
    Builder b;
    const ValueId x = b.Input("x", {6, 3});
    b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 2})}));
    LossOptions loss;
    loss.kind = kind;
    loss.target = {DType::kF32, {6, 2}};
    ASSERT_TRUE(AddLoss(b.graph, loss).ok());
    const absl::Status cut = CutBatch(b.graph, 3);
    ASSERT_TRUE(cut.ok()) << cut;
    ASSERT_TRUE(models::VerifyGraph(b.graph).ok());
    EXPECT_EQ(b.graph.nodes.back().op, "Div");  // the share of a mean
  }
}

TEST(CutBatch, CountsTargetsForSmoothLabelsAndWeights) {
  models::Graph graph = SmallMlp();
  const models::TensorType logits = graph.value(graph.outputs[0]).type;
  LossOptions loss;
  loss.target = {DType::kI64, {logits.dims[0]}};
  loss.label_smoothing = 0.1;
  loss.class_weights.assign(static_cast<size_t>(logits.dims[1]), 2.0f);
  ASSERT_TRUE(AddLoss(graph, loss).ok());
  const absl::Status cut = CutBatch(graph, 2);
  ASSERT_TRUE(cut.ok()) << cut;
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  for (const models::Node& node : graph.nodes) {
    if (node.op == "CountTargets") {
      EXPECT_EQ(node.inputs.size(), 2u);
    } else if (node.op == "SoftmaxCrossEntropy") {
      EXPECT_EQ(node.inputs.size(), 4u);
    }
  }
}

// The mean of what a mask leaves: the mask's sum is that of all parts.
TEST(CutBatch, ReadsNumbersOfAllPartsThatNoParameterInfluences) {
  for (const bool influenced : {false, true}) {
    Builder b;
    const ValueId x = b.Input("x", {4, 3});
    const ValueId mask = b.Input("mask", {4, 2});
    const ValueId y = b.Op("MatMul", {x, b.Parameter("w", {3, 2})});
    const ValueId weight = influenced ? b.Op("Exp", {y}) : mask;
    const ValueId sum = b.Op("ReduceSum", {b.Op("Mul", {y, mask})},
                             {{"axes", Ints{0, 1}}, {"keepdims", int64_t{0}}});
    const ValueId number =
        b.Op("ReduceSum", {weight},
             {{"axes", Ints{0, 1}}, {"keepdims", int64_t{0}}});
    b.Output(b.Op("Div", {sum, number}));
    EXPECT_EQ(FindLossReduction(b.graph), LossReduction::kUnknown);
    const absl::Status cut = CutBatch(b.graph, 2);
    if (influenced) {
      EXPECT_EQ(cut.code(), absl::StatusCode::kFailedPrecondition) << cut;
      continue;
    }
    ASSERT_TRUE(cut.ok()) << cut;
    ASSERT_TRUE(models::VerifyGraph(b.graph).ok());
    int joined = 0;
    for (const models::Node& node : b.graph.nodes) {
      if (node.op != "Concat") continue;
      ++joined;
      EXPECT_EQ(node.attributes.Int("of_parts", 0), 1);
      EXPECT_EQ(node.inputs.size(), 2u);
    }
    EXPECT_EQ(joined, 1);
  }
}

// The reason is that of the node that mixes examples, not that of what follows.
TEST(CutBatch, NamesTheNodeThatMixesExamples) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId shares = b.Op("Softmax", {x}, {{"axis", int64_t{0}}});
  b.Output(b.Op("MatMul", {shares, b.Parameter("w", {3, 2})}));
  ExpectRefused(WithLoss(std::move(b.graph)), 2,
                absl::StatusCode::kFailedPrecondition, "Softmax 'n0'");
}

TEST(CutBatch, PermitsStatisticsOfParts) {
  ExpectRefused(WithLoss(BatchNormModel(8)), 2,
                absl::StatusCode::kFailedPrecondition,
                "--allow-micro-batch-statistics");
  models::Graph graph = WithLoss(BatchNormModel(8));
  ASSERT_TRUE(CutBatch(graph, 4, models::BatchStatistics::kOfPart).ok());
  ASSERT_TRUE(models::VerifyGraph(graph).ok()) << models::VerifyGraph(graph);
  for (const models::Node& node : graph.nodes) {
    if (node.op != "RunningStatsUpdate") continue;
    EXPECT_EQ(node.attributes.Int("count", 0), 2);
  }
  graph = WithLoss(BatchNormModel(8));
  const absl::Status status =
      CutBatch(graph, 8, models::BatchStatistics::kOfPart);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

// Their order would have no meaning for anything but statistics.
TEST(CutBatch, RefusesOtherUpdates) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId s = b.State("s", {3});
  const ValueId next =
      b.Op("AverageUpdate", {s, b.Parameter("p", {3})}, {{"decay", 0.5}});
  b.graph.updates.emplace_back(s, next);
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 2})}));
  models::Graph graph = WithLoss(std::move(b.graph));
  const absl::Status status =
      CutBatch(graph, 2, models::BatchStatistics::kOfPart);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST(CutBatch, RefusesPartsThatAreNotEqual) {
  ExpectRefused(WithLoss(SmallMlp()), 3, absl::StatusCode::kInvalidArgument,
                "a divisor of 4");
  ExpectRefused(WithLoss(SmallMlp()), 0, absl::StatusCode::kInvalidArgument,
                "1 or more");
}

}  // namespace
}  // namespace loadline::passes
