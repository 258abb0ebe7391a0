// ONNX import: a file nobody trusts becomes a Graph with every shape known.
//
//   ImportOptions options;
//   options.batch = 32;
//   LOADLINE_ASSIGN_OR_RETURN(Imported imported,
//                             ImportOnnx("resnet18.onnx", options));
//
// Which initializers are trained: see models/onnx/classify.h.
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
  // Whole shapes of graph inputs by name; may fill open axes, not change
  // fixed ones.
  std::map<std::string, std::vector<int64_t>> input_shapes;
  // Values of symbolic axes by name ("batch", "sequence").
  std::map<std::string, int64_t> dims;
  // The first axis of every graph input where it is still open.
  std::optional<int64_t> batch;
  // The same where `batch` is absent: nobody asked for it, so an axis that is
  // fixed to another size is worth no warning.
  std::optional<int64_t> default_batch;
  // False: every Dropout disappears.
  bool dropout = true;
  // False: inference forms, for evaluation: BatchNormalization reads its
  // running statistics and Dropout disappears.
  bool training = true;
  // Initializers that are never trained, as shell patterns ("encoder.*").
  // A BatchNormalization whose running statistics are frozen keeps its
  // inference form.
  std::vector<std::string> frozen;
  // The file and its external data together; more is refused.
  int64_t max_bytes = int64_t{1} << 40;
  // Folded constants alive at one time; more is refused.
  int64_t max_folded_bytes = int64_t{1} << 30;
};

// The nodes that act otherwise in training than in inference, as imported.
struct TrainingForms {
  int batch_norms = 0;           // that train
  int batch_norms_restored = 0;  // of these: in inference form in the file
  int batch_norms_fixed = 0;     // read their running statistics only
  int dropouts = 0;              // that drop
  int dropouts_restored = 0;     // of these: in inference form in the file
  int dropouts_off = 0;          // taken out
};

struct Imported {
  // Parameters and running statistics bear their initializers' names.
  Graph graph;
  // One sentence each, for a person.
  std::vector<std::string> warnings;
  TrainingForms forms;
  // The graph's value for each of the model's tensors that became one, by
  // its name in the model after opset conversion and inlining.
  std::map<std::string, ValueId> value_of;
};

// Errors: NotFound (no such file), InvalidArgument (a file that is damaged,
// hostile, or needs dimensions that the options do not give),
// Unimplemented (operators nobody here knows, all of them in the message:
// IsUnsupported tells these from other causes), ResourceExhausted (limits).
absl::StatusOr<Imported> ImportOnnx(const std::string& path,
                                    const ImportOptions& options);

// The same from bytes in memory; a model with external data is refused.
absl::StatusOr<Imported> ImportOnnxBytes(absl::string_view bytes,
                                         const ImportOptions& options);

// The files that hold the model's external data: those that exist, inside the
// model's folder. Reads the whole model file. Errors as ImportOnnx.
absl::StatusOr<std::vector<std::string>> ExternalDataFiles(
    const std::string& path);

// True for the error that lists unsupported operators.
bool IsUnsupported(const absl::Status& status);

struct UnsupportedOperator {
  std::string name;  // "Det", "com.example::Relu"
  std::string why;   // empty: it is unknown altogether
  std::vector<std::string> nodes;
};
// What that error lists; empty for any other status.
std::vector<UnsupportedOperator> UnsupportedOperators(
    const absl::Status& status);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_IMPORT_H_
