#include "executor/measure/other_programs.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

#include "executor/measure/steady_clock.h"
#include "gtest/gtest.h"

namespace loadline::executor {
namespace {

constexpr char kStat[] =
    "cpu  1000 2000 3000 4000 5000 6000 7000 8000 9000 9000\n"
    "cpu0 1 2 3 400 500 6 7 8 900 900\n"
    "cpu1 10 20 30 4000 5000 60 70 80 9000 9000\n"
    "cpu12 1 0 0 0\n"
    "intr 5 6 7\n";

constexpr int64_t kTickNs = 10'000'000;

cpu_set_t Only(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int processor : processors) CPU_SET(processor, &set);
  return set;
}

TEST(BusyNs, AddsTheWorkOfTheseProcessors) {
  EXPECT_EQ(BusyNs(kStat, Only({0}), 100), 27 * kTickNs);
  EXPECT_EQ(BusyNs(kStat, Only({0, 1}), 100), 297 * kTickNs);
  EXPECT_EQ(BusyNs(kStat, Only({12}), 100), kTickNs);  // an old kernel's
}

TEST(BusyNs, IsUnknownWhereTheTextDoesNotSay) {
  EXPECT_EQ(BusyNs("", Only({0}), 100), -1);
  EXPECT_EQ(BusyNs(kStat, Only({3}), 100), -1);
  EXPECT_EQ(BusyNs("cpu0", Only({1}), 100), -1);
  EXPECT_EQ(BusyNs("cpux 1 2\ncpu-1 3", Only({1}), 100), -1);
}

void SpinFor(int64_t ns) {
  const int64_t end_ns = SteadyNowNs() + ns;
  while (SteadyNowNs() < end_ns) {
  }
}

// This process and another share one processor.
TEST(OtherPrograms, SeesAnotherProcess) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  const cpu_set_t one = Only({first});
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (BusyNs(text, one, 100) < 0) {
    GTEST_SKIP() << "the kernel does not count this processor";
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    while (true) SpinFor(1'000'000);
  }
  const OtherPrograms others;
  EXPECT_EQ(others.Share(), 0);  // so far, too short to say
  SpinFor(1'000'000'000);
  const double share = others.Share();
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_GT(share, 0.25);
  EXPECT_LE(share, 1);
}

}  // namespace
}  // namespace loadline::executor
