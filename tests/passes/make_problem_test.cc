#include "passes/make_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Ints;
using models::Node;
using models::ValueId;
using ::testing::HasSubstr;

// Every node takes ten times its number of inputs; products need workspace.
absl::StatusOr<NodeCost> TestCost(const Graph&, const Node& node) {
  return NodeCost{10 * static_cast<int64_t>(node.inputs.size()),
                  node.op == "MatMul" ? 256 : 0};
}

MakeProblemOptions PlainOptions() {
  MakeProblemOptions options;
  options.name = "test";
  options.cost = TestCost;
  return options;
}

planner::Problem MustMakeProblem(const Graph& graph) {
  absl::StatusOr<planner::Problem> problem = MakeProblem(graph, PlainOptions());
  EXPECT_TRUE(problem.ok()) << problem.status();
  const absl::Status valid = planner::ValidateProblem(*problem);
  EXPECT_TRUE(valid.ok()) << valid;
  return *std::move(problem);
}

// In-place pairs of the only node named `name`, as "from>to " with file ids.
std::string Pairs(const planner::Problem& problem, absl::string_view name) {
  std::string text;
  for (const planner::Node& node : problem.nodes) {
    if (node.name != name) continue;
    for (const auto& [from, to] : node.inplace) {
      text += problem.value(from).name + ">" + problem.value(to).name + " ";
    }
  }
  return text;
}

// x, w -> product -> view -> Relu; its "gradient" updates w and m.
Graph SmallStep() {
  Builder b;
  const ValueId x = b.Input("x", {32, 32});
  const ValueId w = b.Parameter("w", {32, 16});
  b.Parameter("unused", {1000});
  const ValueId m = b.State("w.momentum", {32, 16});
  const ValueId y = b.Op("MatMul", {x, w});
  const ValueId view = b.Op("Reshape", {y}, {{"shape", Ints{512}}});
  const ValueId h = b.Op("Relu", {view});
  const ValueId back = b.Op("Reshape", {h}, {{"shape", Ints{32, 16}}});
  const ValueId g = b.Op("MatMul", {x, back}, {{"trans_a", int64_t{1}}});
  const std::vector<ValueId> next =
      b.Ops("Sgd", {w, g, m}, {{"momentum", 0.9}});
  b.Output(b.Op("ReduceMean", {h}, {{"keepdims", int64_t{0}}}));
  b.graph.updates = {{w, next[0]}, {m, next[1]}};
  return b.graph;
}

TEST(MakeProblem, WritesASmallStepAsThisFile) {
  const std::string json = planner::ProblemToJson(MustMakeProblem(SmallStep()));
  // 2048 bytes = 32·16·4 are below 4096, so never copied; x has 4096. Value 2
  // is the unused parameter; values 5 and 7 and nodes 1 and 3 are views.
  EXPECT_EQ(absl::StrReplaceAll(json, {{"{\"id\"", "\n{\"id\""}}),
            R"({"format":"loadline.problem/1","name":"test","values":[
{"id":0,"name":"x","bytes":4096},
{"id":1,"name":"w","bytes":2048,"persistent":true,"offload":false},
{"id":3,"name":"w.momentum","bytes":2048,"persistent":true,"offload":false},
{"id":4,"name":"n0","bytes":2048,"offload":false},
{"id":6,"name":"n2","bytes":2048,"offload":false},
{"id":8,"name":"n4","bytes":2048,"offload":false},
{"id":9,"name":"n5","bytes":2048,"persistent":true,"offload":false},
{"id":10,"name":"n5.1","bytes":2048,"persistent":true,"offload":false},
{"id":11,"name":"n6","bytes":4,"offload":false}],"nodes":[
{"id":0,"name":"n0","time_ns":20,"inputs":[0,1],"outputs":[4],"workspace_bytes":256},
{"id":2,"name":"n2","time_ns":10,"inputs":[4],"outputs":[6],"inplace":[[4,6]]},
{"id":4,"name":"n4","time_ns":20,"inputs":[0,6],"outputs":[8],"workspace_bytes":256},
{"id":5,"name":"n5","time_ns":30,"inputs":[1,8,3],"outputs":[9,10],"recompute":false,"inplace":[[1,9],[3,10]]},
{"id":6,"name":"n6","time_ns":10,"inputs":[6],"outputs":[11]}],"outputs":[11]})");
}

TEST(MakeProblem, FoldsAViewOfAParameterIntoIt) {
  Builder b;
  const ValueId w = b.Parameter("w", {16});
  const ValueId view = b.Op("Reshape", {w}, {{"shape", Ints{4, 4}}});
  b.Output(b.Op("MatMul", {b.Input("x", {4, 4}), view}));
  b.Output(b.Op("Relu", {view}));
  const planner::Problem problem = MustMakeProblem(b.graph);
  ASSERT_EQ(problem.nodes.size(), 2u);
  EXPECT_EQ(problem.value(problem.nodes[0].inputs[1]).name, "w");
  EXPECT_EQ(Pairs(problem, "n2"), "") << "Relu must not overwrite a parameter";
}

TEST(MakeProblem, PairsOnlyWhatIsSafe) {
  Builder b;
  const ValueId x = b.Input("x", {4, 4});
  const ValueId row = b.Op("Exp", {b.Input("row", {1, 4})});
  const ValueId c =
      b.graph.AddConstant("c", models::ZeroTensor(b.graph.value(x).type));
  const ValueId a = b.Op("Exp", {x});         // n1
  const ValueId twice = b.Op("Mul", {a, a});  // n2
  const ValueId viewed = b.Op(                // n3, n4
      "Sub", {twice, b.Op("Reshape", {twice}, {{"shape", Ints{4, 4}}})});
  const ValueId wide = b.Op("Add", {row, viewed});  // n5
  const ValueId constant = b.Op("Add", {c, wide});  // n6
  const ValueId kept = b.Op("Neg", {constant});     // n7
  const ValueId last = b.Op("Neg", {kept});         // n8
  b.Output(kept);
  b.Output(last);
  const planner::Problem problem = MustMakeProblem(b.graph);
  EXPECT_EQ(Pairs(problem, "n1"), "x>n1 ") << "a graph input may be consumed";
  EXPECT_EQ(Pairs(problem, "n2"), "") << "a · a reads a twice";
  EXPECT_EQ(Pairs(problem, "n4"), "") << "the second time through a view";
  EXPECT_EQ(Pairs(problem, "n5"), "") << "row is broadcast";
  EXPECT_EQ(Pairs(problem, "n6"), "") << "c is a constant";
  EXPECT_EQ(Pairs(problem, "n7"), "n6>n7 ");
  EXPECT_EQ(Pairs(problem, "n8"), "") << "n7 is an output";
}

TEST(MakeProblem, ListsAValueReadTwiceTwice) {
  Builder b;
  const ValueId x = b.Input("x", {4});
  b.Output(b.Op("Mul", {x, x}));
  const planner::Problem problem = MustMakeProblem(b.graph);
  EXPECT_EQ(problem.nodes[0].inputs.size(), 2u);
  EXPECT_EQ(problem.nodes[0].inputs[0], problem.nodes[0].inputs[1]);
}

TEST(MakeProblem, LeavesAbsentInputsOut) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  b.Output(b.Op("LayerNormalization",
                {x, b.Parameter("scale", {8}), models::kNoValue},
                {{"axis", int64_t{1}}, {"epsilon", 1e-5}}));
  EXPECT_EQ(MustMakeProblem(b.graph).nodes[0].inputs.size(), 2u);
}

TEST(MakeProblem, PutsOutTheRootOnce) {
  Builder b;
  const ValueId y = b.Op("Exp", {b.Input("x", {4})});
  b.Output(b.Op("Reshape", {y}, {{"shape", Ints{2, 2}}}));
  b.Output(y);
  const planner::Problem problem = MustMakeProblem(b.graph);
  ASSERT_EQ(problem.outputs.size(), 1u);
  EXPECT_EQ(problem.value(problem.outputs[0]).name, "n0");
}

TEST(MakeProblem, RefusesAnUpdateThatIsNotInPlace) {
  Builder b;
  const ValueId s = b.State("s", {4});
  const ValueId next = b.Op("Concat", {s}, {{"axis", int64_t{0}}});
  b.graph.updates = {{s, next}};
  const absl::Status status = MakeProblem(b.graph, PlainOptions()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.ToString(), HasSubstr("new contents of 's'"));
}

TEST(MakeProblem, HandsOnThePricesError) {
  MakeProblemOptions options = PlainOptions();
  options.cost = [](const Graph&, const Node&) -> absl::StatusOr<NodeCost> {
    return absl::FailedPreconditionError("no rates");
  };
  EXPECT_EQ(MakeProblem(SmallStep(), options).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MakeProblem, MakesAValidProblemOfAWholeTrainingStep) {
  TrainingOptions options;
  options.loss.target = {models::DType::kI64, {4}};
  options.optimizer.kind = OptimizerKind::kAdamW;
  const absl::StatusOr<Graph> step = BuildTrainingStep(SmallMlp(), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  const planner::Problem problem = MustMakeProblem(*step);
  // Parameters and their two moments, each with its new version.
  const planner::ProblemIndex index = planner::IndexProblem(problem);
  int updated = 0;
  for (planner::ValueId next : index.next_version) {
    updated += next != planner::kNoValue;
  }
  EXPECT_EQ(updated, 4 * 3);
  // Reading the file back gives the same.
  const absl::StatusOr<planner::Problem> read =
      planner::ProblemFromJson(planner::ProblemToJson(problem));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(planner::ProblemSha256(*read), planner::ProblemSha256(problem));
}

// A mask that the backward pass reads, one that it does not, and an output.
Graph MaskedStep() {
  Builder b;
  const ValueId x = b.Input("x", {64, 128});
  const ValueId mask = b.Op("Greater", {x, b.Scalar(0)});
  const ValueId other = b.Op("Less", {x, b.Scalar(0)});
  const ValueId y = b.Op("Where", {mask, x, b.Scalar(0)});
  const ValueId z = b.Op("Where", {other, y, b.Scalar(0)});
  const ValueId wide = b.Op("Tanh", {z});
  const ValueId dz = b.Op("TanhGrad", {wide, wide});
  b.graph.nodes.back().phase = models::Phase::kBackward;
  b.Output(b.Op("Where", {mask, dz, b.Scalar(0)}));
  b.graph.nodes.back().phase = models::Phase::kBackward;
  return b.graph;
}

std::string Codecs(const planner::Problem& problem) {
  std::string text;
  for (const planner::Value& value : problem.values) {
    for (const planner::Codec& codec : value.stash) {
      text += absl::StrCat(value.name, ":", codec.name, ":", codec.bytes, " ");
    }
  }
  return text;
}

TEST(MakeProblem, OffersLosslessCodecsOfWhatTheBackwardPassReads) {
  const planner::Problem problem = MustMakeProblem(MaskedStep());
  EXPECT_EQ(Codecs(problem), "n0:bits:1024 ");
  MakeProblemOptions options = PlainOptions();
  options.smallest_stash_bytes = 8193;
  EXPECT_EQ(Codecs(*MakeProblem(MaskedStep(), options)), "");
}

TEST(MakeProblem, OffersLossyCodecsWithinTheGradientError) {
  const Graph graph = MaskedStep();
  MakeProblemOptions options = PlainOptions();
  options.gradient_errors.assign(graph.values.size(), -1.0);
  options.gradient_errors[models::Index(*graph.Find("n4"))] = 0.001;
  options.max_gradient_error = 0.1;
  const auto problem = MakeProblem(graph, options);
  ASSERT_TRUE(problem.ok()) << problem.status();
  // 32 groups of 8 bytes; with 1 bit the error is 0.255.
  EXPECT_EQ(Codecs(*problem),
            "n0:bits:1024 n4:group8:8448 n4:group4:4352 n4:group2:2304 ");
  for (const planner::Value& value : problem->values) {
    for (const planner::Codec& codec : value.stash) {
      EXPECT_EQ(codec.lossless, codec.name == "bits");
      if (codec.name == "group4") {
        EXPECT_DOUBLE_EQ(codec.error, 0.17 * 0.17);
      }
    }
  }
}

TEST(MakeProblem, OffersNoCodecWithoutAPrice) {
  MakeProblemOptions options = PlainOptions();
  options.cost = [](const Graph& graph,
                    const Node& node) -> absl::StatusOr<NodeCost> {
    if (node.op == "Encode") return absl::FailedPreconditionError("no time");
    return TestCost(graph, node);
  };
  const auto problem = MakeProblem(MaskedStep(), options);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(Codecs(*problem), "");
}

}  // namespace
}  // namespace loadline::passes
