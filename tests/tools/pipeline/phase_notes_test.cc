// Notes of a checkpoint, there and back.
#include "tools/pipeline/phase_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

const std::vector<passes::RemovedChannels> kRemoved = {
    {}, {{"/a/Conv", {0, 2}}, {"/b/Conv#2", {1}}}};

TEST(PhaseNotes, ComeBack) {
  const auto removed =
      RemovedInNotes(NotesOfPhase("hash", kRemoved), "hash", "c.safetensors");
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(*removed, kRemoved);
}

TEST(PhaseNotes, RefuseAnotherRecipeOrNone) {
  const auto other =
      RemovedInNotes(NotesOfPhase("hash", kRemoved), "else", "c.safetensors");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("c.safetensors: its run had another recipe"));
  EXPECT_THAT(std::string(RemovedInNotes({}, "hash", "c").status().message()),
              HasSubstr("its run had no recipe"));
}

TEST(PhaseNotes, RefuseARunWithoutTheRecipe) {
  EXPECT_TRUE(CheckHasNoRecipe({{"best", "1"}}, "c.safetensors").ok());
  const absl::Status status =
      CheckHasNoRecipe(NotesOfPhase("hash", {}), "c.safetensors");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("c.safetensors: its run had a recipe; resume with the "
                        "same --recipe"));
}

TEST(PhaseNotes, RefuseDamage) {
  for (const char* text : {"", "7", "[7]", "[{\"a\": 7}]", "[{\"a\": [\"b\"]}]",
                           "[{\"a\": [1.5]}]"}) {
    Notes notes = NotesOfPhase("hash", {});
    notes["compression_removed"] = text;
    EXPECT_EQ(RemovedInNotes(notes, "hash", "c").status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace loadline::tools
