// Tested by tests/end_to_end/lora_test.cc.
#include "tools/pipeline/lora.h"

#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "executor/files/safetensors.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

using models::Tensor;
using models::TensorType;

struct Adapter {
  std::string weight;
  models::ValueId w, a, b;
};

std::vector<Adapter> AdaptersOf(const models::Graph& step) {
  std::vector<Adapter> adapters;
  for (size_t v = 0; v < step.values.size(); ++v) {
    const auto a = step.Find(passes::LoraAName(step.values[v].name));
    const auto b = step.Find(passes::LoraBName(step.values[v].name));
    if (!a.has_value() || !b.has_value()) continue;
    adapters.push_back(
        {step.values[v].name, static_cast<models::ValueId>(v), *a, *b});
  }
  return adapters;
}

absl::StatusOr<Tensor> Read(const TensorReader& read, const std::string& name,
                            const TensorType& type) {
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read(name));
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return absl::InternalError(
        absl::StrCat(name, " has ", bytes.size(), " bytes"));
  }
  return models::MakeTensor(type, bytes.data());
}

// f32 of [rows, columns], transposed.
std::vector<std::byte> Transposed(const Tensor& matrix) {
  const auto rows = static_cast<size_t>(matrix.type.dims[0]);
  const auto columns = static_cast<size_t>(matrix.type.dims[1]);
  std::vector<std::byte> out(matrix.data->size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      std::memcpy(out.data() + (j * rows + i) * sizeof(float),
                  matrix.data->data() + (i * columns + j) * sizeof(float),
                  sizeof(float));
    }
  }
  return out;
}

std::string PeftName(const std::string& weight, const char* part) {
  return absl::StrCat("base_model.model.", absl::StripSuffix(weight, ".weight"),
                      ".", part, ".weight");
}

}  // namespace

absl::StatusOr<std::optional<passes::LoraOptions>> LoraFor(
    const OptimizerFlags& optimizer, const ModelFlags& model) {
  if (optimizer.lora.empty()) return std::nullopt;
  const auto error = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lora '", optimizer.lora, "': ", why));
  };
  passes::LoraOptions options;
  options.train = model.train;
  bool targets = false;
  std::set<std::string> given;
  for (absl::string_view part : absl::StrSplit(optimizer.lora, ',')) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool named = absl::StrContains(part, '=');
    if (named && !given.insert(pair.first).second) {
      return error(absl::StrCat(pair.first, " is given twice"));
    }
    if (named && pair.first == "rank") {
      if (!absl::SimpleAtoi(pair.second, &options.rank) || options.rank < 1) {
        return error("rank must be a number above zero");
      }
    } else if (named && pair.first == "alpha") {
      if (!absl::SimpleAtod(pair.second, &options.alpha) ||
          !(options.alpha > 0)) {
        return error("alpha must be a number above zero");
      }
    } else if (named && pair.first == "targets") {
      targets = true;
      options.targets.push_back(pair.second);
    } else if (!named && targets) {
      options.targets.emplace_back(part);
    } else {
      return error(
          absl::StrCat("'", part, "' is none of rank=N, alpha=X, targets=A,B"));
    }
    if (targets && options.targets.back().empty()) {
      return error("targets has an empty name");
    }
  }
  if (options.rank == 0) return error("rank=N is missing");
  if (options.alpha == 0) options.alpha = static_cast<double>(options.rank);
  return options;
}

absl::StatusOr<std::map<std::string, std::vector<std::byte>>> MergedWeights(
    const models::Graph& step, const passes::LoraOptions& lora, bool averages,
    const TensorReader& read) {
  std::map<std::string, std::vector<std::byte>> merged;
  for (const Adapter& adapter : AdaptersOf(step)) {
    const auto& type = [&](models::ValueId id) -> const TensorType& {
      return step.value(id).type;
    };
    LOADLINE_ASSIGN_OR_RETURN(const Tensor weight,
                              Read(read, adapter.weight, type(adapter.w)));
    for (const bool average : {false, true}) {
      const auto name = [&](const std::string& tensor) {
        return average ? passes::AverageName(tensor) : tensor;
      };
      const std::string a = name(passes::LoraAName(adapter.weight));
      const std::string b = name(passes::LoraBName(adapter.weight));
      if (average && (!averages || !step.Find(a).has_value())) continue;
      LOADLINE_ASSIGN_OR_RETURN(const Tensor left,
                                Read(read, a, type(adapter.a)));
      LOADLINE_ASSIGN_OR_RETURN(const Tensor right,
                                Read(read, b, type(adapter.b)));
      const Tensor sum =
          passes::MergedWeight(weight, left, right, lora.scale());
      merged[name(adapter.weight)] = *sum.data;
    }
  }
  return merged;
}

absl::Status WriteAdapters(const std::string& path, const models::Graph& step,
                           const passes::LoraOptions& lora,
                           const TensorReader& read) {
  std::vector<executor::NamedType> types;
  std::vector<std::vector<std::byte>> contents;
  for (const Adapter& adapter : AdaptersOf(step)) {
    for (const bool first : {true, false}) {
      const models::ValueId id = first ? adapter.a : adapter.b;
      LOADLINE_ASSIGN_OR_RETURN(
          const Tensor tensor,
          Read(read, step.value(id).name, step.value(id).type));
      // PEFT has a row of A for each rank.
      const bool as_it_is = step.value(adapter.a).type.dims[0] == lora.rank;
      TensorType type = tensor.type;
      if (!as_it_is) std::swap(type.dims[0], type.dims[1]);
      types.push_back(
          {PeftName(adapter.weight, first ? "lora_A" : "lora_B"), type});
      contents.push_back(as_it_is ? *tensor.data : Transposed(tensor));
    }
  }
  return executor::WriteSafetensors(
      path, types,
      {{"rank", absl::StrCat(lora.rank)}, {"alpha", absl::StrCat(lora.alpha)}},
      [&](size_t i, absl::Span<std::byte> to) {
        std::memcpy(to.data(), contents[i].data(), to.size());
        return absl::OkStatus();
      });
}

}  // namespace loadline::tools
