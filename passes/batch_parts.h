// Parts of values that do not depend on the batch and yet have an axis as long
// as the batch, such as a mask of ones for every example.
#ifndef LOADLINE_PASSES_BATCH_PARTS_H_
#define LOADLINE_PASSES_BATCH_PARTS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/ops/cut_axis.h"
#include "passes/cut_graph.h"

namespace loadline::passes {

class BatchParts {
 public:
  // Keeps `cut`, which must outlive this.
  explicit BatchParts(CutGraph& cut) : cut_(cut) {}

  // The part of a whole value along `axis` (as models::NodeCut has it), made by
  // new nodes where it is no constant. Every part of the batch has the same
  // elements there, or elements with a common shift. FailedPrecondition where
  // they have not.
  absl::StatusOr<models::ValueId> PartOf(models::ValueId id, int64_t axis);

  // From now on, `part` is the part of `whole` along `axis`.
  void Remember(models::ValueId whole, int64_t axis, models::ValueId part) {
    parts_[{whole, axis}] = part;
  }

 private:
  absl::StatusOr<models::ValueId> Make(models::ValueId id, int64_t axis);
  absl::StatusOr<models::ValueId> PartOfConstantValue(models::ValueId id,
                                                      int64_t axis);
  absl::StatusOr<models::ValueId> PartOfReshaped(const models::Node& node,
                                                 models::ValueId id,
                                                 int64_t axis,
                                                 int64_t input_axis);
  absl::StatusOr<models::ValueId> PartOfComputed(const models::Node& node,
                                                 models::ValueId id,
                                                 int64_t axis);
  absl::StatusOr<models::ValueId> OnParts(const models::Node& node,
                                          const models::NodeCut& node_cut,
                                          size_t output);
  absl::StatusOr<models::ValueId> WithPartOfShape(const models::Node& node,
                                                  models::TensorType type,
                                                  int64_t axis);

  CutGraph& cut_;
  std::map<std::pair<models::ValueId, int64_t>, models::ValueId> parts_;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_BATCH_PARTS_H_
