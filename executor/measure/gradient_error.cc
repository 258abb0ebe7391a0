// Runs the step once, keeping every value. Then, for each candidate, runs only
// what depends on it after the loss, into separate memory. Where factors start
// at zero (the scales that end residual branches, adapters), no gradient passes
// through a branch yet, and its values seem to matter to nothing: then once
// more with numbers in these factors. Tested in
// tests/executor/measure/gradient_error_test.cc.
#include "executor/measure/gradient_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/program/program.h"
#include "models/codec_nodes.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using models::DType;
using models::Graph;
using models::Node;
using models::Phase;
using models::ValueId;
using models::ValueKind;

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16;
}

bool IsAfterLoss(const Node& node) {
  return node.phase == Phase::kBackward || node.phase == Phase::kUpdate;
}

// A normalization's scale or a matrix, and not a bias.
bool Multiplies(const Node& node, size_t input) {
  return input < 2 && node.op != "Add" && node.op != "Sub" && node.op != "Cast";
}

// Parameters of zeros that the forward pass multiplies by, by root.
std::vector<ValueId> ZeroFactors(const Graph& graph,
                                 const std::vector<ValueId>& roots) {
  // Where it is a cast of another value: that value.
  std::vector<ValueId> source = roots;
  std::vector<bool> multiplies(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (models::IsView(node) || IsAfterLoss(node)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == models::kNoValue) continue;
      const ValueId from = source[Index(roots[Index(node.inputs[i])])];
      if (node.op == "Cast") source[Index(node.outputs[0])] = from;
      if (Multiplies(node, i)) multiplies[Index(from)] = true;
    }
  }
  std::vector<ValueId> factors;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const models::Value& value = graph.values[v];
    if (value.kind != ValueKind::kParameter || !multiplies[v] ||
        value.type.dtype != DType::kF32 || !value.initial.has_value() ||
        value.initial->data == nullptr) {
      continue;
    }
    const std::vector<std::byte>& data = *value.initial->data;
    if (std::all_of(data.begin(), data.end(),
                    [](std::byte byte) { return byte == std::byte{0}; })) {
      factors.push_back(ValueId{static_cast<int32_t>(v)});
    }
  }
  return factors;
}

// Ones for a scale; for a matrix uniform numbers with the variance of 1 / fan.
void Fill(const models::TensorType& type, std::vector<std::byte>& contents) {
  const int64_t n = type.elements();
  if (n == 0) return;
  const double fan =
      type.rank() == 0 ? 1.0 : static_cast<double>(n / type.dims[0]);
  const double bound = std::sqrt(3 / std::max(fan, 1.0));
  uint64_t state = 1;
  float* to = reinterpret_cast<float*>(contents.data());
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double uniform = static_cast<double>(state >> 33) * 0x1p-30 - 1;
    to[i] = type.rank() < 2 ? 1.0f : static_cast<float>(bound * uniform);
  }
}

// Who reads a stored value. A plan may let the backward pass alone do so, or
// run nodes of the forward pass again from it.
enum class Readers { kAfterLoss, kAll };

struct Sums {
  double squares = 0;      // of the exact gradient
  double differences = 0;  // squared
};

double At(DType dtype, const std::byte* data, int64_t i) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(data)[i];
  const uint32_t half = reinterpret_cast<const uint16_t*>(data)[i];
  return std::bit_cast<float>(half << 16);
}

class Profiler {
 public:
  Profiler(const Graph& graph, Device& host,
           const GradientErrorOptions& options)
      : graph_(graph),
        host_(host),
        options_(options),
        roots_(models::StorageRoots(graph)),
        kernels_(graph.nodes.size()),
        exact_(graph.values.size()),
        changed_(graph.values.size()) {
    scalars_.seed = options.seed;
  }

  // `filled`: parameters that get numbers instead of their zeros.
  absl::Status RunExact(absl::Span<const std::byte* const> inputs,
                        const std::vector<ValueId>& filled) {
    LOADLINE_RETURN_IF_ERROR(CheckHasContents(graph_));
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const models::Value& value = graph_.values[v];
      if (value.initial.has_value()) exact_[v] = *value.initial->data;
    }
    for (ValueId id : filled) Fill(graph_.value(id).type, exact_[Index(id)]);
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const size_t v = Index(graph_.inputs[i]);
      exact_[v].assign(inputs[i], inputs[i] + graph_.values[v].type.bytes());
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (models::IsView(node)) continue;
      // Ranges of quantizers are updated in the forward pass, and read in it.
      if (models::FindOperator(node.op)->recompute ||
          node.phase == Phase::kForward) {
        LOADLINE_RETURN_IF_ERROR(Run(n, &exact_));
      } else {
        FindGradient(node);
      }
    }
    double squares = 0;
    for (ValueId gradient : gradients_) squares += Compare(gradient).squares;
    if (!(squares > 0) || !std::isfinite(squares)) {
      return absl::FailedPreconditionError(
          "the step has no gradient that is a number above 0");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> ErrorOf(ValueId candidate, Readers readers) {
    LOADLINE_RETURN_IF_ERROR(StoreAndRestore(candidate));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if ((readers == Readers::kAfterLoss && !IsAfterLoss(node)) ||
          models::IsView(node) || !models::FindOperator(node.op)->recompute) {
        continue;
      }
      if (ReadsChanged(node)) LOADLINE_RETURN_IF_ERROR(Run(n, &changed_));
    }
    Sums sums;
    for (ValueId gradient : gradients_) {
      const Sums more = Compare(gradient);
      sums.squares += more.squares;
      sums.differences += more.differences;
    }
    for (auto& contents : changed_) contents.clear();
    const double error = std::sqrt(sums.differences / sums.squares);
    // Infinite or NaN only with the value stored: it may not be.
    return std::isfinite(error) ? error : std::numeric_limits<double>::max();
  }

 private:
  using Contents = std::vector<std::vector<std::byte>>;

  size_t Root(ValueId id) const { return Index(roots_[Index(id)]); }

  // The second input of an optimizer's update, once for all its parts.
  void FindGradient(const Node& update) {
    for (const char* op :
         {"Sgd", "Adam", "AdamW", "Adagrad", "Lion", "Adafactor"}) {
      if (update.op == op && update.attributes.Int("start", 0) == 0) {
        gradients_.push_back(update.inputs[1]);
      }
    }
  }

  const std::vector<std::byte>& Current(size_t root) const {
    return changed_[root].empty() ? exact_[root] : changed_[root];
  }

  bool ReadsChanged(const Node& node) const {
    for (ValueId id : node.inputs) {
      if (id != models::kNoValue && !changed_[Root(id)].empty()) return true;
    }
    return false;
  }

  absl::Status Run(size_t n, Contents* to) {
    const Node& node = graph_.nodes[n];
    if (kernels_[n] == nullptr) {
      LOADLINE_ASSIGN_OR_RETURN(kernels_[n], host_.Prepare(graph_, node));
    }
    std::vector<const std::byte*> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(id == models::kNoValue ? nullptr
                                              : Current(Root(id)).data());
    }
    std::vector<std::byte*> outputs;
    for (ValueId id : node.outputs) {
      std::vector<std::byte>& contents = (*to)[Index(id)];
      contents.resize(graph_.value(id).type.bytes());
      outputs.push_back(contents.data());
    }
    return RunKernel(*kernels_[n], inputs, outputs);
  }

  absl::Status RunKernel(Kernel& kernel,
                         const std::vector<const std::byte*>& inputs,
                         const std::vector<std::byte*>& outputs) {
    // Kernels expect their workspace at a multiple of 256.
    workspace_.resize(static_cast<size_t>(kernel.workspace_bytes()) + 256);
    const auto start = reinterpret_cast<uintptr_t>(workspace_.data());
    return kernel.Run(
        {.inputs = inputs,
         .outputs = outputs,
         .workspace = kernel.workspace_bytes() == 0
                          ? nullptr
                          : workspace_.data() + (256 - start % 256) % 256,
         .scalars = &scalars_});
  }

  absl::Status StoreAndRestore(ValueId candidate) {
    Graph codecs;
    LOADLINE_ASSIGN_OR_RETURN(
        const models::CodecNodes nodes,
        models::AddCodecNodes(graph_, candidate, options_.codec, &codecs));
    LOADLINE_ASSIGN_OR_RETURN(const auto encode,
                              host_.Prepare(codecs, codecs.node(nodes.encode)));
    LOADLINE_ASSIGN_OR_RETURN(const auto decode,
                              host_.Prepare(codecs, codecs.node(nodes.decode)));
    std::vector<std::byte> encoded(static_cast<size_t>(nodes.encoded_bytes));
    std::vector<std::byte>& restored = changed_[Index(candidate)];
    restored.resize(exact_[Index(candidate)].size());
    LOADLINE_RETURN_IF_ERROR(RunKernel(
        *encode, {exact_[Index(candidate)].data()}, {encoded.data()}));
    return RunKernel(*decode, {encoded.data()}, {restored.data()});
  }

  Sums Compare(ValueId gradient) const {
    const size_t root = Root(gradient);
    const models::TensorType& type = graph_.value(gradient).type;
    const std::byte* exact = exact_[root].data();
    const std::byte* current = Current(root).data();
    Sums sums;
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double x = At(type.dtype, exact, i);
      const double difference = At(type.dtype, current, i) - x;
      sums.squares += x * x;
      sums.differences += difference * difference;
    }
    return sums;
  }

  const Graph& graph_;
  Device& host_;
  const GradientErrorOptions& options_;
  const std::vector<ValueId> roots_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  Contents exact_;    // by root
  Contents changed_;  // by root; empty: as in exact_
  std::vector<std::byte> workspace_;
  std::vector<ValueId> gradients_;
  StepScalars scalars_;
};

}  // namespace

std::vector<ValueId> LossyCandidates(const Graph& graph, int64_t least_bytes) {
  const std::vector<ValueId> roots = models::StorageRoots(graph);
  std::vector<bool> saved(graph.values.size(), false);
  std::vector<bool> early(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (models::IsView(node)) continue;
    for (ValueId id : node.outputs) early[Index(id)] = !IsAfterLoss(node);
    if (!IsAfterLoss(node)) continue;
    for (ValueId id : node.inputs) {
      if (id != models::kNoValue) saved[Index(roots[Index(id)])] = true;
    }
  }
  for (ValueId id : graph.outputs) saved[Index(roots[Index(id)])] = false;
  std::vector<ValueId> candidates;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const models::TensorType& type = graph.values[v].type;
    if (saved[v] && early[v] && IsFloat(type.dtype) &&
        type.bytes() >= least_bytes) {
      candidates.push_back(ValueId{static_cast<int32_t>(v)});
    }
  }
  return candidates;
}

absl::StatusOr<std::vector<double>> ProfileGradientErrors(
    const Graph& graph, absl::Span<const std::byte* const> inputs,
    const std::vector<ValueId>& candidates, Device& host,
    const GradientErrorOptions& options) {
  std::vector<double> errors(graph.values.size(), -1.0);
  const std::vector<ValueId> factors =
      ZeroFactors(graph, models::StorageRoots(graph));
  for (const bool fill : {false, true}) {
    if (fill && factors.empty()) break;
    Profiler profiler(graph, host, options);
    LOADLINE_RETURN_IF_ERROR(
        profiler.RunExact(inputs, fill ? factors : std::vector<ValueId>()));
    for (ValueId id : candidates) {
      for (const Readers readers : {Readers::kAfterLoss, Readers::kAll}) {
        LOADLINE_ASSIGN_OR_RETURN(const double error,
                                  profiler.ErrorOf(id, readers));
        errors[Index(id)] = std::max(errors[Index(id)], error);
      }
    }
  }
  return errors;
}

int64_t ProfileBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const models::Value& value : graph.values) {
    if (__builtin_add_overflow(bytes, value.type.bytes(), &bytes)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return bytes;
}

}  // namespace loadline::executor
