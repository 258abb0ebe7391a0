// Patterns of names, as flags and recipes have them.
#ifndef LOADLINE_MODELS_NAME_PATTERN_H_
#define LOADLINE_MODELS_NAME_PATTERN_H_

#include <string>
#include <vector>

namespace loadline::models {

// Whether the shell pattern (*, ?, [...]) matches the whole name.
bool MatchesPattern(const std::string& pattern, const std::string& name);
bool MatchesAny(const std::vector<std::string>& patterns,
                const std::string& name);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_NAME_PATTERN_H_
