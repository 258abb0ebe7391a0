// The first contents of codebooks and learned scales. Tested in
// tests/passes/compress/add_fake_quantize_test.cc.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/quantize.h"
#include "passes/compress/add_fake_quantize.h"
#include "passes/compress/kmeans.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Tensor;
using models::TensorType;

// Element i belongs to channel i / inner % channels.
struct Channels {
  int64_t count = 1;
  int64_t inner = 1;

  size_t Of(size_t i) const {
    return static_cast<size_t>(static_cast<int64_t>(i) / inner % count);
  }
};

Channels ChannelsOf(const QuantizedTensor& tensor, const TensorType& type) {
  if (!tensor.axis.has_value())
    return {1, std::max<int64_t>(1, type.elements())};
  Channels channels = {type.dims[static_cast<size_t>(*tensor.axis)], 1};
  for (auto d = static_cast<size_t>(*tensor.axis) + 1; d < type.dims.size();
       ++d) {
    channels.inner *= type.dims[d];
  }
  return channels;
}

class Starter {
 public:
  Starter(const ValueReader& before, Graph& graph)
      : before_(before), graph_(graph) {}

  absl::Status Start(const QuantizedTensor& tensor) {
    tensor_ = &tensor;
    if (!tensor.same_as.empty()) return absl::OkStatus();
    if (tensor.quantizer == Quantizer::kKMeans) return StartCodebook();
    if (tensor.quantizer != Quantizer::kLsq) return absl::OkStatus();
    return tensor.weight ? StartScaleOfWeight() : StartScaleOfRange();
  }

 private:
  std::string Name(absl::string_view suffix) const {
    return absl::StrCat(tensor_->name, ".", suffix);
  }

  // The value that needs contents; none if the phase has no such value, or goes
  // on with what there is.
  models::Value* ToStart(absl::string_view suffix) {
    const auto id = graph_.Find(Name(suffix));
    if (!id.has_value() || before_(Name(suffix)).has_value()) return nullptr;
    return &graph_.value(*id);
  }

  absl::StatusOr<Tensor> Before(const std::string& name) const {
    std::optional<Tensor> tensor = before_(name);
    if (tensor.has_value() && tensor->data != nullptr) {
      for (float x : tensor->as<float>()) {
        if (std::isfinite(x)) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("quantizing '", tensor_->name, "': '", name,
                         "' has numbers that are not finite"));
      }
      return *tensor;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("quantizing '", tensor_->name, "' needs the contents of '",
                     name, "', and there are none"));
  }

  absl::Status StartCodebook() {
    models::Value* entries = ToStart("codebook");
    if (entries == nullptr) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const Tensor w, Before(tensor_->name));
    if (w.type.elements() == 0) return absl::OkStatus();
    const Codebook codebook = KMeans(w.as<float>(), entries->type.elements());
    entries->initial =
        models::MakeTensor(entries->type, codebook.entries.data());
    models::Value* codes = ToStart("codes");
    if (codes != nullptr) {
      codes->initial = models::MakeTensor(codes->type, codebook.codes.data());
    }
    return absl::OkStatus();
  }

  void SetLogScale(models::Value* value, const std::vector<float>& scales) {
    std::vector<float> logs;
    for (float scale : scales) logs.push_back(std::log(scale));
    value->initial = models::MakeTensor(value->type, logs.data());
  }

  // 2 mean(|w|) / sqrt(largest code), Esser et al. 2020, section 2.1.
  absl::Status StartScaleOfWeight() {
    models::Value* log_scale = ToStart("log_scale");
    if (log_scale == nullptr) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const Tensor w, Before(tensor_->name));
    const Channels channels = ChannelsOf(*tensor_, w.type);
    std::vector<double> sums(static_cast<size_t>(channels.count), 0.0);
    const absl::Span<const float> numbers = w.as<float>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      sums[channels.Of(i)] += std::abs(double{numbers[i]});
    }
    const double each =
        static_cast<double>(w.type.elements()) /
        static_cast<double>(std::max<int64_t>(1, channels.count));
    std::vector<float> scales;
    for (double sum : sums) {
      const double scale = 2 * sum / each / std::sqrt(double{Grid().most});
      scales.push_back(scale > 0 ? static_cast<float>(scale) : 1.0f);
    }
    SetLogScale(log_scale, scales);
    return absl::OkStatus();
  }

  absl::Status StartScaleOfRange() {
    models::Value* log_scale = ToStart("log_scale");
    models::Value* zero_point = ToStart("zero_point");
    if (log_scale == nullptr || zero_point == nullptr) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const Tensor low, Before(Name("low")));
    LOADLINE_ASSIGN_OR_RETURN(const Tensor high, Before(Name("high")));
    std::vector<float> scales(low.as<float>().size());
    std::vector<float> zeros(scales.size());
    for (size_t c = 0; c < scales.size(); ++c) {
      models::CoverRange(Grid(), low.as<float>()[c], high.as<float>()[c],
                         &scales[c], &zeros[c]);
    }
    SetLogScale(log_scale, scales);
    zero_point->initial = models::MakeTensor(zero_point->type, zeros.data());
    return absl::OkStatus();
  }

  models::QuantGrid Grid() const {
    return models::MakeQuantGrid(tensor_->bits, tensor_->is_signed,
                                 tensor_->symmetric);
  }

  const ValueReader& before_;
  Graph& graph_;
  const QuantizedTensor* tensor_ = nullptr;  // at work
};

}  // namespace

absl::Status StartQuantizers(absl::Span<const QuantizedTensor> tensors,
                             const ValueReader& before, Graph& graph) {
  Starter starter(before, graph);
  for (const QuantizedTensor& tensor : tensors) {
    LOADLINE_RETURN_IF_ERROR(starter.Start(tensor));
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
