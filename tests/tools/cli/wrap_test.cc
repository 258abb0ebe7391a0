// Lines have at most 80 columns, and no word is lost.
#include "tools/cli/wrap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace loadline::tools {
namespace {

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

TEST(Wrapped, BreaksAtSpacesAndIndentsWhatFollows) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::string(1 + i * 7 % 11, 'x') + " ";
  for (size_t indent : {0, 14, 40}) {
    const std::string wrapped = Wrapped(text, indent);
    EXPECT_EQ(Words(wrapped), Words(text));
    std::vector<std::string> lines = absl::StrSplit(wrapped, '\n');
    ASSERT_GT(lines.size(), 3);
    lines[0].insert(0, indent, ' ');
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_LE(lines[i].size(), kColumns);
      EXPECT_EQ(lines[i].find_first_not_of(' '), indent);
      // The next word would not have fit.
      if (i + 1 == lines.size()) continue;
      EXPECT_GT(lines[i].size() + 1 + Words(lines[i + 1])[0].size(), kColumns);
    }
  }
}

TEST(Wrapped, LeavesAWordWholeThatIsLongerThanALine) {
  const std::string word(100, 'x');
  EXPECT_EQ(Wrapped("a " + word + " b", 2), "a\n  " + word + "\n  b");
  EXPECT_EQ(Wrapped("", 2), "");
}

TEST(WrappedRow, PutsTheTextBesideTheNameOrBelowIt) {
  EXPECT_EQ(WrappedRow("name", "text", 6), "name  text\n");
  EXPECT_EQ(WrappedRow("names", "text", 6), "names text\n");
  EXPECT_EQ(WrappedRow("longer", "text", 6), "longer\n      text\n");
}

}  // namespace
}  // namespace loadline::tools
