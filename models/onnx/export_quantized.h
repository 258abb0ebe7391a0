// Quantized export: the original ONNX model with trained weights as integers,
// and QuantizeLinear and DequantizeLinear around its operators, in the form
// that ONNX Runtime fuses to integer kernels.
//
//   y = Conv(x, w, b)   ->   xq = DequantizeLinear(QuantizeLinear(x))
//                            y = Conv(xq, DequantizeLinear(w int8),
//                                     DequantizeLinear(b int32))
//                            yq = DequantizeLinear(QuantizeLinear(y))
#ifndef LOADLINE_MODELS_ONNX_EXPORT_QUANTIZED_H_
#define LOADLINE_MODELS_ONNX_EXPORT_QUANTIZED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/types.h"

namespace loadline::models {

// One grid for a whole tensor that a node makes, or an input of the model. At
// most 8 bits.
struct QuantizedActivation {
  // Names of the tensor in the file. The one that is made first is quantized,
  // so that all others are too.
  std::vector<std::string> tensors;
  float scale = 1;
  int64_t zero_point = 0;
  int64_t bits = 8;
  bool is_signed = false;
  bool symmetric = false;
};

// An initializer as signed integers of at most 8 bits.
struct QuantizedWeight {
  std::string initializer;
  std::optional<int64_t> axis;  // of the channels; none: one scale
  int64_t bits = 8;
  bool symmetric = true;
  std::vector<float> scales;  // one per channel
  std::vector<int64_t> zero_points;
};

// An initializer as indices into at most 256 numbers.
struct CodebookWeight {
  std::string initializer;
  Tensor entries;  // f32[K]
  Tensor codes;    // i32, of the initializer's shape
};

struct QuantizedModel {
  std::map<std::string, Tensor> trained;  // initializers, by name
  std::vector<QuantizedActivation> activations;
  std::vector<QuantizedWeight> weights;
  std::vector<CodebookWeight> codebooks;
};

// Writes the model at `original_path`, for inference: normalizations use their
// running statistics, and dropout is gone. A normalization behind a Conv whose
// weight is quantized symmetrically is folded into it; the scales, not the
// codes, take its factors. Biases of nodes whose input and weight are quantized
// become int32 with the product of both scales. A channel of zeros has scale 1.
// Activations of fewer than 8 bits are clipped before they are quantized, which
// is exact, but keeps ONNX Runtime from fusing their node. A codebook's codes
// take a byte each.
//
// Errors: InvalidArgument (a name that the file lacks, or what ExportTrained
// refuses), Unimplemented (opset below 13), and those of writing a file.
absl::Status ExportQuantized(const std::string& original_path,
                             QuantizedModel quantized,
                             const std::string& out_path);

// The same without trained contents and without writing, for a check before
// training.
absl::Status CheckQuantizedExport(const std::string& original_path,
                                  const QuantizedModel& quantized);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_EXPORT_QUANTIZED_H_
