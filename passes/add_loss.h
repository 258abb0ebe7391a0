// Adds the input `target` and the loss, which becomes the graph's first
// output.
//
//   output logits f32[32,10]        loss, lse = SoftmaxCrossEntropy(
//                              ->       logits, target i64[32]) {class_axis=1}
//                                   output loss f32[]
#ifndef LOADLINE_PASSES_ADD_LOSS_H_
#define LOADLINE_PASSES_ADD_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

// kModel: an output of the model, one number, is the loss itself.
enum class LossKind { kCrossEntropy, kMse, kL1, kHuber, kBce, kModel };

// "cross_entropy", "mse", "l1", "huber", "bce_with_logits" or "model";
// InvalidArgument for anything else.
absl::StatusOr<LossKind> LossKindFromName(absl::string_view name);

struct LossOptions {
  LossKind kind = LossKind::kCrossEntropy;
  // Type of `target` including the batch dimension, as in the data file.
  // Cross-entropy: i64 or i32, the prediction's shape without the class axis.
  // The model's own loss: none. Others: the prediction's type.
  models::TensorType target;
  // Cross-entropy's class axis; negative counts from the end. Absent: the one
  // axis that `target` lacks. The first axis of a prediction with several axes
  // holds the examples and is used only if it is given here.
  std::optional<int64_t> class_axis;
  // Output of which the loss is computed; required if the model has several.
  std::optional<std::string> prediction;
  double label_smoothing = 0;  // cross-entropy: PyTorch's; from 0 to 1
  // Cross-entropy: PyTorch's `weight`, one number of 0 or more for each class;
  // empty: all 1.
  std::vector<float> class_weights;
  double delta = 1;  // Huber: PyTorch's; above 0
  // Keep the model's outputs, in addition to the loss.
  bool keep_outputs = false;
  // Cross-entropy: also output CountCorrect(prediction, target), directly after
  // the loss.
  bool count_correct = false;
};

// The class axis of cross-entropy. InvalidArgument, with both shapes, if no
// axis matches or several do.
absl::StatusOr<int64_t> FindClassAxis(const models::TensorType& prediction,
                                      const LossOptions& options);

// Errors: InvalidArgument (no or ambiguous prediction, shapes or dtypes that do
// not match, an existing input named `target`).
absl::Status AddLoss(models::Graph& graph, const LossOptions& options);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ADD_LOSS_H_
