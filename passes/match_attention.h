// Finds attention in a graph and splits it into its parts, for FuseAttention.
#ifndef LOADLINE_PASSES_MATCH_ATTENTION_H_
#define LOADLINE_PASSES_MATCH_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/graph.h"

namespace loadline::passes {

// A value, or the Transpose(value) {perm} that is to be created.
struct AttentionOperand {
  models::ValueId value = models::kNoValue;
  models::Ints perm;  // empty: the value itself
};

// An additive mask: a value, or Where(condition, kept, masked) to be created.
struct AttentionMask {
  models::ValueId value = models::kNoValue;
  models::ValueId condition = models::kNoValue;
  float if_true = 0;
  float if_false = 0;
};

struct AttentionMatch {
  AttentionOperand q, k, v;
  double scale = 1;
  bool causal = false;
  std::optional<AttentionMask> mask;
  double ratio = 0;
  int64_t salt = 0;
  std::optional<int64_t> offset;  // as the Dropout has it
  bool interleaved = false;
  size_t last = 0;  // the node that becomes the Attention
};

// The attention that contains the Softmax `node`, if there is one. `index` and
// `named` are IndexGraph and NamedByGraph of the graph.
std::optional<AttentionMatch> MatchAttention(const models::Graph& graph,
                                             const models::GraphIndex& index,
                                             const std::vector<bool>& named,
                                             const models::Node& softmax);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MATCH_ATTENTION_H_
