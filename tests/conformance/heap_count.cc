// Counts heap calls by standing in for the C library's functions; C++'s
// operator new ends in malloc. Sanitizers bring their own heap: not counted.
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
std::atomic<int64_t> heap_bytes{0};
}  // namespace

#if LOADLINE_COUNT_HEAP
namespace {
void Count(size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  heap_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}
}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  Count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  Count(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  Count(bytes);
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  Count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  Count(bytes);
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}

}  // extern "C"
#endif

namespace loadline::conformance {

HeapUse HeapUseSoFar() { return {heap_calls.load(), heap_bytes.load()}; }
bool HeapIsCounted() { return LOADLINE_COUNT_HEAP != 0; }

}  // namespace loadline::conformance
