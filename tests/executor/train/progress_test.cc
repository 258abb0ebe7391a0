// The progress line, on a terminal and in a log.
#include "executor/train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace loadline::executor {
namespace {

// The text shown after the given number of steps out of 10.
std::string Shown(bool terminal, int64_t interval, int64_t steps) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  {
    ProgressLine line(out, terminal, interval);
    for (int64_t s = 1; s <= steps; ++s) {
      line.Show({.step = s,
                 .steps = 10,
                 .loss = 2.5f,
                 .examples_per_s = 100,
                 .left_s = 300});
    }
  }
  std::fclose(out);
  std::string shown(text, size);
  free(text);
  return shown;
}

TEST(ProgressLine, IsOneLinePerIntervalWithoutATerminal) {
  EXPECT_EQ(Shown(false, 4, 10),
            "step 1/10  loss 2.5000  100 examples/s  5 min left\n"
            "step 4/10  loss 2.5000  100 examples/s  5 min left\n"
            "step 8/10  loss 2.5000  100 examples/s  5 min left\n"
            "step 10/10  loss 2.5000  100 examples/s  5 min left\n");
}

TEST(ProgressLine, IsOneLiveLineOnATerminalAndEndsIt) {
  for (int64_t steps : {3, 10}) {  // stopped early, finished
    const std::string shown = Shown(true, 4, steps);
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 1);
    EXPECT_EQ(shown.back(), '\n');
    EXPECT_EQ(shown.front(), '\r');
  }
}

}  // namespace
}  // namespace loadline::executor
