// What a checkpoint says about the phase of its run.
#ifndef LOADLINE_TOOLS_PIPELINE_PHASE_NOTES_H_
#define LOADLINE_TOOLS_PIPELINE_PHASE_NOTES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/compress/phase_model.h"

namespace loadline::tools {

using Notes = std::map<std::string, std::string>;  // RunPosition::notes

// `removed`: what the end of each phase before this one removed, so their
// number is that of the phase. Masks and scores are states and need no note.
Notes NotesOfPhase(const std::string& recipe_sha256,
                   const std::vector<passes::RemovedChannels>& removed);

// The inverse. FailedPrecondition if the notes are those of another recipe, or
// of a run without one. InvalidArgument if they are damaged. Both name `path`.
absl::StatusOr<std::vector<passes::RemovedChannels>> RemovedInNotes(
    const Notes& notes, const std::string& recipe_sha256,
    const std::string& path);

// For a run without a recipe: FailedPrecondition, with `path`, if the notes are
// those of a run that had one.
absl::Status CheckHasNoRecipe(const Notes& notes, const std::string& path);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PHASE_NOTES_H_
