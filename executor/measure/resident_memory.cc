// VmRSS and VmHWM of /proc/self/status. Tested in
// tests/executor/measure/resident_memory_test.cc.
#include "executor/measure/resident_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace loadline::executor {
namespace {

// A line is "VmRSS:     1234 kB".
int64_t StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  while (status >> name) {
    int64_t kib = 0;
    if (name == field && status >> kib) return kib << 10;
    std::getline(status, name);
  }
  return 0;
}

}  // namespace

int64_t ResidentBytes() { return StatusBytes("VmRSS:"); }

int64_t PeakResidentBytes() { return StatusBytes("VmHWM:"); }

void ReleaseFreedMemory() { malloc_trim(0); }

}  // namespace loadline::executor
