#include "tools/pipeline/import_model.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/onnx/declared_inputs.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/name_value.h"

namespace loadline::tools {
namespace {

constexpr int64_t kDefaultBatch = 32;

absl::StatusOr<int64_t> ParseDimension(const std::string& flag,
                                       const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " '", text, "': expected a whole number above zero"));
  }
  return value;
}

absl::StatusOr<models::Imported> Import(const ModelFlags& flags,
                                        bool training) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags, training));
  LOADLINE_ASSIGN_OR_RETURN(models::Imported imported,
                            models::ImportOnnx(flags.model, options));
  for (const std::string& warning : imported.warnings) spdlog::warn(warning);
  return imported;
}

}  // namespace

absl::StatusOr<models::ImportOptions> ImportOptionsFor(const ModelFlags& flags,
                                                       bool training) {
  models::ImportOptions options;
  options.batch = flags.batch;
  options.default_batch = kDefaultBatch;
  options.dropout = !flags.no_dropout;
  options.training = training;
  options.allow_missing_weights =
      true;  // running needs them, planning does not
  options.train = flags.train;
  options.freeze = flags.freeze;
  for (const std::string& text : flags.dims) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair, SplitNameValue("--dim", text));
    LOADLINE_ASSIGN_OR_RETURN(options.dims[pair.first],
                              ParseDimension("--dim", pair.second));
  }
  for (const std::string& text : flags.input_shapes) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair,
                              SplitNameValue("--input-shape", text));
    for (absl::string_view dim : absl::StrSplit(pair.second, 'x')) {
      LOADLINE_ASSIGN_OR_RETURN(
          const int64_t value,
          ParseDimension("--input-shape", std::string(dim)));
      options.input_shapes[pair.first].push_back(value);
    }
  }
  return options;
}

absl::Status CheckBatch(const ModelFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags, /*training=*/false));
  if (!options.batch.has_value() ||
      (options.dims.empty() && options.input_shapes.empty())) {
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<models::DeclaredInput> inputs,
                            models::ReadDeclaredInputs(flags.model, options));
  std::string other;
  for (const models::DeclaredInput& input : inputs) {
    if (!input.axes.has_value() || input.axes->empty()) continue;
    const models::DeclaredAxis& axis = input.axes->front();
    const auto size = axis.size.has_value()
                          ? axis.size
                          : models::GivenSize(input, 0, options);
    if (size == options.batch) return absl::OkStatus();
    if (axis.size.has_value() || !other.empty()) continue;
    other = options.input_shapes.count(input.name) > 0
                ? absl::StrCat("--input-shape makes the first axis of '",
                               input.name, "' ", *size)
                : absl::StrCat("--dim ", axis.name, "=", *size,
                               " is the first axis of '", input.name, "'");
  }
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--batch ", *options.batch, ": ", other, "; give one of them"));
}

absl::StatusOr<models::Imported> ImportModel(const ModelFlags& flags,
                                             bool training) {
  LOADLINE_RETURN_IF_ERROR(CheckBatch(flags));
  return Import(flags, training);
}

absl::StatusOr<models::Imported> ImportModelAt(const ModelFlags& flags,
                                               int64_t batch, bool training) {
  ModelFlags at = flags;
  at.batch = batch;
  if (flags.dims.empty() && flags.input_shapes.empty()) {
    return Import(at, training);
  }
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions given,
                            ImportOptionsFor(flags, training));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<models::DeclaredInput> inputs,
                            models::ReadDeclaredInputs(flags.model, given));
  std::map<std::string, std::vector<int64_t>> shapes = given.input_shapes;
  std::optional<int64_t> whole;  // the batch of the flags
  for (const models::DeclaredInput& input : inputs) {
    if (!input.axes.has_value() || input.axes->empty()) continue;
    const models::DeclaredAxis& axis = input.axes->front();
    if (axis.size.has_value()) continue;
    const std::optional<int64_t> size = models::GivenSize(input, 0, given);
    if (!whole.has_value()) whole = size;
    if (size != whole) continue;
    if (given.input_shapes.count(input.name) > 0) {
      shapes[input.name][0] = batch;
    } else if (given.dims.count(axis.name) > 0) {
      at.dims.push_back(absl::StrCat(axis.name, "=", batch));
    }
  }
  at.input_shapes.clear();
  for (const auto& [name, shape] : shapes) {
    at.input_shapes.push_back(
        absl::StrCat(name, "=", absl::StrJoin(shape, "x")));
  }
  return Import(at, training);
}

}  // namespace loadline::tools
