// Runs the step once, keeping every value. Then, for each candidate, runs only
// what depends on it after the loss, into separate memory. Tested in
// tests/executor/measure/gradient_error_test.cc.
#include "executor/measure/gradient_error.h"

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

  absl::Status RunExact(absl::Span<const std::byte* const> inputs) {
    LOADLINE_RETURN_IF_ERROR(CheckHasContents(graph_));
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const models::Value& value = graph_.values[v];
      if (value.initial.has_value()) exact_[v] = *value.initial->data;
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const size_t v = Index(graph_.inputs[i]);
      exact_[v].assign(inputs[i], inputs[i] + graph_.values[v].type.bytes());
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (models::IsView(node)) continue;
      if (models::FindOperator(node.op)->recompute) {
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

  absl::StatusOr<double> ErrorOf(ValueId candidate) {
    LOADLINE_RETURN_IF_ERROR(StoreAndRestore(candidate));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!IsAfterLoss(node) || models::IsView(node) ||
          !models::FindOperator(node.op)->recompute) {
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
    return std::sqrt(sums.differences / sums.squares);
  }

 private:
  using Contents = std::vector<std::vector<std::byte>>;

  size_t Root(ValueId id) const { return Index(roots_[Index(id)]); }

  // The second input of an optimizer's update.
  void FindGradient(const Node& update) {
    for (const char* op : {"Sgd", "Adam", "AdamW", "Lion"}) {
      if (update.op == op) gradients_.push_back(update.inputs[1]);
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
  Profiler profiler(graph, host, options);
  LOADLINE_RETURN_IF_ERROR(profiler.RunExact(inputs));
  for (ValueId id : candidates) {
    LOADLINE_ASSIGN_OR_RETURN(errors[Index(id)], profiler.ErrorOf(id));
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
