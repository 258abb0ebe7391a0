// A connected part of a graph whose nodes can run on parts of the same rows.
#ifndef LOADLINE_PASSES_ROW_REGION_H_
#define LOADLINE_PASSES_ROW_REGION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"
#include "models/ops/operator.h"

namespace loadline::passes {

struct RegionNode {
  models::NodeId id;  // in the graph in which the region was found
  std::string name;
  models::RowCut cut;
};

struct RowRegion {
  int64_t rows = 0;
  std::vector<RegionNode> nodes;        // in the graph's order
  std::vector<models::ValueId> inside;  // never whole when split; by id
  std::vector<models::ValueId> ends;    // rows that enter and leave; by id
};

// The region around `seeds`: all nodes that make or read a value inside it.
// Inside are the seeds, their views, and every intermediate value of at least
// `inside_bytes` that has the rows of a node of the region. None if one of
// these nodes cannot be cut, is `taken` (a flag for each node), or if there are
// more than `most_nodes`; if a value inside is an output or an update.
std::optional<RowRegion> GrowRegion(const models::Graph& graph,
                                    const models::GraphIndex& index,
                                    const std::vector<models::ValueId>& seeds,
                                    int64_t rows, int64_t inside_bytes,
                                    size_t most_nodes,
                                    const std::vector<bool>& taken);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ROW_REGION_H_
