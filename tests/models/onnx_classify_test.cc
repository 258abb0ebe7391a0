// The rules of models/onnx/classify.h, case by case.
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Imported ImportClassified(const std::string& body,
                          const ImportOptions& options = {}) {
  auto imported = ImportText(body, options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

std::vector<std::string> Trained(const std::string& body,
                                 const ImportOptions& options = {}) {
  return Names(ImportClassified(body, options).graph, ValueKind::kParameter);
}

// As torch's older exporter writes it: parameters and buffers, without marks.
Imported ImportStateDict(const std::string& body) {
  onnx::ModelProto model = ModelFromText(body);
  model.set_producer_name("pytorch");
  auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

// A linear layer after the module's own input normalization.
constexpr char kNormalizedInput[] =
    "g (float[2,3] x) => (float[2,2] y)"
    " <float[3] mean = {1,2,3}, float[3] std = {1,1,2}, float two = {2},"
    "  float[3,2] \"fc.weight\" = {1,2,3,4,5,6}, float[2] \"fc.bias\" = {0,1}> "
    "{"
    " a = Sub(x, mean) b = Div(a, std) c = Mul(b, two)"
    " d = MatMul(c, \"fc.weight\") y = Add(d, \"fc.bias\") }";

TEST(ClassifyInitializers, BuffersOfTheArithmeticAreNotTrained) {
  EXPECT_THAT(Trained(kNormalizedInput), ElementsAre("fc.weight", "fc.bias"));
}

TEST(ClassifyInitializers, SaysWhyEachTensorIsTrainedOrNot) {
  const Imported imported = ImportClassified(kNormalizedInput);
  std::vector<std::string> lines;
  for (const InitializerRole& role : imported.roles) {
    lines.push_back(role.name + (role.trained ? " + " : " - ") + role.why);
  }
  EXPECT_THAT(lines, ElementsAre("mean - a buffer, by its name",
                                 "std - a buffer, by its name",
                                 "two - a number without an axis",
                                 "fc.weight + operand of MatMul",
                                 "fc.bias + bias of a product"));
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("not trained"), HasSubstr(": two;"),
                                HasSubstr("--train NAME"))));
}

TEST(ClassifyInitializers, PatternsDecideAndTrainWins) {
  ImportOptions options;
  options.freeze = {"fc.*"};
  options.train = {"std", "fc.bias"};
  EXPECT_THAT(Trained(kNormalizedInput, options),
              ElementsAre("std", "fc.bias"));
}

// A copy of a large model's frozen weights might not fit.
TEST(ClassifyInitializers, LargeFrozenWeightsAreNotTransposedBeforehand) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,512] x) => (float[2,512] y)"
      " <float[1] \"fc.weight\" = {0}, float[512] b = {0}> {"
      " t = Transpose<perm = [1,0]>(\"fc.weight\")"
      " u = MatMul(x, t) y = Add(u, b) }");
  auto* weight = model.mutable_graph()->mutable_initializer(0);
  weight->clear_dims();
  weight->clear_float_data();
  weight->add_dims(512);
  weight->add_dims(512);
  weight->set_raw_data(std::string(512 * 512 * 4, '\0'));
  auto* bias = model.mutable_graph()->mutable_initializer(1);
  bias->clear_float_data();
  bias->set_raw_data(std::string(512 * 4, '\0'));
  ImportOptions options;
  options.freeze = {"fc.*"};
  const auto imported = ImportOnnxBytes(Bytes(model), options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Ops(imported->graph), ElementsAre("Transpose", "MatMul", "Add"));
  EXPECT_THAT(Names(imported->graph, ValueKind::kConstant),
              ElementsAre("fc.weight"));
}

TEST(ClassifyInitializers, ParametersThatAreAddedAreTrainedByTheirName) {
  const Imported imported = ImportClassified(
      "g (float[2,3] x) => (float[2,2] y)"
      " <float[2,3] pos_embed = {1,2,3,4,5,6}, float[3,2] w = {1,2,3,4,5,6},"
      "  float[2] layer_scale_1 = {1,1}, float[2] offsets = {1,1}> {"
      " a = Add(x, pos_embed) b = MatMul(a, w) c = Relu(b)"
      " d = Mul(c, layer_scale_1) y = Add(d, offsets) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              ElementsAre("pos_embed", "w", "layer_scale_1"));
  EXPECT_THAT(
      imported.warnings,
      UnorderedElementsAre(
          AllOf(HasSubstr("trained, although"),
                HasSubstr("pos_embed, layer_scale_1;"), HasSubstr("--freeze")),
          AllOf(HasSubstr("not trained"), HasSubstr("offsets;"))));
}

// Mamba's A = -exp(A_log) and D, and the layer scales of DINOv2 and
// timm's ResMLP.
TEST(ClassifyInitializers, NamesOfStateSpacesAndLayerScalesAreTrained) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] A_log = {0,1}, float[2] lambda1 = {1,2},"
                      "  float[2] D = {1,2}, float[2] ls2 = {1,2},"
                      "  float[2] offsets = {1,2}> {"
                      " a = Exp(A_log) u = Mul(x, a) v = Mul(u, lambda1)"
                      " w = Mul(v, D) z = Mul(w, ls2) y = Mul(z, offsets) }"),
              ElementsAre("A_log", "lambda1", "D", "ls2"));
}

// Learned logarithms, although a variance alone is a buffer; a set
// transformer's seeds.
TEST(ClassifyInitializers, LearnedLogarithmsAndSeedsAreTrained) {
  EXPECT_THAT(
      Trained("g (float[2] x) => (float[2] y)"
              " <float[2] log_variance = {0,1}, float[2] seeds = {1,2},"
              "  float[2] variance = {1,2},"
              "  float[2] posterior_log_variance_clipped = {1,2}> {"
              " a = Mul(x, log_variance) u = Mul(a, seeds)"
              " v = Mul(u, variance) y = Mul(v, posterior_log_variance_clipped)"
              " }"),
      ElementsAre("log_variance", "seeds"));
}

// A layer's own bias has one axis. BART adds a buffer, final_logits_bias, to
// its last product.
TEST(ClassifyInitializers, WarnsAboutABiasOfSeveralAxes) {
  const Imported imported = ImportClassified(
      "g (float[2,3] x) => (float[2,2] y)"
      " <float[3,2] w = {1,2,3,4,5,6}, float[1,2] final_bias = {0,0}> {"
      " a = MatMul(x, w) y = Add(a, final_bias) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              ElementsAre("w", "final_bias"));
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("trained, although"),
                                HasSubstr("final_bias; --freeze"))));
}

TEST(ClassifyInitializers, TransposedWeightsOfTheOlderExporterAreTrained) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] \"onnx::Mul_12\" = {1.5,0.3}> {"
                      " y = Mul(x, \"onnx::Mul_12\") }"),
              ElementsAre("onnx::Mul_12"));
}

TEST(ClassifyInitializers, NamesWhatTheOlderExporterComputed) {
  const Imported imported = ImportClassified(
      "g (float[2] x) => (float[2] y)"
      " <float[2] \"onnx::Exp_12\" = {1.5,0.3}> {"
      " e = Exp(\"onnx::Exp_12\") y = Mul(x, e) }");
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("onnx::Exp_12; export with"),
                                HasSubstr("do_constant_folding=False"))));
}

TEST(ClassifyInitializers, SingleNumbersUnderInventedNamesAreNot) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[1] val_3 = {2}, float[1] gain = {1}> {"
                      " u = Mul(x, val_3) y = Mul(u, gain) }"),
              ElementsAre("gain"));
}

// tf2onnx names variables so; its constants have the names of their operators.
TEST(ClassifyInitializers, VariablesOfTensorFlowAreTrained) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2,2] x) => (float[2,2,2] y)"
      " <float[2,2] \"query/Add/ReadVariableOp:0\" = {1,2,3,4},"
      "  float[2,2] \"bn/batchnorm/ReadVariableOp_1:0\" = {1,2,3,4},"
      "  float[2,2] \"Cast/x:0\" = {1,2,3,4}, float \"add/y:0\" = {2}> {"
      " a = Add(x, \"query/Add/ReadVariableOp:0\")"
      " b = Add(a, \"bn/batchnorm/ReadVariableOp_1:0\")"
      " c = Add(b, \"Cast/x:0\") y = Add(c, \"add/y:0\") }");
  model.set_producer_name("tf2onnx");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
              ElementsAre("query/Add/ReadVariableOp:0"));
  EXPECT_THAT(imported->warnings,
              ElementsAre(HasSubstr("query/Add/ReadVariableOp:0; --freeze"),
                          AllOf(HasSubstr("not trained"),
                                HasSubstr("ReadVariableOp_1:0, Cast/x:0;"))));
}

// jax2onnx names the factor of an attention so. In PyTorch's files such a name
// is the model's own.
TEST(ClassifyInitializers, NumbersWithoutAxesOfOtherExportersAreNotTrained) {
  constexpr char kBody[] =
      "g (float[2,2] x) => (float[2,2] y) <float dpa_scale_0 = {0.5}> {"
      " y = Mul(x, dpa_scale_0) }";
  const Imported imported = ImportClassified(kBody);
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter), IsEmpty());
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("not trained"),
                                HasSubstr(": dpa_scale_0; --train"))));
  EXPECT_THAT(Names(ImportStateDict(kBody).graph, ValueKind::kParameter),
              ElementsAre("dpa_scale_0"));
}

TEST(ClassifyInitializers, WarnsAboutTheScaleOfAProduct) {
  const Imported imported = ImportClassified(
      "g (float[2,2] x) => (float[2,2] y)"
      " <float[2,2] w = {1,2,3,4}, float[2] v = {1,2}, float[2] u = {3,4}> {"
      " p = MatMul(x, w) q = Mul(p, v) y = Add(q, u) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              ElementsAre("w", "v", "u"));
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("trained, although"),
                                HasSubstr(": v, u; --freeze"))));
}

// As nn.CrossEntropyLoss(weight=...) of a model's own loss; a name such as
// loss.weight says that it is a parameter.
TEST(ClassifyInitializers, WeightsOfClassesInALossAreNotTrained) {
  for (const char* loss :
       {"l = SoftmaxCrossEntropyLoss(p, t, c) }",
        "q = LogSoftmax(p) l = NegativeLogLikelihoodLoss(q, t, c) }"}) {
    onnx::ModelProto model = ModelFromText(absl::StrCat(
        "g (float[4,2] x, int64[4] t) => (float l)"
        " <float[2,3] w = {1,2,3,4,5,6}, float[3] weight = {1,2,3.5}> {"
        " p = MatMul(x, w) c = Identity(weight) ",
        loss));
    model.set_producer_name("pytorch");
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(Names(imported->graph, ValueKind::kParameter),
              std::vector<std::string>{"w"});
  }
}

TEST(ClassifyInitializers, MasksAreToldByTheirContents) {
  EXPECT_THAT(
      Trained("g (float[2] x) => (float[2] y)"
              " <float[2] score = {0,-10000}, float[2] bias = {0,0},"
              "  float[2] slope = {0,-5}> {"
              " u = Add(x, score) v = Add(u, bias) y = Mul(v, slope) }"),
      ElementsAre("bias", "slope"));
}

TEST(ClassifyInitializers, WhatNoGradientReachesIsConstant) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] weight = {1,0}, float[2] zero = {0,0},"
                      "  float[2] w = {1,1}> {"
                      " c = Equal(weight, zero) y = Where(c, w, x) }"),
              ElementsAre("w"));
}

// Start scores of a CRF and the memory of a neural Turing machine, against a
// graph's Laplacian, a table of powers, and the weights of a loss.
TEST(ClassifyInitializers, ContentsDecideWhereTheOlderExporterNamesNothing) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[3] start = {0.3,-1.2,0.7}, float[3] memory = {0,0,0},"
      "  float[3,3] lap = {1,-0.5,0.2,-0.5,1,0.1,0.2,0.1,1},"
      "  float[3,3] projection = {0.1,-0.5,0.2,-0.3,1,0.1,0.7,0.9,1},"
      "  float[3] counts = {1,2,1}, float[3] pos_weight = {1.5,2.5,0.7}> {"
      " a = Add(x, start) b = MatMul(a, lap) c = Mul(b, counts)"
      " d = MatMul(c, projection) e = Mul(d, pos_weight) y = Add(e, memory) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              UnorderedElementsAre("start", "memory", "projection"));
  EXPECT_THAT(
      imported.warnings,
      ElementsAre(AllOf(HasSubstr("trained, although no direct"),
                        HasSubstr(": start, memory;")),
                  AllOf(HasSubstr("parameters or buffers"),
                        HasSubstr(": projection; --freeze")),
                  AllOf(HasSubstr("not trained"), HasSubstr("lap, counts;"))));
}

// Contents say nothing against a name; a single number without axes needs one.
TEST(ClassifyInitializers, NamesAreWorthMoreThanContents) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[3,3] \"fc.weight\" = {1,2,3,4,5,6,7,8,9}, float[3] pe = {1,2,3},"
      "  float[3] gamma = {1,2,3}, float var = {0.3}, float other = {0.7},"
      "  float[3] mean = {0.1,0.7,-0.3}> {"
      " a = MatMul(x, \"fc.weight\") b = Add(a, pe) c = Mul(b, gamma)"
      " d = Mul(c, var) e = Add(d, mean) y = Mul(e, other) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              UnorderedElementsAre("fc.weight", "gamma"));
  EXPECT_THAT(
      imported.warnings,
      UnorderedElementsAre(
          AllOf(HasSubstr("trained, although"), HasSubstr("gamma;")),
          AllOf(HasSubstr("not trained"), HasSubstr(": pe, var, other;"))));
}

// torch.zeros(1) and torch.ones(1) are how parameters of one number are
// written, such as the eps of a graph isomorphism network; buffers are
// torch.tensor(2.0).
TEST(ClassifyInitializers, SingleNumbersWithAnAxisAreTrained) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[3,3] \"fc.weight\" = {1,2,3,4,5,6,7,8,9}, float[1] e = {0},"
      "  float[1] \"conv.eps\" = {0.1}, float[1,1] t = {1}, float two = {2}> {"
      " a = MatMul(x, \"fc.weight\") b = Mul(a, e) c = Add(b, \"conv.eps\")"
      " d = Mul(c, t) y = Mul(d, two) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              UnorderedElementsAre("fc.weight", "e", "t"));
  EXPECT_THAT(
      imported.warnings,
      UnorderedElementsAre(
          AllOf(HasSubstr("trained, although"), HasSubstr(": e, t;")),
          AllOf(HasSubstr("not trained"), HasSubstr(": conv.eps, two;"))));
}

// In transformers it is a buffer of zeros, named as a bias and used as one.
TEST(ClassifyInitializers, TheBiasOfBartsLogitsIsABuffer) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[3,3] \"lm_head.weight\" = {1,2,3,4,5,6,7,8,9},"
      "  float[1,3] \"model.final_logits_bias\" = {0,0,0}> {"
      " a = MatMul(x, \"lm_head.weight\")"
      " y = Add(a, \"model.final_logits_bias\") }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              UnorderedElementsAre("lm_head.weight"));
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("not trained"),
                                HasSubstr(": model.final_logits_bias;"))));
}

// Two frequencies of a small rotary embedding are too few to show a table.
TEST(ClassifyInitializers, AVectorOfAnEinsumIsABufferByItsName) {
  for (const auto& [name, trained] :
       {std::pair{"rotary.inv_freq", false}, std::pair{"rotary.query", true}}) {
    const Imported imported = ImportStateDict(absl::StrCat(
        "g (float[2,3] x) => (float[2,3,2] y) <float[2] \"", name,
        "\" = {1,0.01}> {", " y = Einsum<equation = \"bi,j->bij\">(x, \"", name,
        "\") }"));
    EXPECT_EQ(Names(imported.graph, ValueKind::kParameter).size(), trained)
        << name;
  }
}

// Its weight and bias are buffers, although named as those of a layer.
TEST(ClassifyInitializers,
     BatchNormalizationsWithFixedStatisticsAreNotTrained) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[3] \"n.weight\" = {1,2,4}, float[3] \"n.bias\" = {1,0,7},"
      "  float[3] \"n.running_mean\" = {1,2,5},"
      "  float[3] \"n.running_var\" = {1,3,2},"
      "  float[3,3] \"fc.weight\" = {1,2,3,4,5,6,7,8,9}> {"
      " s = Sqrt(\"n.running_var\") a = Div(\"n.weight\", s)"
      " m = Mul(\"n.running_mean\", a) b = Sub(\"n.bias\", m)"
      " h = MatMul(x, \"fc.weight\") i = Mul(h, a) y = Add(i, b) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter),
              UnorderedElementsAre("fc.weight"));
  EXPECT_THAT(imported.warnings,
              ElementsAre(AllOf(HasSubstr("not trained"),
                                HasSubstr(": n.weight, n.bias;"))));
}

TEST(ClassifyInitializers, TokensOfMasksAreTrained) {
  EXPECT_THAT(Trained("g (float[2,3] x, bool[2,1] masked) => (float[2,3] y)"
                      " <float[1,3] \"decoder.mask_token\" = {0.3,-0.2,0.5},"
                      "  float[3] mask_weight = {0.1,0.7,0.4}> {"
                      " a = Where(masked, \"decoder.mask_token\", x)"
                      " y = Mul(a, mask_weight) }"),
              ElementsAre("decoder.mask_token"));
}

// A row of a coupling layer's masks looks like one of an embedding.
TEST(ClassifyInitializers, MasksOfWhichRowsAreReadAreNotTrained) {
  const Imported imported = ImportStateDict(
      "g (float[2,3] x) => (float[2,3] y)"
      " <float[2,3] mask = {1,0,1,0,1,0}, int64 row = {1},"
      "  float[3,3] fc = {0.3,-0.2,0.5,0.1,0.7,0.4,0.9,-0.8,0.6}> {"
      " m = Gather(mask, row) a = Mul(x, m) y = MatMul(a, fc) }");
  EXPECT_THAT(Names(imported.graph, ValueKind::kParameter), ElementsAre("fc"));
  EXPECT_THAT(imported.warnings,
              UnorderedElementsAre(
                  AllOf(HasSubstr("does not say"), HasSubstr(": fc;")),
                  AllOf(HasSubstr("not trained"), HasSubstr(": mask;"))));
}

// A parameter that the exporter moved or computed with, and a slice of knots.
TEST(ClassifyInitializers, TablesUnderInventedNamesAreNotTrained) {
  EXPECT_THAT(
      Names(ImportStateDict(
                "g (float[2,3] x) => (float[2,3] y)"
                " <float[3] \"onnx::Sub_4\" = {-1,-0.5,0},"
                "  float[3] \"onnx::Mul_6\" = {0.3,-0.5,0.1}> {"
                " a = Sub(x, \"onnx::Sub_4\") y = Mul(a, \"onnx::Mul_6\") }")
                .graph,
            ValueKind::kParameter),
      ElementsAre("onnx::Mul_6"));
}

// A blur is a convolution too.
TEST(ClassifyInitializers, EqualFiltersAreNotTrained) {
  EXPECT_THAT(
      Names(ImportStateDict(
                "g (float[1,2,4] x) => (float[1,2,2] y)"
                " <float[2,1,3] blur_kernel = {0.2,0.6,0.2,0.2,0.6,0.2},"
                "  float[2,1,1] weight = {0.2,0.2}> {"
                " a = Conv<group = 2>(x, weight)"
                " y = Conv<group = 2>(a, blur_kernel) }")
                .graph,
            ValueKind::kParameter),
      ElementsAre("weight"));
}

TEST(ClassifyInitializers, RefusesAPatternThatMatchesNothing) {
  ImportOptions options;
  options.freeze = {"w", "encoder.*"};
  const auto imported = ImportText(
      "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }",
      options);
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(imported.status().message(),
            "--freeze: no tensor of the model matches 'encoder.*'; it has w");
}

TEST(ClassifyInitializers, RefusesToTrainWhatCannotBe) {
  ImportOptions options;
  options.train = {"ids"};
  const auto imported = ImportText(
      "g (float[2,2] x) => (float[2,2] y)"
      " <int64[2] ids = {1,0}, float[2] w = {1,2}> {"
      " a = Gather(x, ids) y = Mul(a, w) }",
      options);
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("nothing that matches 'ids' can be trained"));
}

TEST(ClassifyInitializers, WhatNothingReadsIsLeftOut) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] dead = {1,2}> { y = Relu(x) }"),
              IsEmpty());
}

}  // namespace
}  // namespace loadline::models
