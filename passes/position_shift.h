// By how much numbers that count through the examples of a batch, such as the
// positions of an index, grow from one part of the batch to the next.
#ifndef LOADLINE_PASSES_POSITION_SHIFT_H_
#define LOADLINE_PASSES_POSITION_SHIFT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/cut_graph.h"

namespace loadline::passes {

// FailedPrecondition: why this node cannot be cut.
absl::Status RefuseToCut(const models::Node& node, absl::string_view why);

// The shift of the results of `node` on `inputs`, which are parts of its own.
// `position_shift`: of models::NodeCut; where it is not 0, the positions in
// input 1 must have exactly this shift, and the results have that of the other
// inputs. FailedPrecondition where the results have no common shift.
absl::StatusOr<int64_t> ShiftOfResults(
    const CutGraph& cut, const models::Node& node,
    const std::vector<models::ValueId>& inputs, int64_t position_shift);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_POSITION_SHIFT_H_
