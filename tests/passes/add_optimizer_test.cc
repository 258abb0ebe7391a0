#include "passes/add_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using ::testing::HasSubstr;

struct TwoParameters {
  Builder b;
  Gradients gradients;
  TwoParameters() {
    // Declared in this order, but added to the map in the other.
    const ValueId w = b.Parameter("w", {2, 3});
    const ValueId v = b.Parameter("v", {3});
    gradients[v] = b.Input("gv", {3});
    gradients[w] = b.Input("gw", {2, 3});
  }
};

TEST(AddOptimizer, SgdWithoutMomentumKeepsNoState) {
  TwoParameters t;
  OptimizerOptions options;
  options.weight_decay = 0.25;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(Describe(t.b.graph),
            R"(%0 = Sgd(w, gw) {momentum=0, nesterov=0, weight_decay=0.25}
%1 = Sgd(v, gv) {momentum=0, nesterov=0, weight_decay=0.25}
update w -> %0
update v -> %1
)");
  EXPECT_TRUE(models::VerifyGraph(t.b.graph).ok());
}

TEST(AddOptimizer, SgdWithMomentumKeepsOneState) {
  TwoParameters t;
  OptimizerOptions options;
  options.momentum = 0.5;
  options.nesterov = true;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(
      Describe(t.b.graph),
      R"(%0, %1 = Sgd(w, gw, w.momentum) {momentum=0.5, nesterov=1, weight_decay=0}
%2, %3 = Sgd(v, gv, v.momentum) {momentum=0.5, nesterov=1, weight_decay=0}
update w -> %0
update w.momentum -> %1
update v -> %2
update v.momentum -> %3
)");
  const models::Value& state = t.b.graph.value(*t.b.graph.Find("w.momentum"));
  EXPECT_EQ(state.kind, models::ValueKind::kState);
  for (float f : state.initial->as<float>()) EXPECT_EQ(f, 0);
}

TEST(AddOptimizer, AdamWKeepsTwoStates) {
  TwoParameters t;
  OptimizerOptions options;
  options.kind = OptimizerKind::kAdamW;
  options.epsilon = 0.5;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(
      Describe(t.b.graph),
      R"(%0, %1, %2 = AdamW(w, gw, w.exp_avg, w.exp_avg_sq) {beta1=0.9, beta2=0.999, epsilon=0.5, weight_decay=0}
%3, %4, %5 = AdamW(v, gv, v.exp_avg, v.exp_avg_sq) {beta1=0.9, beta2=0.999, epsilon=0.5, weight_decay=0}
update w -> %0
update w.exp_avg -> %1
update w.exp_avg_sq -> %2
update v -> %3
update v.exp_avg -> %4
update v.exp_avg_sq -> %5
)");
  for (const models::Node& node : t.b.graph.nodes) {
    EXPECT_EQ(node.phase, models::Phase::kUpdate);
  }
}

TEST(AddOptimizer, ClipsByTheNormOfAllGradients) {
  TwoParameters t;
  OptimizerOptions options;
  options.clip_norm = 2;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(Describe(t.b.graph),
            R"(%0 = SumSquares(gw)
%1 = SumSquares(gv)
%2 = Concat(%0, %1) {axis=0}
%3 = ClipFactor(%2) {max_norm=2}
%4 = Sgd(w, gw, _, %3) {momentum=0, nesterov=0, weight_decay=0}
%5 = Sgd(v, gv, _, %3) {momentum=0, nesterov=0, weight_decay=0}
update w -> %4
update v -> %5
)");
  EXPECT_TRUE(models::VerifyGraph(t.b.graph).ok());
}

TEST(AddOptimizer, TreatsGroupsOfParametersDifferently) {
  TwoParameters t;
  OptimizerOptions options;
  options.kind = OptimizerKind::kLion;
  options.weight_decay = 0.5;
  options.groups.decay_matrices_only = true;
  options.groups.rates = {{"*", 2}, {"w", 0.25}};
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(
      Describe(t.b.graph),
      R"(%0, %1 = Lion(w, gw, w.exp_avg) {beta1=0.9, beta2=0.999, rate=0.25, weight_decay=0.5}
%2, %3 = Lion(v, gv, v.exp_avg) {beta1=0.9, beta2=0.999, rate=2, weight_decay=0}
update w -> %0
update w.exp_avg -> %1
update v -> %2
update v.exp_avg -> %3
)");
  options.groups.no_decay = {"w", "x*"};
  EXPECT_THAT(AddOptimizer(t.b.graph, t.gradients, options).ToString(),
              HasSubstr("no trained parameter matches 'x*'"));
}

TEST(AddOptimizer, AdagradSumsSquares) {
  TwoParameters t;
  t.gradients.erase(*t.b.graph.Find("v"));
  OptimizerOptions options;
  options.kind = *OptimizerKindFromName("adagrad");
  options.epsilon = 1e-10;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(Describe(t.b.graph),
            R"(%0, %1 = Adagrad(w, gw, w.sum) {epsilon=1e-10, weight_decay=0}
update w -> %0
update w.sum -> %1
)");
}

TEST(AddOptimizer, AdafactorKeepsAveragesOfRowsAndColumns) {
  Builder b;
  const ValueId w = b.Parameter("w", {2, 3, 4}), v = b.Parameter("v", {5});
  const Gradients gradients = {{w, b.Input("gw", {2, 3, 4})},
                               {v, b.Input("gv", {5})}};
  OptimizerOptions options;
  options.kind = *OptimizerKindFromName("adafactor");
  options.clip_norm = 2;
  ASSERT_TRUE(AddOptimizer(b.graph, gradients, options).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
  EXPECT_THAT(Describe(b.graph),
              HasSubstr("= Adafactor(w, gw, w.row_var, w.col_var, %3)"));
  EXPECT_THAT(Describe(b.graph),
              HasSubstr("= Adafactor(v, gv, v.variance, _, %3)"));
  const auto dims = [&](const char* state) {
    return b.graph.value(*b.graph.Find(state)).type.dims;
  };
  EXPECT_EQ(dims("w.row_var"), (models::Ints{2, 3, 1}));
  EXPECT_EQ(dims("w.col_var"), (models::Ints{2, 1, 4}));
  EXPECT_EQ(dims("v.variance"), models::Ints{5});
  options.state_bits = 8;
  EXPECT_THAT(AddOptimizer(b.graph, gradients, options).ToString(),
              HasSubstr("which stay f32"));
}

TEST(AddOptimizer, AveragesTheUpdatedParameters) {
  TwoParameters t;
  t.gradients.erase(*t.b.graph.Find("v"));
  OptimizerOptions options;
  options.average = 0.75;
  ASSERT_TRUE(AddOptimizer(t.b.graph, t.gradients, options).ok());
  EXPECT_EQ(Describe(t.b.graph),
            R"(%0 = Sgd(w, gw) {momentum=0, nesterov=0, weight_decay=0}
%1 = AverageUpdate(w.average, %0) {decay=0.75}
update w -> %0
update w.average -> %1
)");
}

TEST(AddOptimizer, RefusesSettingsOutsideTheirRange) {
  const auto refusal = [](auto change) {
    TwoParameters t;
    OptimizerOptions options;
    change(options);
    const absl::Status status = AddOptimizer(t.b.graph, t.gradients, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return status.ToString();
  };
  EXPECT_THAT(refusal([](auto& o) { o.momentum = -1; }),
              HasSubstr("momentum is -1"));
  EXPECT_THAT(refusal([](auto& o) { o.beta2 = 1; }),
              HasSubstr("beta2 is 1; it must be 0 or more and less than 1"));
  EXPECT_THAT(refusal([](auto& o) { o.weight_decay = NAN; }),
              HasSubstr("weight decay is nan"));
  EXPECT_THAT(refusal([](auto& o) { o.nesterov = true; }),
              HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(refusal([](auto& o) { o.state_bits = 4; }),
              HasSubstr("32 or 8 bits, not 4"));
  EXPECT_THAT(refusal([](auto& o) {
                o.state_bits = 8;
                o.kind = OptimizerKind::kAdagrad;
              }),
              HasSubstr("8-bit optimizer states: adagrad"));
}

TEST(AddOptimizer, KeepsStatesOfLargeParametersIn8Bits) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW,
        OptimizerKind::kLion}) {
    Builder b;
    OptimizerOptions options;
    options.kind = kind;
    options.momentum = 0.9;
    options.state_bits = 8;
    options.average = 0.5;
    const ValueId large = b.Parameter("large", {50, 90});
    const ValueId small = b.Parameter("small", {4095});
    ASSERT_TRUE(AddOptimizer(b.graph,
                             {{large, b.Input("g", {50, 90})},
                              {small, b.Input("h", {4095})}},
                             options)
                    .ok());
    EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
    int states = 0;
    for (const models::Value& value : b.graph.values) {
      if (value.kind != models::ValueKind::kState) continue;
      const bool blocks = value.name.rfind("large.", 0) == 0 &&
                          value.name != AverageName("large");
      // 18 blocks of 256 have 4,608 codes.
      EXPECT_EQ(value.type.ToString(), blocks                 ? "u8[18,260]"
                                       : value.name[0] == 'l' ? "f32[50,90]"
                                                              : "f32[4095]")
          << value.name;
      for (std::byte byte : *value.initial->data) {
        ASSERT_EQ(byte, std::byte{0});
      }
      states += blocks ? 1 : 0;
    }
    EXPECT_EQ(
        states,
        kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW ? 2 : 1);
  }
}

TEST(AddOptimizer, RefusesAStateNameThatIsTaken) {
  TwoParameters t;
  t.b.State("w.momentum", {1});
  OptimizerOptions options;
  options.momentum = 0.9;
  EXPECT_THAT(AddOptimizer(t.b.graph, t.gradients, options).ToString(),
              HasSubstr("'w.momentum'"));
}

TEST(OptimizerKindFromName, KnowsItsNames) {
  EXPECT_EQ(*OptimizerKindFromName("sgd"), OptimizerKind::kSgd);
  EXPECT_EQ(*OptimizerKindFromName("adamw"), OptimizerKind::kAdamW);
  EXPECT_THAT(OptimizerKindFromName("adamax").status().ToString(),
              HasSubstr("unknown optimizer 'adamax'"));
}

}  // namespace
}  // namespace loadline::passes
