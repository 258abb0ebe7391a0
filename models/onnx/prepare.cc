// The order matters. Contents are moved out of the protobuf first, so that the
// checker, the converter and shape inference copy a few kilobytes instead of
// the weights. Unknown operators are listed before the onnx library interprets
// them. Attention (opset 23) is inlined before the conversion, which cannot
// lower it; other composite operators after it. Tested in
// tests/models/onnx_import_test.cc, hostile files in
// tests/models/onnx_hostile_test.cc.
#include "models/onnx/prepare.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "models/onnx/check_shapes.h"
#include "models/onnx/convert_opset.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/function_size.h"
#include "models/onnx/guard.h"
#include "models/onnx/input_shapes.h"
#include "models/onnx/keras_biases.h"
#include "models/onnx/model_file.h"
#include "models/onnx/no_grad.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/supported.h"
#include "models/onnx/tied_copies.h"
#include "models/onnx/widen_floats.h"
#include "models/onnx/written_dropout.h"
#include "onnx/checker.h"
#include "onnx/inliner/inliner.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"

namespace loadline::models::onnx_internal {
namespace {

// Initializers up to this size stay in the protobuf, because the converter and
// shape inference read shapes and axes.
constexpr int64_t kSmallBytes = 1024;
constexpr int kMaxNodes = 1 << 18;
// The onnx library's conversion takes time in the square of the nodes.
constexpr int kMaxConvertedNodes = 1 << 16;
constexpr size_t kMaxNameBytes = 4096;
constexpr int kMostCompositeDepth = 2;
constexpr int kMinIrVersion = 10;  // as opset kOpset requires

// UTF-8, as ONNX demands: names are also keys of files that we write.
bool GoodName(const std::string& name) {
  return name.size() <= kMaxNameBytes && planner::IsUtf8(name) &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

absl::Status CheckNames(const onnx::GraphProto& graph) {
  const absl::Status bad = absl::InvalidArgumentError(
      "the model has a name with control characters, one that is not UTF-8, or "
      "an absurdly long one; export it with other names");
  for (const auto& node : graph.node()) {
    if (!GoodName(node.name()) || !GoodName(node.op_type())) return bad;
    for (const auto& name : node.input()) {
      if (!GoodName(name)) return bad;
    }
    for (const auto& name : node.output()) {
      if (!GoodName(name)) return bad;
    }
  }
  for (const auto& tensor : graph.initializer()) {
    if (!GoodName(tensor.name())) return bad;
  }
  for (const auto& input : graph.input()) {
    if (!GoodName(input.name())) return bad;
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const onnx::GraphProto& graph, int most = kMaxNodes) {
  if (graph.node_size() <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the model has ", graph.node_size(), " nodes, and at most ", most,
      " are supported; fold its constants, or export loops with fewer "
      "iterations"));
}

absl::Status CheckOutputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& output : graph.output()) {
    if (names.insert(output.name()).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two outputs are named '", output.name(), "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckOutline(const onnx::ModelProto& proto) {
  if (!proto.has_graph() || proto.graph().output_size() == 0) {
    return absl::InvalidArgumentError(
        "not an ONNX model: it has no graph with outputs");
  }
  LOADLINE_RETURN_IF_ERROR(CheckNodes(proto.graph()));
  LOADLINE_RETURN_IF_ERROR(CheckOutputs(proto.graph()));
  if (proto.graph().sparse_initializer_size() > 0) {
    return absl::InvalidArgumentError(
        "sparse initializers are not supported; export dense ones");
  }
  LOADLINE_RETURN_IF_ERROR(CheckFunctions(proto));
  return CheckNames(proto.graph());
}

bool StaysInProto(const Tensor& tensor) {
  return tensor.data != nullptr && tensor.type.bytes() <= kSmallBytes;
}

// The tensor; without data if its file is missing and the options allow that.
absl::StatusOr<Tensor> ReadInitializer(const onnx::TensorProto& proto,
                                       const std::string& folder,
                                       const ImportOptions& options,
                                       int64_t* budget_bytes, int* missing) {
  absl::StatusOr<Tensor> tensor = ReadTensor(proto, folder, budget_bytes);
  if (!options.allow_missing_weights || !absl::IsNotFound(tensor.status())) {
    return tensor;
  }
  ++*missing;
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, TypeOfTensor(proto));
  return Tensor{std::move(type), nullptr};
}

// The onnx library's checker refuses nodes that read what is left out.
void DropUnneededNodes(onnx::GraphProto* graph) {
  const std::vector<bool> needed = NeededNodes(*graph);
  size_t n = 0;
  EraseIf(graph->mutable_node(),
          [&](const onnx::NodeProto*) { return !needed[n++]; });
}

// Moves initializers to `prepared`; small ones also stay in the protobuf. The
// bytes of large ones are freed there at once, so that they exist once.
// Those of an unsupported type are left out where no node reads them.
absl::Status TakeInitializers(const std::string& folder,
                              const ImportOptions& options,
                              const std::set<DType>& widened,
                              PreparedModel* prepared) {
  int64_t budget_bytes = options.max_bytes;
  auto* graph = prepared->proto.mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::TensorProto> small;
  int missing = 0;
  bool left_out = false;
  const std::set<std::string> needed = NeededNames(*graph);
  for (onnx::TensorProto& proto : *graph->mutable_initializer()) {
    if (proto.name().empty()) {
      return absl::InvalidArgumentError("an initializer has no name");
    }
    if (needed.count(proto.name()) == 0 &&
        !DTypeFromOnnx(proto.data_type(), "").ok()) {
      left_out = true;
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(
        Tensor tensor,
        ReadInitializer(proto, folder, options, &budget_bytes, &missing));
    const bool widens = widened.count(tensor.type.dtype) > 0;
    if (widens) tensor = AsF32(tensor);
    if (!prepared->initializers.emplace(proto.name(), tensor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two initializers are named '", proto.name(), "'"));
    }
    prepared->initializer_order.push_back(proto.name());
    if (StaysInProto(tensor)) {
      onnx::TensorProto* kept = small.Add();
      *kept = proto;
      if (widens) kept->set_data_type(DTypeToOnnx(DType::kF32));
      WriteTensor(tensor, kept);
    } else {
      onnx::TensorProto().Swap(&proto);  // clear() would keep the memory
    }
  }
  graph->mutable_initializer()->Swap(&small);
  if (left_out) DropUnneededNodes(graph);
  if (missing > 0) {
    prepared->warnings.push_back(
        absl::StrCat("the files of external data of ", missing,
                     " tensors are missing: the step can be planned, not run"));
  }
  return absl::OkStatus();
}

// InvalidArgument for a size given to an axis that no input has: a typo.
absl::Status CheckDimNames(const ImportOptions& options,
                           const std::set<std::string>& axes) {
  for (const auto& [name, size] : options.dims) {
    if (axes.count(name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a size is given for the axis '", name, "', which no input has; ",
        axes.empty()
            ? "no axis of the model has a name"
            : absl::StrCat("axes with a name: ", absl::StrJoin(axes, ", "))));
  }
  return absl::OkStatus();
}

// Gives inputs their whole types; large initializers become further inputs.
// `unread` ones are left out.
absl::Status SetInputs(const ImportOptions& options,
                       const std::set<std::string>& unread,
                       PreparedModel* prepared) {
  auto* graph = prepared->proto.mutable_graph();
  prepared->declared = DeclaredShapes(*graph);
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  std::set<std::string> names, axes;
  for (const auto& input : graph->input()) {
    if (prepared->initializers.count(input.name()) > 0) continue;
    if (!names.insert(input.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two inputs are named '", input.name(), "'"));
    }
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) axes.insert(dim.dim_param());
    }
    if (unread.count(input.name()) > 0) continue;
    prepared->declared.AddInput(input);
    LOADLINE_ASSIGN_OR_RETURN(
        TensorType type, ResolveInput(input, options, &prepared->warnings));
    onnx::ValueInfoProto* info = inputs.Add();
    info->set_name(input.name());
    SetType(type, info);
    prepared->inputs.emplace_back(input.name(), std::move(type));
  }
  for (const auto& [name, shape] : options.input_shapes) {
    if (names.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a shape is given for '", name, "', which is no input of the model"));
    }
  }
  LOADLINE_RETURN_IF_ERROR(CheckDimNames(options, axes));
  for (const std::string& name : prepared->initializer_order) {
    const Tensor& tensor = prepared->initializers.at(name);
    if (StaysInProto(tensor)) continue;
    onnx::ValueInfoProto* info = inputs.Add();
    info->set_name(name);
    SetType(tensor.type, info);
  }
  graph->mutable_input()->Swap(&inputs);
  // Intermediate shapes are inferred anew, and then compared with the file's.
  graph->clear_value_info();
  return absl::OkStatus();
}

// Clears output shapes, whose named axes may have sizes by now.
void ForgetOutputShapes(onnx::GraphProto* graph) {
  for (auto& output : *graph->mutable_output()) {
    if (output.type().has_tensor_type()) {
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
}

int OpsetOf(const onnx::ModelProto& proto, absl::string_view domain) {
  for (const auto& import : proto.opset_import()) {
    if (import.domain() == domain ||
        (domain.empty() && import.domain() == "ai.onnx")) {
      return static_cast<int>(
          std::clamp<int64_t>(import.version(), 0, 1 << 20));
    }
  }
  return 0;
}

int DefaultOpset(const onnx::ModelProto& proto) { return OpsetOf(proto, ""); }

// Writes defaults out, because a function's body reads attributes of its call.
void WriteDefaults(const onnx::ModelProto& model, onnx::NodeProto* node) {
  const std::string& domain = node->domain();
  const auto* schema = onnx::OpSchemaRegistry::Schema(
      node->op_type(), OpsetOf(model, domain), domain);
  if (schema == nullptr) return;
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.name().empty() ||
        FindAttribute(*node, name) != nullptr) {
      continue;
    }
    *node->add_attribute() = attribute.default_value;
  }
}

// Whether bound `at` of a clamp is a number, from "...target=torch.ops.aten.
// clamp.Tensor](args = (%x, %scalar_tensor_default, %upper), kwargs = {})".
// Numbers become scalar tensors before they are exported.
bool IsNumberOfClamp(absl::string_view operation, size_t at) {
  constexpr char kClamp[] = "target=torch.ops.aten.clamp.Tensor](args = (";
  const size_t begin = operation.find(kClamp);
  if (begin == absl::string_view::npos) return false;
  operation.remove_prefix(begin + sizeof(kClamp) - 1);
  const std::vector<absl::string_view> arguments =
      absl::StrSplit(operation.substr(0, operation.find(')')), ", ");
  return at < arguments.size() &&
         absl::StartsWith(arguments[at], "%scalar_tensor");
}

// PyTorch's newer exporter writes a clamp as Max and Min. Where an element is
// at a bound, PyTorch's gradient is half for a tensor, as theirs, and 0 for a
// number, as Clip's.
void ClipAtNumbers(onnx::GraphProto* graph) {
  for (auto& node : *graph->mutable_node()) {
    const bool lower = node.op_type() == "Max";
    if ((!lower && node.op_type() != "Min") || node.input_size() != 2 ||
        !IsNumberOfClamp(Metadata(node, kPytorchCall), lower ? 1 : 2)) {
      continue;
    }
    node.set_op_type("Clip");
    if (lower) continue;
    node.add_input(node.input(1));
    node.set_input(1, "");
  }
}

using Functions = std::map<std::string, const onnx::FunctionProto*>;

std::string FunctionKey(const std::string& domain, const std::string& name,
                        const std::string& overload) {
  return absl::StrCat(domain, "\n", name, "\n", overload);
}

// The attributes that a call leaves to the function: the inliner takes those of
// operators in the body instead.
void WriteFunctionDefaults(const Functions& functions, onnx::NodeProto* node) {
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.has_g()) {
      for (auto& inner : *attribute.mutable_g()->mutable_node()) {
        WriteFunctionDefaults(functions, &inner);
      }
    }
    for (auto& graph : *attribute.mutable_graphs()) {
      for (auto& inner : *graph.mutable_node()) {
        WriteFunctionDefaults(functions, &inner);
      }
    }
  }
  const auto called = functions.find(
      FunctionKey(node->domain(), node->op_type(), node->overload()));
  if (called == functions.end()) return;
  for (const auto& fallback : called->second->attribute_proto()) {
    if (FindAttribute(*node, fallback.name()) == nullptr) {
      *node->add_attribute() = fallback;
    }
  }
}

void WriteFunctionDefaults(onnx::ModelProto* model) {
  Functions functions;
  for (const auto& function : model->functions()) {
    functions[FunctionKey(function.domain(), function.name(),
                          function.overload())] = &function;
  }
  for (auto& function : *model->mutable_functions()) {
    for (auto& node : *function.mutable_node()) {
      WriteFunctionDefaults(functions, &node);
    }
  }
  for (auto& node : *model->mutable_graph()->mutable_node()) {
    WriteFunctionDefaults(functions, &node);
  }
}

// The bodies of some functions depend on their inputs' types, which the inliner
// does not look up at initializers.
void DeclareInitializers(onnx::GraphProto* graph) {
  std::set<std::string> declared;
  for (const auto& info : graph->value_info()) declared.insert(info.name());
  for (const auto& tensor : graph->initializer()) {
    if (!declared.insert(tensor.name()).second) continue;
    onnx::ValueInfoProto* info = graph->add_value_info();
    info->set_name(tensor.name());
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(tensor.data_type());
    type->mutable_shape();
    for (const int64_t dim : tensor.dims()) {
      type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }
}

// The inliner looks up the types of inputs that are left out, too.
void DeclareLeftOut(onnx::GraphProto* graph) {
  onnx::ValueInfoProto* info = graph->add_value_info();
  info->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
}

void ForgetLeftOut(onnx::GraphProto* graph) {
  EraseIf(graph->mutable_value_info(),
          [](const auto* info) { return info->name().empty(); });
}

void Inline(const std::vector<std::string>& operators,
            onnx::ModelProto* proto) {
  DeclareInitializers(proto->mutable_graph());
  DeclareLeftOut(proto->mutable_graph());
  const std::set<std::string> names(operators.begin(), operators.end());
  for (auto& node : *proto->mutable_graph()->mutable_node()) {
    if (names.count(QualifiedName(node)) > 0) WriteDefaults(*proto, &node);
  }
  onnx::inliner::FunctionIdVector ids;
  for (const std::string& name : operators) {
    const size_t colons = name.find("::");
    if (colons == std::string::npos) {
      ids.emplace_back("", name);
    } else {
      ids.emplace_back(name.substr(0, colons), name.substr(colons + 2));
    }
  }
  const auto set = onnx::inliner::FunctionIdSet::Create(std::move(ids));
  onnx::inliner::InlineSelectedFunctions(*proto, *set, nullptr);
  ForgetLeftOut(proto->mutable_graph());
}

bool Contains(const onnx::ModelProto& proto,
              const std::vector<std::string>& operators) {
  for (const auto& node : proto.graph().node()) {
    for (const std::string& name : operators) {
      if (QualifiedName(node) == name) return true;
    }
  }
  return false;
}

// Within a function, names in attributes are not those that the inliner gives.
absl::Status CheckNoGradientInFunctions(const onnx::ModelProto& proto) {
  UnsupportedList unsupported;
  for (const auto& function : proto.functions()) {
    for (const auto& node : function.node()) {
      if (QualifiedName(node) == absl::StrCat(kTrainingDomain, "::Gradient")) {
        unsupported.Add(node, "in a function of the model");
      }
    }
  }
  return unsupported.empty() ? absl::OkStatus() : unsupported.ToStatus({});
}

// PyTorch's newer exporter writes an LSTM with proj_size as one without, whose
// shapes do not fit.
absl::Status CheckNoProjections(const ExportMarks& marks,
                                const onnx::GraphProto& graph) {
  const bool projects =
      std::any_of(marks.marks.begin(), marks.marks.end(), [](const auto& mark) {
        return absl::StrContains(mark.first, "weight_hr_l");
      });
  UnsupportedList unsupported;
  for (const auto& node : graph.node()) {
    if (!projects || node.op_type() != "LSTM") continue;
    unsupported.Add(node, "with proj_size, which ONNX's LSTM does not have");
  }
  return unsupported.empty() ? absl::OkStatus() : unsupported.ToStatus(graph);
}

// A model without operators of the default domain need not name its opset.
void NameDefaultOpset(onnx::ModelProto* proto) {
  if (DefaultOpset(*proto) != 0) return;
  for (const auto& node : proto->graph().node()) {
    if (QualifiedName(node) == node.op_type()) return;
  }
  auto* import = proto->add_opset_import();
  import->set_domain("");
  import->set_version(kOpset);
}

absl::Status ConvertOpset(onnx::ModelProto* proto) {
  const int opset = DefaultOpset(*proto);
  if (opset == 0) {
    return absl::InvalidArgumentError(
        "the model imports no opset of the default domain");
  }
  if (opset > kOpset && Contains(*proto, LateOperators())) {
    LOADLINE_RETURN_IF_ERROR(Guard("writing out newer operators",
                                   [&] { Inline(LateOperators(), proto); }));
  }
  // Conversions of broadcasts before opset 7 need them.
  if (opset < 7) AddKnownShapes(proto);
  HideOldOperators(opset, proto);  // ends what shapes are known
  if (opset != kOpset && ConversionKeepsNodes(proto->graph(), opset, kOpset)) {
    SetOpset(kOpset, proto);
  } else if (opset != kOpset) {
    LOADLINE_RETURN_IF_ERROR(CheckNodes(proto->graph(), kMaxConvertedNodes));
    if (opset < 14) SetTrainingMode(proto->mutable_graph());
    AddKnownShapes(proto);
    LOADLINE_RETURN_IF_ERROR(
        Guard(absl::StrCat("converting opset ", opset, " to ", kOpset,
                           " failed; export the model with opset 17 to 22"),
              [&] { ConvertNodes(kOpset, proto); }));
    proto->mutable_graph()->clear_value_info();
  }
  ShowOldOperators(proto);
  // The body of a composite operator may have another one.
  for (int depth = 0; depth < kMostCompositeDepth; ++depth) {
    if (!Contains(*proto, CompositeOperators())) return absl::OkStatus();
    LOADLINE_RETURN_IF_ERROR(Guard("writing out composite operators", [&] {
      Inline(CompositeOperators(), proto);
    }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PreparedModel> PrepareModel(onnx::ModelProto proto,
                                           const std::string& folder,
                                           const ImportOptions& options) {
  PreparedModel prepared;
  prepared.proto = std::move(proto);
  onnx::ModelProto* model = &prepared.proto;
  LOADLINE_RETURN_IF_ERROR(CheckOutline(*model));
  prepared.marks = ReadExportMarks(model->graph());
  for (const std::string& text : prepared.marks.left_out) {
    prepared.warnings.push_back(text);
  }
  const std::string no_bias = KerasBiasWarning(*model);
  if (!no_bias.empty()) prepared.warnings.push_back(no_bias);
  ClipAtNumbers(model->mutable_graph());
  const std::string detached =
      DetachNoGradRegions(model->mutable_graph(), &prepared.marks.detached);
  if (!detached.empty()) prepared.warnings.push_back(detached);
  const std::vector<TiedCopy> tied_copies = FindTiedCopies(*model, folder);
  for (const TiedCopy& tied : tied_copies) {
    if (!tied.guessed) continue;
    prepared.warnings.push_back(absl::StrCat(
        "'", tied.copy, "' is '", tied.original,
        "' transposed: both are trained as one tensor, as a tied weight"));
  }
  for (std::string& text : FindOverlaps(*model, folder)) {
    prepared.warnings.push_back(std::move(text));
  }
  TieCopies(tied_copies, model->mutable_graph());
  const std::set<std::string> unread = UnreadInputs(model->graph());
  if (!unread.empty()) DropUnneededNodes(model->mutable_graph());
  const std::set<DType> widened = TypesToWiden(*model, unread);
  LOADLINE_RETURN_IF_ERROR(WidenFloats(widened, model));
  if (!widened.empty()) prepared.warnings.push_back(WidenedWarning(widened));
  LOADLINE_RETURN_IF_ERROR(
      TakeInitializers(folder, options, widened, &prepared));
  for (std::string& text :
       FindPaddingRows(*model, prepared.initializers, &prepared.marks)) {
    prepared.warnings.push_back(std::move(text));
  }
  prepared.marks.single_biases =
      FindSingleBiases(*model, prepared.initializers);
  LOADLINE_RETURN_IF_ERROR(SetInputs(options, unread, &prepared));
  if (model->training_info_size() > 0) {
    prepared.warnings.push_back(
        "the model's TrainingInfo is not read: loss, optimizer and what is "
        "trained are those of the command");
  }
  model->clear_training_info();
  NameDefaultOpset(model);
  // Newer versions added fields that this importer does not read, such as
  // devices. Operators are checked one by one below.
  if (model->ir_version() >= 3) {
    model->set_ir_version(std::clamp<int64_t>(
        model->ir_version(), kMinIrVersion, onnx::Version::IR_VERSION));
  }
  LOADLINE_RETURN_IF_ERROR(CheckVersions(model->graph(), DefaultOpset(*model)));
  LOADLINE_RETURN_IF_ERROR(Guard("the model is not valid ONNX",
                                 [&] { onnx::checker::check_model(*model); }));
  if (model->functions_size() > 0) {
    LOADLINE_RETURN_IF_ERROR(CheckNoGradientInFunctions(*model));
    WriteFunctionDefaults(model);
    LOADLINE_RETURN_IF_ERROR(Guard("inlining the model's functions", [&] {
      onnx::inliner::InlineLocalFunctions(*model, true);
    }));
    LOADLINE_RETURN_IF_ERROR(CheckNames(model->graph()));
  }
  LOADLINE_RETURN_IF_ERROR(
      CheckSupported(model->graph(), DefaultOpset(*model)));
  LOADLINE_RETURN_IF_ERROR(CheckNoProjections(prepared.marks, model->graph()));
  prepared.layer_operands =
      FindLayerOperands(model->graph(), prepared.initializers);
  // The checker requires output shapes; inference must not compare with them.
  ForgetOutputShapes(model->mutable_graph());
  LOADLINE_RETURN_IF_ERROR(ConvertOpset(model));
  RestoreWrittenDropout(model->mutable_graph());
  LOADLINE_RETURN_IF_ERROR(CheckShapes(model));
  LOADLINE_RETURN_IF_ERROR(CheckNodes(model->graph()));
  return prepared;
}

}  // namespace loadline::models::onnx_internal
