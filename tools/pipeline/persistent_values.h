// Parameters and states between steps, as f32 tensors by name: in a program, or
// carried from one program to the next.
#ifndef LOADLINE_TOOLS_PIPELINE_PERSISTENT_VALUES_H_
#define LOADLINE_TOOLS_PIPELINE_PERSISTENT_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/program/program.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

class PersistentValues {
 public:
  virtual ~PersistentValues() = default;
  virtual bool Has(const std::string& name) const = 0;
  // NotFound: no such value. Internal: it is not f32.
  virtual absl::StatusOr<std::vector<float>> Read(const std::string& name) = 0;
  virtual absl::Status Write(const std::string& name,
                             absl::Span<const float> contents) = 0;
  // Sets elements below `elements` to zero. Of an optimizer state in 8 bits
  // too, whose other numbers keep their codes.
  virtual absl::Status Clear(const std::string& name, int64_t elements,
                             absl::FunctionRef<bool(int64_t)> clear);
};

// Of a program, which must outlive the object.
class ProgramValues : public PersistentValues {
 public:
  explicit ProgramValues(executor::Program& program) : program_(program) {}
  bool Has(const std::string& name) const override;
  absl::StatusOr<std::vector<float>> Read(const std::string& name) override;
  absl::Status Write(const std::string& name,
                     absl::Span<const float> contents) override;
  absl::Status Clear(const std::string& name, int64_t elements,
                     absl::FunctionRef<bool(int64_t)> clear) override;

 private:
  executor::Program& program_;
};

// Of a state, which must outlive the object.
class StateValues : public PersistentValues {
 public:
  explicit StateValues(RunState& state) : state_(state) {}
  bool Has(const std::string& name) const override;
  absl::StatusOr<std::vector<float>> Read(const std::string& name) override;
  absl::Status Write(const std::string& name,
                     absl::Span<const float> contents) override;

 private:
  RunState& state_;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PERSISTENT_VALUES_H_
