// Checkpoints: everything needed to resume a run with the same bits.
#ifndef LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_
#define LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/program/program.h"
#include "models/graph.h"

namespace loadline::executor {

// Position of a run, without its parameters and states.
struct RunPosition {
  int64_t step = 0;  // steps done
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t batch = 0;
  int64_t examples_seen = 0;  // position in the data: step * batch
  // What else the run has to know when it goes on, such as its best evaluation.
  std::map<std::string, std::string> notes;
  // DigestOfConstants of its graph. Empty: SaveCheckpoint computes it, or an
  // old checkpoint lacks it.
  std::string constants;
  // DigestOfData of its data. Empty: unknown, as in an old checkpoint.
  std::string data;
};

// Identifies the model of a checkpoint: names and types of all saved values,
// and names and attributes of the operators. Independent of weights and
// learning rates.
std::string ModelSha256(const models::Graph& graph);

// Of the contents that no checkpoint has, such as frozen weights: for each
// constant of the graph, 16 digits of its SHA-256 and its name. One pass over
// the bytes.
std::string DigestOfConstants(const models::Graph& graph);

// SHA-256 over the raw bytes of the parameters, in the graph's order.
absl::StatusOr<std::string> WeightsSha256(Program& program);

// Writes parameters and states as safetensors, atomically: on any error the
// previous checkpoint stays.
absl::Status SaveCheckpoint(const std::string& path, Program& program,
                            const RunPosition& position);

// The notes of a checkpoint, whatever its model: for a run that has to know
// them before it can build its graph. Errors as LoadCheckpoint, but
// FailedPrecondition.
absl::StatusOr<std::map<std::string, std::string>> ReadCheckpointNotes(
    const std::string& path);

// The position of any checkpoint. Errors as ReadCheckpointNotes.
absl::StatusOr<RunPosition> ReadCheckpointPosition(const std::string& path);

// The position of a checkpoint of a run of this graph. Errors as
// LoadCheckpoint.
absl::StatusOr<RunPosition> ReadCheckpointPosition(const std::string& path,
                                                   const models::Graph& graph);

// Reads a checkpoint into the program and returns its position. The program is
// unchanged unless the whole file fits it. NotFound: no such file.
// InvalidArgument: a malformed file. FailedPrecondition: another model's
// checkpoint, or one with other constants, which the error names.
absl::StatusOr<RunPosition> LoadCheckpoint(const std::string& path,
                                           Program& program);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_CHECKPOINT_H_
