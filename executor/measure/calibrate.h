// Measures the operators of a model on a device.
#ifndef LOADLINE_EXECUTOR_MEASURE_CALIBRATE_H_
#define LOADLINE_EXECUTOR_MEASURE_CALIBRATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/algorithms.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "models/types.h"

namespace loadline::executor {

struct CalibrateOptions {
  int32_t runs = 5;  // the median counts; one unmeasured run precedes them
  // CalibrateStep only: adds runs until they last this long together.
  int64_t least_ns = 0;
  // Other bytes of the device, written before each run. They make operands as
  // cold in the caches as in a real step, and keep a GPU busy while the launch
  // is submitted. Calibrate and ChooseAlgorithms only.
  int64_t evict_bytes = int64_t{64} << 20;
  // Calibrate only: limit for the arena. Evicts fewer bytes where it must, and
  // leaves out operators that need more by themselves.
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
  std::function<void(int64_t done, int64_t of)> progress;  // may be empty
  const std::atomic<bool>* stop = nullptr;                 // may be null
};

// Contents of `type` that every kernel accepts: floats in [0.5, 1.5), integers
// 0.
std::vector<std::byte> MildContents(const models::TensorType& type);

// Makes a device without an arena.
using MakeDeviceFunction =
    std::function<absl::StatusOr<std::unique_ptr<Device>>()>;

// The fastest algorithm of each distinct operator whose kernel offers several
// (algorithms.h); the first offered of equally fast ones. Measures as Calibrate
// does, each operator on a device of its own, so that one operator's libraries
// are unloaded before the next. Empty, and nothing is prepared, on a device
// without a choice. Errors: Calibrate's.
absl::StatusOr<Algorithms> ChooseAlgorithms(
    const models::Graph& graph, const MakeDeviceFunction& make_device,
    const CalibrateOptions& options = {});

// Median nanoseconds of each distinct operator of the graph, by
// models::OperatorKey: the contents of machine.ops. Views have no entry. Floats
// are filled with numbers around 1, integers with 0. The device must have no
// arena yet; it gets one that holds the largest node, of at most
// `options.most_bytes`; without any node within these, none. Errors: an
// operator without a kernel, too little device memory; Cancelled: stopped.
absl::StatusOr<std::map<std::string, int64_t>> Calibrate(
    const models::Graph& graph, Device& device,
    const CalibrateOptions& options = {});

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_CALIBRATE_H_
