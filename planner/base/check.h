// CHECK for our own bugs only: prints file, line and condition, then aborts.
// Errors that a model, file, machine or budget can cause are absl::Status.
// (Debian's Abseil 20220623 has no absl/log.)
#ifndef LOADLINE_PLANNER_BASE_CHECK_H_
#define LOADLINE_PLANNER_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define LOADLINE_CHECK(condition)                                             \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::fprintf(stderr, "%s:%d: internal error: %s\n", __FILE__, __LINE__, \
                   #condition);                                               \
      std::abort();                                                           \
    }                                                                         \
  } while (false)

#endif  // LOADLINE_PLANNER_BASE_CHECK_H_
