// A step in micro-batches has an input for each part of each array of data, all
// parts of one array one after the other: x, x@2, x@3, target, target@2,
// target@3 for three parts.
#ifndef LOADLINE_MODELS_MICRO_BATCHES_H_
#define LOADLINE_MODELS_MICRO_BATCHES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::models {

// "x" for part 0, "x@2" for part 1.
std::string NameInPart(absl::string_view name, int64_t part);

// How many parts a step has: 1 unless all its inputs are named, typed and
// ordered as above.
int64_t MicroBatchesOf(const Graph& step);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_MICRO_BATCHES_H_
