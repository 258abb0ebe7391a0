// Whether the disk has room for what a run writes at its end.
#ifndef LOADLINE_TOOLS_VERBS_CHECK_ROOM_H_
#define LOADLINE_TOOLS_VERBS_CHECK_ROOM_H_

#include "absl/status/status.h"
#include "models/graph.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {

// Checks each file that gets the whole model. ResourceExhausted, naming the
// path: the model does not fit its file system, or is larger than a file may be
// (ulimit -f).
absl::Status CheckRoomForModels(const RunFlags& flags,
                                const models::Graph& graph);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_CHECK_ROOM_H_
