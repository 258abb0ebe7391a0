// Suggestions for mistyped words.
#ifndef LOADLINE_TOOLS_CLI_NEAREST_WORD_H_
#define LOADLINE_TOOLS_CLI_NEAREST_WORD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline::tools {

// The word of `known` that takes the fewest changes to reach from `word` (a
// letter more, less, replaced, or two exchanged: the optimal string alignment
// distance); a known word that begins with `word`, or `word` with it, counts as
// one change. "" if all take more than one change for three letters.
std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& known);

// "; did you mean 'WORD'?" for the nearest one, or "".
std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_NEAREST_WORD_H_
