// Tested by tests/tools/cli/nearest_word_test.cc.
#include "tools/cli/nearest_word.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace loadline::tools {
namespace {

constexpr size_t kFewestCommonLetters = 2;  // of a word and its beginning
constexpr size_t kLettersForOneChange = 3;

size_t Changes(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1,
                                     std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                          d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& known) {
  std::string best;
  size_t best_changes = std::max<size_t>(1, word.size() / kLettersForOneChange);
  for (const std::string& candidate : known) {
    const bool begins =
        std::min(word.size(), candidate.size()) >= kFewestCommonLetters &&
        (absl::StartsWith(candidate, word) ||
         absl::StartsWith(word, candidate));
    const size_t changes = begins ? 1 : Changes(word, candidate);
    if (changes > best_changes || (changes == best_changes && !best.empty())) {
      continue;
    }
    best_changes = changes;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace loadline::tools
