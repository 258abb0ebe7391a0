#include "planner/base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

// The most tasks that were inside Enter and Leave at a time.
class Crowd {
 public:
  void Enter() {
    const int now = ++inside_;
    int most = most_;
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void Leave() { --inside_; }
  int most() const { return most_; }

 private:
  std::atomic<int> inside_{0}, most_{0};
};

TEST(Workers, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 8}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), threads);
    for (int count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> runs(count);
      workers.Run(count, [&](int i) { ++runs[i]; });
      EXPECT_TRUE(std::all_of(runs.begin(), runs.end(),
                              [](const auto& n) { return n == 1; }));
    }
  }
}

TEST(Workers, OneThreadRunsInOrderOnTheCaller) {
  Workers workers(1);
  std::vector<int> order;
  const std::thread::id caller = std::this_thread::get_id();
  workers.Run(5, [&](int i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Workers, TasksRunAtTheSameTime) {
  Workers workers(2);
  // Each task waits until the other has begun.
  std::atomic<int> begun{0};
  workers.Run(2, [&](int) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

TEST(Workers, NestedTasksShareTheThreads) {
  Workers workers(3);
  Crowd crowd;
  std::atomic<int> runs{0};
  workers.Run(4, [&](int) {
    workers.Run(6, [&](int) {
      crowd.Enter();
      std::this_thread::yield();
      ++runs;
      crowd.Leave();
    });
  });
  EXPECT_EQ(runs, 24);
  EXPECT_LE(crowd.most(), 3);
}

TEST(Workers, HelpersOfOneRunServeTheNext) {
  Workers workers(2);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> begun{0};
    workers.Run(2, [&](int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
  }
}

TEST(Workers, CallerGetsWhatATaskThrows) {
  for (int threads : {1, 4}) {
    Workers workers(threads);
    EXPECT_THROW(workers.Run(8,
                             [](int i) {
                               if (i == 3) throw std::bad_alloc();
                             }),
                 std::bad_alloc);
    int runs = 0;
    workers.Run(1, [&](int) { ++runs; });
    EXPECT_EQ(runs, 1);
  }
}

TEST(Workers, HelpersReceiveNoSignals) {
  Workers workers(2);
  std::atomic<int> begun{0};
  std::atomic<int> blocked{0};
  const std::thread::id caller = std::this_thread::get_id();
  workers.Run(2, [&](int) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    const bool helper = std::this_thread::get_id() != caller;
    EXPECT_EQ(sigismember(&now, SIGINT) == 1, helper);
    EXPECT_EQ(sigismember(&now, SIGSEGV), 0);
    blocked += helper;
  });
  EXPECT_EQ(blocked, 1);
}

TEST(ProcessorCount, IsWhatTheProcessMayUse) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(ProcessorCount(), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(ProcessorCount(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace loadline::planner
