// The file is the original one with other tensors and other sizes. What the
// rules of pruned_nodes.cc do not know shows when the result is imported again,
// so that nothing wrong is ever written. Tested in
// tests/conformance/pruned_export_test.cc.
#include "models/onnx/export_pruned.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/compare_graphs.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/guard.h"
#include "models/onnx/model_file.h"
#include "models/onnx/open_axes.h"
#include "models/onnx/pruned_nodes.h"
#include "models/onnx/pruned_refusal.h"
#include "models/onnx/tied_copies.h"
#include "models/onnx/varied_constants.h"
#include "models/onnx/widen_floats.h"
#include "models/onnx/write_model.h"
#include "onnx/checker.h"
#include "onnx/inliner/inliner.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::Status CheckIsPrunedForm(const Graph& original, const Graph& pruned) {
  bool same = pruned.values.size() >= original.values.size() &&
              pruned.nodes.size() == original.nodes.size();
  for (size_t v = 0; same && v < original.values.size(); ++v) {
    same = pruned.values[v].name == original.values[v].name &&
           pruned.values[v].kind == original.values[v].kind;
  }
  for (size_t n = 0; same && n < original.nodes.size(); ++n) {
    same = pruned.nodes[n].name == original.nodes[n].name;
  }
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the pruned graph was not made of this model");
}

// `pruned` with the trained contents.
absl::StatusOr<Graph> WithContents(Graph pruned,
                                   std::map<std::string, Tensor> trained) {
  for (Value& value : pruned.values) {
    if (!value.initial.has_value()) continue;
    const auto it = trained.find(value.name);
    if (it != trained.end()) {
      if (it->second.type != value.type) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", value.name, "' is ", it->second.type.ToString(),
                         ", not ", value.type.ToString()));
      }
      value.initial = std::move(it->second);
      trained.erase(it);
    }
    if (value.initial->data == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("the contents of '", value.name,
                       "' are missing, so the model cannot be written"));
    }
  }
  if (trained.empty()) return pruned;
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has no tensor named '", trained.begin()->first, "'"));
}

// The import reads f16, bf16 and f64 as f32: the file keeps its type, and the
// value gets what the file can hold.
absl::Status SetInItsType(Value* value, onnx::TensorProto* proto) {
  LOADLINE_ASSIGN_OR_RETURN(
      const DType dtype,
      onnx_internal::DTypeFromOnnx(
          proto->data_type(),
          absl::StrCat("initializer '", proto->name(), "'")));
  if (dtype == value->type.dtype) {
    onnx_internal::SetTensor(*value->initial, proto);
    return absl::OkStatus();
  }
  const absl::StatusOr<Tensor> narrow =
      onnx_internal::FromF32(*value->initial, dtype);
  if (!narrow.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "initializer '", proto->name(), "': ", narrow.status().message()));
  }
  onnx_internal::SetTensor(*narrow, proto);
  value->initial = onnx_internal::AsF32(*narrow);
  return absl::OkStatus();
}

// Those that the graph has by name get its contents; external data of the
// others is embedded.
absl::Status ReplaceInitializers(const Graph& original,
                                 const std::string& folder, Graph* pruned,
                                 onnx::GraphProto* graph) {
  int64_t budget_bytes = onnx_internal::kMaxFileBytes;
  std::set<std::string> resized;
  for (onnx::TensorProto& proto : *graph->mutable_initializer()) {
    const auto id = original.Find(proto.name());
    const bool known = id.has_value() &&
                       original.value(*id).initial.has_value() &&
                       (pruned->value(*id).kind != ValueKind::kConstant ||
                        original.value(*id).type != pruned->value(*id).type);
    if (known) {
      LOADLINE_RETURN_IF_ERROR(SetInItsType(&pruned->value(*id), &proto));
      resized.insert(proto.name());
    } else if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
      LOADLINE_ASSIGN_OR_RETURN(
          Tensor tensor,
          onnx_internal::ReadTensor(proto, folder, &budget_bytes));
      onnx_internal::WriteTensor(tensor, &proto);
    }
  }
  // Old files list initializers as inputs too.
  for (onnx::ValueInfoProto& input : *graph->mutable_input()) {
    if (resized.count(input.name()) == 0) continue;
    auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (int64_t dim : pruned->value(*original.Find(input.name())).type.dims) {
      shape->add_dim()->set_dim_value(dim);
    }
  }
  return absl::OkStatus();
}

// Declared shapes are those of the original. What the exporter says there of
// initializers stays, so that the same ones are trained when the file is read
// again.
void DropDeclaredShapes(onnx::GraphProto* graph) {
  std::map<std::string, const onnx::TensorProto*> initializers;
  for (const onnx::TensorProto& tensor : graph->initializer()) {
    initializers[tensor.name()] = &tensor;
  }
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
  for (onnx::ValueInfoProto& info : *graph->mutable_value_info()) {
    const auto it = initializers.find(info.name());
    if (it == initializers.end() || info.metadata_props_size() == 0) continue;
    auto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (int64_t dim : it->second->dims()) shape->add_dim()->set_dim_value(dim);
    kept.Add()->Swap(&info);
  }
  graph->mutable_value_info()->Swap(&kept);
}

// Without what may come and go where sizes become numbers or equal: a Reshape
// to the shape that its input has, and nodes without a reader.
Graph Simplified(Graph graph) {
  std::vector<ValueId> same;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    same.push_back(static_cast<ValueId>(v));
  }
  const auto replace = [&same](ValueId* id) {
    if (*id != kNoValue) *id = same[Index(*id)];
  };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) replace(&input);
    if (node.op == "Reshape" &&
        graph.value(node.inputs[0]).type == graph.value(node.outputs[0]).type) {
      same[Index(node.outputs[0])] = node.inputs[0];
    }
  }
  for (ValueId& output : graph.outputs) replace(&output);
  for (auto& [value, next] : graph.updates) replace(&next);

  std::vector<bool> read(graph.values.size(), false);
  for (ValueId id : graph.outputs) read[Index(id)] = true;
  for (const auto& [value, next] : graph.updates) read[Index(next)] = true;
  std::vector<bool> unread(graph.nodes.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    unread[n] = std::none_of(
        node.outputs.begin(), node.outputs.end(),
        [&](ValueId id) { return id != kNoValue && read[Index(id)]; });
    if (unread[n]) continue;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) read[Index(id)] = true;
    }
  }
  EraseNodes(&graph, unread);
  return graph;
}

// Whether the file is valid, and the pruned model.
absl::Status CheckResult(const onnx::ModelProto& model, const Graph& want,
                         const ImportOptions& options) {
  LOADLINE_RETURN_IF_ERROR(onnx_internal::Guard(
      "the pruned model is not valid ONNX",
      [&model] { onnx::checker::check_model(model, /*full_check=*/true); }));
  LOADLINE_ASSIGN_OR_RETURN(
      const Imported got, ImportOnnxBytes(model.SerializeAsString(), options));
  return CompareGraphs(Simplified(want), Simplified(got.graph));
}

class PrunedModel {
 public:
  PrunedModel(const std::string& path, const ImportOptions& options,
              const Imported& original, Graph want)
      : path_(path),
        options_(options),
        original_(original),
        want_(std::move(want)) {}

  // The rules alone suffice for most files. For the others the original is
  // imported twice more, which shows what it computes from sizes.
  absl::StatusOr<onnx::ModelProto> Make() {
    LOADLINE_ASSIGN_OR_RETURN(onnx::ModelProto model, Rewrite(nullptr));
    absl::Status status = CheckResult(model, want_, options_);
    if (status.ok()) return model;
    const absl::StatusOr<onnx_internal::VariedConstants> varied =
        onnx_internal::FoldAtTwoSizes(path_, options_, original_);
    if (varied.ok()) {
      LOADLINE_ASSIGN_OR_RETURN(model, Rewrite(&*varied));
      status = CheckResult(model, want_, options_);
      if (status.ok()) return model;
    }
    return onnx_internal::ExplainRefusal(original_.graph, want_, status);
  }

 private:
  absl::StatusOr<onnx::ModelProto> Rewrite(
      const onnx_internal::VariedConstants* varied) {
    LOADLINE_ASSIGN_OR_RETURN(
        onnx::ModelProto model,
        onnx_internal::ReadModelFile(path_, onnx_internal::kMaxFileBytes));
    // As the importer has it: a copy would keep its width.
    onnx_internal::TieCopies(
        onnx_internal::FindTiedCopies(model, onnx_internal::FolderOf(path_)),
        model.mutable_graph());
    if (model.functions_size() > 0) {
      LOADLINE_RETURN_IF_ERROR(onnx_internal::Guard(
          "inlining the model's functions",
          [&model] { onnx::inliner::InlineLocalFunctions(model, true); }));
    }
    LOADLINE_ASSIGN_OR_RETURN(onnx_internal::FixedSizes fixed,
                              onnx_internal::InferFixedSizes(model));
    LOADLINE_RETURN_IF_ERROR(
        ReplaceInitializers(original_.graph, onnx_internal::FolderOf(path_),
                            &want_, model.mutable_graph()));
    onnx_internal::RewritePrunedNodes(original_, want_, std::move(fixed),
                                      varied, &model);
    DropDeclaredShapes(model.mutable_graph());
    return model;
  }

  const std::string& path_;
  const ImportOptions& options_;
  const Imported& original_;
  Graph want_;
};

absl::StatusOr<onnx::ModelProto> MakePrunedModel(
    const std::string& original_path, const ImportOptions& options,
    const Graph& pruned, std::map<std::string, Tensor> trained) {
  LOADLINE_ASSIGN_OR_RETURN(const Imported original,
                            ImportOnnx(original_path, options));
  LOADLINE_RETURN_IF_ERROR(CheckIsPrunedForm(original.graph, pruned));
  LOADLINE_ASSIGN_OR_RETURN(Graph want,
                            WithContents(pruned, std::move(trained)));
  return PrunedModel(original_path, options, original, std::move(want)).Make();
}

}  // namespace

absl::Status ExportPruned(const std::string& original_path,
                          const ImportOptions& options, const Graph& pruned,
                          std::map<std::string, Tensor> trained,
                          const std::string& out_path) {
  LOADLINE_ASSIGN_OR_RETURN(
      const onnx::ModelProto model,
      MakePrunedModel(original_path, options, pruned, std::move(trained)));
  return onnx_internal::WriteModel(model, out_path);
}

absl::Status CheckPrunedExport(const std::string& original_path,
                               const ImportOptions& options,
                               const Graph& pruned) {
  std::map<std::string, Tensor> zeros;
  for (const Value& value : pruned.values) {
    if (value.initial.has_value() && value.initial->data == nullptr) {
      zeros[value.name] = ZeroTensor(value.type);
    }
  }
  return MakePrunedModel(original_path, options, pruned, std::move(zeros))
      .status();
}

}  // namespace loadline::models
