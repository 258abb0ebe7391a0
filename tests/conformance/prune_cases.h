// Small models, one for each way in which channels depend on each other, in two
// widths: pruning the wide one must give the narrow one.
#ifndef LOADLINE_TESTS_CONFORMANCE_PRUNE_CASES_H_
#define LOADLINE_TESTS_CONFORMANCE_PRUNE_CASES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::conformance {

struct PruneCase {
  std::string name;
  // ONNX's text syntax. "$C" is the value of C in `sizes`. The inputs of the
  // graph that do not begin with x become initializers with small whole
  // numbers, so that sums are exact in any order; those that end in "var"
  // positive ones.
  std::string body;
  // Wide and narrow.
  std::map<std::string, std::pair<int64_t, int64_t>> sizes;
  // How many channels each group that may be pruned has, in order, and of
  // them stay half.
  std::vector<int64_t> widths;
  // A group is marked approximate: statistics change.
  bool approximate = false;
  std::vector<std::string> train;  // ImportOptions::train
};

const std::vector<PruneCase>& PruneCases();

enum class Width { kWide, kNarrow };
onnx::ModelProto PruneModel(const PruneCase& c, Width width);

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_PRUNE_CASES_H_
