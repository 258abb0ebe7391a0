// Recipes as files: what is accepted, and one clear error for what is not.
#include "tools/pipeline/recipe_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline::tools {
namespace {

using passes::PruneSpec;
using passes::QuantizeSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRecipe[] = R"(compression:
- name: shrink_body
  method:  {kind: prune, criterion: taylor, granularity: channel}
  object:  {op_types: [Conv, Gemm], op_names: ["re:layer[23].*"],
            exclude_op_names: [head]}
  degree:  {sparsity: 0.5, initial_sparsity: 0.1, scope: global,
            max_sparsity_per_op: 0.8, round_to: 8}
  process: {schedule: linear, start_step: 200, end_step: 1200,
            update_frequency: 100, retrain: 0.1}
- name: int8
  method:  {kind: quantize, quantizer: lsq, observer: minmax}
  object:  {op_types: [Conv, Gemm], targets: [weight, input]}
  degree:  {bits: {weight: 4, input: 8}, symmetric: {weight: true, input: true},
            per_channel: false}
  process: {start_step: 1200, freeze_observer_step: 1500,
            calibration_batches: 4}
)";

// The recipe with one text replaced.
std::string Changed(const std::string& from, const std::string& to) {
  const std::string changed = absl::StrReplaceAll(kRecipe, {{from, to}});
  EXPECT_NE(changed, kRecipe) << from;
  return changed;
}

passes::Recipe Read(const std::string& text, const RecipeClock& clock = {}) {
  const auto recipe = ReadRecipe("r.yaml", text, clock);
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  return recipe.ok() ? *recipe : passes::Recipe();
}

std::string Refusal(const std::string& text, const RecipeClock& clock = {}) {
  const auto recipe = ReadRecipe("r.yaml", text, clock);
  EXPECT_FALSE(recipe.ok());
  return std::string(recipe.status().message());
}

// A short recipe of one entry that prunes.
PruneSpec Pruned(const std::string& degree, const std::string& process,
                 const RecipeClock& clock = {}) {
  const passes::Recipe recipe =
      Read(absl::StrCat("- method: {kind: prune}\n  degree: {", degree,
                        "}\n  process: {", process, "}\n"),
           clock);
  return recipe.entries.empty() ? PruneSpec() : *recipe.entries[0].prune();
}

TEST(ReadRecipe, ReadsEveryKey) {
  const passes::Recipe recipe = Read(kRecipe, {.steps = 2000});
  ASSERT_EQ(recipe.entries.size(), 2);
  EXPECT_EQ(recipe.entries[0].name, "shrink_body");
  EXPECT_EQ(recipe.entries[0].line, 2);
  EXPECT_THAT(recipe.entries[0].object.op_types, ElementsAre("Conv", "Gemm"));
  EXPECT_THAT(recipe.entries[0].object.exclude_op_names, ElementsAre("head"));
  const PruneSpec& prune = *recipe.entries[0].prune();
  EXPECT_EQ(prune.criterion, passes::PruneCriterion::kTaylor);
  EXPECT_EQ(prune.target.share, 0.5);
  EXPECT_EQ(prune.initial_sparsity, 0.1);
  EXPECT_TRUE(prune.global);
  EXPECT_EQ(prune.max_sparsity_per_op, 0.8);
  EXPECT_EQ(prune.round_to, 8);
  EXPECT_EQ(prune.schedule, passes::SparsityCurve::kLinear);
  EXPECT_EQ(prune.start_step, 200);
  EXPECT_EQ(prune.end_step, 1200);
  EXPECT_EQ(prune.update_frequency, 100);
  const QuantizeSpec& quantize = *recipe.entries[1].quantize();
  EXPECT_EQ(quantize.quantizer, passes::Quantizer::kLsq);
  EXPECT_EQ(quantize.observer, passes::Observer::kMinMax);
  EXPECT_TRUE(quantize.targets.input);
  EXPECT_FALSE(quantize.targets.output);
  EXPECT_EQ(quantize.bits.weight, 4);
  EXPECT_EQ(quantize.bits.input, 8);
  EXPECT_TRUE(quantize.symmetric.input);
  EXPECT_FALSE(quantize.per_channel.weight);
  EXPECT_EQ(quantize.start_step, 1200);
  EXPECT_EQ(quantize.freeze_observer_step, 1500);
  EXPECT_FALSE(quantize.freeze_bn_step.has_value());
  EXPECT_EQ(quantize.calibration_batches, 4);
}

TEST(ReadRecipe, ReadsJson) {
  const passes::Recipe recipe = Read(R"({
  "compression": [
    {"name": "a", "method": {"kind": "prune"},
     "degree": {"sparsity": 0.25}, "process": {"end_step": 7}}
  ]
})");
  ASSERT_EQ(recipe.entries.size(), 1);
  EXPECT_EQ(recipe.entries[0].prune()->end_step, 7);
}

TEST(ReadRecipe, TakesTheNamesOfOtherTools) {
  for (const char* name :
       {"sparse_ratio", "target_sparsity", "final_sparsity"}) {
    EXPECT_EQ(Pruned(absl::StrCat(name, ": 75%"), "end_step: 9").target.share,
              0.75)
        << name;
  }
  EXPECT_EQ(
      Pruned("sparsity: 0.5", "end_step: 9, frequency: 3").update_frequency, 3);
}

TEST(ReadRecipe, ConvertsEpochs) {
  const RecipeClock clock = {.steps = 100, .steps_per_epoch = 10};
  PruneSpec spec =
      Pruned("sparsity: 0.5", "unit: epoch, start: 1, end: 2.5, frequency: 0.5",
             clock);
  EXPECT_EQ(spec.start_step, 10);
  EXPECT_EQ(spec.end_step, 25);
  EXPECT_EQ(spec.update_frequency, 5);
  spec = Pruned("sparsity: 0.5", "start_epoch: 2, end_step: 30", clock);
  EXPECT_EQ(spec.start_step, 20);
  EXPECT_EQ(spec.end_step, 30);
}

TEST(ReadRecipe, DerivesTheEndFromTheRun) {
  EXPECT_EQ(Pruned("sparsity: 0.5", "retrain: 0.1", {.steps = 50}).end_step,
            45);
  EXPECT_EQ(
      Pruned("sparsity: 0.5", "schedule: one_shot, start_step: 8").end_step, 8);
}

TEST(ReadRecipe, ReadsTargetsInMacsAndBytes) {
  using Kind = passes::PruneTarget::Kind;
  PruneSpec spec = Pruned("peak_bytes: 40%", "end_step: 9");
  EXPECT_EQ(spec.target.kind, Kind::kPeakBytes);
  EXPECT_EQ(spec.target.share, 0.4);
  spec = Pruned("peak_bytes: 3MiB", "end_step: 9");
  EXPECT_EQ(spec.target.count, 3 << 20);
  spec = Pruned("macs: 1e6", "end_step: 9");
  EXPECT_EQ(spec.target.kind, Kind::kMacs);
  EXPECT_EQ(spec.target.count, 1'000'000);
}

TEST(ReadRecipe, NamesFileEntryAndKeyOfAnError) {
  EXPECT_EQ(Refusal(Changed("initial_sparsity", "inital_sparsity")),
            "r.yaml:6: entry 'shrink_body': degree.inital_sparsity: unknown "
            "key; did you mean 'initial_sparsity'?");
  EXPECT_EQ(Refusal(Changed("sparsity: 0.5", "sparsty: 0.5")),
            "r.yaml:6: entry 'shrink_body': degree.sparsty: unknown key; did "
            "you mean 'sparsity'?");
  EXPECT_THAT(Refusal(Changed("sparsity: 0.5", "colour: 0.5, sparsity: 0.5")),
              HasSubstr("degree.colour: unknown key; keys here: "));
  EXPECT_EQ(Refusal(Changed("sparsity: 0.5", "sparsity: half")),
            "r.yaml:6: entry 'shrink_body': degree.sparsity: expected a number "
            "or a percentage, found 'half'");
  EXPECT_EQ(Refusal(Changed("end_step: 1200", "end_step: 100")),
            "r.yaml:8: entry 'shrink_body': process.end_step: 100 is before "
            "start_step 200");
  EXPECT_EQ(Refusal(Changed("name: int8", "name: shrink_body")),
            "r.yaml:10: entry 'shrink_body': name: an entry before this one "
            "has the same");
  EXPECT_THAT(Refusal(Changed("{weight: 4,", "{weight: 9,")),
              HasSubstr("degree.bits.weight: 9 is not from 1 to 8"));
}

TEST(ReadRecipe, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(Refusal(Changed("sparsity: 0.5", "sparsity: 1.5")),
              HasSubstr("1.5 is not from 0 to less than 1"));
  EXPECT_THAT(Refusal(Changed("sparsity: 0.5", "sparsity: 100%")),
              HasSubstr("100% is not from 0 to less than 1"));
  EXPECT_THAT(Refusal(Changed("sparsity: 0.5, initial_sparsity: 0.1",
                              "sparsity: 0, initial_sparsity: 0")),
              HasSubstr("degree.sparsity: 0 removes nothing"));
  EXPECT_THAT(Refusal(Changed("per_op: 0.8", "per_op: 0.4")),
              HasSubstr("max_sparsity_per_op: is below the sparsity"));
  EXPECT_THAT(
      Refusal(Changed("initial_sparsity: 0.1", "initial_sparsity: 0.6")),
      HasSubstr("initial_sparsity: is above the sparsity at the end"));
  EXPECT_THAT(Refusal(Changed("update_frequency: 100", "update_frequency: 0")),
              HasSubstr("update_frequency: 0 steps are less than 1"));
  EXPECT_THAT(Refusal(kRecipe, {.steps = 1200}),
              HasSubstr("1200 leaves none of the run's 1200 steps after it"));
  EXPECT_THAT(Refusal(kRecipe, {.steps = 1250}),
              HasSubstr("process.retrain: end_step 1200 leaves 50 of 1250"));
  EXPECT_THAT(Refusal(Changed("start_step: 1200", "start_epoch: 2")),
              HasSubstr("process.start_epoch: epochs need --data"));
}

TEST(ReadRecipe, RefusesWrongTypesAndDuplicates) {
  EXPECT_THAT(Refusal(Changed("round_to: 8", "round_to: [8]")),
              HasSubstr("degree.round_to: expected one value"));
  EXPECT_THAT(Refusal(Changed("round_to: 8", "round_to: 8.5")),
              HasSubstr("expected a whole number, found '8.5'"));
  EXPECT_THAT(Refusal(Changed("round_to: 8", "round_to: 8, sparse_ratio: 0.5")),
              HasSubstr("degree.sparse_ratio: means the same as sparsity"));
  EXPECT_THAT(Refusal(Changed("round_to: 8", "round_to: 8, round_to: 4")),
              HasSubstr("degree.round_to: given twice"));
  EXPECT_THAT(Refusal(Changed("kind: prune", "kind: purne")),
              HasSubstr("method.kind: 'purne' is none of prune, quantize, "
                        "optimizer_states"));
  EXPECT_THAT(Refusal(Changed("per_channel: false", "per_channel: no")),
              HasSubstr("expected true or false, found 'no'"));
  EXPECT_THAT(Refusal(Changed("sparsity: 0.5, ", "")),
              HasSubstr("degree.sparsity: missing"));
  EXPECT_THAT(Refusal("compression: {}"), HasSubstr("expected a list"));
  EXPECT_EQ(Refusal("- prune"),
            "r.yaml:1: entry 'entry1': expected keys with values, as in {key: "
            "value}");
  EXPECT_THAT(Refusal("a: b"), HasSubstr("r.yaml:1: unknown key 'a'"));
  EXPECT_THAT(Refusal("- ["), HasSubstr("r.yaml: "));
}

TEST(ReadRecipe, RefusesQuantizersThatWouldBeIgnoredOrBeginWithNothing) {
  EXPECT_THAT(Refusal(Changed("freeze_observer_step: 1500",
                              "freeze_observer_step: 2001"),
                      {.steps = 2000}),
              HasSubstr("freeze_observer_step: 2001 is after the run's 2000"));
  EXPECT_THAT(Refusal(Changed("freeze_observer_step",
                              "freeze_bn_step: 1999, "
                              "freeze_observer_step"),
                      {.steps = 1990}),
              HasSubstr("freeze_bn_step: 1999 is after the run's 1990"));
  EXPECT_THAT(
      Refusal(Changed("calibration_batches: 4", "calibration_batches: 0")),
      HasSubstr("trained scales begin with"));
  const std::string uniform =
      "- method: {kind: quantize}\n"
      "  process: {start_step: 9, calibration_batches: 0, "
      "freeze_observer_step: ";
  EXPECT_THAT(Refusal(uniform + "9}"), HasSubstr("no step is left to observe"));
  EXPECT_TRUE(ReadRecipe("r.yaml", uniform + "10}", {}).ok());
  EXPECT_THAT(Refusal("- method: {kind: quantize}\n"
                      "  process: {start_step: 9, calibration_batches: 0}",
                      {.steps = 9}),
              HasSubstr("no step is left to observe"));
  EXPECT_THAT(Refusal(Changed("observer: minmax", "observer: mse")),
              HasSubstr("method.observer: is not supported; minmax"));
  EXPECT_THAT(Refusal(Changed("{weight: 4,", "{weight: 1,")),
              HasSubstr("degree.bits: a symmetric grid"));
  EXPECT_THAT(
      Refusal(Changed("per_channel: false", "per_channel: {input: true}")),
      HasSubstr("degree.per_channel: inputs and outputs have one scale"));
  EXPECT_THAT(Refusal(Changed("targets: [weight, input]", "targets: []")),
              HasSubstr("object.targets: must not be an empty list"));
}

TEST(ReadRecipe, TakesTheBitsOfOptimizerStates) {
  const std::string states =
      "- name: states\n  method: {kind: optimizer_states}\n";
  const auto recipe = ReadRecipe("r.yaml", "compression:\n" + states, {});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->state_bits, 8);
  EXPECT_TRUE(recipe->entries.empty());
  EXPECT_NE(passes::RecipeText(*recipe), passes::RecipeText({}));
  const auto error = [](const std::string& entries) {
    return std::string(ReadRecipe("r.yaml", "compression:\n" + entries, {})
                           .status()
                           .message());
  };
  EXPECT_THAT(error(states + "  degree: {bits: 4}\n"),
              HasSubstr("degree.bits"));
  EXPECT_THAT(error(states + "  object: {op_types: [Conv]}\n"),
              HasSubstr("leave object out"));
  EXPECT_THAT(error(states + "  process: {start_step: 3}\n"),
              HasSubstr("start_step"));
  EXPECT_THAT(error(states + "- name: again\n"
                             "  method: {kind: optimizer_states}\n"),
              HasSubstr("optimizer_states too"));
}

TEST(RecipeText, SeesMeaningNotForm) {
  const std::string text = passes::RecipeText(Read(kRecipe));
  EXPECT_EQ(
      passes::RecipeText(Read(Changed("sparsity: 0.5", "final_sparsity: 50%"))),
      text);
  EXPECT_NE(
      passes::RecipeText(Read(Changed("sparsity: 0.5", "sparsity: 0.51"))),
      text);
}

}  // namespace
}  // namespace loadline::tools
