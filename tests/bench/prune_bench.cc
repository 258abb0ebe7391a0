// Prunes a model without training: finds its groups, removes the first channels
// of each, and prints sizes before and after as JSON.
//
//   prune_bench MODEL [--ratio=0.5] [--batch=1] [--repeats=1] [--exact]
//               [--pruned=OUT.onnx] [--masked=OUT.onnx]
//
// --exact leaves approximate groups whole. --masked writes the model with the
// same channels set to zero: both files compute the same.
// tests/bench/torch_pruning_groups.py and tests/bench/pruned_onnxruntime.py
// use it.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/onnx/export.h"
#include "models/onnx/export_pruned.h"
#include "models/onnx/import.h"
#include "nlohmann/json.hpp"
#include "passes/compress/mask_channels.h"
#include "passes/compress/model_size.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

struct Settings {
  std::string model, pruned, masked;
  double ratio = 0.5;
  int64_t batch = 1, repeats = 1;
  bool exact = false;
};

nlohmann::ordered_json Json(const ModelSize& size) {
  return {{"parameters", size.parameters},
          {"macs", size.macs},
          {"activation_bytes", size.activation_bytes}};
}

absl::Status Run(const Settings& settings) {
  models::ImportOptions options;
  options.default_batch = settings.batch;
  options.allow_missing_weights =
      settings.pruned.empty() && settings.masked.empty();
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported imported,
                            models::ImportOnnx(settings.model, options));
  std::vector<PruneGroup> groups;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < settings.repeats; ++i) {
    LOADLINE_ASSIGN_OR_RETURN(groups, FindPruneGroups(imported.graph));
  }
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;

  nlohmann::ordered_json out;
  std::vector<std::vector<int64_t>> removed;
  for (const PruneGroup& group : groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    if (!group.frozen.empty()) continue;
    if (settings.exact && !group.approximate.empty()) continue;
    const auto count = static_cast<int64_t>(
        std::floor(settings.ratio * static_cast<double>(group.width)));
    for (int64_t c = 0; c < count && c + 1 < group.width; ++c) {
      channels.push_back(c);
    }
    out["groups"].push_back({{"name", group.name},
                             {"channels", group.width},
                             {"removed", channels.size()}});
  }
  LOADLINE_ASSIGN_OR_RETURN(const PrunedGraph pruned,
                            PruneGraph(imported.graph, groups, removed));
  out["before"] = Json(SizeOfModel(imported.graph));
  out["after"] = Json(SizeOfModel(pruned.graph));
  out["find_seconds"] = seconds.count() / static_cast<double>(settings.repeats);
  if (!settings.pruned.empty()) {
    LOADLINE_RETURN_IF_ERROR(models::ExportPruned(
        settings.model, options, pruned.graph, {}, settings.pruned));
  }
  if (!settings.masked.empty()) {
    const models::Graph masked = MaskChannels(imported.graph, groups, removed);
    std::map<std::string, models::Tensor> contents;
    for (const models::Value& value : masked.values) {
      if (value.kind == models::ValueKind::kParameter) {
        contents[value.name] = *value.initial;
      }
    }
    LOADLINE_RETURN_IF_ERROR(models::ExportTrained(
        settings.model, std::move(contents), settings.masked));
  }
  std::printf("%s\n", out.dump().c_str());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    bool good = true;
    if (absl::ConsumePrefix(&word, "--ratio=")) {
      good = absl::SimpleAtod(word, &settings.ratio);
    } else if (absl::ConsumePrefix(&word, "--batch=")) {
      good = absl::SimpleAtoi(word, &settings.batch);
    } else if (absl::ConsumePrefix(&word, "--repeats=")) {
      good = absl::SimpleAtoi(word, &settings.repeats);
    } else if (absl::ConsumePrefix(&word, "--pruned=")) {
      settings.pruned = std::string(word);
    } else if (absl::ConsumePrefix(&word, "--masked=")) {
      settings.masked = std::string(word);
    } else if (word == "--exact") {
      settings.exact = true;
    } else {
      good = word[0] != '-' && settings.model.empty();
      settings.model = std::string(word);
    }
    if (!good) {
      std::fprintf(stderr, "prune_bench: unexpected '%s'\n", argv[i]);
      return 2;
    }
  }
  const absl::Status status = Run(settings);
  if (status.ok()) return 0;
  std::fprintf(stderr, "prune_bench: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace loadline::passes

int main(int argc, char** argv) { return loadline::passes::Main(argc, argv); }
