// Lines beside the tables: what a reader has to know about the figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/onnx_test_util.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CommandOutput OfMlp(std::vector<std::string> args) {
  args.insert(args.begin() + 1,
              {ZooPath("mlp.onnx"), "--machine", FixedMachinePath()});
  CommandOutput output = RunInProcess(args);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  return output;
}

TEST(Notes, SayInEveryTableOfPlansThatTimesAreEstimated) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"plan"}, {"report"}, {"sweep", "--budgets", "2"}}) {
    EXPECT_THAT(OfMlp(args).out,
                HasSubstr("operators are estimated; --calibrate measures them"))
        << args[0];
  }
}

TEST(Notes, SayThatARunSavesNothing) {
  const std::vector<std::string> run = {"run",     "--no-calibrate",
                                        "--steps", "1",
                                        "--data",  ZooPath("digits-train.npz")};
  EXPECT_THAT(OfMlp(run).err, HasSubstr("will not be saved; -o"));
  std::vector<std::string> saved = run;
  saved.insert(saved.end(), {"-o", FreshFolder() + "/trained.onnx"});
  EXPECT_THAT(OfMlp(saved).err, Not(HasSubstr("will not be saved")));
}

TEST(Notes, SayWhichDivisionsOfTheStepNoSplitOverrides) {
  EXPECT_THAT(
      OfMlp({"plan", "--no-split", "--micro-batches", "4", "--split", "head=2"})
          .err,
      HasSubstr("--no-split: the step stays in one piece; "
                "--micro-batches 4, --split head=2 is ignored"));
  EXPECT_THAT(OfMlp({"plan", "--no-split"}).err, Not(HasSubstr("ignored")));
}

TEST(Notes, SayOnceThatTheOutputIsSoftmaxAlready) {
  const std::string path = FreshFolder() + "/softmax.onnx";
  models::WriteFile(path, models::Bytes(models::ModelFromText(
                              "g (float[2,4] x) => (float[2,3] y)"
                              " <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>"
                              " { h = MatMul(x, w) y = Softmax<axis=1>(h) }")));
  for (const std::vector<std::string>& structure :
       std::vector<std::vector<std::string>>{{}, {"--micro-batches", "auto"}}) {
    std::vector<std::string> args = {"plan", path, "--machine",
                                     FixedMachinePath()};
    args.insert(args.end(), structure.begin(), structure.end());
    const CommandOutput output = RunInProcess(args);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    const size_t at = output.err.find("is Softmax already");
    ASSERT_NE(at, std::string::npos) << output.err;
    EXPECT_EQ(output.err.find("is Softmax already", at + 1), std::string::npos);
  }
}

TEST(Notes, SayOfAnEvaluationThatTheOutputIsSoftmaxAlready) {
  const std::string path = FreshFolder() + "/softmax.onnx";
  models::WriteFile(
      path,
      models::Bytes(models::ModelFromText(
          "g (float[N,1,8,8] image) => (float[N,10] y)"
          " <int64[1] from = {0}, int64[1] to = {10}, int64[1] axis = {1}>"
          " { f = Flatten(image) h = Slice(f, from, to, axis) y = "
          "Softmax<axis=1>(h) }")));
  const CommandOutput output = RunInProcess(
      {"eval", path, "--batch", "100", "--data", ZooPath("digits-train.npz")});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const size_t at = output.err.find("is Softmax already");
  ASSERT_NE(at, std::string::npos) << output.err;
  EXPECT_EQ(output.err.find("is Softmax already", at + 1), std::string::npos);
}

TEST(Notes, SuggestTheNearestFlag) {
  const CommandOutput output =
      RunInProcess({"plan", ZooPath("mlp.onnx"), "--bugdet", "50%"});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("unknown flag '--bugdet'; did you mean "
                                    "'--budget'? (loadline plan --help-all"));
}

}  // namespace
}  // namespace loadline::tools
