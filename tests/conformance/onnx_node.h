// ONNX's own tests of its operators: one folder each, with a model of one node,
// inputs, and the outputs that ONNX's reference computes for them.
#ifndef LOADLINE_TESTS_CONFORMANCE_ONNX_NODE_H_
#define LOADLINE_TESTS_CONFORMANCE_ONNX_NODE_H_

#include <string>
#include <vector>

namespace loadline::conformance {

// Names of the folders in `root` that hold a test, sorted.
std::vector<std::string> OnnxNodeTests(const std::string& root);

// Which inputs of the model were known at import. Loadline requires some of
// them, such as shapes; ONNX's tests pass every one as data.
enum class KnownInputs { kNone, kIntegers, kAllButFirst, kAll };

struct OnnxNodeResult {
  bool passed = false;
  KnownInputs known = KnownInputs::kNone;
  std::string why;  // of a failure, on one line
};

// Runs the test on the CPU, forward only, with as few known inputs as the
// import allows. Wrong values fail at once, even if more known inputs would
// give others.
OnnxNodeResult RunOnnxNodeTest(const std::string& folder);

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_ONNX_NODE_H_
