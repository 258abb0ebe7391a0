// Which ONNX operators the importer takes, and the error that lists the rest.
#ifndef LOADLINE_MODELS_ONNX_SUPPORTED_H_
#define LOADLINE_MODELS_ONNX_SUPPORTED_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Operators newer than kOpset that become older ones before conversion.
const std::vector<std::string>& LateOperators();
// Operators that become simpler ones, by the definition in ONNX's schema.
const std::vector<std::string>& CompositeOperators();

// Collects what cannot be imported, then says all of it at once.
class UnsupportedList {
 public:
  // `why` is empty for an operator that is unknown altogether.
  void Add(const onnx::NodeProto& node, const std::string& why);
  bool empty() const { return nodes_.empty(); }
  // Unimplemented, with counts, node names and what to do; for which
  // IsUnsupported is true.
  absl::Status ToStatus() const;

 private:
  // By operator and why.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      nodes_;
};

// "node 'NAME' (Op)", for messages.
std::string NodeLabel(const onnx::NodeProto& node);

// For each node, whether the graph's outputs depend on it.
std::vector<bool> NeededNodes(const onnx::GraphProto& graph);

// Unimplemented where the outputs need operators that are unknown by name.
absl::Status CheckSupported(const onnx::GraphProto& graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_SUPPORTED_H_
