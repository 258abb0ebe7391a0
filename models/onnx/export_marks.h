// What torch's newer exporter says in metadata: which initializers were
// parameters and buffers of the module, and which values were detached. Other
// files say nothing.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_
#define LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

enum class Mark {
  kParameter,
  kBuffer,  // or a constant tensor of the module
};

struct ExportMarks {
  // By the name of the initializer, or of the module's tensor if the exporter
  // has replaced it. Empty: the file has no marks.
  std::map<std::string, Mark> marks;
  // Initializers that the exporter computed, with the values it computed them
  // from.
  std::map<std::string, std::vector<std::string>> computed_from;
  // Tensors of the module that the exporter has merged with an equal one, such
  // that a trained one stands for another tensor.
  std::vector<std::string> merged;
  // Tensors of the module whose operators the exporter rewrote without them,
  // such as those of a BatchNormalization that became part of a convolution.
  std::vector<std::string> rewritten;
  // Values through which PyTorch passes no gradient on: results of detach.
  std::set<std::string> detached;
};

// Call before the file's value_info is discarded.
ExportMarks ReadExportMarks(const onnx::GraphProto& graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_
