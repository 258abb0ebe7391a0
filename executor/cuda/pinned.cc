// Registering touches every page on one thread, which takes seconds for a
// hundred gigabytes. So several threads touch the pages first, which also
// places them on the intended memory node. Tested in
// tests/executor/cuda/cuda_pinned_test.cc.
#include "executor/cuda/pinned.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int64_t kLeastBytesPerThread = int64_t{64} << 20;
constexpr int kMostThreads = 16;

// Writes one byte of every page.
void Touch(std::byte* begin, std::byte* end, int64_t page) {
  for (volatile std::byte* at = begin; at < end; at += page) *at = std::byte{0};
}

void Prefault(std::byte* base, int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t most =
      std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const int64_t threads =
      std::clamp<int64_t>(bytes / kLeastBytesPerThread, 1, most);
  const int64_t share = (bytes / threads + page - 1) / page * page;
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t) {
    others.emplace_back(Touch, base + std::min(t * share, bytes),
                        base + std::min((t + 1) * share, bytes), page);
  }
  Touch(base, base + std::min(share, bytes), page);
  for (std::thread& other : others) other.join();
}

// Only a hint: if it cannot be followed, the pages are elsewhere and copies are
// slower.
void PreferNode(std::byte* base, int64_t bytes, int node) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED of <numaif.h>
  if (node < 0 || node >= 64) return;
  const unsigned long mask = 1ul << node;  // NOLINT: the call's own type
  (void)syscall(SYS_mbind, base, bytes, kPreferred, &mask, 8 * sizeof(mask),
                0u);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedRegion>> PinnedRegion::Create(
    Driver& driver, int64_t bytes, int numa_node) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a region cannot have ", bytes, " bytes"));
  }
  std::unique_ptr<PinnedRegion> region(new PinnedRegion(driver));
  if (bytes == 0) return region;
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot map ", bytes, " bytes of host memory: ", std::strerror(errno)));
  }
  region->base_ = static_cast<std::byte*>(mapping);
  region->bytes_ = bytes;
  (void)madvise(mapping, bytes, MADV_HUGEPAGE);
  PreferNode(region->base_, bytes, numa_node);
  Prefault(region->base_, bytes);
  LOADLINE_RETURN_IF_ERROR(driver.HostRegister(region->base_, bytes));
  region->registered_ = true;
  return region;
}

PinnedRegion::~PinnedRegion() {
  if (registered_) driver_.HostUnregister(base_).IgnoreError();
  if (base_ != nullptr) munmap(base_, bytes_);
}

int NumaNodeOf(const std::string& pci_id, const std::string& sysfs) {
  std::error_code error;
  if (!std::filesystem::exists(sysfs + "/devices/system/node/node1", error)) {
    return -1;
  }
  std::string lower = pci_id;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(sysfs + "/bus/pci/devices/" + lower + "/numa_node");
  int node = -1;
  file >> node;
  return file ? node : -1;
}

}  // namespace loadline::executor::cuda
