// Low-rank adapters: the flag, merged weights, and the file of adapters.
#ifndef LOADLINE_TOOLS_PIPELINE_LORA_H_
#define LOADLINE_TOOLS_PIPELINE_LORA_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/add_lora.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// None without --lora. InvalidArgument for text that is not
// "rank=N[,alpha=X][,targets=A,B,...]"; alpha is the rank by default.
absl::StatusOr<std::optional<passes::LoraOptions>> LoraFor(
    const OptimizerFlags& optimizer, const ModelFlags& model);

// The bytes of a tensor by name; empty: there is none.
using TensorReader =
    std::function<absl::StatusOr<std::vector<std::byte>>(const std::string&)>;

// By name, the merged weights of a step with adapters. With `averages`, also
// those of the averaged adapters, under the names of averages
// (passes/add_optimizer.h). Errors: those of `read`.
absl::StatusOr<std::map<std::string, std::vector<std::byte>>> MergedWeights(
    const models::Graph& step, const passes::LoraOptions& lora, bool averages,
    const TensorReader& read);

// Writes the adapters as the library PEFT names them:
// "base_model.model.fc.lora_A.weight" of [rank, inputs] and lora_B of [outputs,
// rank] for "fc.weight". Errors: those of `read` and WriteSafetensors.
absl::Status WriteAdapters(const std::string& path, const models::Graph& step,
                           const passes::LoraOptions& lora,
                           const TensorReader& read);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LORA_H_
