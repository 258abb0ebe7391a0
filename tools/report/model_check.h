// Checks whether a model would train here as it was exported. Reports
// everything that is wrong at once.
#ifndef LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_
#define LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/reference/check_gradients.h"
#include "models/onnx/import.h"
#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// An axis without a size in the file.
struct OpenAxis {
  std::string input;
  int64_t axis = -1;  // -1: the file declares no shape
  std::string name;   // as the file calls it; may be empty
  int64_t size = 0;   // set by flags or defaults; 0: not set
  std::string flag;   // what sets it: "--dim sequence=N"
};

struct ModelCheck {
  std::string model;
  // The status with which `run` would end; OK if the model would train.
  absl::Status status;
  bool imported = false;  // the fields below require this
  std::vector<OpenAxis> open_axes;
  std::vector<models::UnsupportedOperator> unsupported;
  std::vector<std::string> warnings;

  std::vector<std::string> inputs;  // "image f32[32,1,8,8]"
  // Names of those that the loss does not depend on; `inputs` lacks them.
  std::vector<std::string> not_read;
  int64_t nodes = 0;
  int64_t operators = 0;  // kinds of them
  models::TrainingForms forms;
  int64_t parameters = 0;  // tensors that an optimizer updates
  int64_t parameter_elements = 0;
  int64_t parameter_bytes = 0;
  std::vector<models::InitializerRole> roles;
  std::vector<std::string> without_gradient;  // parameters that get no gradient
  std::string loss;                           // "cross_entropy of y f32[32,10]"
  absl::Status loss_status;
  // Empty if they were not asked for, or something else is wrong.
  std::vector<reference::GradientCheck> gradients;

  // Nothing was restored or changed, and nothing is wrong.
  bool AsExported() const;
};

// `gradients`: null to leave out the check of gradient rules; a wrong one is an
// Internal status. Errors: an unreadable file, malformed flags. Everything else
// that is wrong is in the result.
absl::StatusOr<ModelCheck> CheckModel(
    const StepFlags& flags, executor::Device& device,
    const reference::GradientCheckOptions* gradients = nullptr);

// One sentence.
std::string CheckVerdict(const ModelCheck& check);
// At most 80 columns wide, except for longer names.
std::string CheckTable(const ModelCheck& check);
nlohmann::ordered_json CheckJson(const ModelCheck& check);  // loadline.check/1

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_MODEL_CHECK_H_
