// What torch's newer exporter says in metadata: which initializers were
// parameters and buffers of the module, which values were detached, which row
// of an embedding gets no gradient, and which of equal elements get the
// gradient of an extreme. Other files say nothing.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_
#define LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/types.h"
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
  // `padding_idx` of embeddings, by the value that they make: the row of the
  // table to which it passes no gradient.
  std::map<std::string, int64_t> padding_row;
  // Results of max and min over one dimension, whose gradient goes to the first
  // of equal elements; amax and amin share it among them.
  std::set<std::string> first_of_ties;
  // Biases of LSTMs that Keras has one of (keras_biases.h), by initializer.
  std::set<std::string> single_biases;
  // Inputs, parameters, buffers and constants by their names in the exported
  // program's code.
  std::set<std::string> placeholders;
  // What PyTorch computes and the exporter leaves out; one sentence each.
  std::vector<std::string> left_out;
};

// Call before the file's value_info is discarded.
ExportMarks ReadExportMarks(const onnx::GraphProto& graph);

// In a file of the older exporter, which does not say padding_idx: adds the
// rows that only it can have made, the single row of zeros of a table that
// embeddings read. Returns a warning for each such table.
std::vector<std::string> FindPaddingRows(
    const onnx::ModelProto& model,
    const std::map<std::string, Tensor>& initializers, ExportMarks* marks);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_EXPORT_MARKS_H_
