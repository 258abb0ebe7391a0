// Counts heap calls by replacing the C library's functions; C++'s operator new
// calls malloc. Sanitizers have their own heap, which is not counted.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "tests/conformance/harness.h"

#ifdef __has_feature  // clang's way of saying so
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOADLINE_COUNT_HEAP 0
#elif defined(__GLIBC__)
#define LOADLINE_COUNT_HEAP 1
#else
#define LOADLINE_COUNT_HEAP 0
#endif

namespace {
std::atomic<int64_t> heap_calls{0};
std::atomic<int64_t> heap_held{0};  // bytes
std::atomic<int64_t> heap_peak{0};  // maximum of heap_held since a reset
}  // namespace

#if LOADLINE_COUNT_HEAP
namespace {

void Raise(std::atomic<int64_t>& most, int64_t value) {
  int64_t old = most.load(std::memory_order_relaxed);
  while (old < value && !most.compare_exchange_weak(old, value)) {
  }
}

// Counts an allocated block and returns it.
void* Count(void* block) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  const auto bytes = static_cast<int64_t>(malloc_usable_size(block));
  Raise(heap_peak, heap_held.fetch_add(bytes) + bytes);
  return block;
}

void CountFree(void* block) {
  heap_held.fetch_sub(static_cast<int64_t>(malloc_usable_size(block)));
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

void* malloc(size_t bytes) { return Count(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) {
  return Count(__libc_calloc(count, bytes));
}
void* realloc(void* old, size_t bytes) {
  CountFree(old);
  return Count(__libc_realloc(old, bytes));
}
void* memalign(size_t alignment, size_t bytes) {
  return Count(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return Count(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  *result = Count(__libc_memalign(alignment, bytes));
  return *result == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  CountFree(block);
  __libc_free(block);
}

}  // extern "C"
#endif

namespace loadline::conformance {

HeapUse MeasureHeap(const std::function<void()>& body) {
  const int64_t calls = heap_calls.load();
  const int64_t held = heap_held.load();
  heap_peak.store(held);
  body();
  return {heap_calls.load() - calls, heap_peak.load() - held};
}

bool HeapIsCounted() { return LOADLINE_COUNT_HEAP != 0; }

}  // namespace loadline::conformance
