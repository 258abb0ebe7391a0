// A stack of its own to run code on, entered and left at will.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace cuda_emulator {

class Fiber {
 public:
  // Runs `body` over and over: it is entered again by the Resume after the one
  // in which it returned.
  explicit Fiber(void (*body)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it yields or its body returns. Not from a fiber.
  void Resume();
  // From inside the fiber: back to Resume.
  void Yield();

 private:
  static void Main(unsigned high, unsigned low);

  void (*body_)();
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t first_;
  jmp_buf inside_, outside_;
  bool started_ = false;
  // What the address sanitizer remembers of either side.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_bytes_ = 0;
};

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_FIBER_H_
