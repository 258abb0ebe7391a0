// What depends on the batch is found by importing the model at another one:
// however the file computes a number, the two imports compute it too. Tested in
// tests/conformance/pruned_export_test.cc.
#include "models/onnx/varied_constants.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "onnx/onnx_pb.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

enum class Axes { kAll, kFirst };

// The options that double the open axes of the model's inputs. None: no axis of
// these is open.
std::optional<ImportOptions> Doubled(const onnx::GraphProto& graph,
                                     const ImportOptions& options,
                                     const Imported& original, Axes axes) {
  ImportOptions doubled = options;
  bool any = false;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    const std::optional<ValueId> id = original.graph.Find(input.name());
    if (!id.has_value() ||
        original.graph.value(*id).kind != ValueKind::kInput) {
      continue;
    }
    std::vector<int64_t> dims = original.graph.value(*id).type.dims;
    const auto& declared = input.type().tensor_type().shape();
    for (int i = 0; i < declared.dim_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (at >= dims.size() || declared.dim(i).has_dim_value()) continue;
      if (axes == Axes::kFirst && i > 0) continue;
      dims[at] *= 2;
      any = true;
      if (declared.dim(i).has_dim_param()) {
        doubled.dims.erase(declared.dim(i).dim_param());
      }
    }
    doubled.input_shapes[input.name()] = std::move(dims);
  }
  doubled.batch.reset();
  doubled.default_batch.reset();
  if (!any) return std::nullopt;
  return doubled;
}

// What the import of the model folds.
absl::StatusOr<FoldedConstants> Fold(onnx::ModelProto model,
                                     const std::string& folder,
                                     const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(const PreparedModel prepared,
                            PrepareModel(std::move(model), folder, options));
  FoldedConstants folded;
  Importer importer(prepared, options);
  importer.Record(&folded);
  LOADLINE_RETURN_IF_ERROR(importer.Run().status());
  return folded;
}

}  // namespace

absl::StatusOr<VariedConstants> FoldAtTwoSizes(const std::string& path,
                                               const ImportOptions& options,
                                               const Imported& original) {
  LOADLINE_ASSIGN_OR_RETURN(const onnx::ModelProto model,
                            ReadModelFile(path, options.max_bytes));
  const std::string folder = FolderOf(path);
  VariedConstants varied;
  LOADLINE_ASSIGN_OR_RETURN(varied.here, Fold(model, folder, options));
  absl::Status status;
  for (const Axes axes : {Axes::kAll, Axes::kFirst}) {
    const auto doubled = Doubled(model.graph(), options, original, axes);
    varied.all_axes = axes == Axes::kAll;
    if (!doubled.has_value()) {
      varied.there = varied.here;
      return varied;
    }
    absl::StatusOr<FoldedConstants> there = Fold(model, folder, *doubled);
    if (there.ok()) {
      varied.there = *std::move(there);
      return varied;
    }
    status = there.status();
  }
  return status;
}

std::optional<Tensor> FixedConstant(const VariedConstants& varied,
                                    const std::string& name) {
  const auto here = varied.here.find(name);
  const auto there = varied.there.find(name);
  if (here == varied.here.end() || there == varied.there.end() ||
      here->second.type != there->second.type ||
      *here->second.data != *there->second.data) {
    return std::nullopt;
  }
  return here->second;
}

}  // namespace loadline::models::onnx_internal
