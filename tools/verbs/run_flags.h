// The flags of `loadline run` that no other verb has.
#ifndef LOADLINE_TOOLS_VERBS_RUN_FLAGS_H_
#define LOADLINE_TOOLS_VERBS_RUN_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/training_flags.h"

namespace loadline::tools {

struct RunFlags {
  StepFlags step;
  TrainingFlags training;
  int64_t steps = 0;
  int64_t epochs = 0;
  uint64_t seed = 0;
  bool no_shuffle = false;
  std::string out;
  std::string checkpoint;
  int64_t checkpoint_every = 0;
  bool resume = false;
  bool overwrite = false;
  std::string host_store;
  int64_t log_every = 10;
  std::string trace;
  std::string plan_in;
  std::string problem_in;
  std::optional<uint64_t> stress;  // seed; none: no stress device
  bool replan = false;
  std::optional<int64_t> replan_after;  // 5
  std::string recipe;
  bool json = false;
};

// Of these, what StepFlags has is added by the functions of tools/cli/flags.h.
void AddRunFlags(CLI::App* app, RunFlags* flags);

// The files that a run which ends well writes. Without --best, which an
// evaluation may never write, and --host-store, which nobody reads.
std::vector<NamedPath> WrittenFiles(const RunFlags& flags);

// Everything that is known to fail is checked before hours of training.
absl::Status CheckRunFlags(const RunFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RUN_FLAGS_H_
