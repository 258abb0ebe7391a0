// Are the numbers that training leaves behind finite?
#ifndef LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_
#define LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_

#include "absl/status/status.h"
#include "executor/program/program.h"

namespace loadline::executor {

// InvalidArgument, with the name, if a parameter or optimizer state holds an
// infinity or NaN. The loss of a step is computed before its update, so that a
// finite loss does not say that the weights still are. Reads every saved value
// back from the device once.
absl::Status CheckFinite(Program& program);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_
