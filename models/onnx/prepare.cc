// The order matters. Contents are moved out of the protobuf first, so that the
// checker, the converter and shape inference copy a few kilobytes instead of
// the weights. Unknown operators are listed before the onnx library interprets
// them. Attention (opset 23) is inlined before the conversion, which cannot
// lower it; other composite operators after it. Tested in
// tests/models/onnx_import_test.cc, hostile files in
// tests/models/onnx_hostile_test.cc.
#include "models/onnx/prepare.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/check_outline.h"
#include "models/onnx/check_shapes.h"
#include "models/onnx/clip_at_numbers.h"
#include "models/onnx/convert_opset.h"
#include "models/onnx/guard.h"
#include "models/onnx/inline_operators.h"
#include "models/onnx/input_shapes.h"
#include "models/onnx/keras_biases.h"
#include "models/onnx/no_grad.h"
#include "models/onnx/overlapping_parts.h"
#include "models/onnx/straight_through.h"
#include "models/onnx/supported.h"
#include "models/onnx/take_contents.h"
#include "models/onnx/tied_copies.h"
#include "models/onnx/widen_floats.h"
#include "models/onnx/written_dropout.h"
#include "onnx/checker.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// The onnx library's conversion takes time in the square of the nodes.
constexpr int kMaxConvertedNodes = 1 << 16;
constexpr int kMostCompositeDepth = 2;
constexpr int kMinIrVersion = 10;  // as opset kOpset requires

// Clears output shapes, whose named axes may have sizes by now.
void ForgetOutputShapes(onnx::GraphProto* graph) {
  for (auto& output : *graph->mutable_output()) {
    if (output.type().has_tensor_type()) {
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
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
  if (opset > kOpset && ContainsOperator(*proto, LateOperators())) {
    LOADLINE_RETURN_IF_ERROR(Guard("writing out newer operators", [&] {
      InlineOperators(LateOperators(), proto);
    }));
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
    if (!ContainsOperator(*proto, CompositeOperators()))
      return absl::OkStatus();
    LOADLINE_RETURN_IF_ERROR(Guard("writing out composite operators", [&] {
      InlineOperators(CompositeOperators(), proto);
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
  for (std::string& text :
       DetachNoGradRegions(model->mutable_graph(), &prepared.marks)) {
    prepared.warnings.push_back(std::move(text));
  }
  std::string straight =
      DetachStraightThrough(model->mutable_graph(), &prepared.marks);
  if (!straight.empty()) prepared.warnings.push_back(std::move(straight));
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
