// `loadline check` on real exports and on small models with one fault each.
#include "tools/report/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "models/ops/operator.h"
#include "nlohmann/json.hpp"
#include "tests/models/onnx_test_util.h"
#include "tools/cli/exit_code.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ModelCheck Check(StepFlags flags) {
  executor::CpuDevice device;
  auto check = CheckModel(flags, device);
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *std::move(check) : ModelCheck{};
}

StepFlags File(const std::string& path) {
  StepFlags flags;
  flags.model.model = path;
  return flags;
}

// Flags for a model in ONNX's text syntax, written to a file.
StepFlags Text(const std::string& body) {
  const std::string path = models::TempFolder() + "/model.onnx";
  models::WriteFile(path, models::Bytes(models::ModelFromText(body)));
  return File(path);
}

TEST(CheckModel, SaysThatAGoodExportTrains) {
  const ModelCheck check =
      Check(File(models::DataPath("cnn_torchscript.onnx")));
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_TRUE(check.AsExported());
  EXPECT_EQ(check.forms.batch_norms, 2);
  EXPECT_EQ(check.forms.batch_norms_restored, 0);
  EXPECT_GT(check.parameters, 0);
  EXPECT_THAT(check.without_gradient, IsEmpty());
  EXPECT_EQ(CheckVerdict(check), "Trains as exported.");
  EXPECT_THAT(CheckTable(check), HasSubstr("2 BatchNormalization in training"));
}

TEST(CheckModel, SaysWhatImportHadToPutBack) {
  const ModelCheck check =
      Check(File(models::DataPath("cnn_dynamo_unoptimized.onnx")));
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_FALSE(check.AsExported());
  EXPECT_EQ(check.forms.batch_norms_restored, 2);
  EXPECT_THAT(CheckTable(check), HasSubstr("(2 put back from inference"));
  EXPECT_THAT(CheckTable(check), HasSubstr("dynamo=False"));
}

TEST(CheckModel, WarnsOfAFixedBatchOnlyWhereOneWasAskedFor) {
  StepFlags flags = Text(
      "g (float[3,4] x) => (float[3,4] y)"
      " <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>"
      " { y = MatMul(x, w) }");
  EXPECT_TRUE(Check(flags).AsExported());
  flags.model.batch = 3;
  EXPECT_TRUE(Check(flags).AsExported());
  flags.model.batch = 4;
  EXPECT_FALSE(Check(flags).AsExported());
  EXPECT_THAT(CheckTable(Check(flags)), HasSubstr("fixed to 3"));
}

// The module's own normalization of its inputs.
StepFlags WithBuffers() {
  return Text(
      "g (float[2,3] x) => (float[2,2] y)"
      " <float[3] mean = {1,2,3}, float[3] std = {1,1,2},"
      "  float[3,2] \"fc.weight\" = {1,2,3,4,5,6}, float[2] bias = {0,1}> {"
      " a = Sub(x, mean) b = Div(a, std)"
      " c = MatMul(b, \"fc.weight\") y = Add(c, bias) }");
}

TEST(CheckModel, ListsWhatIsTrainedAndWhatIsNot) {
  StepFlags flags = WithBuffers();
  const ModelCheck check = Check(flags);
  EXPECT_TRUE(check.AsExported()) << CheckTable(check);
  EXPECT_EQ(check.parameters, 2);
  EXPECT_THAT(CheckTable(check),
              HasSubstr("trained       1, operand of MatMul: fc.weight\n"
                        "              1, bias of a product: bias\n"
                        "not trained   2, a buffer, by its name: mean, std\n"));
  EXPECT_EQ(CheckJson(check)["tensors"][0].dump(),
            R"({"name":"mean","trained":false,"why":"a buffer, by its name"})");
  flags.model.train = {"mean"};
  flags.model.freeze = {"fc.*"};
  EXPECT_THAT(CheckTable(Check(flags)),
              HasSubstr("trained       1, --train: mean\n"
                        "              1, bias of a product: bias\n"
                        "not trained   1, a buffer, by its name: std\n"
                        "              1, --freeze: fc.weight\n"));
}

TEST(CheckModel, NamesInputsThatNeedNoData) {
  StepFlags flags = Text(
      "g (float[2,7] aside, float[2,3] x, float[2,2] teacher)"
      " => (float[2,2] y, float[2,2] distance)"
      " <float[3,2] w = {1,2,3,4,5,6}>"
      " { y = MatMul(x, w) distance = Sub(y, teacher) }");
  flags.loss.output = "y";
  const ModelCheck check = Check(flags);
  EXPECT_TRUE(check.AsExported()) << CheckTable(check);
  EXPECT_THAT(CheckTable(check),
              HasSubstr("inputs        x f32[2,3]\n"
                        "not read      aside, teacher: --data needs no arrays "
                        "for them\n"));
  EXPECT_EQ(CheckJson(check)["inputs"].dump(), R"(["x f32[2,3]"])");
  EXPECT_EQ(CheckJson(check)["not_read"].dump(), R"(["aside","teacher"])");
  flags.loss.output = "distance";
  EXPECT_THAT(CheckTable(Check(flags)),
              HasSubstr("inputs        x f32[2,3]\n"
                        "              teacher f32[2,2]\n"
                        "not read      aside: --data needs no array for it\n"));
  flags.loss.output = "";  // which of them?
  EXPECT_THAT(CheckTable(Check(flags)),
              HasSubstr("inputs        x f32[2,3]\n"
                        "              teacher f32[2,2]\n"
                        "not read      aside: --data needs no array for it\n"));
}

TEST(CheckModel, DataNeedsNoArraysOfInputsThatAreNotRead) {
  StepFlags flags = Text(
      "g (float[1,7] aside, float[4,1,8,8] image, float[4,64] teacher)"
      " => (float[4,64] y, float[4,64] distance) <float[1] w = {2}>"
      " { flat = Flatten(image) y = Mul(flat, w) distance = Sub(y, teacher) }");
  flags.model.train = {"w"};
  flags.loss.data = "models/zoo/digits-train.npz";
  flags.loss.output = "y";
  EXPECT_TRUE(Check(flags).status.ok()) << CheckTable(Check(flags));
  flags.loss.output = "distance";
  EXPECT_THAT(CheckVerdict(Check(flags)), HasSubstr("no array 'teacher'"));
}

TEST(CheckModel, CountsWhatFlagsTakeOut) {
  StepFlags flags = File(models::DataPath("mlp_torchscript.onnx"));
  EXPECT_EQ(Check(flags).forms.dropouts, 1);
  flags.model.no_dropout = true;
  EXPECT_EQ(Check(flags).forms.dropouts, 0);
  EXPECT_EQ(Check(flags).forms.dropouts_off, 1);
  flags = File(models::DataPath("cnn_torchscript.onnx"));
  flags.model.freeze = {"bn.*"};
  EXPECT_EQ(Check(flags).forms.batch_norms_fixed, 1);
}

// Such a model can be planned, but `run` would end with this error.
TEST(CheckModel, NamesAParameterWhoseFileIsMissing) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*ReadFile("models/zoo/mlp.onnx")));
  onnx::TensorProto* weights = model.mutable_graph()->mutable_initializer(0);
  weights->clear_raw_data();
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weights->add_external_data();
  location->set_key("location");
  location->set_value("none.bin");
  const std::string path = models::TempFolder() + "/without.onnx";
  models::WriteFile(path, models::Bytes(model));
  const ModelCheck check = Check(File(path));
  EXPECT_EQ(ExitCodeFor(check.status), kBadInput) << check.status;
  EXPECT_THAT(CheckVerdict(check), HasSubstr(weights->name()));
  EXPECT_THAT(CheckVerdict(check), HasSubstr("a file of weights is missing"));
}

// The target alone says nothing of the inputs.
TEST(CheckModel, ReadsEveryArrayOfTheData) {
  StepFlags mlp = File("models/zoo/mlp.onnx");
  mlp.loss.data = "models/zoo/digits-train.npz";
  EXPECT_TRUE(Check(mlp).AsExported()) << Check(mlp).status;
  mlp.model.batch = 100'000;
  EXPECT_EQ(ExitCodeFor(Check(mlp).status), kBadInput);
  EXPECT_THAT(CheckVerdict(Check(mlp)),
              HasSubstr("less than one batch of 100000"));
  StepFlags other = Text(
      "g (float[batch,1,8,8] image, float[10] target) => (float y)"
      " <float[1] w = {2}> { a = Mul(image, w)"
      " b = ReduceMean<keepdims = 0>(a) c = ReduceMean<keepdims = 0>(target)"
      " y = Add(b, c) }");
  other.loss.loss = "model";
  other.loss.data = "models/zoo/digits-train.npz";
  EXPECT_THAT(
      CheckVerdict(Check(other)),
      HasSubstr("'target' is f32[10]: its first axis is not the batch"));
  other = Text(
      "g (float[batch,1] wrong) => (float[batch,10] y)"
      " <float[1,10] w = {1,2,3,4,5,6,7,8,9,10}> { y = Mul(wrong, w) }");
  other.loss.data = "models/zoo/digits-train.npz";
  EXPECT_FALSE(Check(other).AsExported());
  EXPECT_EQ(ExitCodeFor(Check(other).status), kBadInput);
  EXPECT_THAT(CheckVerdict(Check(other)), HasSubstr("'wrong'"));
}

TEST(CheckModel, RefusesABatchThatIsNotTheFirstAxis) {
  StepFlags flags = Text(
      "g (float[8,batch,4] x) => (float[8,batch,4] y)"
      " <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>"
      " { y = MatMul(x, w) }");
  flags.model.dims = {"batch=8"};
  const ModelCheck check = Check(flags);
  EXPECT_EQ(ExitCodeFor(check.status), kBadInput);
  EXPECT_THAT(CheckVerdict(check),
              HasSubstr("input 'x': the batch ('batch') is its axis 1"));
}

TEST(CheckModel, CountsOneUnsupportedOperatorInTheSingular) {
  const ModelCheck check =
      Check(Text("g (float[2,3,3] x) => (float[2] y) { y = Det(x) }"));
  EXPECT_EQ(CheckVerdict(check), "Not supported: 1 operator in 1 node.");
}

TEST(CheckModel, ListsEveryUnsupportedOperatorWithItsNodes) {
  const ModelCheck check = Check(
      Text("g (float[2,3,8,8] x) => (float[2,3,4,4] y) {"
           " [a] u = Det(x) [b] v = Det(x) [c] w = NonMaxSuppression(x, v)"
           " [e] y = Add(w, u) }"));
  EXPECT_EQ(ExitCodeFor(check.status), kUnsupported);
  ASSERT_EQ(check.unsupported.size(), 2);
  EXPECT_EQ(check.unsupported[0].name, "Det");
  EXPECT_THAT(check.unsupported[0].nodes, ElementsAre("a", "b"));
  EXPECT_EQ(check.unsupported[1].name, "NonMaxSuppression");
  EXPECT_EQ(CheckVerdict(check), "Not supported: 2 operators in 3 nodes.");
  EXPECT_THAT(CheckTable(check), HasSubstr("Det x2: a, b"));
  EXPECT_EQ(CheckJson(check)["unsupported"].size(), 2);
  EXPECT_EQ(CheckJson(check)["supported"], false);
}

// The table has the advice of the error that import ends with.
TEST(CheckModel, SaysWhatToDoAboutQuantizedAndOptimizedModels) {
  const StepFlags quantized = Text(
      "g (float[4] x) => (uint8[4] y, float s, uint8 z)"
      " { y, s, z = DynamicQuantizeLinear(x) }");
  EXPECT_THAT(CheckTable(Check(quantized)),
              HasSubstr("the model is quantized"));
  onnx::ModelProto model =
      models::ModelFromText("g (float[4] x) => (float[4] y) { y = Relu(x) }");
  const auto advice_for = [&model](const std::string& domain,
                                   const std::string& op) {
    model.mutable_graph()->mutable_node(0)->set_domain(domain);
    model.mutable_graph()->mutable_node(0)->set_op_type(op);
    auto* import = model.add_opset_import();
    import->set_domain(domain);
    import->set_version(1);
    const std::string path = models::TempFolder() + "/model.onnx";
    models::WriteFile(path, models::Bytes(model));
    return CheckTable(Check(File(path)));
  };
  EXPECT_THAT(advice_for("com.microsoft", "FusedConv"),
              HasSubstr("ORT_ENABLE_BASIC"));
  EXPECT_THAT(advice_for("ai.onnx.ml", "Binarizer"),
              HasSubstr("extract_model"));
}

TEST(CheckModel, NamesTheFlagForEachOpenAxis) {
  StepFlags flags = Text(
      "g (float[batch,seq,4] x, float[batch,8,seq] z) => (float[batch,seq,4] y)"
      " <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>"
      " { u = MatMul(x, w) s = ReduceSum(z) y = Add(u, s) }");
  ModelCheck check = Check(flags);
  EXPECT_EQ(ExitCodeFor(check.status), kBadInput);
  EXPECT_FALSE(check.imported);
  ASSERT_EQ(check.open_axes.size(), 4);
  EXPECT_EQ(check.open_axes[0].flag, "--batch N");
  EXPECT_EQ(check.open_axes[0].size, 32);
  EXPECT_EQ(check.open_axes[1].flag, "--dim seq=N");
  EXPECT_EQ(check.open_axes[1].size, 0);
  EXPECT_THAT(CheckVerdict(check), HasSubstr("Give --dim seq=N; "));
  flags.model.dims = {"seq=6"};
  check = Check(flags);
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_EQ(check.open_axes[3].size, 6);
  EXPECT_THAT(check.inputs, ElementsAre("x f32[32,6,4]", "z f32[32,8,6]"));
}

TEST(CheckModel, NamesTheWholeShapeWhereAnAxisHasNoName) {
  const ModelCheck check =
      Check(Text("g (float[2,?,4] x) => (float[2,?,4] y) { y = Relu(x) }"));
  ASSERT_EQ(check.open_axes.size(), 1);
  EXPECT_EQ(check.open_axes[0].flag, "--input-shape x=2xNx4");
}

TEST(CheckModel, FindsParametersThatNothingTrains) {
  // Integers pass no gradient.
  const ModelCheck check =
      Check(Text("g (float[2,4] x, int64[4] k) => (float[2,4] y)"
                 " <float[4] w = {1,2,3,4}, float[4] bias = {1,2,3,4}>"
                 " { i = CastLike(w, k) f = Cast<to=1>(i) s = Add(x, f)"
                 " y = Add(s, bias) }"));
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_THAT(check.without_gradient, ElementsAre("w"));
  EXPECT_EQ(check.parameters, 1);
  EXPECT_THAT(CheckTable(check), HasSubstr("without a gradient: w"));
}

TEST(CheckModel, SaysThatThereIsNothingToTrain) {
  const ModelCheck check =
      Check(Text("g (float[2,4] x) => (float[2,4] y) { y = Relu(x) }"));
  EXPECT_EQ(ExitCodeFor(check.status), kBadInput);
  EXPECT_TRUE(check.loss_status.ok());
  EXPECT_THAT(CheckVerdict(check), HasSubstr("nothing to train"));
}

TEST(CheckModel, SaysThatTheLossDoesNotFit) {
  StepFlags flags = File(models::DataPath("mlp_torchscript.onnx"));
  flags.loss.class_axis = 5;
  const ModelCheck check = Check(flags);
  EXPECT_EQ(ExitCodeFor(check.status), kBadInput);
  EXPECT_TRUE(check.imported);
  EXPECT_FALSE(check.loss_status.ok());
  EXPECT_THAT(CheckTable(check), HasSubstr("does not fit"));
  EXPECT_EQ(CheckJson(check)["loss"]["fits"], false);
}

// As Keras and scikit-learn export classifiers.
TEST(CheckModel, WarnsWhereTheOutputIsSoftmaxAlready) {
  StepFlags flags = Text(
      "g (float[2,4] x) => (float[2,3] y)"
      " <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>"
      " { h = MatMul(x, w) y = Softmax<axis=1>(h) }");
  const ModelCheck check = Check(flags);
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_FALSE(check.AsExported());
  EXPECT_THAT(CheckTable(check), HasSubstr("'y' is Softmax already"));
  flags.loss.loss = "mse";
  EXPECT_TRUE(Check(flags).AsExported());
}

TEST(CheckModel, NamesTheFlagWhereTheOutputIsTheLoss) {
  StepFlags flags = Text(
      "g (float[2,4] x) => (float y)"
      " <float[4,1] w = {1,2,3,4}>"
      " { h = MatMul(x, w) y = ReduceMean<keepdims=0>(h) }");
  EXPECT_THAT(CheckVerdict(Check(flags)), HasSubstr("give --loss model"));
  flags.loss.loss = "model";
  EXPECT_TRUE(Check(flags).AsExported());
}

TEST(CheckModel, RefusesAFileThatIsNoModel) {
  executor::CpuDevice device;
  EXPECT_EQ(ExitCodeFor(CheckModel(File("/no/model.onnx"), device).status()),
            kBadInput);
}

ModelCheck CheckWithGradients(const reference::GradientCheckOptions& options) {
  executor::CpuDevice device;
  auto check = CheckModel(File(models::DataPath("cnn_torchscript.onnx")),
                          device, &options);
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *std::move(check) : ModelCheck{};
}

TEST(CheckModel, ComparesGradientsWithFiniteDifferences) {
  const ModelCheck check = CheckWithGradients({});
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_EQ(CheckVerdict(check), "Trains as exported.");
  EXPECT_THAT(CheckTable(check), HasSubstr("BatchNormTraining x2: "));
  const auto json = CheckJson(check);
  ASSERT_GE(json["gradients"].size(), 5u);
  for (const auto& of_op : json["gradients"]) {
    EXPECT_FALSE(of_op["wrong"]) << of_op;
    EXPECT_LT(of_op["relative_error"], 1e-6) << of_op;
    EXPECT_EQ(of_op["left_out"], 0) << of_op;
  }
}

TEST(CheckModel, SaysWhichGradientIsWrong) {
  reference::GradientCheckOptions options;
  options.rule = [](models::GradientContext& c) -> absl::Status {
    if (c.forward().op == "Relu") {
      c.SetInputGradient(0, c.output_gradient(0));
      return absl::OkStatus();
    }
    return models::FindOperator(c.forward().op)->gradient(c);
  };
  const ModelCheck check = CheckWithGradients(options);
  EXPECT_EQ(ExitCodeFor(check.status), kOurBug);
  EXPECT_THAT(CheckVerdict(check),
              HasSubstr("gradients that differ from finite differences: Relu"));
  EXPECT_THAT(CheckTable(check), HasSubstr("Relu x2: WRONG"));
  int wrong = 0;
  const auto json = CheckJson(check);
  for (const auto& of_op : json["gradients"]) {
    wrong += of_op["wrong"].get<bool>();
  }
  EXPECT_EQ(wrong, 1);
}

}  // namespace
}  // namespace loadline::tools
