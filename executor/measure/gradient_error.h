// How much of a training step's gradient is lost if one value is stored by a
// lossy codec: profiled by running the step with and without.
#ifndef LOADLINE_EXECUTOR_MEASURE_GRADIENT_ERROR_H_
#define LOADLINE_EXECUTOR_MEASURE_GRADIENT_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/device/device.h"
#include "models/graph.h"

namespace loadline::executor {

// The values that a lossy codec may store: f32 or bf16, made before the loss
// and read after it, of at least `least_bytes`; no view, output or persistent
// value. In the graph's order.
std::vector<models::ValueId> LossyCandidates(const models::Graph& graph,
                                             int64_t least_bytes);

struct GradientErrorOptions {
  std::string codec = "group8";
  uint64_t seed = 1;  // of dropout and of rounding
};

// By value: |g' - g| / |g|, where g is the gradient of all parameters together
// (what the updates read) at the initial weights and `inputs`, g' the same with
// the value stored by the codec in between, and |.| the Euclidean norm. The
// larger of two errors: with the restored value for readers after the loss
// alone (forward pass and loss are exact), and for all readers, as in a plan
// that runs nodes of the forward pass again from it. Where parameters that the
// forward pass multiplies by are all zero, also the same with numbers in their
// place (ones in vectors), which is what training makes of them. -1 for values
// that are no candidates. `host` must compute on the host; it gets no arena.
// Every value has its own memory. Errors: a kernel's; FailedPrecondition: no
// update, no gradient that is a number above 0, or contents are missing.
absl::StatusOr<std::vector<double>> ProfileGradientErrors(
    const models::Graph& graph, absl::Span<const std::byte* const> inputs,
    const std::vector<models::ValueId>& candidates, Device& host,
    const GradientErrorOptions& options = {});

// Bytes that profiling holds, at least.
int64_t ProfileBytes(const models::Graph& graph);

// An estimate for where nothing can be run. 256 normally distributed numbers
// have a range of about 5.6 standard deviations, which an 8-bit group codec
// divides into 255 steps. Stochastic rounding has a root-mean-square error of
// sqrt(1/6) = 0.408 of a step. The gradient has the same relative error if all
// of it depends on the value.
inline constexpr double kAnalyticGradientError = 5.6 / 255 * 0.408;

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_GRADIENT_ERROR_H_
