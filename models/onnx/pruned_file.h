// An ONNX file that is being pruned, beside its graph before and after: what
// rules read off it, and how they change it.
#ifndef LOADLINE_MODELS_ONNX_PRUNED_FILE_H_
#define LOADLINE_MODELS_ONNX_PRUNED_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/import.h"
#include "models/onnx/open_axes.h"
#include "models/onnx/varied_constants.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 31;

class PrunedFile {
 public:
  // As for RewritePrunedNodes, whose arguments must outlive the file.
  PrunedFile(const Imported& original, const Graph& pruned, FixedSizes fixed,
             const VariedConstants* varied, onnx::ModelProto* model);

  const Imported& original() const { return original_; }
  const Graph& pruned() const { return pruned_; }
  const FixedSizes& fixed() const { return fixed_; }
  const VariedConstants* varied() const { return varied_; }  // null: not known
  onnx::GraphProto& graph() { return graph_; }
  int64_t Opset() const;

  // Null: the graph has no value for the tensor.
  const Value* Old(const std::string& name) const;
  const Value* New(const std::string& name) const;
  bool Changed(const std::string& name) const;
  // Its new shape, of an initializer too.
  std::optional<Ints> NewDims(const std::string& name) const;
  bool IsInitializer(const std::string& name) const {
    return initializer_.count(name) > 0;
  }
  // The file's node that makes it, as it was; null: none.
  const onnx::NodeProto* Maker(const std::string& name) const;

  // The graph's nodes that the import emitted for this one.
  std::vector<int32_t> Emitted(const onnx::NodeProto& node) const;
  // The position of the graph's node with this operator that makes the node's
  // first output, or else was emitted for it; -1: none.
  int32_t Made(const onnx::NodeProto& node, const std::string& op) const;
  const Node& NodeAt(int32_t n) const {
    return original_.graph.nodes[static_cast<size_t>(n)];
  }
  const Node& PrunedAt(int32_t n) const {
    return pruned_.nodes[static_cast<size_t>(n)];
  }

  // Whether the file computes it, and out of a size that has changed.
  bool IsStale(const std::string& name);
  // The contents of an initializer, a Constant node, or what the file computes
  // and does not depend on an open axis, if that is known; none: it is neither.
  std::optional<onnx::TensorProto> ConstantTensor(
      const std::string& name) const;
  std::optional<Ints> ConstantInts(const onnx::NodeProto& node, int i) const;

  // Names of new tensors for the node.
  std::string NewName(const onnx::NodeProto& node, const std::string& what);
  std::string AddInitializer(const onnx::NodeProto& node,
                             const std::string& what, const Tensor& tensor);
  // As a node, because the import may take an initializer for a parameter.
  std::string AddConstant(const onnx::NodeProto& node, const Tensor& tensor);
  // Adds a node before the one at work.
  void AddNode(onnx::NodeProto node) { new_nodes_.push_back(std::move(node)); }
  static void SetInput(int i, const std::string& name, onnx::NodeProto* node);
  void SetInputInts(int i, const std::string& what, const Ints& values,
                    onnx::NodeProto* node);
  // The input loses the last numbers of the axis.
  void Shorten(int i, int64_t axis, int64_t size, onnx::NodeProto* node);

  // Calls `rewrite` for each node, puts the nodes that it adds before it, and
  // removes what nothing uses any more.
  void RewriteNodes(const std::function<void(onnx::NodeProto*)>& rewrite);

 private:
  void Insert(std::vector<std::vector<onnx::NodeProto>> added);

  const Imported& original_;
  const Graph& pruned_;
  const FixedSizes fixed_;
  const VariedConstants* const varied_;
  onnx::ModelProto& model_;
  onnx::GraphProto& graph_;
  const std::vector<int32_t> maker_;
  const Names before_;  // tensors that had a reader
  Names names_;         // all that are taken
  std::map<std::string, int> initializer_;
  std::map<std::string, int> constant_;  // Constant nodes
  std::map<std::string, int> node_of_;   // by the output
  std::map<std::string, bool> stale_;    // see IsStale
  std::map<std::string, std::vector<int32_t>> emitted_;
  std::vector<onnx::NodeProto> new_nodes_;  // of the node at work
};

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PRUNED_FILE_H_
