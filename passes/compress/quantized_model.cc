// Ranges become grids by the formulas of the kernels, so that exported codes
// are those of training. Tested in
// tests/onnxruntime/quantized_test.
#include "passes/compress/quantized_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/ops/quantize.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::QuantizedActivation;
using models::QuantizedModel;
using models::QuantizedWeight;
using models::Tensor;

// Scale and zero point of each channel.
struct Grids {
  std::vector<float> scales;
  std::vector<float> zero_points;
};

class ModelMaker {
 public:
  ModelMaker(const ValueReader& values,
             const std::map<std::string, std::vector<std::string>>& file_names)
      : values_(values), file_names_(file_names) {}

  absl::Status Add(const QuantizedTensor& tensor) {
    if (tensor.quantizer == Quantizer::kKMeans) return AddCodebook(tensor);
    return tensor.weight ? AddWeight(tensor) : AddActivation(tensor);
  }

  QuantizedModel model;

 private:
  absl::StatusOr<Tensor> Read(const std::string& name) const {
    std::optional<Tensor> tensor = values_(name);
    if (tensor.has_value() && tensor->data != nullptr) {
      if (tensor->type.dtype != models::DType::kF32) return *tensor;
      for (float x : tensor->as<float>()) {
        if (std::isfinite(x)) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("'", name,
                         "' has numbers that are not finite, which no integer "
                         "stands for: the training diverged"));
      }
      return *tensor;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("a quantized export needs '", name,
                     "', which has no "
                     "contents"));
  }

  static models::QuantGrid GridOf(const QuantizedTensor& tensor) {
    return models::MakeQuantGrid(tensor.bits, tensor.is_signed,
                                 tensor.symmetric);
  }

  static Grids Cover(const QuantizedTensor& tensor,
                     const std::vector<float>& low,
                     const std::vector<float>& high) {
    Grids grids{std::vector<float>(low.size()), std::vector<float>(low.size())};
    for (size_t c = 0; c < low.size(); ++c) {
      models::CoverRange(GridOf(tensor), low[c], high[c], &grids.scales[c],
                         &grids.zero_points[c]);
    }
    return grids;
  }

  absl::StatusOr<Grids> Learned(const std::string& name) const {
    LOADLINE_ASSIGN_OR_RETURN(const Tensor logs,
                              Read(absl::StrCat(name, ".log_scale")));
    LOADLINE_ASSIGN_OR_RETURN(const Tensor zeros,
                              Read(absl::StrCat(name, ".zero_point")));
    Grids grids;
    for (float log : logs.as<float>()) grids.scales.push_back(std::exp(log));
    const absl::Span<const float> numbers = zeros.as<float>();
    grids.zero_points.assign(numbers.begin(), numbers.end());
    return grids;
  }

  absl::StatusOr<Grids> OfWeight(const QuantizedTensor& tensor) const {
    if (tensor.quantizer == Quantizer::kLsq) return Learned(tensor.name);
    LOADLINE_ASSIGN_OR_RETURN(const Tensor w, Read(tensor.name));
    int64_t inner = std::max<int64_t>(1, w.type.elements());
    size_t channels = 1;
    if (tensor.axis.has_value()) {
      const auto axis = static_cast<size_t>(*tensor.axis);
      channels = static_cast<size_t>(w.type.dims[axis]);
      inner = 1;
      for (size_t d = axis + 1; d < w.type.dims.size(); ++d) {
        inner *= w.type.dims[d];
      }
    }
    std::vector<float> low(channels, 0.0f), high(channels, 0.0f);
    const absl::Span<const float> numbers = w.as<float>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t c = i / static_cast<size_t>(inner) % channels;
      low[c] = std::min(low[c], numbers[i]);
      high[c] = std::max(high[c], numbers[i]);
    }
    return Cover(tensor, low, high);
  }

  absl::Status AddWeight(const QuantizedTensor& tensor) {
    LOADLINE_ASSIGN_OR_RETURN(const Grids grids, OfWeight(tensor));
    QuantizedWeight weight;
    weight.initializer = tensor.name;
    weight.axis = tensor.axis;
    weight.bits = tensor.bits;
    weight.symmetric = tensor.symmetric;
    weight.scales = grids.scales;
    weight.zero_points.assign(grids.zero_points.begin(),
                              grids.zero_points.end());
    model.weights.push_back(std::move(weight));
    return absl::OkStatus();
  }

  absl::Status AddActivation(const QuantizedTensor& tensor) {
    const std::string& name =
        tensor.same_as.empty() ? tensor.name : tensor.same_as;
    Grids grids;
    if (tensor.quantizer == Quantizer::kLsq) {
      LOADLINE_ASSIGN_OR_RETURN(grids, Learned(name));
    } else {
      LOADLINE_ASSIGN_OR_RETURN(const Tensor low,
                                Read(absl::StrCat(name, ".low")));
      LOADLINE_ASSIGN_OR_RETURN(const Tensor high,
                                Read(absl::StrCat(name, ".high")));
      if (low.as<float>()[0] == 0 && high.as<float>()[0] == 0) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the range of '", name,
            "' was never observed: calibrate, or train for a step"));
      }
      grids = Cover(tensor, {low.as<float>()[0]}, {high.as<float>()[0]});
    }
    QuantizedActivation activation;
    const auto names = file_names_.find(tensor.name);
    if (names == file_names_.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", tensor.name,
          "' is quantized, and the file has no such tensor: exclude its node"));
    }
    activation.tensors = names->second;
    activation.scale = grids.scales[0];
    activation.zero_point = static_cast<int64_t>(grids.zero_points[0]);
    activation.bits = tensor.bits;
    activation.is_signed = tensor.is_signed;
    activation.symmetric = tensor.symmetric;
    model.activations.push_back(std::move(activation));
    return absl::OkStatus();
  }

  absl::Status AddCodebook(const QuantizedTensor& tensor) {
    models::CodebookWeight weight;
    weight.initializer = tensor.name;
    LOADLINE_ASSIGN_OR_RETURN(weight.entries,
                              Read(absl::StrCat(tensor.name, ".codebook")));
    LOADLINE_ASSIGN_OR_RETURN(weight.codes,
                              Read(absl::StrCat(tensor.name, ".codes")));
    model.codebooks.push_back(std::move(weight));
    return absl::OkStatus();
  }

  const ValueReader& values_;
  const std::map<std::string, std::vector<std::string>>& file_names_;
};

}  // namespace

std::map<std::string, std::vector<std::string>> FileNames(
    const models::Graph& model,
    const std::map<std::string, models::ValueId>& value_of) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, id] : value_of) {
    if (id != models::kNoValue) names[model.value(id).name].push_back(name);
  }
  return names;
}

absl::StatusOr<QuantizedModel> MakeQuantizedModel(
    absl::Span<const QuantizedTensor> tensors, const ValueReader& values,
    const std::map<std::string, std::vector<std::string>>& file_names) {
  ModelMaker maker(values, file_names);
  for (const QuantizedTensor& tensor : tensors) {
    LOADLINE_RETURN_IF_ERROR(maker.Add(tensor));
  }
  return std::move(maker.model);
}

}  // namespace loadline::passes
