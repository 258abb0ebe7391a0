// Would this model train here, as it was exported? Everything that can be said
// at once, not the first thing that is wrong.
#ifndef LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_
#define LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "models/onnx/import.h"
#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// An axis that the file leaves open.
struct OpenAxis {
  std::string input;
  int64_t axis = -1;  // -1: the file gives no shape at all
  std::string name;   // as the file calls it; may be empty
  int64_t size = 0;   // what it is now; 0: nothing says
  std::string flag;   // what sets it: "--dim sequence=N"
};

struct ModelCheck {
  std::string model;
  // What `run` would end with; OK where it would train.
  absl::Status status;
  bool imported = false;  // what stands below is known only then
  std::vector<OpenAxis> open_axes;
  std::vector<models::UnsupportedOperator> unsupported;
  std::vector<std::string> warnings;

  std::vector<std::string> inputs;  // "image f32[32,1,8,8]"
  int64_t nodes = 0;
  int64_t operators = 0;  // kinds of them
  models::TrainingForms forms;
  int64_t parameters = 0;  // tensors that an optimizer updates
  int64_t parameter_elements = 0;
  int64_t parameter_bytes = 0;
  std::vector<std::string> without_gradient;  // parameters that nothing trains
  std::string loss;                           // "cross_entropy of y f32[32,10]"
  absl::Status loss_status;

  // Nothing was put back or changed, and nothing is amiss.
  bool AsExported() const;
};

// Errors: a file that cannot be read at all, flags that are malformed. Whatever
// else is wrong stands in the result.
absl::StatusOr<ModelCheck> CheckModel(const StepFlags& flags,
                                      executor::Device& device);

// One sentence.
std::string CheckVerdict(const ModelCheck& check);
// At most 80 columns, but for names that are longer.
std::string CheckTable(const ModelCheck& check);
nlohmann::ordered_json CheckJson(const ModelCheck& check);  // loadline.check/1

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_
