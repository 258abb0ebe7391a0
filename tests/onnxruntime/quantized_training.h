// Trains a model on the digits, quantizes it, and exports it: what a recipe
// does in a run, as separate calls.
#ifndef LOADLINE_TESTS_ONNXRUNTIME_QUANTIZED_TRAINING_H_
#define LOADLINE_TESTS_ONNXRUNTIME_QUANTIZED_TRAINING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/train/data.h"
#include "models/onnx/import.h"
#include "passes/compress/add_fake_quantize.h"

namespace loadline {

class QuantizedTraining {
 public:
  // `zoo`: the folder with the digits.
  QuantizedTraining(std::string model, std::string zoo, uint64_t seed)
      : model_(std::move(model)), zoo_(std::move(zoo)), seed_(seed) {}

  struct Phase {
    std::optional<passes::QuantizeSpec> quantize;
    passes::QuantizeStage stage = passes::QuantizeStage::kTrain;
    bool freeze_bn = false;
    int64_t steps = 0;
    float learning_rate = 2e-3f;
  };
  // Goes on from what the phases before left.
  absl::Status Train(const Phase& phase);
  // Observes ranges over batches of the training data.
  absl::Status Calibrate(const passes::QuantizeSpec& spec, int64_t batches);
  // Running statistics with codebooks for weights, over so many batches.
  absl::Status EstimateStatistics(const passes::QuantizeSpec& spec,
                                  int64_t batches);

  struct Outcome {
    double accuracy = 0;
    std::vector<float> logits;  // of the test images, in order
  };
  absl::StatusOr<Outcome> Test(const std::optional<passes::QuantizeSpec>& spec);
  absl::Status Export(const passes::QuantizeSpec& spec,
                      const std::string& path);

 private:
  struct Model {
    models::Imported imported;
    std::vector<passes::QuantizedTensor> tensors;
    std::map<std::string, std::vector<std::string>> file_names;
  };
  absl::StatusOr<Model> Build(int64_t batch, bool freeze_bn,
                              const std::optional<passes::QuantizeSpec>& spec,
                              passes::QuantizeStage stage);
  // Runs a forward pass over batches of the training data and calls `ran` after
  // each with the values that it updates.
  absl::Status RunForward(
      const Model& model, int64_t batches,
      const std::function<void(const std::string&, models::Tensor)>& ran);
  // Contents of persistent values from values_, and of new quantizers.
  absl::Status Fill(const Model& model, models::Graph* graph);
  absl::StatusOr<executor::DataSet> Data(const std::string& file,
                                         const models::Graph& graph) const;

  std::string model_, zoo_;
  uint64_t seed_;
  int64_t step_ = 0;
  std::map<std::string, models::Tensor> values_;  // as training left them
};

}  // namespace loadline

#endif  // LOADLINE_TESTS_ONNXRUNTIME_QUANTIZED_TRAINING_H_
