#include "passes/output_activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WarningFor(const std::string& op, LossKind loss) {
  Builder b;
  const ValueId x = b.Input("x", {4, 10});
  const ValueId y = op == "Sigmoid" || op == "Relu"
                        ? b.Op(op, {x})
                        : b.Op(op, {x}, {{"axis", int64_t{1}}});
  const ValueId moved =
      b.Op("Reshape", {y}, {{"shape", std::vector<int64_t>{2, 2, 10}}});
  b.Output(moved);
  return OutputActivationWarning(b.graph, moved, loss);
}

TEST(OutputActivationWarning, NamesWhatEndsTheModelAndTheLossForItsInput) {
  EXPECT_THAT(WarningFor("Softmax", LossKind::kCrossEntropy),
              AllOf(HasSubstr("is Softmax already"),
                    HasSubstr("--loss cross_entropy applies its own softmax"),
                    HasSubstr("without its last Softmax")));
  EXPECT_THAT(WarningFor("Sigmoid", LossKind::kBce),
              HasSubstr("--loss bce_with_logits applies its own sigmoid"));
  EXPECT_THAT(WarningFor("Sigmoid", LossKind::kCrossEntropy),
              HasSubstr("for --loss bce_with_logits"));
  EXPECT_THAT(WarningFor("Softmax", LossKind::kBce),
              HasSubstr("for --loss cross_entropy"));
  EXPECT_THAT(WarningFor("LogSoftmax", LossKind::kBce),
              HasSubstr("is LogSoftmax already"));
}

TEST(OutputActivationWarning, IsEmptyWhereTheLossIsTheSameOrMeant) {
  // A second log-softmax changes nothing.
  EXPECT_THAT(WarningFor("LogSoftmax", LossKind::kCrossEntropy), IsEmpty());
  EXPECT_THAT(WarningFor("Relu", LossKind::kCrossEntropy), IsEmpty());
  for (const LossKind loss :
       {LossKind::kMse, LossKind::kL1, LossKind::kHuber, LossKind::kModel}) {
    EXPECT_THAT(WarningFor("Softmax", loss), IsEmpty());
    EXPECT_THAT(WarningFor("Sigmoid", loss), IsEmpty());
  }
  Builder b;
  const ValueId x = b.Input("x", {4, 10});
  EXPECT_THAT(OutputActivationWarning(b.graph, x, LossKind::kCrossEntropy),
              IsEmpty());
}

}  // namespace
}  // namespace loadline::passes
