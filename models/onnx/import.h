// ONNX import: an untrusted file becomes a Graph with every shape known.
//
//   ImportOptions options;
//   options.batch = 32;
//   LOADLINE_ASSIGN_OR_RETURN(Imported imported,
//                             ImportOnnx("resnet18.onnx", options));
//
// models/onnx/classify.h decides which initializers are trained.
#ifndef LOADLINE_MODELS_ONNX_IMPORT_H_
#define LOADLINE_MODELS_ONNX_IMPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::models {

struct ImportOptions {
  // Whole shapes of graph inputs by name; may set open axes, not change fixed
  // ones.
  std::map<std::string, std::vector<int64_t>> input_shapes;
  // Values of symbolic axes by name ("batch", "sequence").
  std::map<std::string, int64_t> dims;
  // Size of the first axis of every graph input where it is open.
  std::optional<int64_t> batch;
  // Used if `batch` is absent. Unlike `batch`, it gives no warning if the axis
  // is fixed to another size.
  std::optional<int64_t> default_batch;
  // False: removes every Dropout.
  bool dropout = true;
  // False: inference form, for evaluation. BatchNormalization uses its running
  // statistics and Dropout is removed.
  bool training = true;
  // Initializers that are trained, and that are not, as shell patterns
  // ("encoder.*"), each of which must match one. `train` wins. A
  // BatchNormalization with frozen running statistics keeps its inference form.
  std::vector<std::string> train;
  std::vector<std::string> freeze;
  // A missing file of external data is a warning: parameters and states in it
  // get no contents (their initial Tensor has no data). Such a graph can be
  // planned; executor::Load refuses it. A mask or a table of positions among
  // them, which is recognized by its contents, may be taken for a parameter.
  bool allow_missing_weights = false;
  // Limit for the file and its external data together.
  int64_t max_bytes = int64_t{1} << 40;
  // Limit for folded constants in memory at the same time.
  int64_t max_folded_bytes = int64_t{1} << 30;
};

// Nodes whose training form differs from their inference form, as imported.
struct TrainingForms {
  int batch_norms = 0;           // in training form
  int batch_norms_restored = 0;  // of these: in inference form in the file
  int batch_norms_fixed = 0;     // use their running statistics only
  int dropouts = 0;              // that drop elements
  int dropouts_restored = 0;     // of these: in inference form in the file
  int dropouts_off = 0;          // removed
};

// Whether an f32 initializer is trained, and why: "operand of Conv".
struct InitializerRole {
  std::string name;
  bool trained = false;
  std::string why;
};

struct Imported {
  // Parameters and running statistics have their initializers' names.
  Graph graph;
  // One sentence each, for the user.
  std::vector<std::string> warnings;
  TrainingForms forms;
  // Of the initializers that the outputs depend on, in the file's order,
  // without running statistics.
  std::vector<InitializerRole> roles;
  // The graph's value for each tensor of the model that has one, by the
  // tensor's name after opset conversion and inlining.
  std::map<std::string, ValueId> value_of;
};

// Errors: NotFound (no such file), InvalidArgument (a file that is damaged or
// hostile, or needs dimensions that the options do not give), Unimplemented
// (unknown operators, all listed in the message: IsUnsupported distinguishes
// this error), ResourceExhausted (limits).
absl::StatusOr<Imported> ImportOnnx(const std::string& path,
                                    const ImportOptions& options);

// The same from bytes in memory; a model with external data is refused.
absl::StatusOr<Imported> ImportOnnxBytes(absl::string_view bytes,
                                         const ImportOptions& options);

// The files that hold the model's external data: those that exist, inside the
// model's folder. Reads the whole model file. Errors as ImportOnnx.
absl::StatusOr<std::vector<std::string>> ExternalDataFiles(
    const std::string& path);

// Whether the error lists unsupported operators.
bool IsUnsupported(const absl::Status& status);

struct UnsupportedOperator {
  std::string name;  // "Det", "com.example::Relu"
  std::string why;   // empty: the operator is unknown
  std::vector<std::string> nodes;
};
// The operators that this error lists; empty for any other status.
std::vector<UnsupportedOperator> UnsupportedOperators(
    const absl::Status& status);
// What the user can do about them, as the error says it too; empty for any
// other status.
std::string UnsupportedAdvice(const absl::Status& status);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_IMPORT_H_
