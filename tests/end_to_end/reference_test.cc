// Equals PyTorch on the same model, data and settings: the first 20 losses
// within 1e-4, and the first step's gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <tuple>

#include "models/onnx/import.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using Json = nlohmann::json;

Json ReadReference(const std::string& family, const std::string& optimizer) {
  std::ifstream file(Zoo("reference/" + family + "-" + optimizer + ".json"));
  return Json::parse(file);
}

std::string Number(const Json& value) { return value.dump(); }

std::vector<std::string> RunArgs(const std::string& family,
                                 const Json& reference) {
  std::vector<std::string> args = {"run",
                                   Zoo(family + ".onnx"),
                                   "--data",
                                   Zoo(reference["data"].get<std::string>()),
                                   "--batch",
                                   Number(reference["batch"]),
                                   "--optimizer",
                                   reference["optimizer"].get<std::string>(),
                                   "--lr",
                                   Number(reference["lr"]),
                                   "--no-dropout",
                                   "--no-shuffle",
                                   "--json",
                                   "--weight-decay",
                                   Number(reference["weight_decay"])};
  if (reference.contains("momentum")) {
    args.insert(args.end(), {"--momentum", Number(reference["momentum"])});
  }
  return args;
}

class Reference
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Reference, LossesAgreeWithPyTorch) {
  const auto [family, optimizer] = GetParam();
  const Json reference = ReadReference(family, optimizer);
  std::vector<std::string> args = RunArgs(family, reference);
  // Close to the smallest budget for kernels without workspaces, as on
  // processors without AVX-512. Any plan will do, and with times of a busy
  // machine the search can take a minute.
  args.insert(args.end(),
              {"--steps", "20", "--budget", "62%", "--time-limit", "5s"});
  const CommandResult run = RunLoadline(args);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json losses = run.json()["losses"];
  ASSERT_EQ(losses.size(), 20u);
  for (size_t i = 0; i < losses.size(); ++i) {
    const double expected = reference["losses"][i].get<double>();
    EXPECT_NEAR(losses[i].get<double>(), expected, 1e-4 * std::abs(expected))
        << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Reference,
                         testing::Combine(testing::Values("mlp", "resnet18",
                                                          "unet", "gpt"),
                                          testing::Values("sgd", "adamw")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

std::map<std::string, std::vector<float>> Parameters(const std::string& path) {
  models::ImportOptions options;
  options.batch = 2;
  auto imported = models::ImportOnnx(path, options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  std::map<std::string, std::vector<float>> parameters;
  for (const models::Value& value : imported->graph.values) {
    if (value.kind != models::ValueKind::kParameter) continue;
    const auto data = value.initial->as<float>();
    parameters[value.name].assign(data.begin(), data.end());
  }
  return parameters;
}

class Gradient : public testing::TestWithParam<const char*> {};

// One step of SGD with learning rate 1 and no momentum moves every parameter by
// exactly its gradient.
TEST_P(Gradient, OfTheFirstStepAgreesWithPyTorch) {
  const std::string family = GetParam();
  const Json reference = ReadReference(family, "sgd");
  const std::string out = TestFolder("gradient_" + family) + "/out.onnx";
  const CommandResult run =
      RunLoadline({"run", Zoo(family + ".onnx"), "--data",
                   Zoo(reference["data"].get<std::string>()), "--batch",
                   Number(reference["batch"]), "--optimizer", "sgd", "--lr",
                   "1", "--momentum", "0", "--no-dropout", "--no-shuffle",
                   "--steps", "1", "-o", out});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto before = Parameters(Zoo(family + ".onnx"));
  const auto after = Parameters(out);
  int compared = 0;
  for (const auto& [name, expected] : reference["gradients"].items()) {
    if (before.count(name) == 0) continue;  // renamed by the exporter
    ++compared;
    double squares = 0;
    std::vector<double> gradient;
    for (size_t i = 0; i < before.at(name).size(); ++i) {
      gradient.push_back(static_cast<double>(before.at(name)[i]) -
                         after.at(name)[i]);
      squares += gradient[i] * gradient[i];
    }
    const double l2 = expected["l2"].get<double>();
    // (p - g) is rounded, which limits how exactly a small g can be recovered.
    const double tolerance = 2e-4 * l2 + 1e-6;
    EXPECT_NEAR(std::sqrt(squares), l2, tolerance) << name;
    for (size_t i = 0; i < expected["first"].size(); ++i) {
      EXPECT_NEAR(gradient[i], expected["first"][i].get<double>(), tolerance)
          << name << "[" << i << "]";
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Gradient,
                         testing::Values("mlp", "resnet18", "unet", "gpt"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace loadline
