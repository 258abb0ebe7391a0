// What every campaign is given.
#ifndef LOADLINE_TESTS_CAMPAIGN_ARGUMENTS_H_
#define LOADLINE_TESTS_CAMPAIGN_ARGUMENTS_H_

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"

namespace loadline::campaign {

struct Arguments {
  int64_t seed = 1;
  int64_t count = 0;
};

inline volatile std::sig_atomic_t stop_asked = 0;

// What runs now. A crash prints it as a finding.
inline volatile int64_t current_seed = -1;

inline void PrintSeedOfCrash(int number) {
  std::signal(number, SIG_DFL);
  char text[80];
  const int length = std::snprintf(
      text, sizeof(text), "FOUND --seed %lld --count 1: signal %d\n",
      static_cast<long long>(current_seed), number);
  if (write(STDOUT_FILENO, text, static_cast<size_t>(length)) > 0) {
    std::raise(number);
  }
}

// Reads --seed S --count N. None, with a message, for anything else. From then
// on SIGINT and SIGTERM set stop_asked: a campaign ends with its counts so far.
// A crash prints current_seed.
inline std::optional<Arguments> ReadArguments(int argc, char** argv,
                                              int64_t default_count) {
  Arguments arguments{.count = default_count};
  bool good = argc % 2 == 1;
  for (int i = 1; good && i < argc; i += 2) {
    int64_t* const number =
        std::strcmp(argv[i], "--seed") == 0    ? &arguments.seed
        : std::strcmp(argv[i], "--count") == 0 ? &arguments.count
                                               : nullptr;
    good = number != nullptr && absl::SimpleAtoi(argv[i + 1], number) &&
           *number >= 0;
  }
  if (good && arguments.count > 0) {
    for (const int number : {SIGINT, SIGTERM}) {
      std::signal(number, [](int) { stop_asked = 1; });
    }
    for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
      std::signal(number, PrintSeedOfCrash);
    }
    return arguments;
  }
  std::fprintf(stderr, "usage: %s --seed S --count N\n", argv[0]);
  return std::nullopt;
}

}  // namespace loadline::campaign

#endif  // LOADLINE_TESTS_CAMPAIGN_ARGUMENTS_H_
