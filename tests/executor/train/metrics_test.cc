#include "executor/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(MetricsFile, HasALineForEachStepAndEvaluation) {
  const std::string path = TemporaryPath("metrics.jsonl");
  auto metrics = MetricsFile::Open(path, 0);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  (*metrics)->Add({.step = 1,
                   .steps = 9,
                   .loss = 0.1f,
                   .learning_rate = 0.001f,
                   .examples_per_s = 12.4});
  (*metrics)->AddEvaluation(1, {.examples = 7, .loss = 0.5, .accuracy = 0.25});
  EXPECT_TRUE((*metrics)->status().ok());
  EXPECT_EQ(Read(path),
            "{\"step\":1,\"loss\":0.1,\"learning_rate\":0.001,"
            "\"examples_per_s\":12.0}\n"
            "{\"step\":1,\"eval_loss\":0.5,\"eval_accuracy\":0.25,"
            "\"eval_examples\":7}\n");
}

TEST(MetricsFile, KeepsTheStepsThatAResumedRunHasDone) {
  const std::string path = TemporaryPath("metrics.jsonl");
  {
    std::ofstream out(path);
    out << "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st";
  }
  {
    auto metrics = MetricsFile::Open(path, 2);
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    (*metrics)->AddEvaluation(3, {.examples = 7, .loss = 1});
  }
  EXPECT_EQ(Read(path),
            "{\"step\":1}\n{\"step\":2}\n"
            "{\"step\":3,\"eval_loss\":1.0,\"eval_examples\":7}\n");
}

TEST(MetricsFile, DropsTheEvaluationThatAResumedRunMakesAgain) {
  const std::string path = TemporaryPath("metrics.jsonl");
  const std::string kept =
      "{\"step\":1}\n{\"step\":1,\"eval_loss\":2.0}\n{\"step\":2}\n";
  const std::string last = "{\"step\":2,\"eval_loss\":1.0}\n";
  for (const bool again : {false, true}) {
    std::ofstream(path) << kept << last << "{\"step\":3}\n";
    ASSERT_TRUE(MetricsFile::Open(path, 2, again).ok());
    EXPECT_EQ(Read(path), again ? kept : kept + last);
  }
}

TEST(MetricsFile, RefusesAnotherFileAndAFullDisk) {
  const std::string path = TemporaryPath("metrics.jsonl");
  {
    std::ofstream out(path);
    out << "step,loss\n";
  }
  EXPECT_THAT(MetricsFile::Open(path, 2).status().ToString(),
              HasSubstr("not a file of metrics"));
  EXPECT_EQ(Read(path), "step,loss\n");
  auto full = MetricsFile::Open("/dev/full", 0);
  ASSERT_TRUE(full.ok()) << full.status();
  (*full)->AddEvaluation(1, {.examples = 7, .loss = 1});
  EXPECT_TRUE(absl::IsResourceExhausted((*full)->status()));
}

}  // namespace
}  // namespace loadline::executor
