// Tested by tests/tools/pipeline/phase_notes_test.cc.
#include "tools/pipeline/phase_notes.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace loadline::tools {
namespace {

constexpr char kRecipe[] = "compression_recipe_sha256";
constexpr char kRemoved[] = "compression_removed";

}  // namespace

Notes NotesOfPhase(const std::string& recipe_sha256,
                   const std::vector<passes::RemovedChannels>& removed) {
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  for (const passes::RemovedChannels& groups : removed) {
    nlohmann::ordered_json phase = nlohmann::ordered_json::object();
    for (const auto& [group, channels] : groups) phase[group] = channels;
    phases.push_back(std::move(phase));
  }
  return {{kRecipe, recipe_sha256}, {kRemoved, phases.dump()}};
}

absl::StatusOr<std::vector<passes::RemovedChannels>> RemovedInNotes(
    const Notes& notes, const std::string& recipe_sha256,
    const std::string& path) {
  const auto recipe = notes.find(kRecipe);
  const auto text = notes.find(kRemoved);
  if (recipe == notes.end() || text == notes.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", path,
                     ": its run had no recipe; resume without --recipe"));
  }
  if (recipe->second != recipe_sha256) {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint ", path,
        ": its run had another recipe, or another number of steps"));
  }
  const auto damaged = absl::InvalidArgumentError(absl::StrCat(
      "checkpoint ", path, ": ", kRemoved, " is no list of removed channels"));
  const nlohmann::json phases =
      nlohmann::json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  if (!phases.is_array()) return damaged;
  std::vector<passes::RemovedChannels> removed;
  for (const nlohmann::json& phase : phases) {
    if (!phase.is_object()) return damaged;
    passes::RemovedChannels& groups = removed.emplace_back();
    for (const auto& [group, channels] : phase.items()) {
      if (!channels.is_array()) return damaged;
      for (const nlohmann::json& channel : channels) {
        if (!channel.is_number_integer()) return damaged;
        groups[group].push_back(channel.get<int64_t>());
      }
    }
  }
  return removed;
}

absl::Status CheckHasNoRecipe(const Notes& notes, const std::string& path) {
  if (notes.count(kRecipe) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint ", path,
                   ": its run had a recipe; resume with the same --recipe"));
}

}  // namespace loadline::tools
