// MakeKernel: a CPU kernel from a lambda.
//
// Example:
//   PreparedKernel PrepareNot(const Prepare& p) {
//     const int64_t n = p.output(0).elements();
//     return MakeKernel([n](const KernelArgs& args) {
//       const bool* x = In<bool>(args, 0);
//       ...
//     });
//   }
#ifndef LOADLINE_EXECUTOR_CPU_PREPARE_H_
#define LOADLINE_EXECUTOR_CPU_PREPARE_H_

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "executor/device/kernel.h"
#include "executor/ops/kernel_table.h"
#include "executor/ops/prepare.h"

namespace loadline::executor::cpu {

using KernelEntry = KernelEntryOf<Prepare>;

// A kernel that calls `run` with KernelArgs; it returns void or absl::Status.
template <typename Callable>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Callable run, int64_t workspace_bytes)
      : run_(std::move(run)), workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Run(const KernelArgs& args) override {
    if constexpr (std::is_void_v<
                      std::invoke_result_t<Callable&, const KernelArgs&>>) {
      run_(args);
      return absl::OkStatus();
    } else {
      return run_(args);
    }
  }

 private:
  Callable run_;
  int64_t workspace_bytes_;
};

template <typename Callable>
std::unique_ptr<Kernel> MakeKernel(Callable run, int64_t workspace_bytes = 0) {
  return std::make_unique<FunctionKernel<Callable>>(std::move(run),
                                                    workspace_bytes);
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_PREPARE_H_
