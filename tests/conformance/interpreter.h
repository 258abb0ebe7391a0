// Runs a graph node by node with the CPU's kernels, every value in memory of
// its own: the reference for plans and graph rewrites.
#ifndef LOADLINE_TESTS_CONFORMANCE_INTERPRETER_H_
#define LOADLINE_TESTS_CONFORMANCE_INTERPRETER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/device/kernel.h"
#include "models/graph.h"

namespace loadline::executor {

class Interpreter {
 public:
  // Prepares the kernels; persistent values get their initial contents. The
  // graph must outlive the interpreter.
  static absl::StatusOr<std::unique_ptr<Interpreter>> Make(
      const models::Graph& graph);

  // Runs every node once. Updates write to values of their own, so a second run
  // starts from the same state.
  absl::Status Run(const StepScalars& scalars);

  template <typename T>
  absl::Span<T> Contents(models::ValueId id) {
    return {reinterpret_cast<T*>(memory_[models::Index(id)].get()),
            static_cast<size_t>(graph_->value(id).type.elements())};
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory Allocate(int64_t bytes);

  const models::Graph* graph_ = nullptr;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // null: a view
  std::vector<Memory> memory_;                    // by value
  Memory workspace_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_CONFORMANCE_INTERPRETER_H_
