// Independent tasks on several threads. What a task does must not depend on the
// others, so results never depend on the number of threads.
#ifndef LOADLINE_PLANNER_BASE_WORKERS_H_
#define LOADLINE_PLANNER_BASE_WORKERS_H_

#include <atomic>

#include "absl/functional/function_ref.h"

namespace loadline::planner {

// Processors that this process may run on, at least 1.
int ProcessorCount();

class Workers {
 public:
  // At most `threads` threads work at a time, the callers of Run included; 0:
  // one per processor. Not negative.
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls task(0) ... task(count - 1), each once, and returns when all have
  // returned. They begin in this order; with one thread they run one after the
  // other. Tasks may call Run themselves: all share the same threads. Helper
  // threads receive no signals.
  void Run(int count, absl::FunctionRef<void(int)> task);

  int threads() const { return threads_; }

 private:
  const int threads_;
  std::atomic<int> idle_;  // threads that may be started
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_WORKERS_H_
