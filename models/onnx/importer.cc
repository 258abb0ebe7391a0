// Constants stay outside the Graph until a node needs one, so shape arithmetic
// leaves no nodes. Equal constants become one value, so that twelve layers
// share one causal mask; importer_fold.cc computes them. A folded constant is
// freed after its last reader. Tested in tests/models/onnx_import_test.cc.
#include "models/onnx/importer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/classify.h"
#include "models/onnx/fold.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/producers.h"
#include "models/ops/operator.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Frozen weights of this size stay values of the graph, as trained ones are:
// computing with them beforehand would make copies.
constexpr int64_t kLargeFrozenBytes = int64_t{1} << 20;

constexpr int64_t kMaxRecordedBytes = int64_t{1} << 20;  // of one constant

absl::Status At(const onnx::NodeProto& node, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(NodeLabel(node), ": ", status.message()));
}

}  // namespace

Importer::Importer(const PreparedModel& model, const ImportOptions& options)
    : model_(model), options_(options) {}

const Binding* Importer::Find(const std::string& name) const {
  auto it = bindings_.find(name);
  return it == bindings_.end() ? nullptr : &it->second;
}

bool Importer::Has(const onnx::NodeProto& node, int i) const {
  return i < node.input_size() && !node.input(i).empty();
}

bool Importer::Wants(const onnx::NodeProto& node, int i) const {
  return i < node.output_size() && uses_.count(node.output(i)) > 0;
}

const Binding& Importer::Input(const onnx::NodeProto& node, int i) const {
  const Binding* binding = Find(node.input(i));
  LOADLINE_CHECK(binding != nullptr);  // Visit checks inputs
  return *binding;
}

bool Importer::IsConstant(const onnx::NodeProto& node, int i) const {
  return Has(node, i) && Input(node, i).constant.has_value();
}

bool Importer::IsInitializer(const onnx::NodeProto& node, int i) const {
  return Has(node, i) && (model_.initializers.count(node.input(i)) > 0 ||
                          same_as_initializer_.count(node.input(i)) > 0);
}

const TensorType& Importer::Type(const onnx::NodeProto& node, int i) const {
  const Binding& binding = Input(node, i);
  return binding.constant ? binding.constant->type
                          : imported_.graph.value(binding.id).type;
}

const Binding& Importer::Named(const std::string& name) const {
  const Binding* binding = Find(name);
  LOADLINE_CHECK(binding != nullptr);  // Visit checks what is read
  return *binding;
}

absl::StatusOr<ValueId> Importer::Use(const onnx::NodeProto& node, int i) {
  if (!Has(node, i)) {
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
  }
  const Binding& binding = Input(node, i);
  if (binding.constant) return UseTensor(node.input(i), *binding.constant);
  return binding.id;
}

ValueId Importer::UseTensor(const std::string& name, const Tensor& tensor) {
  const absl::string_view bytes(
      reinterpret_cast<const char*>(tensor.data->data()), tensor.data->size());
  std::vector<ValueId>& alike =
      constants_[{tensor.type.ToString(), absl::HashOf(bytes)}];
  for (ValueId id : alike) {
    if (*imported_.graph.value(id).initial->data == *tensor.data) return id;
  }
  alike.push_back(imported_.graph.AddConstant(name, tensor));
  return alike.back();
}

absl::StatusOr<Ints> Importer::ConstantInts(const onnx::NodeProto& node,
                                            int i) const {
  if (!IsConstant(node, i)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i,
                     " must be known when the model is imported, but it "
                     "depends on data"));
  }
  const Tensor& tensor = *Input(node, i).constant;
  if (tensor.type.dtype == DType::kI32) {
    const auto v = tensor.as<int32_t>();
    return Ints(v.begin(), v.end());
  }
  if (tensor.type.dtype != DType::kI64) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " must hold integers"));
  }
  const auto v = tensor.as<int64_t>();
  return Ints(v.begin(), v.end());
}

absl::StatusOr<double> Importer::ConstantReal(const onnx::NodeProto& node,
                                              int i) const {
  if (!IsConstant(node, i) || Input(node, i).constant->type.elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i,
                     " must be one number, known when the model is "
                     "imported"));
  }
  const Tensor& tensor = *Input(node, i).constant;
  if (tensor.type.dtype == DType::kF32) {
    return ShortestDecimal(tensor.as<float>()[0]);
  }
  if (tensor.type.dtype == DType::kF64) return tensor.as<double>()[0];
  if (tensor.type.dtype == DType::kBool) return tensor.as<uint8_t>()[0];
  LOADLINE_ASSIGN_OR_RETURN(Ints value, ConstantInts(node, i));
  return static_cast<double>(value[0]);
}

absl::StatusOr<std::vector<ValueId>> Importer::Emit(const onnx::NodeProto& node,
                                                    const std::string& op,
                                                    std::vector<ValueId> inputs,
                                                    Attributes attributes,
                                                    Phase phase) {
  const std::string name = !node.name().empty() ? node.name()
                           : node.output_size() > 0 && !node.output(0).empty()
                               ? node.output(0)
                               : node.op_type();
  return imported_.graph.AddNode(op, name, std::move(inputs),
                                 std::move(attributes), phase);
}

absl::StatusOr<ValueId> Importer::EmitValue(const onnx::NodeProto& node,
                                            const std::string& op,
                                            std::vector<ValueId> inputs,
                                            Attributes attributes) {
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> outputs,
      Emit(node, op, std::move(inputs), std::move(attributes)));
  return outputs[0];
}

absl::Status Importer::EmitOne(const onnx::NodeProto& node,
                               const std::string& op,
                               std::vector<ValueId> inputs,
                               Attributes attributes) {
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId output,
      EmitValue(node, op, std::move(inputs), std::move(attributes)));
  Define(node, 0, output);
  return absl::OkStatus();
}

void Importer::Define(const onnx::NodeProto& node, int i, ValueId id) {
  if (i >= node.output_size() || node.output(i).empty()) return;
  Binding binding;
  binding.id = id;
  bindings_[node.output(i)] = std::move(binding);
  imported_.value_of[node.output(i)] = id;
}

void Importer::Note(const std::string& name, const Tensor& tensor) {
  if (recorded_ != nullptr && tensor.type.bytes() <= kMaxRecordedBytes) {
    recorded_->emplace(name, tensor);
  }
}

void Importer::DefineSequence(const onnx::NodeProto& node,
                              std::vector<ValueId> parts) {
  Binding binding;
  binding.sequence = std::move(parts);
  binding.is_sequence = true;
  bindings_[node.output(0)] = std::move(binding);
}

void Importer::Alias(const onnx::NodeProto& node, int output, int input) {
  const Binding binding = Input(node, input);
  if (binding.constant) {
    folded_bytes_ += binding.constant->type.bytes();
    Note(node.output(output), *binding.constant);
  } else {
    imported_.value_of[node.output(output)] = binding.id;
  }
  bindings_[node.output(output)] = binding;
}

void Importer::Unsupported(const onnx::NodeProto& node,
                           const std::string& why) {
  unsupported_.Add(node, why);
  Block(node);
}

void Importer::Block(const onnx::NodeProto& node) {
  Binding blocked;
  blocked.blocked = true;
  for (const auto& name : node.output()) {
    if (!name.empty()) bindings_[name] = blocked;
  }
}

void Importer::Warn(const std::string& text) {
  imported_.warnings.push_back(text);
}

ValueId Importer::Newest(ValueId state) const {
  for (const auto& [persistent, next] : imported_.graph.updates) {
    if (persistent == state) return next;
  }
  return state;
}

void Importer::Update(ValueId state, ValueId next) {
  for (auto& update : imported_.graph.updates) {
    if (update.first == state) {
      update.second = next;
      return;
    }
  }
  imported_.graph.updates.emplace_back(state, next);
}

absl::Status Importer::Start() {
  const auto& graph = model_.proto.graph();
  imported_.graph.name = graph.name();
  imported_.warnings = model_.warnings;
  const std::vector<bool> needed = NeededNodes(graph);
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<size_t>(n)]) continue;
    for (const auto& name : ReadNames(graph.node(n))) ++uses_[name];
  }
  for (const auto& output : graph.output()) ++uses_[output.name()];
  for (const auto& [name, type] : model_.inputs) {
    Binding binding;
    binding.id = imported_.graph.AddInput(name, type);
    imported_.value_of[name] = binding.id;
    bindings_[name] = std::move(binding);
  }
  LOADLINE_ASSIGN_OR_RETURN(const Classification classes,
                            ClassifyInitializers(model_, options_));
  for (const std::string& text : classes.warnings) Warn(text);
  std::set<std::string> frozen;
  for (const InitializerRole& role : classes.roles) {
    if (uses_.count(role.name) > 0) imported_.roles.push_back(role);
    if (role.why == kFrozenByFlag) frozen.insert(role.name);
  }
  for (const std::string& name : model_.initializer_order) {
    if (uses_.count(name) == 0) continue;
    const Tensor& tensor = model_.initializers.at(name);
    Binding binding;
    switch (classes.kinds.at(name)) {
      case ValueKind::kParameter:
        binding.id = imported_.graph.AddParameter(name, tensor);
        break;
      case ValueKind::kState:
        binding.id = imported_.graph.AddState(name, tensor);
        break;
      default:
        if (tensor.data == nullptr && tensor.type.dtype == DType::kF32) {
          // Arithmetic does not need its contents before the step runs.
          binding.id = imported_.graph.AddState(name, tensor);
          break;
        }
        if (tensor.data == nullptr) {
          return absl::NotFoundError(absl::StrCat(
              "tensor '", name,
              "' is a constant that planning needs, and the file of its "
              "external data is missing beside the model"));
        }
        if (tensor.type.bytes() >= kLargeFrozenBytes &&
            frozen.count(name) > 0) {
          binding.id = imported_.graph.AddConstant(name, tensor);
          break;
        }
        binding.constant = tensor;
        folded_bytes_ += tensor.type.bytes();
    }
    if (binding.id != kNoValue) imported_.value_of[name] = binding.id;
    if (!bindings_.emplace(name, std::move(binding)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are named '", name, "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status Importer::Dispatch(const onnx::NodeProto& node) {
  if (QualifiedName(node) == "Constant") return FoldConstantNode(node);
  if (node.op_type() == "Identity" && IsInitializer(node, 0)) {
    same_as_initializer_.insert(node.output(0));
  }
  const bool sequence_input =
      std::any_of(node.input().begin(), node.input().end(),
                  [this](const std::string& name) {
                    const Binding* m = Find(name);
                    return m != nullptr && m->is_sequence;
                  });
  static const auto* const kOnSequences = new std::set<std::string>{
      "SequenceAt", "SequenceInsert", "ConcatFromSequence", "If", "Loop"};
  if (sequence_input && kOnSequences->count(node.op_type()) == 0) {
    Unsupported(node, "on a sequence");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(bool folded, TryFold(node));
  if (folded) return absl::OkStatus();
  const Rule rule = FindRule(QualifiedName(node));
  if (rule == nullptr) {
    Unsupported(node,
                CanFold(node.op_type()) ? "on values that depend on data" : "");
    return absl::OkStatus();
  }
  const absl::Status status = rule(*this, node);
  // The onnx library has checked the types, so the file is valid.
  const std::string dtype = RefusedDType(status);
  if (dtype.empty()) return status;
  Unsupported(node, absl::StrCat("on ", dtype));
  return absl::OkStatus();
}

absl::Status Importer::Visit(const onnx::NodeProto& node) {
  bool blocked = false;
  for (const auto& name : ReadNames(node)) {
    if (name.empty()) continue;
    const Binding* binding = Find(name);
    if (binding == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("reads '", name, "', which nothing before it makes"));
    }
    blocked = blocked || binding->blocked;
  }
  for (const auto& name : node.output()) {
    if (!name.empty() && Find(name) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("makes '", name, "' a second time"));
    }
  }
  if (blocked) {
    Block(node);
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(Dispatch(node));
  for (int i = 0; i < node.output_size(); ++i) {
    if (Wants(node, i) && !node.output(i).empty() &&
        Find(node.output(i)) == nullptr) {
      Unsupported(node, absl::StrCat("its output ", i));
    }
  }
  return CheckDeclaredShapes(node);
}

absl::Status Importer::CheckDeclaredShapes(const onnx::NodeProto& node) const {
  for (const auto& name : node.output()) {
    const Binding* binding = name.empty() ? nullptr : Find(name);
    if (binding == nullptr || binding->blocked || binding->is_sequence) {
      continue;
    }
    const TensorType& type = binding->constant
                                 ? binding->constant->type
                                 : imported_.graph.value(binding->id).type;
    LOADLINE_RETURN_IF_ERROR(
        model_.declared.Check(name, type.dims, model_.proto));
  }
  return absl::OkStatus();
}

void Importer::Release(const onnx::NodeProto& node) {
  for (const auto& name : ReadNames(node)) {
    auto uses = uses_.find(name);
    if (uses == uses_.end() || --uses->second > 0) continue;
    auto it = bindings_.find(name);
    if (it == bindings_.end() || !it->second.constant) continue;
    folded_bytes_ -= it->second.constant->type.bytes();
    it->second.constant = Tensor{};  // frees it; the name stays taken
  }
}

void Importer::WarnAtEnd() {
  const int restored =
      imported_.forms.batch_norms_restored + imported_.forms.dropouts_restored;
  bool convolves = false, normalizes = restored > 0;
  for (const Node& node : imported_.graph.nodes) {
    convolves = convolves || node.op == "Conv";
    normalizes = normalizes || node.op == "BatchNormTraining" ||
                 node.op == "BatchNormalization" ||
                 node.op == "LayerNormalization";
  }
  constexpr char kFlags[] =
      "torch.onnx.export(..., dynamo=False, "
      "training=torch.onnx.TrainingMode.TRAINING, "
      "do_constant_folding=False)";
  if (convolves && !normalizes && options_.training) {
    Warn(absl::StrCat(
        "the model convolves but has no BatchNormalization; if the original "
        "has some, the exporter folded it away",
        model_.proto.producer_name() == kPyTorch
            ? absl::StrCat(": export with ", kFlags)
            : ""));
  }
  if (restored > 0) {
    Warn(absl::StrCat(
        restored,
        " BatchNormalization or Dropout nodes were in inference form and "
        "were put back into training form; ",
        kFlags, " keeps it"));
  }
}

absl::Status Importer::Finish() {
  if (!unsupported_.empty()) {
    return unsupported_.ToStatus(model_.proto.graph());
  }
  for (const auto& output : model_.proto.graph().output()) {
    const Binding* binding = Find(output.name());
    if (binding == nullptr || binding->is_sequence) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output '", output.name(), "' is not a tensor that a node makes"));
    }
    ValueId id = binding->id;
    if (binding->constant) id = UseTensor(output.name(), *binding->constant);
    imported_.graph.outputs.push_back(id);
  }
  WarnAtEnd();
  return absl::OkStatus();
}

absl::StatusOr<Imported> Importer::Run() {
  LOADLINE_RETURN_IF_ERROR(Start());
  const auto& graph = model_.proto.graph();
  const std::vector<bool> needed = NeededNodes(graph);
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<size_t>(n)]) continue;
    const auto& node = graph.node(n);
    LOADLINE_RETURN_IF_ERROR(At(node, Visit(node)));
    Release(node);
  }
  LOADLINE_RETURN_IF_ERROR(Finish());
  LOADLINE_RETURN_IF_ERROR(VerifyGraph(imported_.graph));
  return std::move(imported_);
}

Rule FindRule(const std::string& name) {
  for (const auto* family :
       {&PointwiseRules(), &ShapeRules(), &RearrangeRules(), &IndexRules(),
        &AlongAxisRules(), &EinsumRules(), &RandomRules(), &GridSampleRules(),
        &LinearRules(), &NormalizationRules(), &PoolingRules(), &PadRules(),
        &ResizeRules(), &FourierRules(), &RecurrentRules(), &TrainingRules(),
        &ControlFlowRules(), &ScanRules()}) {
    auto it = family->find(name);
    if (it != family->end()) return it->second;
  }
  return nullptr;
}

bool HasRule(const std::string& name) { return FindRule(name) != nullptr; }

}  // namespace loadline::models::onnx_internal
