// One program for all: masked channels compute what removed ones do. Tested by
// tests/end_to_end/sensitivity_test.cc.
#include "tools/pipeline/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "passes/compress/channel_scores.h"
#include "passes/compress/choose_channels.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/recipe_groups.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/persistent_values.h"

namespace loadline::tools {
namespace {

using passes::PruneGroup;
using passes::PruneMember;

absl::StatusOr<executor::Evaluation> Evaluate(LoadedEvaluation& loaded,
                                              const executor::DataSet& data,
                                              const std::atomic<bool>* stop) {
  executor::Evaluator evaluator(data);
  LOADLINE_RETURN_IF_ERROR(evaluator.Run(*loaded.program, stop));
  return evaluator.result();
}

// `contents` of a member without the channels.
std::vector<float> Without(std::vector<float> contents,
                           const models::TensorType& type,
                           const PruneMember& member,
                           const std::vector<int64_t>& channels) {
  std::vector<bool> gone(member.channel_of.size(), false);
  for (size_t i = 0; i < gone.size(); ++i) {
    gone[i] = std::binary_search(channels.begin(), channels.end(),
                                 int64_t{member.channel_of[i]});
  }
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(member.axis) + 1; i < type.dims.size();
       ++i) {
    inner *= type.dims[i];
  }
  for (size_t e = 0; e < contents.size(); ++e) {
    const auto index =
        static_cast<size_t>(static_cast<int64_t>(e) / inner %
                            type.dims[static_cast<size_t>(member.axis)]);
    if (gone[index]) contents[e] = 0;
  }
  return contents;
}

class Sweep {
 public:
  Sweep(LoadedEvaluation& loaded, const executor::DataSet& data,
        const std::atomic<bool>* stop)
      : loaded_(loaded), data_(data), stop_(stop), values_(*loaded.program) {}

  absl::StatusOr<GroupSensitivity> Group(
      const PruneGroup& group, passes::PruneCriterion criterion,
      const std::vector<double>& sparsities) {
    GroupSensitivity measured = {.group = group.name, .width = group.width};
    for (models::NodeId n : passes::MakersOf(loaded_.model, group)) {
      measured.makers.push_back(loaded_.model.node(n).name);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<double> scores,
        passes::ScoreChannels(
            loaded_.model, group, criterion, /*seed=*/0,
            [&](const std::string& name) { return values_.Read(name); }));
    const std::vector<bool> none(scores.size(), false);
    std::map<std::string, std::vector<float>> whole;
    for (double sparsity : sparsities) {
      const auto chosen = passes::ChooseChannels({&scores, 1}, {&none, 1},
                                                 {.sparsity = sparsity});
      LOADLINE_RETURN_IF_ERROR(Mask(group, chosen[0], &whole));
      SensitivityPoint& point = measured.points.emplace_back();
      point.sparsity = sparsity;
      LOADLINE_ASSIGN_OR_RETURN(point.evaluation,
                                Evaluate(loaded_, data_, stop_));
    }
    for (const auto& [name, contents] : whole) {
      LOADLINE_RETURN_IF_ERROR(values_.Write(name, contents));
    }
    return measured;
  }

 private:
  absl::Status Mask(const PruneGroup& group,
                    const std::vector<int64_t>& channels,
                    std::map<std::string, std::vector<float>>* whole) {
    for (const PruneMember* member :
         passes::TrainedMembers(loaded_.model, group)) {
      const models::Value& parameter = loaded_.model.value(member->value);
      if (!values_.Has(parameter.name)) continue;  // no node reads it
      LOADLINE_ASSIGN_OR_RETURN(const std::vector<float> contents,
                                values_.Read(parameter.name));
      whole->emplace(parameter.name, contents);  // as it was at first
      LOADLINE_RETURN_IF_ERROR(
          values_.Write(parameter.name,
                        Without(contents, parameter.type, *member, channels)));
    }
    return absl::OkStatus();
  }

  LoadedEvaluation& loaded_;
  const executor::DataSet& data_;
  const std::atomic<bool>* stop_;
  ProgramValues values_;
};

}  // namespace

absl::StatusOr<Sensitivity> MeasureSensitivity(
    LoadedEvaluation& loaded, const executor::DataSet& data,
    passes::PruneCriterion criterion, const std::vector<double>& sparsities,
    const std::atomic<bool>* stop) {
  const int64_t batch = executor::BatchOf(loaded.graph).value_or(0);
  if (data.examples < batch) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the data holds ", data.examples, " examples, less than one batch of ",
        batch, "; give a smaller --batch, or more data"));
  }
  LOADLINE_RETURN_IF_ERROR(executor::CheckHasTargets(data, loaded.graph));
  Sensitivity all;
  LOADLINE_ASSIGN_OR_RETURN(all.whole, Evaluate(loaded, data, stop));
  if (!std::isfinite(all.whole.loss)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss is ", all.whole.loss, " over ", all.whole.examples,
        " examples, with all channels: look for such numbers in "
        "the data and in the weights"));
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<PruneGroup> groups,
                            passes::FindPruneGroups(loaded.model));
  Sweep sweep(loaded, data, stop);
  for (const PruneGroup& group : groups) {
    if (!group.frozen.empty() || group.width < 2) continue;
    LOADLINE_ASSIGN_OR_RETURN(GroupSensitivity measured,
                              sweep.Group(group, criterion, sparsities));
    all.groups.push_back(std::move(measured));
  }
  return all;
}

double SafeSparsity(const Sensitivity& all, const GroupSensitivity& group,
                    double loss_of_accuracy) {
  double safe = 0;
  for (const SensitivityPoint& point : group.points) {
    const bool good =
        all.whole.accuracy.has_value() && point.evaluation.accuracy.has_value()
            ? *point.evaluation.accuracy >=
                  *all.whole.accuracy - loss_of_accuracy
            : point.evaluation.loss <= all.whole.loss * (1 + loss_of_accuracy);
    if (!good) break;
    safe = point.sparsity;
  }
  return safe;
}

std::string DraftRecipe(const Sensitivity& all, double loss_of_accuracy) {
  std::string text = "compression:\n";
  int64_t number = 0;
  for (const GroupSensitivity& group : all.groups) {
    const double safe = SafeSparsity(all, group, loss_of_accuracy);
    if (safe == 0 || group.makers.empty()) continue;
    absl::StrAppend(
        &text, "- name: group", ++number,
        "\n  method: {kind: prune, criterion: l2}\n  object: {op_names: [",
        absl::StrJoin(group.makers, ", ",
                      [](std::string* out, const std::string& name) {
                        absl::StrAppend(out, "\"", name, "\"");
                      }),
        "]}\n  degree: {sparsity: ", fmt::format("{}", safe),
        "}\n  process: {schedule: cubic, retrain: 0.5}\n");
  }
  return number == 0 ? "" : text;
}

}  // namespace loadline::tools
