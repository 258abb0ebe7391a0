// Which ONNX operators the importer supports, and the error for the others.
#ifndef LOADLINE_MODELS_ONNX_SUPPORTED_H_
#define LOADLINE_MODELS_ONNX_SUPPORTED_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Operators newer than kOpset that are inlined before the conversion.
const std::vector<std::string>& LateOperators();
// Operators that are inlined into simpler ones, as ONNX's schema defines.
const std::vector<std::string>& CompositeOperators();

// Collects unsupported operators and reports all of them at once.
class UnsupportedList {
 public:
  // `why` is empty for an unknown operator.
  void Add(const onnx::NodeProto& node, const std::string& why);
  bool empty() const { return nodes_.empty(); }
  // Unimplemented, with counts, node names and what to do, also if some of the
  // graph's outputs need none of them. IsUnsupported is true for it.
  absl::Status ToStatus(const onnx::GraphProto& graph) const;

 private:
  // Of the graph's outputs, those that need none of the nodes.
  std::vector<std::string> OutputsWithout(const onnx::GraphProto& graph) const;

  // By operator and why.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      nodes_;
  std::set<std::string> made_;  // the outputs of these nodes
};

// Operators that differentiate and update: Gradient, Adagrad, Adam, Momentum.
inline constexpr char kTrainingDomain[] = "ai.onnx.preview.training";

// The operator's name with its domain, "DOMAIN::NAME"; without in the default
// one.
std::string QualifiedName(const onnx::NodeProto& node);

// What a node reads: its inputs, what the graphs among its attributes read from
// around them, and of a Gradient the values that its attributes name.
std::vector<std::string> ReadNames(const onnx::NodeProto& node);

// "node 'NAME' (Op)", for messages.
std::string NodeLabel(const onnx::NodeProto& node);

// For each node, whether the graph's outputs depend on it.
std::vector<bool> NeededNodes(const onnx::GraphProto& graph);

// The names that those nodes read, and the outputs'.
std::set<std::string> NeededNames(const onnx::GraphProto& graph);

std::set<std::string> InitializerNames(const onnx::GraphProto& graph);

// Unimplemented if the outputs need such versions of operators that are not
// read right. Some of them are deprecated, which the onnx library's checker
// refuses without saying what to do: to be called before it.
absl::Status CheckVersions(const onnx::GraphProto& graph, int opset);

// Unimplemented if the outputs need operators with unknown names, or such
// versions of operators that are not read right. `opset`: of the default
// domain.
absl::Status CheckSupported(const onnx::GraphProto& graph, int opset);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_SUPPORTED_H_
