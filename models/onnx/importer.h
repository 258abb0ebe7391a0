// Builds a Graph from a prepared ONNX graph: folds constants, and calls one
// rule per operator for the other nodes, which emits nodes of the Graph.
#ifndef LOADLINE_MODELS_ONNX_IMPORTER_H_
#define LOADLINE_MODELS_ONNX_IMPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/onnx/prepare.h"
#include "models/onnx/supported.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// What a name of the ONNX graph is bound to: a constant, a value of the Graph,
// a list of values (a sequence of tensors), or nothing, if it depends on an
// unsupported node.
struct Binding {
  std::optional<Tensor> constant;
  ValueId id = kNoValue;
  std::vector<ValueId> sequence;
  bool is_sequence = false;
  bool blocked = false;
};

class Importer {
 public:
  Importer(const PreparedModel& model, const ImportOptions& options);

  // Constants that are folded are also put there, by name, but for large ones.
  void Record(std::map<std::string, Tensor>* folded) { recorded_ = folded; }

  // Imports the whole graph. Call once.
  absl::StatusOr<Imported> Run();

  // For the rules. Positions count from 0. `Has`: the input is present.
  // `Wants`: the output has a reader.
  const ImportOptions& options() const { return options_; }
  Graph& graph() { return imported_.graph; }
  bool Has(const onnx::NodeProto& node, int i) const;
  bool Wants(const onnx::NodeProto& node, int i) const;
  bool IsConstant(const onnx::NodeProto& node, int i) const;
  // Whether the input is an initializer of the file, also through Identity.
  bool IsInitializer(const onnx::NodeProto& node, int i) const;
  // Type of a tensor input. Requires Has.
  const TensorType& Type(const onnx::NodeProto& node, int i) const;
  const Binding& Input(const onnx::NodeProto& node, int i) const;
  // What one of the node's ReadNames is bound to.
  const Binding& Named(const std::string& name) const;

  // The input as a value of the Graph; adds a constant if needed.
  absl::StatusOr<ValueId> Use(const onnx::NodeProto& node, int i);
  ValueId UseTensor(const std::string& name, const Tensor& tensor);
  // The input as numbers; InvalidArgument if it is not constant.
  absl::StatusOr<Ints> ConstantInts(const onnx::NodeProto& node, int i) const;
  absl::StatusOr<double> ConstantReal(const onnx::NodeProto& node, int i) const;

  // Emits a node named after the ONNX node; returns all outputs.
  absl::StatusOr<std::vector<ValueId>> Emit(const onnx::NodeProto& node,
                                            const std::string& op,
                                            std::vector<ValueId> inputs,
                                            Attributes attributes = {},
                                            Phase phase = Phase::kForward);
  // The same; returns the first output.
  absl::StatusOr<ValueId> EmitValue(const onnx::NodeProto& node,
                                    const std::string& op,
                                    std::vector<ValueId> inputs,
                                    Attributes attributes = {});
  // The same; binds the first output to the ONNX node's.
  absl::Status EmitOne(const onnx::NodeProto& node, const std::string& op,
                       std::vector<ValueId> inputs, Attributes attributes = {});
  void Define(const onnx::NodeProto& node, int i, ValueId id);
  void DefineSequence(const onnx::NodeProto& node, std::vector<ValueId> parts);
  // Binds the output to what the input is bound to, constant or not.
  void Alias(const onnx::NodeProto& node, int output, int input);
  // Binds a name, which nothing has bound yet.
  void Bind(const std::string& name, Binding binding);
  // Imports the nodes of a subgraph and returns the bindings of its outputs.
  // The nodes may read names of the graphs that contain it. Errors: of its
  // nodes, ResourceExhausted for too many or too deep ones.
  absl::StatusOr<std::vector<Binding>> VisitBody(const onnx::GraphProto& body,
                                                 std::vector<Binding> inputs);
  // Records the node as unsupported. Nodes that depend on it are skipped, and
  // the import fails at the end.
  void Unsupported(const onnx::NodeProto& node, const std::string& why);
  // Marks the node's outputs as dependent on an unsupported node.
  void Block(const onnx::NodeProto& node);

  // Whether PyTorch passes no gradient through the output.
  bool IsDetached(const onnx::NodeProto& node, int output) const {
    return model_.marks.detached.count(node.output(output)) > 0;
  }

  // Whether the first of equal elements gets the gradient of the extreme.
  bool IsFirstOfTies(const onnx::NodeProto& node) const {
    return model_.marks.first_of_ties.count(node.output(0)) > 0;
  }

  // Whether the bias of the recurrent layer, its input i, has no part for the
  // state.
  bool IsSingleBias(const onnx::NodeProto& node, int i) const {
    return model_.marks.single_biases.count(node.input(i)) > 0;
  }

  // The row of an embedding's table that gets no gradient through the node.
  std::optional<int64_t> PaddingRow(const onnx::NodeProto& node) const {
    const auto row = model_.marks.padding_row.find(node.output(0));
    if (row == model_.marks.padding_row.end()) return std::nullopt;
    return row->second;
  }

  void Warn(const std::string& text);
  int64_t NextSalt() { return ++salt_; }
  // The newest version of a state that several nodes update, and its setter.
  ValueId Newest(ValueId state) const;
  void Update(ValueId state, ValueId next);
  TrainingForms& forms() { return imported_.forms; }

 private:
  absl::Status Start();
  absl::Status Visit(const onnx::NodeProto& node);
  absl::Status VisitNodes(const onnx::GraphProto& graph);
  void Forget(const std::string& name);
  absl::Status Dispatch(const onnx::NodeProto& node);
  // InvalidArgument if the file declares other shapes of its outputs.
  absl::Status CheckDeclaredShapes(const onnx::NodeProto& node) const;
  // True if the node's outputs were folded.
  absl::StatusOr<bool> TryFold(const onnx::NodeProto& node);
  absl::Status FoldConstantNode(const onnx::NodeProto& node);
  absl::Status DefineConstant(const std::string& name, Tensor tensor);
  void Note(const std::string& name, const Tensor& tensor);  // see Record
  void Release(const onnx::NodeProto& node);
  absl::Status Finish();
  void WarnAtEnd();
  const Binding* Find(const std::string& name) const;

  const PreparedModel& model_;
  const ImportOptions& options_;
  Imported imported_;
  std::map<std::string, Binding> bindings_;
  std::map<std::string, int64_t> uses_;        // remaining reads
  std::set<std::string> same_as_initializer_;  // by Identity
  // By the type's text and a hash of the contents.
  std::map<std::pair<std::string, size_t>, std::vector<ValueId>> constants_;
  UnsupportedList unsupported_;
  int64_t folded_bytes_ = 0;     // now in memory
  int64_t folded_elements_ = 0;  // in total: limits work
  int64_t salt_ = 0;
  int64_t bodies_ = 0;  // subgraphs that were imported
  int64_t body_nodes_ = 0;
  int body_depth_ = 0;
  std::map<std::string, Tensor>* recorded_ = nullptr;
};

// A rule emits the nodes for one ONNX node, or aliases, or declares it
// unsupported. The caller adds the node's name to its errors.
using Rule = absl::Status (*)(Importer& importer, const onnx::NodeProto& node);

// By QualifiedName. Null: no rule; the operator is either only folded, or
// unknown.
Rule FindRule(const std::string& name);
bool HasRule(const std::string& name);

// The axes of a reduction, normalized; none if it does nothing.
absl::StatusOr<Ints> ReducedAxes(const Importer& importer,
                                 const onnx::NodeProto& node);

// The rules by operator family, one file each (rules_*.cc).
const std::map<std::string, Rule>& PointwiseRules();
const std::map<std::string, Rule>& ShapeRules();
const std::map<std::string, Rule>& RearrangeRules();
const std::map<std::string, Rule>& IndexRules();
const std::map<std::string, Rule>& AlongAxisRules();
const std::map<std::string, Rule>& EinsumRules();
const std::map<std::string, Rule>& RandomRules();
const std::map<std::string, Rule>& GridSampleRules();
const std::map<std::string, Rule>& LinearRules();
const std::map<std::string, Rule>& NormalizationRules();
const std::map<std::string, Rule>& PoolingRules();
const std::map<std::string, Rule>& PadRules();
const std::map<std::string, Rule>& ResizeRules();
const std::map<std::string, Rule>& FourierRules();
const std::map<std::string, Rule>& RecurrentRules();
const std::map<std::string, Rule>& TrainingRules();
const std::map<std::string, Rule>& ControlFlowRules();
const std::map<std::string, Rule>& ScanRules();

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_IMPORTER_H_
