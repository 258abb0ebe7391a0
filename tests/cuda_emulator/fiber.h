// Runs code on a separate stack that can be suspended and resumed.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace cuda_emulator {

class Fiber {
 public:
  // Runs `body` repeatedly: after it has returned, the next Resume calls it
  // again.
  explicit Fiber(void (*body)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it yields or its body returns. Not from within a
  // fiber.
  void Resume();
  // Called inside the fiber: returns to the caller of Resume.
  void Yield();

 private:
  static void Main(unsigned high, unsigned low);

  void (*body_)();
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t first_;
  jmp_buf inside_, outside_;
  bool started_ = false;
  // The address sanitizer's state for both stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_bytes_ = 0;
};

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_
