// What this process takes of the machine's memory, as the kernel counts it.
#ifndef LOADLINE_EXECUTOR_MEASURE_RESIDENT_MEMORY_H_
#define LOADLINE_EXECUTOR_MEASURE_RESIDENT_MEMORY_H_

#include <cstdint>

namespace loadline::executor {

// Bytes of this process in RAM: now, and at most since it started. 0: unknown.
int64_t ResidentBytes();
int64_t PeakResidentBytes();

// Gives bytes that were freed back to the kernel, as far as the allocator can:
// otherwise it keeps them for later, and they stay resident.
void ReleaseFreedMemory();

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_RESIDENT_MEMORY_H_
