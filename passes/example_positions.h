// Positions of rows that count through all examples of a batch, such as those
// of ONNX's GatherElements in the flattened tensor: what one part of the batch
// reads at them. In part j they are j * shift smaller, so that they begin at
// its own first example.
#ifndef LOADLINE_PASSES_EXAMPLE_POSITIONS_H_
#define LOADLINE_PASSES_EXAMPLE_POSITIONS_H_

#include <cstdint>
#include <limits>
#include <map>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/types.h"

namespace loadline::passes {

// One part of a constant. Every further part has the same elements, or each is
// larger by `shift` than in the part before it.
struct PartOfConstant {
  models::Tensor part;
  int64_t shift = 0;
};

// The first of `parts` equal parts along `axis` (as models::NodeCut has it).
// FailedPrecondition where the others have neither the same elements nor, as
// integers, a common shift.
absl::StatusOr<PartOfConstant> CommonPart(const models::Value& value,
                                          int64_t axis, int64_t parts);

// The node that makes each value of a graph.
using Makers = std::map<models::ValueId, models::Node>;

// Operators that only move the elements of input 0.
bool MovesElements(const models::Node& node);

// Whether the value is a constant of integers in [least, most].
bool IsWithin(const models::Value& value, int64_t least,
              int64_t most = std::numeric_limits<int64_t>::max());

// Whether no position is negative once it counts from its own part: then it
// would be counted from the end, which is another row in a part than in the
// whole. `rows`: how many the whole has. True for constants that are not
// negative, and for positions computed as the importer does: sums that a Where
// has checked, with `rows` or more where an index is outside its axis. A
// position beyond the part ends the step with an error, in the parts alone or
// in both.
bool AreNeverNegative(const models::Graph& graph, const Makers& makers,
                      models::ValueId positions, int64_t rows);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_EXAMPLE_POSITIONS_H_
