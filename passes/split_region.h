// Rewrites one region of a graph to run on parts of its rows, one part after
// the other.
#ifndef LOADLINE_PASSES_SPLIT_REGION_H_
#define LOADLINE_PASSES_SPLIT_REGION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/row_region.h"

namespace loadline::passes {

// Where each of `segments` parts of `rows` rows begins, and `rows` last. Parts
// are never empty and as equal as multiples of a power of two allow: up to 128
// rows, for aligned slices and full tiles, as long as no part is an eighth
// larger than the mean. 1 <= segments <= rows.
std::vector<int64_t> SegmentStarts(int64_t rows, int64_t segments);

// Splits the region, whose nodes are found by name. Values keep their ids; new
// ones come after them, and values of the region that no node makes any more
// stay: models::EraseNodes drops them. `label` becomes part of the names of new
// nodes: "fc[head 1/4]".
absl::Status SplitRegion(models::Graph& graph, const RowRegion& region,
                         int64_t segments, absl::string_view label);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_SPLIT_REGION_H_
