// Reserves inaccessible pages for everything, then makes the middle accessible;
// the remaining pages are the guards. Under the address sanitizer the slack
// between the arena and the edges of its pages is poisoned too. Tested in
// tests/executor/cpu/arena_test.cc.
#include "executor/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define LOADLINE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define LOADLINE_ASAN 1
#endif
#endif

namespace loadline::executor {
namespace {

void PoisonSlack(const std::byte* from, const std::byte* to) {
#ifdef LOADLINE_ASAN
  __asan_poison_memory_region(from, static_cast<size_t>(to - from));
#else
  (void)from;
  (void)to;
#endif
}

void UnpoisonAll(const void* mapping, int64_t bytes) {
#ifdef LOADLINE_ASAN
  __asan_unpoison_memory_region(mapping, static_cast<size_t>(bytes));
#else
  (void)mapping;
  (void)bytes;
#endif
}

absl::Status NoRoom(int64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot map an arena of ", bytes, " bytes: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - 4 * page) {
    return absl::InvalidArgumentError(
        absl::StrCat("an arena cannot have ", bytes, " bytes"));
  }
  std::unique_ptr<Arena> arena(new Arena());
  arena->bytes_ = bytes;
  arena->mapped_bytes_ = (bytes + page - 1) / page * page;
  const int64_t total = arena->mapped_bytes_ + 2 * page;
  void* mapping = mmap(nullptr, total, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return NoRoom(bytes);
  arena->mapping_ = mapping;
  arena->mapping_bytes_ = total;
  std::byte* begin = static_cast<std::byte*>(mapping) + page;
  std::byte* end = begin + arena->mapped_bytes_;
  if (bytes > 0 &&
      mprotect(begin, arena->mapped_bytes_, PROT_READ | PROT_WRITE) != 0) {
    return NoRoom(bytes);
  }
  // Only advice: fewer page faults and TLB misses in large arenas.
  if (bytes > 0) (void)madvise(begin, arena->mapped_bytes_, MADV_HUGEPAGE);
  // Page boundaries are multiples of the alignment, so rounding the size up
  // rounds the address down.
  const int64_t span = planner::AlignUp(bytes, kAlignment);
  arena->base_ = end - span;
  PoisonSlack(begin, arena->base_);
  PoisonSlack(arena->base_ + bytes, end);
  return arena;
}

Arena::~Arena() {
  if (mapping_ == nullptr) return;
  UnpoisonAll(mapping_, mapping_bytes_);
  munmap(mapping_, mapping_bytes_);
}

}  // namespace loadline::executor
