// Biases on the grid that a quantized export gives them.
#ifndef LOADLINE_PASSES_COMPRESS_QUANTIZE_BIASES_H_
#define LOADLINE_PASSES_COMPRESS_QUANTIZE_BIASES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/compress/quantize_points.h"

namespace loadline::passes {

// A Conv or Gemm with a quantized input and weight adds its bias as an integer,
// in steps of scale(input) scale(weight):
//
//   y = Gemm(xq, wq, b)   ->   y = Gemm(xq, wq, FakeQuantize(b))
//
// A BatchNormalization in inference form that alone reads a Conv is folded into
// it by the export. So its shift s = bias - mean k, with k = scale / sqrt(var +
// epsilon), is what is rounded, in steps of scale(input) scale(weight) |k|, and
// a bias of the Conv goes into s as b k.
//
// Where a step is so small that a float cannot count the steps of the bias,
// nothing is rounded.
class BiasQuantizer {
 public:
  // `graph`: before any quantizer is inserted.
  BiasQuantizer(models::Graph& graph, const std::vector<QuantizePoint>& points);

  // The value that is the scale of a tensor that is quantized by itself.
  void SetScale(models::ValueId tensor, models::ValueId scale) {
    scales_[tensor] = scale;
  }

  // Appends what quantizes the bias of `node`, which reads it from then on.
  // `inputs`: those of the node before the pass. To be called for each node in
  // order, before it is appended.
  absl::Status Quantize(const std::vector<models::ValueId>& inputs,
                        models::Node* node);

 private:
  // A node whose bias the export makes an integer.
  struct Integer {
    models::ValueId input_scale{}, weight_scale{};
    models::ValueId bias = models::kNoValue;
    std::string name;  // of the weight
    int64_t channels = 0;
  };

  std::optional<Integer> Find(const std::vector<models::ValueId>& inputs,
                              const models::Node& node) const;
  bool IsFolded(const models::Node& conv, models::ValueId weight) const;
  absl::Status QuantizeFolded(const Integer& conv, models::Node* norm);
  absl::StatusOr<models::ValueId> Round(const Integer& integer,
                                        models::ValueId bias,
                                        models::ValueId step);
  absl::StatusOr<models::ValueId> Add(absl::string_view op,
                                      const Integer& integer,
                                      absl::string_view what,
                                      std::vector<models::ValueId> inputs);
  absl::StatusOr<models::ValueId> Constant(const Integer& integer,
                                           absl::string_view what,
                                           int64_t channels, double number);

  models::Graph& graph_;
  std::vector<const models::Node*> producer_;  // by value; null: none
  std::vector<models::Node> nodes_;            // before the pass
  std::vector<std::vector<models::NodeId>> readers_;
  std::vector<bool> is_output_;
  std::map<models::ValueId, const QuantizePoint*> points_;
  std::map<std::string, models::ValueId> value_of_;  // of points, by name
  std::map<models::ValueId, models::ValueId> scales_;
  std::map<models::ValueId, Integer> folded_;  // by the output of the Conv
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_QUANTIZE_BIASES_H_
