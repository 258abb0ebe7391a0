// From trained quantizers to what a quantized export needs.
#ifndef LOADLINE_PASSES_COMPRESS_QUANTIZED_MODEL_H_
#define LOADLINE_PASSES_COMPRESS_QUANTIZED_MODEL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "models/onnx/export_quantized.h"
#include "passes/compress/add_fake_quantize.h"

namespace loadline::passes {

// The file's names of every value of an imported model, by the value's name.
// `value_of`: Imported::value_of.
std::map<std::string, std::vector<std::string>> FileNames(
    const models::Graph& model,
    const std::map<std::string, models::ValueId>& value_of);

// Grids, codes and codebooks as they are after training; `trained` is left
// empty. `values` reads persistent values of the step, `file_names` is that of
// FileNames. The grid of a weight is the one that the next step would use.
// FailedPrecondition: a quantizer without contents; an input or output that no
// step and no calibration has observed.
absl::StatusOr<models::QuantizedModel> MakeQuantizedModel(
    absl::Span<const QuantizedTensor> tensors, const ValueReader& values,
    const std::map<std::string, std::vector<std::string>>& file_names);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_QUANTIZED_MODEL_H_
