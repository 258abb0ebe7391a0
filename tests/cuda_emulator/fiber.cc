// Fibers: ucontext creates the stack; _setjmp and _longjmp switch, which unlike
// swapcontext make no system call. Used by every emulated kernel in
// tests/conformance/cuda_kernel_conformance_test.cc.
#include "tests/cuda_emulator/fiber.h"

#include <cstdint>

#ifdef __has_feature  // clang's way of saying so
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_emulator {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// Informs the address sanitizer before every change of stacks.
void Leave([[maybe_unused]] void** keep, [[maybe_unused]] const void* stack,
           [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(keep, stack, bytes);
#endif
}
void Arrive([[maybe_unused]] void* kept, [[maybe_unused]] const void** stack,
            [[maybe_unused]] size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(kept, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber(void (*body)()) : body_(body), stack_(new std::byte[kStackBytes]) {
  getcontext(&first_);
  first_.uc_stack.ss_sp = stack_.get();
  first_.uc_stack.ss_size = kStackBytes;
  first_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&first_, reinterpret_cast<void (*)()>(Main), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::Main(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | uintptr_t{low});
  Arrive(nullptr, &self->outside_stack_, &self->outside_bytes_);
  while (true) {
    self->body_();
    self->Yield();
  }
}

void Fiber::Resume() {
  Leave(&fake_outside_, stack_.get(), kStackBytes);
  if (_setjmp(outside_) == 0) {
    if (started_) _longjmp(inside_, 1);
    started_ = true;
    setcontext(&first_);
  }
  Arrive(fake_outside_, nullptr, nullptr);
}

void Fiber::Yield() {
  Leave(&fake_inside_, outside_stack_, outside_bytes_);
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
  Arrive(fake_inside_, &outside_stack_, &outside_bytes_);
}

}  // namespace cuda_emulator
