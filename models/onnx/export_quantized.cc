// Weights first, while the nodes still read the names of the file; then every
// quantized activation gets its pair of nodes behind the node that makes it.
// Tested in tests/models/onnx_export_quantized_test.cc, and with ONNX Runtime
// in tests/onnxruntime/quantized_test.
#include "models/onnx/export_quantized.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/export.h"
#include "models/onnx/inference_form.h"
#include "models/onnx/model_file.h"
#include "models/onnx/quantized_weights.h"
#include "models/onnx/write_model.h"
#include "models/ops/quantize.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Scales for each channel came with 13.
constexpr int64_t kOldestOpset = 13;

absl::Status CheckOpset(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
    if (set.version() >= kOldestOpset) continue;
    return absl::UnimplementedError(absl::StrCat(
        "the model has opset ", set.version(), "; a quantized export needs ",
        kOldestOpset, " or newer: export the model again"));
  }
  return absl::OkStatus();
}

// Inserts QuantizeLinear and DequantizeLinear.
class ActivationWriter {
 public:
  explicit ActivationWriter(onnx::GraphProto* graph) : graph_(graph) {
    for (const onnx::ValueInfoProto& output : graph->output()) {
      outputs_.insert(output.name());
    }
    int64_t position = 0;
    for (const onnx::ValueInfoProto& input : graph->input()) {
      made_[input.name()] = position++;
    }
    for (const onnx::NodeProto& node : graph->node()) {
      for (const std::string& name : node.output()) made_[name] = position++;
    }
  }

  // The name, of one tensor, that is made first. InvalidArgument: none is made.
  absl::StatusOr<std::string> First(const QuantizedActivation& grid) const {
    const std::string* first = nullptr;
    for (const std::string& name : grid.tensors) {
      const auto at = made_.find(name);
      if (at == made_.end()) continue;
      if (first == nullptr || at->second < made_.at(*first)) first = &name;
    }
    if (first != nullptr) return *first;
    return absl::InvalidArgumentError(
        absl::StrCat("no node of the file makes a tensor named '",
                     absl::StrJoin(grid.tensors, "' or '"), "'"));
  }

  absl::Status Add(const QuantizedActivation& grid) {
    LOADLINE_ASSIGN_OR_RETURN(const std::string name, First(grid));
    grids_[name] = &grid;
    return absl::OkStatus();
  }

  // `first`: nodes that go before all others.
  void Write(const std::vector<onnx::NodeProto>& first) {
    onnx::GraphProto rest;
    rest_ = &rest;
    for (const onnx::NodeProto& node : first) *rest.add_node() = node;
    for (const onnx::ValueInfoProto& input : graph_->input()) {
      const auto grid = grids_.find(input.name());
      if (grid != grids_.end()) Insert(input.name(), *grid->second);
    }
    for (onnx::NodeProto& node : *graph_->mutable_node()) {
      for (std::string& name : *node.mutable_input()) {
        const auto now = renamed_.find(name);
        if (now != renamed_.end()) name = now->second;
      }
      const std::vector<std::string> made(node.output().begin(),
                                          node.output().end());
      for (std::string& name : *node.mutable_output()) {
        // An output of the model keeps its name for the result.
        if (grids_.contains(name) && outputs_.contains(name)) {
          name = absl::StrCat(name, "_float");
        }
      }
      rest.add_node()->Swap(&node);
      for (const std::string& name : made) {
        const auto grid = grids_.find(name);
        if (grid != grids_.end()) Insert(name, *grid->second);
      }
    }
    graph_->mutable_node()->Swap(rest.mutable_node());
    graph_->clear_value_info();
  }

 private:
  onnx::NodeProto* Node(const std::string& op, const std::string& name,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto* node = rest_->add_node();
    node->set_op_type(op);
    node->set_name(absl::StrCat(name, "_", op));
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }

  void Scalar(const std::string& name, int type, const void* data,
              size_t bytes) {
    onnx::TensorProto* proto = graph_->add_initializer();
    proto->set_name(name);
    proto->set_data_type(type);
    proto->set_raw_data(std::string(static_cast<const char*>(data), bytes));
  }

  void Insert(const std::string& name, const QuantizedActivation& grid) {
    const bool is_output =
        outputs_.contains(name) &&
        made_.at(name) >= static_cast<int64_t>(graph_->input_size());
    std::string from = is_output ? absl::StrCat(name, "_float") : name;
    const std::string to =
        is_output ? name : absl::StrCat(name, "_dequantized");
    const std::string scale = absl::StrCat(name, "_scale");
    const std::string zero = absl::StrCat(name, "_zero_point");
    Scalar(scale, onnx::TensorProto::FLOAT, &grid.scale, sizeof(float));
    if (grid.is_signed) {
      const auto code = static_cast<int8_t>(grid.zero_point);
      Scalar(zero, onnx::TensorProto::INT8, &code, 1);
    } else {
      const auto code = static_cast<uint8_t>(grid.zero_point);
      Scalar(zero, onnx::TensorProto::UINT8, &code, 1);
    }
    if (grid.bits < 8) from = InsertClip(name, from, grid);
    Node("QuantizeLinear", name, {from, scale, zero},
         absl::StrCat(name, "_quantized"));
    Node("DequantizeLinear", name,
         {absl::StrCat(name, "_quantized"), scale, zero}, to);
    if (!is_output) renamed_[name] = to;
  }

  // The integer type holds more codes than the grid.
  std::string InsertClip(const std::string& name, const std::string& from,
                         const QuantizedActivation& grid) {
    const QuantGrid codes =
        MakeQuantGrid(grid.bits, grid.is_signed, grid.symmetric);
    const auto zero = static_cast<float>(grid.zero_point);
    const float low = (codes.least - zero) * grid.scale;
    const float high = (codes.most - zero) * grid.scale;
    Scalar(absl::StrCat(name, "_low"), onnx::TensorProto::FLOAT, &low, 4);
    Scalar(absl::StrCat(name, "_high"), onnx::TensorProto::FLOAT, &high, 4);
    const std::string to = absl::StrCat(name, "_clipped");
    Node("Clip", name,
         {from, absl::StrCat(name, "_low"), absl::StrCat(name, "_high")}, to);
    return to;
  }

  onnx::GraphProto* graph_;
  onnx::GraphProto* rest_ = nullptr;  // the new list of nodes
  std::set<std::string> outputs_;
  std::map<std::string, int64_t> made_;  // position in the file
  std::map<std::string, const QuantizedActivation*> grids_;
  std::map<std::string, std::string> renamed_;
};

std::map<std::string, float> ScalesByTensor(const QuantizedModel& quantized) {
  std::map<std::string, float> scales;
  for (const QuantizedActivation& activation : quantized.activations) {
    for (const std::string& name : activation.tensors) {
      scales[name] = activation.scale;
    }
  }
  return scales;
}

// Biases and statistics in float that integers have replaced.
void DropReplaced(const onnx_internal::Names& before, onnx::GraphProto* graph) {
  const auto initializers = [&] {
    std::set<std::string> names;
    for (const onnx::TensorProto& proto : graph->initializer()) {
      names.insert(proto.name());
    }
    return names;
  };
  const std::set<std::string> had = initializers();
  onnx_internal::DropUnused(before, graph);
  const std::set<std::string> has = initializers();
  // Old files list initializers as inputs too.
  auto* inputs = graph->mutable_input();
  for (int i = inputs->size(); i-- > 0;) {
    const std::string& name = inputs->Get(i).name();
    if (had.contains(name) && !has.contains(name)) inputs->DeleteSubrange(i, 1);
  }
}

// Makes the float model an integer one.
absl::Status QuantizeModel(const QuantizedModel& quantized,
                           onnx::ModelProto* model) {
  LOADLINE_RETURN_IF_ERROR(CheckOpset(*model));
  onnx::GraphProto* graph = model->mutable_graph();
  const onnx_internal::Names before = onnx_internal::NamesUsed(*graph);
  onnx_internal::UseInferenceForm(graph);
  std::vector<std::string> foldable;
  for (const QuantizedWeight& weight : quantized.weights) {
    if (weight.symmetric) foldable.push_back(weight.initializer);
  }
  LOADLINE_ASSIGN_OR_RETURN(auto norms,
                            onnx_internal::FoldNorms(foldable, graph));
  onnx_internal::WeightWriter weights(graph, ScalesByTensor(quantized),
                                      std::move(norms));
  for (const QuantizedWeight& weight : quantized.weights) {
    LOADLINE_RETURN_IF_ERROR(weights.Write(weight));
  }
  for (const CodebookWeight& weight : quantized.codebooks) {
    LOADLINE_RETURN_IF_ERROR(weights.Write(weight));
  }
  ActivationWriter activations(graph);
  for (const QuantizedActivation& activation : quantized.activations) {
    LOADLINE_RETURN_IF_ERROR(activations.Add(activation));
  }
  activations.Write(weights.nodes());
  DropReplaced(before, graph);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportQuantized(const std::string& original_path,
                             QuantizedModel quantized,
                             const std::string& out_path) {
  // The float model on its way to integers.
  const std::string float_path = out_path + ".float";
  LOADLINE_RETURN_IF_ERROR(
      ExportTrained(original_path, std::move(quantized.trained), float_path));
  absl::StatusOr<onnx::ModelProto> model =
      onnx_internal::ReadModelFile(float_path, onnx_internal::kMaxFileBytes);
  std::error_code ignored;
  std::filesystem::remove(float_path, ignored);
  LOADLINE_RETURN_IF_ERROR(model.status());
  LOADLINE_RETURN_IF_ERROR(QuantizeModel(quantized, &*model));
  return onnx_internal::WriteModel(*model, out_path);
}

absl::Status CheckQuantizedExport(const std::string& original_path,
                                  const QuantizedModel& quantized) {
  LOADLINE_ASSIGN_OR_RETURN(onnx::ModelProto model,
                            onnx_internal::ReadModelFile(
                                original_path, onnx_internal::kMaxFileBytes));
  const std::string folder = onnx_internal::FolderOf(original_path);
  int64_t budget_bytes = onnx_internal::kMaxFileBytes;
  for (onnx::TensorProto& proto :
       *model.mutable_graph()->mutable_initializer()) {
    if (proto.data_location() != onnx::TensorProto::EXTERNAL) continue;
    LOADLINE_ASSIGN_OR_RETURN(
        const Tensor tensor,
        onnx_internal::ReadTensor(proto, folder, &budget_bytes));
    onnx_internal::WriteTensor(tensor, &proto);
  }
  return QuantizeModel(quantized, &model);
}

}  // namespace loadline::models
