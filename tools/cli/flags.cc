// Declares each shared flag once. The last value of an option counts, so the
// command line overrides the YAML file, whose values come first
// (tools/cli/yaml_args.h). Tested by tests/end_to_end/bad_input_test.cc.
#include "tools/cli/flags.h"

#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/device_names.h"
#include "tools/cli/help.h"
#include "tools/cli/number_checks.h"

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
       "Examples per step, where open (default 32)")
      ->check(CheckPositive);
  app->add_option("--dim", flags->dims,
                  "Size of an open axis, by its name (repeatable)")
      ->type_name("NAME=N");
  app->add_option("--input-shape", flags->input_shapes,
                  "Whole shape of an input (repeatable)")
      ->type_name("NAME=NxN");
  app->add_option("--train", flags->train,
                  "Tensor or pattern* to train, even if frozen (repeatable)")
      ->type_name("NAME")
      ->group(kRareFlags);
  app->add_option("--freeze,--frozen", flags->freeze,
                  "Tensor or pattern* to keep as it is (repeatable)")
      ->type_name("NAME");
  app->add_flag("--no-dropout", flags->no_dropout,
                "Set every dropout ratio to 0")
      ->group(kRareFlags);
}

void AddPlannedModelFlags(CLI::App* app, ModelFlags* flags) {
  AddModelFlags(app, flags);
  app->get_option("model")->description("ONNX model, or a problem file, .json");
}

void AddLossFlags(CLI::App* app, LossFlags* flags) {
  Last(app, "--data", &flags->data,
       "Arrays of inputs and target: .npz, or folder of .npy")
      ->type_name("FILE");
  Last(app, "--data-memory", &flags->data_memory,
       "Data of more bytes stays in its file, and each batch is read in time")
      ->type_name("BYTES")
      ->capture_default_str()
      ->group(kRareFlags);
  Last(app, "--loss", &flags->loss, "Loss")
      ->check(CLI::IsMember(
          {"cross_entropy", "mse", "l1", "huber", "bce_with_logits", "model"}))
      ->capture_default_str();
  Last(app, "--output-name", &flags->output,
       "Output of the model that the loss is taken of, or is")
      ->type_name("NAME")
      ->group(kRareFlags);
  Last(app, "--label-smoothing", &flags->label_smoothing,
       "Share of each class target that goes to all classes")
      ->check(CheckShare)
      ->group(kRareFlags);
  app->add_option("--class-weights", flags->class_weights,
                  "Weight of each class in cross_entropy: W,W,...")
      ->type_name("LIST")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(kRareFlags);
  Last(app, "--huber-delta", &flags->huber_delta,
       "From where on huber is linear (default 1)")
      ->check(CheckPositive)
      ->group(kRareFlags);
  Last(app, "--class-axis", &flags->class_axis,
       "Axis of the classes in the model's output, where target leaves it "
       "open")
      ->group(kRareFlags);
}

void AddOptimizerFlags(CLI::App* app, OptimizerFlags* flags) {
  Last(app, "--optimizer", &flags->optimizer, "Optimizer")
      ->check(CLI::IsMember(
          {"adamw", "adam", "adafactor", "adagrad", "lion", "sgd"}))
      ->capture_default_str();
  Last(app, "--lr", &flags->lr, "Learning rate")
      ->check(CheckNonNegative)
      ->capture_default_str();
  Last(app, "--momentum", &flags->momentum, "SGD's momentum (default 0.9)")
      ->check(CheckShare)
      ->group(kRareFlags);
  Last(app, "--weight-decay", &flags->weight_decay,
       "Weight decay (default 0.01 for adamw, else 0)")
      ->check(CheckNonNegative);
  Last(app, "--clip-norm", &flags->clip_norm,
       "Scale gradients down to this global norm")
      ->check(CheckPositive)
      ->group(kRareFlags);
  Last(app, "--lora", &flags->lora,
       "Train only low-rank adapters: rank=16, or rank=16,alpha=32,"
       "targets=A,B with names of weights or nodes, or patterns*")
      ->type_name("RANK")
      ->group(kRareFlags);
  app->add_flag("--no-decay-on-norms-and-biases", flags->decay_matrices_only,
                "Weight decay only of parameters with two axes or more")
      ->group(kRareFlags);
  app->add_option("--no-decay", flags->no_decay,
                  "Parameter or pattern* without weight decay (repeatable)")
      ->type_name("NAME")
      ->group(kRareFlags);
  app->add_option("--lr-scale", flags->lr_scales,
                  "Factor of the learning rate of a parameter or pattern* "
                  "(repeatable)")
      ->type_name("NAME=F")
      ->group(kRareFlags);
  Last(app, "--ema", &flags->ema,
       "Decay of a moving average of the weights, such as 0.999")
      ->check(CheckShare)
      ->group(kRareFlags);
  Last(app, "--precision", &flags->precision, "What the model computes in")
      ->check(CLI::IsMember({"fp32", "bf16", "autocast"}))
      ->capture_default_str();
  Last(app, "--beta1", &flags->beta1,
       "Adam, Lion: decay of the first moment (default 0.9)")
      ->check(CheckShare)
      ->group(kRareFlags);
  Last(app, "--beta2", &flags->beta2,
       "Adam: decay of the second moment (default 0.999); Lion: of the state "
       "(default 0.99)")
      ->check(CheckShare)
      ->group(kRareFlags);
  Last(app, "--epsilon", &flags->epsilon,
       "Adam, Adagrad: added to the root (default 1e-10 for adagrad, else "
       "1e-8)")
      ->check(CheckPositive)
      ->group(kRareFlags);
  Last(app, "--optimizer-bits", &flags->state_bits,
       "Bits of each number of the optimizer's state; 8: blocks of 256 with a "
       "common scale")
      ->check(CLI::IsMember({32, 8}))
      ->capture_default_str()
      ->group(kRareFlags);
  app->add_flag("--nesterov", flags->nesterov, "SGD with Nesterov's momentum")
      ->group(kRareFlags);
}

void AddDeviceFlag(CLI::App* app, std::string* device) {
  CLI::Option* named = Last(app, "--device", device, "Where the step runs")
                           ->check(CLI::IsMember({kCpu, kCuda}))
                           ->capture_default_str();
  app->add_flag_callback(
         "--emulate-device", [device] { *device = kEmulated; },
         "Instead of --device: an accelerator emulated on the CPU, whose "
         "copies go to RAM that no budget counts")
      ->excludes(named)
      ->group(kRareFlags);
}

void AddPlanFlags(CLI::App* app, PlanFlags* flags) {
  AddDeviceFlag(app, &flags->device);
  Last(app, "--budget", &flags->budget,
       "3GiB, 60% of the peak, or smallest (default: all)")
      ->type_name("BYTES");
  app->add_flag("--no-recompute", flags->no_recompute, "Do not recompute");
  app->add_flag("--no-offload", flags->no_offload,
                "Do not offload: no copies to the host");
  CLI::Option* no_stash = app->add_flag("--no-stash", flags->no_stash,
                                        "Never store a value compressed")
                              ->group(kRareFlags);
  Last(app, "--max-gradient-error", &flags->max_gradient_error,
       "Relative error of the gradient up to which values may be stored in "
       "8 bits or fewer, such as 0.01")
      ->check(CheckShare)
      ->capture_default_str()
      ->excludes(no_stash)
      ->type_name("SHARE")
      ->group(kRareFlags);
  Last(app, "--time-limit", &flags->time_limit,
       "Stop planning by the clock, such as 10s")
      ->type_name("TIME");
  Last(app, "--threads", &flags->threads,
       "Most threads that plan (default: one per processor)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->group(kRareFlags);
  Last(app, "--machine", &flags->machine,
       "Profile, or a GPU such as l4 (default: this machine)")
      ->type_name("FILE");
  Last(app, "--plan-seed", &flags->plan_seed, "Seed of the planner's search")
      ->check(CheckSeed)
      ->capture_default_str()
      ->group(kRareFlags);
  app->add_flag("--calibrate,!--no-calibrate", flags->calibrate,
                "First measure the operators that the profile lacks")
      ->group(kRareFlags);
  app->add_option("--split", flags->splits,
                  "Run a chain of operators in N segments, such as head=4 "
                  "(repeatable); or auto")
      ->type_name("CHAIN=N")
      ->group(kRareFlags);
  app->add_option("--disable-pass", flags->disabled_passes,
                  "Switch a pass off by name (repeatable)")
      ->type_name("NAME")
      ->group(kRareFlags);
  Last(app, "--dump-passes", &flags->dump_passes,
       "Folder for the graph after each pass")
      ->type_name("FOLDER")
      ->group(kRareFlags);
}

void AddStructureFlags(CLI::App* app, PlanFlags* flags) {
  Last(app, "--micro-batches", &flags->micro_batches,
       "Number of micro-batches; or auto")
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--allow-micro-batch-statistics", flags->micro_batch_statistics,
                "Normalize each micro-batch by its own batch statistics")
      ->group(kRareFlags);
  app->add_flag("--no-split", flags->no_split,
                "Never divide the step, whatever else is said")
      ->group(kRareFlags);
}

void AddJsonFlag(CLI::App* app, bool* json) {
  app->add_flag("--json", *json, "One JSON document on stdout");
}

void AddOutputFlag(CLI::App* app, std::string* path, const char* text) {
  Last(app, "-o,--output", path, text)->type_name("FILE");
}

}  // namespace loadline::tools
