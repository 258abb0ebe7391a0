// A compression recipe: what is compressed, how, how far and when. The verbs
// read it from YAML or JSON (tools/pipeline/recipe_file.h); docs/compression.md
// has every key with its default.
//
// Steps count finished training steps of the whole run: `start_step` 200 means
// "when 200 steps are done". Sparsity is always the share of the original
// width that is removed.
#ifndef LOADLINE_PASSES_COMPRESS_RECIPE_H_
#define LOADLINE_PASSES_COMPRESS_RECIPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

// The weights that each node reads, itself or through a Transpose: parameters,
// and f32 constants of at least two axes. By node.
std::vector<std::vector<models::ValueId>> WeightsByNode(
    const models::Graph& model);

// Which nodes an entry is about. A node is one of them if it reads a weight,
// `op_types` has its operator, `op_names` names it and `exclude_op_names` does
// not. An empty `op_types` or `op_names` has every node; both empty, an entry
// that quantizes has every node with a trained weight that can be quantized.
struct RecipeObject {
  // Loadline's operators, and ConvTranspose, Linear (Gemm, MatMul).
  std::vector<std::string> op_types;
  // A name: of the node, of a parameter that it reads, or of a module, which is
  // the beginning of such a name up to a '.' or '/'. "re:PATTERN": an
  // ECMAScript regular expression, found anywhere in the name of the node or of
  // such a parameter.
  std::vector<std::string> op_names;
  std::vector<std::string> exclude_op_names;
};

enum class PruneCriterion {
  kL1,          // sum of |w| over the channel's weights
  kL2,          // sum of w²
  kBnScale,     // |scale| of the channel's BatchNormalization
  kTaylor,      // |Σ w·g|, accumulated over the steps between updates
  kFisher,      // (Σ w·g)², accumulated the same
  kMovement,    // -Σ w·g, accumulated: weights that move to zero score low
  kGroupLasso,  // L2 norm of the channel, which its penalty pulls to zero
  kRandom,      // from the run's seed: a baseline
};

enum class PruneGranularity {
  kChannel,       // a channel with everything that depends on it
  kHead,          // an attention head, the same
  kBlock2x4,      // masks only: blocks of 2 x 4 weights
  k2Of4,          // masks only: two of four weights that one sum takes
  kUnstructured,  // masks only: single weights
};
// Whether the granularity removes whole channels, so that shapes shrink.
bool IsStructured(PruneGranularity granularity);

enum class SparsityCurve { kOneShot, kLinear, kCubic };

// Where the degree of one entry comes from.
struct PruneTarget {
  enum class Kind { kSparsity, kMacs, kPeakBytes };
  Kind kind = Kind::kSparsity;
  // kSparsity: the share that is removed. Others: the share of the unpruned
  // step's that is left at the end, if `count` is 0.
  double share = 0;
  int64_t count = 0;  // MACs or bytes that are left at the end, absolute
};

struct PruneSpec {
  PruneCriterion criterion = PruneCriterion::kL2;
  PruneGranularity granularity = PruneGranularity::kChannel;
  PruneTarget target;
  double initial_sparsity = 0;
  bool global = false;  // rank all channels of the entry together, not each
                        // group by itself
  double max_sparsity_per_op = 1;  // of a group; one channel always stays
  int64_t round_to = 1;            // widths that are left are multiples of this
  SparsityCurve schedule = SparsityCurve::kCubic;
  int64_t start_step = 0;
  int64_t end_step = 0;
  int64_t update_frequency = 1;  // steps between changes of the masks
};

// One setting for each of the three tensors of an operator.
template <typename T>
struct PerTensor {
  T weight;
  T input;
  T output;
};

enum class Quantizer { kUniform, kKMeans, kLsq };
enum class Observer { kMinMax, kEmaMinMax, kPercentile, kMse };

struct QuantizeSpec {
  Quantizer quantizer = Quantizer::kUniform;
  Observer observer = Observer::kEmaMinMax;
  PerTensor<bool> targets = {true, true, true};
  PerTensor<int64_t> bits = {8, 8, 8};  // 1 to 8; kmeans: 2^bits codes
  PerTensor<bool> symmetric = {true, false, false};
  PerTensor<bool> per_channel = {true, false, false};
  bool reduce_range = false;  // 7 bits for weights of 8
  int64_t start_step = 0;
  std::optional<int64_t> freeze_observer_step;
  std::optional<int64_t> freeze_bn_step;
  int64_t calibration_batches = 8;
};

struct RecipeEntry {
  std::string name;  // unique
  int64_t line = 0;  // in the file
  RecipeObject object;
  std::variant<PruneSpec, QuantizeSpec> spec;

  const PruneSpec* prune() const { return std::get_if<PruneSpec>(&spec); }
  const QuantizeSpec* quantize() const {
    return std::get_if<QuantizeSpec>(&spec);
  }
};

struct Recipe {
  std::string file;  // for messages
  std::vector<RecipeEntry> entries;
  int64_t state_bits = 32;  // of optimizer states, in all of the run; or 8
};

// "FILE:LINE: entry 'NAME': KEY: WHAT", InvalidArgument. `key` as in
// "degree.sparsity".
absl::Status RecipeError(const Recipe& recipe, const RecipeEntry& entry,
                         absl::string_view key, absl::string_view what);

// Everything in the recipe that changes a run, as text: the same for two files
// that differ in comments, order of keys or names of keys only. Its SHA-256
// goes into checkpoints.
std::string RecipeText(const Recipe& recipe);

// The nodes of `model` that each entry is about, ascending, by entry. `model`
// is as imported, before any pass. InvalidArgument, as RecipeError: an operator
// type or a name pattern that matches no node, a malformed pattern, an entry
// without nodes, two prune or two quantize entries that claim one parameter. An
// entry of heads claims the weights that make heads, any other those of all its
// nodes.
absl::StatusOr<std::vector<std::vector<models::NodeId>>> MatchRecipe(
    const models::Graph& model, const Recipe& recipe);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RECIPE_H_
