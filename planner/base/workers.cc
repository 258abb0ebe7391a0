// Threads live as long as one call of Run: a search takes milliseconds at
// least, a thread starts in microseconds, and nothing is left behind in a
// process that forks or unloads the library. Where the system refuses a thread,
// the others do its work. Tested in workers_test.cc.
#include "planner/base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "planner/base/check.h"

namespace loadline::planner {
namespace {

// One call of Run.
struct Batch {
  int count = 0;
  absl::FunctionRef<void(int)> task;
  std::atomic<int>* idle;  // Workers::idle_
  std::atomic<int> next{0};
  // What a task threw (no memory), for the caller's thread.
  std::atomic<bool> failed{false};
  std::exception_ptr thrown;

  void Work() {
    try {
      for (int i = next++; i < count && !failed; i = next++) task(i);
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  }
};

void* Help(void* argument) {
  auto* batch = static_cast<Batch*>(argument);
  batch->Work();
  // Tasks that are still running may have it.
  ++*batch->idle;
  return nullptr;
}

// Blocks the signals that a program may handle, as long as it lives: threads
// started meanwhile never receive them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Starts up to `count` threads that help with the batch.
std::vector<pthread_t> Start(int count, Batch& batch) {
  std::vector<pthread_t> threads;
  threads.reserve(count);
  const NoSignals no_signals;
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, Help, &batch) != 0) break;
    threads.push_back(thread);
  }
  return threads;
}

}  // namespace

int ProcessorCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  // More processors than a cpu_set_t has bits.
  return std::max<int>(1,
                       static_cast<int>(std::thread::hardware_concurrency()));
}

Workers::Workers(int threads)
    : threads_(threads == 0 ? ProcessorCount() : threads), idle_(threads_ - 1) {
  LOADLINE_CHECK(threads >= 0);
}

void Workers::Run(int count, absl::FunctionRef<void(int)> task) {
  int idle = idle_;
  int helpers = 0;
  do {
    helpers = std::clamp(count - 1, 0, idle);
  } while (!idle_.compare_exchange_weak(idle, idle - helpers));
  Batch batch{.count = count, .task = task, .idle = &idle_};
  const std::vector<pthread_t> threads = Start(helpers, batch);
  idle_ += helpers - static_cast<int>(threads.size());
  batch.Work();
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  if (batch.thrown) std::rethrow_exception(batch.thrown);
}

}  // namespace loadline::planner
