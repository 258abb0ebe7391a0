// Which sanitizer a test is built with.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_SANITIZERS_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC
#define LOADLINE_TESTS_SANITIZE_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOADLINE_TESTS_SANITIZE_MEMORY 1
#endif
#endif

namespace loadline {

// The address and thread sanitizers keep what is freed, to find uses of it, and
// shadow memory beside what is allocated.
constexpr bool SanitizersKeepMemory() {
#ifdef LOADLINE_TESTS_SANITIZE_MEMORY
  return true;
#else
  return false;
#endif
}

}  // namespace loadline

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_SANITIZERS_H_
