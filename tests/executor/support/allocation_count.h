// Counts calls of operator new in the whole test program, on all threads.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_ALLOCATION_COUNT_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace loadline::executor {

int64_t AllocationCount();

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_ALLOCATION_COUNT_H_
