// A readable text form of a Graph that can be read back exactly.
//
//   loadline.graph/1 "mlp"
//   %0 = input "x" f32[32,64]
//   %1 = parameter "w" f32[2,2] {0.5, -1, 2, 0}
//   %2 = constant "table" f32[1000] hash 8c1f0a2b3c4d5e6f
//   %3 "fc" f32[32,10] = MatMul "fc" (%0, %1) {trans_b = 1} forward
//   %4 "s" f32[1], %5 "s.1" f32[2] = Split "s" (%2) {axis = 0, ...} forward
//   inputs %0
//   outputs %3
//   update %1 -> %5
//
// A value's number is its id. An absent input is "-". Strings are escaped as in
// C. Contents of up to 16 elements are in braces, as numbers, or as hex "00ff"
// if numbers would lose information (half types, infinities). Larger contents
// are in a side map under the hash in the line. Empty lines and lines that
// begin with # are skipped.
#ifndef LOADLINE_MODELS_TEXT_H_
#define LOADLINE_MODELS_TEXT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::models {

// Large initial contents by their hash (16 hex digits, with "-1", "-2", ... if
// two contents share a hash).
using LargeContents = std::map<std::string, Tensor>;

// `large` null: large contents are left out; the text has only their hash.
std::string GraphToText(const Graph& graph, LargeContents* large = nullptr);

// Reads the text and verifies the Graph. InvalidArgument names the line and the
// error, including contents that are missing from `large` or have another type.
absl::StatusOr<Graph> GraphFromText(absl::string_view text,
                                    const LargeContents& large = {});

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_TEXT_H_
