// Every error of every verb: the input, the exit code, and the message.
// bad_input_test.cc tests damaged files end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;

struct Case {
  std::vector<std::string> args;
  int exit_code;
  std::string says;
};

constexpr char kMlp[] = "models/zoo/mlp.onnx";
constexpr char kData[] = "models/zoo/digits-train.npz";
constexpr char kMachine[] = "tests/tools/machine.json";

// Arguments for a verb on the small model, with a fixed machine.
std::vector<std::string> Mlp(const std::string& verb,
                             std::vector<std::string> more) {
  std::vector<std::string> args = {verb, kMlp};
  if (verb != "inspect" && verb != "check" && verb != "groups") {
    args.insert(args.end(), {"--machine", kMachine});
  }
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// A budget without recomputation and copies, which is decided quickly.
std::vector<std::string> Plain(const std::string& budget) {
  return {"--no-recompute", "--no-offload", "--budget", budget};
}

void Expect(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(absl::StrJoin(one.args, " "));
    const CommandOutput output = RunInProcess(one.args);
    EXPECT_EQ(output.exit_code, one.exit_code) << output.err;
    EXPECT_THAT(output.err, HasSubstr("loadline: "));
    EXPECT_THAT(output.err, HasSubstr(one.says));
    EXPECT_EQ(output.out, "");
  }
}

TEST(VerbErrors, OfTheCommandItself) {
  Expect({{{"help", "plna"}, 2, "did you mean 'plan'?"},
          {{"plna"}, 2, "did you mean 'plan'?"},
          {{"--nothing"}, 2, "subcommand"},
          {{"plan"}, 2, "model"},
          {{"plan", kMlp, "second.onnx", "--nothing"}, 2, "--nothing"}});
}

// The flags are declared once, so one verb represents all.
TEST(VerbErrors, OfFlagsThatVerbsShare) {
  std::vector<Case> cases;
  const char* const verb = "pose";
  const auto add = [&](std::vector<std::string> more, const char* says) {
    cases.push_back({Mlp(verb, std::move(more)), 2, says});
  };
  add({"--batch", "0"}, "--batch");
  add({"--batch", "many"}, "--batch");
  add({"--dim", "batch"}, "--dim 'batch': expected NAME=VALUE");
  add({"--dim", "batch=0"}, "--dim '0': expected a whole number");
  add({"--input-shape", "image=0x1x8x8"}, "--input-shape '0'");
  add({"--input-shape", "image=3x4"}, "has 4 axes, not the 2 given");
  add({"--input-shape", "image=3x1x9x8"}, "axis 2 is fixed to 8");
  add({"--input-shape", "picture=3x4"}, "'picture', which is no input");
  add({"--freeze", "*"}, "nothing to train");
  add({"--frozen", "*"}, "nothing to train");
  add({"--freeze", "nope"},
      "--freeze: no tensor of the model matches 'nope'; "
      "it has fc1.weight");
  add({"--train", "nope"}, "--train: no tensor of the model matches 'nope'");
  add({"--loss", "hinge"}, "--loss");
  add({"--class-axis", "7"}, "--class-axis 7");
  add({"--data", "/no/data.npz"}, "/no/data.npz");
  add({"--optimizer", "adadelta"}, "--optimizer");
  add({"--clip-norm", "-1"}, "--clip-norm");
  add({"--no-decay", "nope"}, "no trained parameter matches 'nope'");
  add({"--lr-scale", "fc1.weight"}, "expected NAME=VALUE");
  add({"--lr-scale", "fc1.weight=much"}, "expected NAME=FACTOR");
  add({"--ema", "1"}, "decay of the average is 1");
  add({"--output-name", "nope"}, "no output named 'nope'");
  add({"--label-smoothing", "2"}, "--label-smoothing");
  add({"--loss", "mse", "--label-smoothing", "0.1"},
      "only cross_entropy has label smoothing");
  add({"--loss", "mse", "--class-weights", "1,2"},
      "only cross_entropy has class weights");
  add({"--class-weights", "1,2"}, "2 class weights, but the prediction");
  add({"--class-weights", "1,-2"}, "a class weight of -2");
  add({"--class-weights", "1,x"}, "--class-weights");
  add({"--class-weights", "0,0,0,0,0,0,0,0,0,0"}, "all class weights are 0");
  add({"--lora", "rank=4", "--freeze", "*"}, "are frozen");
  add({"--lora", "rank=1000"}, "no wider than the rank 1000");
  add({"--loss", "model"}, "needs an output of one f32 number");
  add({"--lr", "-1"}, "--lr");
  add({"--momentum", "2"}, "--momentum");
  add({"--weight-decay", "-1"}, "--weight-decay");
  add({"--beta1", "2"}, "--beta1");
  add({"--beta2", "1"}, "beta2 is 1");
  add({"--epsilon", "0"}, "--epsilon");
  add({"--optimizer", "sgd", "--nesterov", "--momentum", "0"},
      "nesterov needs a momentum");
  add({"--optimizer", "adagrad", "--momentum", "0.9"},
      "--momentum: --optimizer adagrad has no such setting");
  add({"--nesterov"}, "--nesterov: --optimizer adamw has no such setting");
  add({"--optimizer", "sgd", "--beta1", "0.9"}, "--beta1: --optimizer sgd");
  add({"--optimizer", "adagrad", "--beta2", "0.9"}, "--beta2: --optimizer");
  add({"--optimizer", "lion", "--epsilon", "0.1"}, "--epsilon: --optimizer");
  add({"--device", "tpu"}, "--device");
  add({"--plan-seed", "-1"}, "--plan-seed");
  add({"--disable-pass", "add_loss"}, "cannot be switched off");
  add({"--disable-pass", "nothing"}, "no pass named 'nothing'");
  add({"--dump-passes", "/proc/no"}, "/proc/no");
  add({"--micro-batches", "0"}, "--micro-batches '0'");
  add({"--micro-batches", "few"}, "a whole number above zero, or auto");
  add({"--micro-batches", "auto"}, "one structure");
  add({"--split", "auto"}, "one structure");
  add({"--split", "head"}, "expected CHAIN=N");
  add({"--split", "head=0"}, "expected CHAIN=N");
  add({"--split", "nope=2"}, "no chain 'nope' to split");
  add({"--split", "auto", "--split", "head=2"}, "give it alone");
  add({"--batch", "8", "--micro-batches", "3"}, "a divisor of 8");
  add({"--config", "/no/file.yaml"}, "/no/file.yaml");
  cases.push_back({{verb, "/no/model.onnx"}, 2, "/no/model.onnx"});
  cases.push_back({{verb, kData}, 2, "digits-train.npz"});
  cases.push_back(
      {{verb, kMlp, "--machine", "/no/machine.json"}, 2, "/no/machine.json"});
  cases.push_back({{verb, kMlp, "--machine", kData}, 2, "digits-train"});
  Expect(cases);
}

TEST(VerbErrors, OfBudgetsAndLimits) {
  std::vector<Case> cases;
  for (const char* verb : {"plan", "report"}) {
    for (const auto& [budget, says] :
         {std::pair("3", "bare number"), std::pair("3XB", "unknown unit 'xb'"),
          std::pair("-1GiB", "above zero"), std::pair("0%", "above zero"),
          std::pair("much", "expected a number"),
          std::pair("99999999TiB", "too large")}) {
      cases.push_back({Mlp(verb, {"--budget", budget}), 2, says});
    }
    cases.push_back({Mlp(verb, Plain("1KiB")), 3, "no plan within"});
    cases.push_back({Mlp(verb, {"--budget", "70%", "--time-limit", "1ns"}), 5,
                     "a larger --time-limit may find one"});
    std::vector<std::string> two_parts = Plain("1KiB");
    two_parts.insert(two_parts.end(), {"--micro-batches", "2"});
    cases.push_back({Mlp(verb, two_parts), 3,
                     "without --no-recompute, without --no-offload, "
                     "--optimizer-bits 8"});
    // Activations take more than the largest update.
    two_parts.insert(two_parts.end(), {"--batch", "1024"});
    cases.push_back({Mlp(verb, two_parts), 3,
                     "--micro-batches auto, or more micro-batches"});
    cases.push_back({Mlp(verb, {"--time-limit", "5"}), 2, "--time-limit '5'"});
    cases.push_back({Mlp(verb, {"--time-limit", "-5s"}), 2, "above zero"});
    cases.push_back({Mlp(verb, {"--threads", "0"}), 2, "--threads"});
    cases.push_back({Mlp(verb, {"--threads", "two"}), 2, "--threads"});
  }
  cases.push_back({Mlp("estimate", {"--budget", "smallest"}), 2, "a search"});
  cases.push_back({Mlp("estimate", {"--budget", "3"}), 2, "bare number"});
  cases.push_back(
      {Mlp("estimate", {"--micro-batches", "auto"}), 2, "takes a search"});
  Expect(cases);
}

// A script's variable that is not set.
TEST(VerbErrors, OfEmptyValues) {
  std::vector<Case> cases;
  for (const char* flag :
       {"--budget", "--time-limit", "--data", "--machine", "-o", "--train",
        "--freeze", "--problem", "--dump-passes"}) {
    cases.push_back({{"plan", kMlp, flag, ""}, 2, "must not be empty"});
  }
  cases.push_back({{"plan", kMlp, "--budget="}, 2, "--budget"});
  cases.push_back({{"plan", ""}, 2, "must not be empty"});
  cases.push_back(
      {{"run", kMlp, "--data", kData, "--checkpoint", ""}, 2, "must not be"});
  cases.push_back({{"pack", "b.csv", "--capacity", ""}, 2, "must not be"});
  Expect(cases);
}

// Division by zero in a library, and an end by a signal.
TEST(VerbErrors, OfSizesBeyondTheKernels) {
  std::vector<Case> cases;
  for (const char* model : {"mlp", "gpt", "resnet18"}) {
    const std::string path = ZooPath(std::string(model) + ".onnx");
    for (const char* batch : {"134217728", "2147483648", "4294967296",
                              "1099511627776", "4611686018427387904"}) {
      if (std::string(model) == "mlp" && std::string(batch) == "134217728") {
        continue;  // lines enough for it
      }
      cases.push_back(
          {{"plan", path, "--machine", kMachine, "--batch", batch}, 2, batch});
    }
  }
  Expect(cases);
  const CommandOutput check =
      RunInProcess({"check", kMlp, "--batch", "4294967296"});
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_THAT(check.err, HasSubstr("at most 2147483647 numbers"));
}

TEST(VerbErrors, OfRun) {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", kData});
    return Mlp("run", std::move(more));
  };
  const std::string folder = FreshFolder();
  const std::string plan = folder + "/plan.json";
  ASSERT_EQ(RunInProcess(Mlp("plan", {"-o", plan, "--batch", "8"})).exit_code,
            0);
  Expect(
      {{Mlp("run", {}), 2, "--data"},
       {Mlp("run", {"--data", "/no/d.npz"}), 2, "/no/d.npz"},
       {run({"--steps", "1", "--epochs", "1"}), 2, "give one of them"},
       {run({"--recipe", "/no/r.yaml"}), 2, "/no/r.yaml"},
       {run({"--recipe", "r.yaml", "--replan"}), 2, "--replan and --recipe"},
       {run({"--recipe", "r.yaml", "--plan", "p"}), 2, "--plan and --recipe"},
       {run({"--recipe", "r.yaml", "--ema", "0.9"}), 2, "--ema and --recipe"},
       {Mlp("plan", {"--recipe", "/no/r.yaml"}), 2, "/no/r.yaml"},
       {Mlp("plan", {"--recipe", "r.yaml", "-o", "p"}), 2, "-o and --problem"},
       {run({"--steps", "0"}), 2, "--steps"},
       {run({"--epochs", "x"}), 2, "--epochs"},
       {run({"--resume"}), 2, "needs --checkpoint"},
       {run({"--checkpoint-every", "-1"}), 2, "--checkpoint-every"},
       {run({"--log-every", "0"}), 2, "--log-every"},
       {run({"--seed", "-1"}), 2, "--seed"},
       {run({"-o", "/no/f/t.onnx"}), 2, "/no/f does not exist"},
       {run({"--checkpoint", "/no/f/c"}), 2, "/no/f does not exist"},
       {run({"--trace", "/no/f/t.json"}), 2, "/no/f does not exist"},
       {run({"-o", "-"}), 2, "-o -: run writes no file to stdout"},
       {run({"--metrics", "-"}), 2, "--metrics -: run writes no file"},
       {run({"--checkpoint", "-"}), 2, "--checkpoint -: run writes no file"},
       {run({"--trace", "-"}), 2, "--trace -: run writes no file"},
       {run({"--no-calibrate", "--plan", "/no/p.json"}), 2, "/no/p.json"},
       {run({"--no-calibrate", "--plan", plan, "--problem", "/no/q.json"}), 2,
        "/no/q.json"},
       {run({"--no-calibrate", "--plan", plan}), 2, plan},
       // Without the search that such a budget would fail in.
       {run({"--no-calibrate", "--batch", "8", "--plan", plan, "--budget",
             "1KiB"}),
        2, "the plan takes "}});
}

TEST(VerbErrors, OfVerbsThatWriteFiles) {
  Expect({{Mlp("plan", {"-o", "/no/p.json"}), 2, "/no/p.json"},
          {Mlp("plan", {"--problem", "/no/q.json"}), 2, "/no/q.json"},
          {Mlp("pose", {"-o", "/no/q.json"}), 2, "/no/q.json"},
          {Mlp("report", {"--html", "/no/r.html"}), 2, "/no/r.html"},
          {Mlp("report", {"--trace", "/no/t.json"}), 2, "/no/t.json"}});
}

// A file on stdout is alone there.
TEST(VerbErrors, NoneOfOneFileToStdout) {
  for (const auto& args :
       {Mlp("plan", {"--problem", "-"}), Mlp("report", {"--trace", "-"})}) {
    const CommandOutput output = RunInProcess(args);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_TRUE(nlohmann::json::accept(output.out)) << args[2];
  }
}

TEST(VerbErrors, OfVerbsThatReadModels) {
  Expect({{{"inspect"}, 2, "model"},
          {{"inspect", "/no/m.onnx"}, 2, "/no/m.onnx"},
          {{"inspect", "models"}, 2, "models"},
          {Mlp("inspect", {"--batch", "-3"}), 2, "--batch"},
          {{"groups", "/no/m.onnx"}, 2, "/no/m.onnx"},
          {Mlp("groups", {"--dim", "x"}), 2, "--dim 'x'"},
          {{"check", "/no/m.onnx"}, 2, "/no/m.onnx"},
          {Mlp("check", {"--dim", "x"}), 2, "--dim 'x'"},
          {Mlp("eval", {}), 2,
           "eval: needs --data FILE, an .npz file or a folder"},
          {Mlp("eval", {"--data", "models/zoo/text-test.npz"}), 2,
           "text-test.npz has no array 'image'"}});
}

TEST(VerbErrors, OfPlannerFiles) {
  const std::string folder = FreshFolder();
  const std::string problem = folder + "/problem.json";
  const std::string plan = folder + "/plan.json";
  const std::string other = folder + "/other.json";
  const std::string broken = folder + "/broken.json";
  ASSERT_TRUE(WriteFile(broken, "{\"format\": \"loadline.problem/1\"}").ok());
  ASSERT_EQ(
      RunInProcess(Mlp("plan", {"-o", plan, "--problem", problem})).exit_code,
      0);
  ASSERT_EQ(RunInProcess(Mlp("pose", {"-o", other, "--batch", "8"})).exit_code,
            0);
  Expect(
      {{{"plan", "/no/q.json"}, 2, "/no/q.json"},
       {{"plan", broken}, 2, broken},
       {{"plan", problem, "--no-recompute", "--no-offload", "--budget", "1KiB"},
        3,
        "no plan within"},
       {{"estimate", broken}, 2, broken},
       {{"report", broken}, 2, broken},
       {{"report", plan, "--problem", other}, 2, plan},
       {{"report", problem, "--steps", "1"}, 2, "needs the model"},
       {Mlp("report", {"--problem", problem}), 2, "PLAN.json"},
       {{"verify", problem}, 2, "plan"},
       {{"verify", broken, plan}, 2, broken},
       {{"verify", problem, "/no/p.json"}, 2, "/no/p.json"},
       {{"verify", problem, broken}, 2, broken},
       {{"verify", other, plan}, 2, plan},
       {{"compare", plan}, 2, "b"},
       {{"compare", plan, plan}, 2, "--problem"},
       {{"compare", plan, plan, "--problem", other}, 2, plan},
       {{"compare", plan, "/no/p.json", "--problem", problem}, 2, "/no/p.json"},
       {{"compare", problem, plan, "--problem", problem},
        2,
        "loadline.problem/1"}});
}

TEST(VerbErrors, OfPack) {
  const std::string folder = FreshFolder();
  const std::string csv = folder + "/b.csv";
  ASSERT_TRUE(WriteFile(csv, "id,lower,upper,size\n0,0,4,8\n1,2,6,8\n").ok());
  const std::string bad = folder + "/bad.csv";
  ASSERT_TRUE(WriteFile(bad, "id,lower,upper,size\n0,4,0,8\n").ok());
  Expect(
      {{{"pack"}, 2, "buffers"},
       {{"pack", csv}, 2, "--capacity"},
       {{"pack", "/no/b.csv", "--capacity", "16"}, 2, "/no/b.csv"},
       {{"pack", bad, "--capacity", "16"}, 2, bad},
       {{"pack", csv, "--capacity", "50%"}, 2, "not a share"},
       {{"pack", csv, "--capacity", "x"}, 2, "--capacity 'x'"},
       {{"pack", csv, "--capacity", "15"}, 3, csv},
       {{"pack", csv, "--capacity", "16", "--alignment", "0"},
        2,
        "--alignment"},
       {{"pack", csv, "--capacity", "16", "--seed", "x"}, 2, "--seed"},
       {{"pack", csv, "--capacity", "16", "-o", "/no/o.csv"}, 2, "/no/o.csv"}});
}

TEST(VerbErrors, OfSweep) {
  Expect(
      {{Mlp("sweep", {"--budgets", "1"}), 2, "--budgets"},
       {Mlp("sweep", {"--batches", "0"}), 2, "--batches"},
       {Mlp("sweep", {"--run", "1"}), 2, "needs --data"},
       {Mlp("sweep", {"--largest-batch"}), 2, "needs --budget in bytes"},
       {Mlp("sweep", {"--largest-batch", "--no-recompute", "--no-offload",
                      "--budget", "1KiB", "--batch", "1"}),
        3, "no plan within"},
       {Mlp("sweep", {"--largest-batch", "--budget", "1GiB", "--batches", "2"}),
        2, "give one of them"},
       {Mlp("sweep", {"--no-recompute", "--no-offload", "--budgets", "2",
                      "--html", "/no/s.html"}),
        2, "/no/s.html"}});
}

TEST(VerbErrors, OfDoctor) {
  Expect({{{"doctor", "-o", "/proc/no/machine.json"}, 2, "/proc/no"},
          {{"doctor", "--device", "tpu"}, 2, "--device"},
          {{"doctor", "model.onnx"}, 2, "model.onnx"}});
}

}  // namespace
}  // namespace loadline::tools
