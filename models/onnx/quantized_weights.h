// Weights and biases of a quantized export: initializers become integers, and
// DequantizeLinear or Gather nodes that give them back.
#ifndef LOADLINE_MODELS_ONNX_QUANTIZED_WEIGHTS_H_
#define LOADLINE_MODELS_ONNX_QUANTIZED_WEIGHTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/onnx/export_quantized.h"
#include "models/onnx/inference_form.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

class WeightWriter {
 public:
  // `scales`: of the activations, by the name of the tensor. `norms`: what
  // FoldNorms removed.
  WeightWriter(onnx::GraphProto* graph, std::map<std::string, float> scales,
               std::map<std::string, FoldedNorm> norms);

  // Each replaces one initializer for all its readers. InvalidArgument: no such
  // initializer, or it does not have the channels.
  absl::Status Write(const QuantizedWeight& weight);
  absl::Status Write(const CodebookWeight& weight);

  // The nodes that the readers need before them.
  const std::vector<onnx::NodeProto>& nodes() const { return nodes_; }

 private:
  struct Codes;  // a weight as integers

  absl::StatusOr<onnx::TensorProto*> Find(const std::string& name);
  absl::StatusOr<Codes> MakeCodes(const QuantizedWeight& weight) const;
  absl::Status WriteBias(onnx::NodeProto* node, const QuantizedWeight& weight,
                         Codes* codes);
  absl::StatusOr<std::vector<double>> BiasOf(const onnx::NodeProto& node,
                                             const QuantizedWeight& weight,
                                             size_t channels) const;
  void AddDequantize(const std::string& name, const std::vector<float>& scales,
                     int zero_point_type,
                     const std::vector<int64_t>& zero_points, bool per_channel,
                     int64_t axis);
  // Every reader of the weight but the first gets a DequantizeLinear like the
  // last of `nodes_`, and a zero point, of its own.
  absl::Status SeparateReaders(const std::string& name,
                               absl::Span<onnx::NodeProto* const> readers);
  std::vector<onnx::NodeProto*> Readers(const std::string& name);
  // The tensor behind Identity nodes.
  std::string Origin(std::string name) const;

  onnx::GraphProto* graph_;
  std::map<std::string, float> scales_;
  std::map<std::string, FoldedNorm> norms_;
  std::vector<onnx::NodeProto> nodes_;
};

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_QUANTIZED_WEIGHTS_H_
