// How a step is divided, in words: part of a problem's name, so that plans and
// reports say what they are of.
#ifndef LOADLINE_PASSES_STRUCTURE_H_
#define LOADLINE_PASSES_STRUCTURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/split_operators.h"

namespace loadline::passes {

// Whether each micro-batch has batch statistics of its own (CutBatch).
bool HasOwnStatistics(const models::Graph& step);

// The splits of a step, read off the names of its nodes, in the order of the
// step.
std::vector<Split> SplitsIn(const models::Graph& step);

// "4 micro-batches", "segments head=4 mlp=2", or both after another with a
// comma; empty for a step in one piece. "4 micro-batches with own statistics"
// if each part has its own batch statistics.
std::string StructureOf(const models::Graph& step);

// The name of a step's problem: "gpt", or "gpt, 4 micro-batches, segments
// head=4".
std::string NameWithStructure(absl::string_view name,
                              const models::Graph& step);

// FailedPrecondition that says what to do if the problem's name tells of
// another structure than the step has. For a plan that does not match: names
// alone prove nothing.
absl::Status CheckNamedStructure(absl::string_view problem_name,
                                 const models::Graph& step);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_STRUCTURE_H_
