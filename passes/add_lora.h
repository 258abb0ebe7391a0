// Low-rank adapters (Hu et al.: LoRA, 2021). The weight of a linear layer is
// frozen. Training changes two narrow matrices A and B, whose product is added
// to the weight.
//
//   y = MatMul(x, w)       y0 = MatMul(x, w)
//                    ->    h = Mul(MatMul(x, w.lora_A), alpha / rank)
//                          y = Add(y0, MatMul(h, w.lora_B))
//
// Adapters have the layout of their weight, so that w + alpha / rank * product
// is the merged weight:
//
//   w f32[k,n]             w.lora_A f32[k,rank], w.lora_B f32[rank,n];
//                          merged: w + alpha / rank * A B
//   w f32[n,k], transposed w.lora_A f32[rank,k], w.lora_B f32[n,rank];
//                          merged: w + alpha / rank * B A
//
// A begins with numbers from [-1/sqrt(k), 1/sqrt(k)), which depend on the
// weight's name alone, and B with zeros, as in the library PEFT. So the first
// step computes what the model computes.
#ifndef LOADLINE_PASSES_ADD_LORA_H_
#define LOADLINE_PASSES_ADD_LORA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

struct LoraOptions {
  int64_t rank = 0;
  double alpha = 0;
  // Patterns of names of weights, or of Gemm and MatMul nodes. Empty: every
  // weight that can have an adapter, but for that of the model's output.
  std::vector<std::string> targets;
  // Patterns of parameters that are trained themselves; no others are.
  std::vector<std::string> train;

  double scale() const { return alpha / static_cast<double>(rank); }
};

// The parameters of an adapter. "fc.weight" has "fc.weight.lora_A".
std::string LoraAName(absl::string_view weight);
std::string LoraBName(absl::string_view weight);

// Before AddLoss. Parameters without adapters become states that nothing
// updates. Errors: InvalidArgument for a target that matches nothing, or a
// weight that cannot have an adapter: read by other nodes too, not a matrix, or
// with an axis that is no larger than the rank.
absl::Status AddLora(models::Graph& graph, const LoraOptions& options);

// w f32 and its adapters, merged; sums are in double.
models::Tensor MergedWeight(const models::Tensor& weight,
                            const models::Tensor& a, const models::Tensor& b,
                            double scale);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ADD_LORA_H_
