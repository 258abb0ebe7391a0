// Checkpoints: everything a run needs to go on as if it had never stopped.
#ifndef LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_
#define LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/program/program.h"
#include "models/graph.h"

namespace loadline::executor {

// Where a run stands, beside its parameters and states.
struct RunPosition {
  int64_t step = 0;  // steps done
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t batch = 0;
  int64_t examples_seen = 0;  // the data position: step * batch
};

// What a checkpoint belongs to: names and types of all that is saved, and the
// names and attributes of the operators. Not weights, nor rates of learning.
std::string ModelSha256(const models::Graph& graph);

// SHA-256 over the raw bytes of the parameters, in the graph's order.
absl::StatusOr<std::string> WeightsSha256(Program& program);

// Writes parameters and states as safetensors. Whole or not at all: on any
// error the checkpoint that was there stays.
absl::Status SaveCheckpoint(const std::string& path, Program& program,
                            const RunPosition& position);

// Reads a checkpoint into the program and returns where it stood. Nothing is
// written to the program unless the whole file fits it. NotFound: no file.
// InvalidArgument: not a sound file. FailedPrecondition: of another model.
absl::StatusOr<RunPosition> LoadCheckpoint(const std::string& path,
                                           Program& program);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_
