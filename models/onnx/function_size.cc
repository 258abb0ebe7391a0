// Counts the nodes of every function once, with the functions that it calls.
// Tested in tests/models/onnx_hostile_test.cc.
#include "models/onnx/function_size.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// The conversion of operators takes time in the square of the nodes: 5 s here.
constexpr int64_t kMostNodes = int64_t{1} << 14;
constexpr int kMostCallDepth = 64;

using Key = std::pair<std::string, std::string>;  // domain, name

class Counter {
 public:
  explicit Counter(const onnx::ModelProto& model) {
    for (const auto& function : model.functions()) {
      functions_[{function.domain(), function.name()}] = &function;
    }
  }

  // Nodes after inlining, at most a little more than kMostNodes.
  template <typename Nodes>
  absl::StatusOr<int64_t> CountNodes(const Nodes& nodes, int depth) {
    int64_t count = 0;
    for (const onnx::NodeProto& node : nodes) {
      LOADLINE_ASSIGN_OR_RETURN(const int64_t more, CountNode(node, depth));
      count = std::min(count + more, kMostNodes + 1);
    }
    return count;
  }

 private:
  absl::StatusOr<int64_t> CountNode(const onnx::NodeProto& node, int depth) {
    const auto function = functions_.find({node.domain(), node.op_type()});
    if (function != functions_.end()) return CountFunction(*function, depth);
    int64_t count = 1;
    for (const auto& attribute : node.attribute()) {
      LOADLINE_ASSIGN_OR_RETURN(int64_t inner,
                                CountNodes(attribute.g().node(), depth + 1));
      count += inner;
      for (const auto& graph : attribute.graphs()) {
        LOADLINE_ASSIGN_OR_RETURN(inner, CountNodes(graph.node(), depth + 1));
        count += inner;
      }
    }
    return count;
  }

  absl::StatusOr<int64_t> CountFunction(
      const std::pair<const Key, const onnx::FunctionProto*>& function,
      int depth) {
    const std::string& name = function.first.second;
    const auto [counted, first] = counts_.emplace(function.first, kOpen);
    if (!first && counted->second == kOpen) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's function '", name, "' calls itself"));
    }
    if (!first) return counted->second;
    if (depth >= kMostCallDepth) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the model's function '", name, "' is called through ",
                       kMostCallDepth,
                       " others; export the model without such "
                       "functions"));
    }
    LOADLINE_ASSIGN_OR_RETURN(const int64_t count,
                              CountNodes(function.second->node(), depth + 1));
    if (count > kMostNodes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the model's function '", name, "' has more than ", kMostNodes,
          " nodes with those of the functions that it calls; export the model "
          "without such functions"));
    }
    counts_[function.first] = count;
    return count;
  }

  static constexpr int64_t kOpen = -1;  // being counted
  std::map<Key, const onnx::FunctionProto*> functions_;
  std::map<Key, int64_t> counts_;
};

}  // namespace

absl::Status CheckFunctions(const onnx::ModelProto& model) {
  if (model.functions_size() == 0) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count,
                            Counter(model).CountNodes(model.graph().node(), 0));
  if (count > kMostNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model has more than ", kMostNodes,
                     " nodes with those of its functions; export it without "
                     "functions"));
  }
  return absl::OkStatus();
}

}  // namespace loadline::models::onnx_internal
