// Declares each shared flag once. Options take their last value, so that the
// command line overrides what a YAML file put before it (tools/yaml_args.h).
// Tested by tests/end_to_end/bad_input_test.cc.
#include "tools/flags.h"

#include "CLI/CLI.hpp"

namespace loadline::tools {
namespace {

template <typename T>
CLI::Option* Last(CLI::App* app, const std::string& name, T* target,
                  const std::string& help) {
  return app->add_option(name, *target, help)->take_last();
}

}  // namespace

void AddModelFlags(CLI::App* app, ModelFlags* flags) {
  Last(app, "model", &flags->model, "ONNX model")->required();
  Last(app, "--batch", &flags->batch,
       "Examples per step, for a dynamic first axis (default 32)")
      ->check(CLI::PositiveNumber);
  app->add_option("--dim", flags->dims,
                  "Value of a symbolic dimension, NAME=VALUE (repeatable)");
  app->add_option("--input-shape", flags->input_shapes,
                  "Shape of an input, NAME=32x1x8x8 (repeatable)");
  app->add_option("--frozen", flags->frozen,
                  "Parameter name or prefix* never trained (repeatable)");
  app->add_flag("--no-dropout", flags->no_dropout,
                "Set every dropout ratio to 0");
}

void AddLossFlags(CLI::App* app, LossFlags* flags) {
  Last(app, "--loss", &flags->loss, "cross_entropy or mse")
      ->check(CLI::IsMember({"cross_entropy", "mse"}))
      ->capture_default_str();
  Last(app, "--class-axis", &flags->class_axis,
       "Axis of the classes in the model's output, where target leaves it "
       "open");
  Last(app, "--data", &flags->data,
       "Data, .npz: one array per model input, and target");
}

void AddOptimizerFlags(CLI::App* app, OptimizerFlags* flags) {
  Last(app, "--optimizer", &flags->optimizer, "adamw or sgd")
      ->check(CLI::IsMember({"adamw", "sgd"}))
      ->capture_default_str();
  Last(app, "--lr", &flags->lr, "Learning rate")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  Last(app, "--momentum", &flags->momentum, "SGD's momentum")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  Last(app, "--weight-decay", &flags->weight_decay,
       "Weight decay (default 0.01 for adamw, 0 for sgd)")
      ->check(CLI::NonNegativeNumber);
  Last(app, "--beta1", &flags->beta1, "AdamW")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  Last(app, "--beta2", &flags->beta2, "AdamW")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  Last(app, "--epsilon", &flags->epsilon, "AdamW")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_flag("--nesterov", flags->nesterov, "SGD with Nesterov's momentum");
}

void AddPlanFlags(CLI::App* app, PlanFlags* flags) {
  Last(app, "--budget", &flags->budget,
       "Device bytes with a unit (3GiB, 500MB), or a share of the peak when "
       "everything is kept (60%), or 'smallest'; default: what keeping "
       "everything takes");
  app->add_flag("--no-recompute", flags->no_recompute,
                "Never run a node twice");
  app->add_flag("--no-offload", flags->no_offload, "Never copy to the host");
  Last(app, "--time-limit", &flags->time_limit,
       "Stop planning by the clock, such as 10s (default: counted work)");
  Last(app, "--plan-seed", &flags->plan_seed, "Seed of the planner's search")
      ->capture_default_str();
  Last(app, "--machine", &flags->machine,
       "Machine profile (default: this machine's, measured once)");
  app->add_flag("--calibrate,!--no-calibrate", flags->calibrate,
                "First measure the operators that the profile lacks");
  app->add_option("--disable-pass", flags->disabled_passes,
                  "Switch a pass off by name (repeatable)");
  Last(app, "--dump-passes", &flags->dump_passes,
       "Folder for the graph after each pass");
}

}  // namespace loadline::tools
