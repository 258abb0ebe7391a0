// The walk over a prepared ONNX graph: folds what is constant, and calls one
// rule per operator for the rest, which emits nodes of the Graph.
#ifndef LOADLINE_MODELS_ONNX_IMPORTER_H_
#define LOADLINE_MODELS_ONNX_IMPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/onnx/prepare.h"
#include "models/onnx/supported.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// What a name of the ONNX graph stands for: a constant, a value of the Graph,
// a list of values (between SplitToSequence and SequenceAt), or something
// that cannot be made because an unsupported node comes before it.
struct Binding {
  std::optional<Tensor> constant;
  ValueId id = kNoValue;
  std::vector<ValueId> sequence;
  bool blocked = false;
};

class Importer {
 public:
  Importer(const PreparedModel& model, const ImportOptions& options);

  // Visits everything. Call once.
  absl::StatusOr<Imported> Run();

  // For the rules. Positions count from 0; `Has` is false for an optional
  // input that is absent, `Wants` for an output that nobody reads.
  const ImportOptions& options() const { return options_; }
  Graph& graph() { return imported_.graph; }
  bool Has(const onnx::NodeProto& node, int i) const;
  bool Wants(const onnx::NodeProto& node, int i) const;
  bool IsConstant(const onnx::NodeProto& node, int i) const;
  // Type of a tensor input. Call only where Has.
  const TensorType& Type(const onnx::NodeProto& node, int i) const;
  const Binding& Input(const onnx::NodeProto& node, int i) const;

  // The input as a value of the Graph; constants become one here.
  absl::StatusOr<ValueId> Use(const onnx::NodeProto& node, int i);
  ValueId UseTensor(const std::string& name, const Tensor& tensor);
  // The input as numbers; InvalidArgument where it is not constant.
  absl::StatusOr<Ints> ConstantInts(const onnx::NodeProto& node, int i) const;
  absl::StatusOr<double> ConstantReal(const onnx::NodeProto& node, int i) const;

  // Emits a node named after the ONNX one; all of its outputs.
  absl::StatusOr<std::vector<ValueId>> Emit(const onnx::NodeProto& node,
                                            const std::string& op,
                                            std::vector<ValueId> inputs,
                                            Attributes attributes = {},
                                            Phase phase = Phase::kForward);
  // The same; its first output.
  absl::StatusOr<ValueId> EmitValue(const onnx::NodeProto& node,
                                    const std::string& op,
                                    std::vector<ValueId> inputs,
                                    Attributes attributes = {});
  // The same, and the first output is the ONNX node's.
  absl::Status EmitOne(const onnx::NodeProto& node, const std::string& op,
                       std::vector<ValueId> inputs, Attributes attributes = {});
  void Define(const onnx::NodeProto& node, int i, ValueId id);
  void DefineSequence(const onnx::NodeProto& node, std::vector<ValueId> parts);
  // The output is another name for the input, constant or not.
  void Alias(const onnx::NodeProto& node, int output, int input);
  // What follows from this node is left out; the import fails in the end.
  void Unsupported(const onnx::NodeProto& node, const std::string& why);

  void Warn(const std::string& text);
  int64_t NextSalt() { return ++salt_; }
  // The newest version of a state that several nodes update, and how to set
  // it.
  ValueId Newest(ValueId state) const;
  void Update(ValueId state, ValueId next);
  TrainingForms& forms() { return imported_.forms; }

 private:
  absl::Status Start();
  absl::Status Visit(const onnx::NodeProto& node);
  absl::Status Dispatch(const onnx::NodeProto& node);
  // True where the node's outputs were folded.
  absl::StatusOr<bool> TryFold(const onnx::NodeProto& node);
  absl::Status FoldConstantNode(const onnx::NodeProto& node);
  absl::Status DefineConstant(const std::string& name, Tensor tensor);
  void Release(const onnx::NodeProto& node);
  absl::Status Finish();
  void WarnAtEnd();
  const Binding* Find(const std::string& name) const;

  const PreparedModel& model_;
  const ImportOptions& options_;
  Imported imported_;
  std::map<std::string, Binding> bindings_;
  std::map<std::string, int64_t> uses_;  // reads still to come
  std::map<std::string, std::vector<ValueId>> constants_;  // by type's text
  UnsupportedList unsupported_;
  int64_t folded_bytes_ = 0;     // alive now
  int64_t folded_elements_ = 0;  // ever: a limit on work
  int64_t salt_ = 0;
};

// A rule emits the nodes for one ONNX node, or aliases, or declares it
// unsupported. Its errors need not name the node.
using Rule = absl::Status (*)(Importer& importer, const onnx::NodeProto& node);

// Null: no rule; the operator is only folded, or unknown.
Rule FindRule(const std::string& op_type);
bool HasRule(const std::string& op_type);

// The rules by family, one file each (rules_*.cc).
const std::map<std::string, Rule>& PointwiseRules();
const std::map<std::string, Rule>& ShapeRules();
const std::map<std::string, Rule>& LinearRules();
const std::map<std::string, Rule>& NormalizationRules();
const std::map<std::string, Rule>& PoolingRules();
const std::map<std::string, Rule>& PadRules();
const std::map<std::string, Rule>& ResizeRules();

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_IMPORTER_H_
