// Flags that several verbs share: one flag per concept, with the same name in
// YAML.
#ifndef LOADLINE_TOOLS_CLI_FLAGS_H_
#define LOADLINE_TOOLS_CLI_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// CLI11 is slow to include; only files that add flags include it.
namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

struct ModelFlags {
  std::string model;  // path of the ONNX file
  std::optional<int64_t> batch;
  std::vector<std::string> dims;          // NAME=VALUE
  std::vector<std::string> input_shapes;  // NAME=1x3x224x224
  std::vector<std::string> train;         // patterns of initializers
  std::vector<std::string> freeze;        // the same
  bool no_dropout = false;
};

struct LossFlags {
  std::string loss = "cross_entropy";
  std::optional<int64_t> class_axis;
  std::string output;  // of the model; empty: it has one only
  double label_smoothing = 0;
  std::vector<double> class_weights;  // empty: all 1
  std::optional<double> huber_delta;  // 1
  // .npz, or folder of .npy; if given, it determines the target's shape
  std::string data;
  std::string data_memory = "1GiB";  // bytes; larger data stays in its file
};

struct OptimizerFlags {
  std::string optimizer = "adamw";
  double lr = 1e-3;
  std::optional<double> momentum;      // 0.9
  std::optional<double> weight_decay;  // 0.01 for adamw, 0 for sgd
  std::optional<double> beta1;         // 0.9
  std::optional<double> beta2;         // 0.99 for lion, else 0.999
  std::optional<double> epsilon;       // 1e-10 for adagrad, else 1e-8
  bool nesterov = false;
  double clip_norm = 0;               // 0: gradients are not clipped
  std::vector<std::string> no_decay;  // patterns of parameters
  bool decay_matrices_only = false;
  std::vector<std::string> lr_scales;  // PATTERN=FACTOR
  double ema = 0;                      // 0: no average of the weights
  std::string precision = "fp32";
  int state_bits = 32;  // or 8
  std::string lora;     // rank=16,alpha=32,targets=A,B; empty: no adapters

  double EffectiveWeightDecay() const {
    return weight_decay.value_or(optimizer == "adamw" ? 0.01 : 0.0);
  }
  double EffectiveMomentum() const { return momentum.value_or(0.9); }
  double EffectiveBeta1() const { return beta1.value_or(0.9); }
  double EffectiveBeta2() const {
    return beta2.value_or(optimizer == "lion" ? 0.99 : 0.999);
  }
  double EffectiveEpsilon() const {
    return epsilon.value_or(optimizer == "adagrad" ? 1e-10 : 1e-8);
  }
};

struct PlanFlags {
  std::string device = "cpu";  // tools/cli/device_names.h
  std::string budget;          // empty: the bytes that keeping everything needs
  bool no_recompute = false;
  bool no_offload = false;
  bool no_stash = false;
  double max_gradient_error = 0;  // of lossy codecs; 0: none
  std::string time_limit;         // empty: only work is limited
  int threads = 0;                // SolveOptions::threads
  uint64_t plan_seed = 0;
  std::string machine;              // profile or name; empty: this machine's
  bool calibrate = false;           // measure operators that the profile lacks
  std::vector<std::string> splits;  // CHAIN=N, or auto
  std::vector<std::string> disabled_passes;
  std::string dump_passes;  // folder
  // Parts of the batch, or auto: tools/pipeline/structures.h.
  std::string micro_batches = "1";
  bool micro_batch_statistics = false;  // BatchNormalization by parts
  bool no_split = false;  // as if micro_batches were 1 and splits empty
};

void AddModelFlags(CLI::App* app, ModelFlags* flags);
// The same, for a verb that also accepts a problem file.
void AddPlannedModelFlags(CLI::App* app, ModelFlags* flags);
void AddLossFlags(CLI::App* app, LossFlags* flags);
void AddOptimizerFlags(CLI::App* app, OptimizerFlags* flags);
// --device only, for a verb that does not plan.
void AddDeviceFlag(CLI::App* app, std::string* device);
void AddPlanFlags(CLI::App* app, PlanFlags* flags);
// How the step is divided, for a verb that plans training steps.
void AddStructureFlags(CLI::App* app, PlanFlags* flags);
void AddJsonFlag(CLI::App* app, bool* json);
void AddOutputFlag(CLI::App* app, std::string* path, const char* text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_FLAGS_H_
