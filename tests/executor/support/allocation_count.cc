// Replaces the global operator new and delete, in all their forms: the address
// sanitizer replaces each of them too, and memory from one pair must not be
// freed by the other.
#include "tests/executor/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> count{0};

void* Allocate(std::size_t bytes) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* Allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace loadline::executor {

int64_t AllocationCount() { return count.load(); }

}  // namespace loadline::executor

using Align = std::align_val_t;
using NoThrow = const std::nothrow_t&;
using Size = std::size_t;

void* operator new(Size n) { return OrThrow(Allocate(n)); }
void* operator new[](Size n) { return OrThrow(Allocate(n)); }
void* operator new(Size n, NoThrow) noexcept { return Allocate(n); }
void* operator new[](Size n, NoThrow) noexcept { return Allocate(n); }
void* operator new(Size n, Align a) { return OrThrow(Allocate(n, a)); }
void* operator new[](Size n, Align a) { return OrThrow(Allocate(n, a)); }
void* operator new(Size n, Align a, NoThrow) noexcept { return Allocate(n, a); }
void* operator new[](Size n, Align a, NoThrow) noexcept {
  return Allocate(n, a);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, Size) noexcept { std::free(p); }
void operator delete[](void* p, Size) noexcept { std::free(p); }
void operator delete(void* p, NoThrow) noexcept { std::free(p); }
void operator delete[](void* p, NoThrow) noexcept { std::free(p); }
void operator delete(void* p, Align) noexcept { std::free(p); }
void operator delete[](void* p, Align) noexcept { std::free(p); }
void operator delete(void* p, Size, Align) noexcept { std::free(p); }
void operator delete[](void* p, Size, Align) noexcept { std::free(p); }
void operator delete(void* p, Align, NoThrow) noexcept { std::free(p); }
void operator delete[](void* p, Align, NoThrow) noexcept { std::free(p); }
