#include "models/name_pattern.h"

#include <fnmatch.h>

#include <algorithm>

namespace loadline::models {

bool MatchesPattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool MatchesAny(const std::vector<std::string>& patterns,
                const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) {
                       return MatchesPattern(pattern, name);
                     });
}

}  // namespace loadline::models
