// Classification then decides about them as about any other initializer. Tested
// in tests/models/onnx_constant_weights_test.cc and onnx_export_test.cc.
#include "models/onnx/constant_weights.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/producers.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kMinIrOfLoneInitializers = 4;  // which are no inputs

bool IsFloatWithAxis(const onnx::TensorProto& tensor) {
  const int32_t type = tensor.data_type();
  return tensor.dims_size() > 0 && (type == onnx::TensorProto::FLOAT ||
                                    type == onnx::TensorProto::FLOAT16 ||
                                    type == onnx::TensorProto::BFLOAT16 ||
                                    type == onnx::TensorProto::DOUBLE);
}

bool IsConstantOfFloats(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && node.domain().empty() &&
         node.output_size() == 1 && node.attribute_size() == 1 &&
         node.attribute(0).name() == "value" && node.attribute(0).has_t() &&
         IsFloatWithAxis(node.attribute(0).t());
}

// The graph and all bodies in it. A file may nest them deeply.
std::vector<onnx::GraphProto*> AllGraphs(onnx::GraphProto* graph) {
  std::vector<onnx::GraphProto*> all = {graph};
  for (size_t i = 0; i < all.size(); ++i) {
    for (auto& node : *all[i]->mutable_node()) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) all.push_back(attribute.mutable_g());
      }
    }
  }
  return all;
}

void RenameReads(const std::string& from, const std::string& to,
                 onnx::GraphProto* body) {
  for (onnx::GraphProto* graph : AllGraphs(body)) {
    for (auto& node : *graph->mutable_node()) {
      std::replace(node.mutable_input()->begin(), node.mutable_input()->end(),
                   from, to);
    }
  }
}

class Lifter {
 public:
  explicit Lifter(onnx::GraphProto* graph) : graph_(graph) {
    // Names of the graph must not come again in a body, even as another's.
    for (const onnx::GraphProto* body : AllGraphs(graph)) {
      for (const auto& input : body->input()) taken_.insert(input.name());
      for (const auto& tensor : body->initializer()) {
        if (body == graph || !IsFloatWithAxis(tensor)) {
          taken_.insert(tensor.name());
        }
      }
      for (const auto& node : body->node()) {
        if (!IsConstantOfFloats(node)) {
          taken_.insert(node.output().begin(), node.output().end());
        }
      }
    }
  }

  void Lift() {
    for (onnx::GraphProto* body : AllGraphs(graph_)) {
      LiftNodes(body);
      if (body != graph_) LiftInitializers(body);
    }
  }

 private:
  // A body has to make its outputs itself.
  bool IsOutputOfBody(const std::string& name,
                      const onnx::GraphProto& body) const {
    return &body != graph_ &&
           std::any_of(
               body.output().begin(), body.output().end(),
               [&name](const auto& output) { return output.name() == name; });
  }

  void Add(const std::string& name, onnx::GraphProto* body,
           onnx::TensorProto* tensor) {
    std::string own = name;
    for (int i = 1; !taken_.insert(own).second; ++i) {
      own = absl::StrCat(name, "_", i);
    }
    if (own != name) RenameReads(name, own, body);
    onnx::TensorProto* initializer = graph_->add_initializer();
    initializer->Swap(tensor);
    initializer->set_name(own);
  }

  void LiftNodes(onnx::GraphProto* body) {
    EraseIf(body->mutable_node(), [&](onnx::NodeProto* node) {
      if (!IsConstantOfFloats(*node) ||
          IsOutputOfBody(node->output(0), *body)) {
        return false;
      }
      Add(node->output(0), body, node->mutable_attribute(0)->mutable_t());
      return true;
    });
  }

  void LiftInitializers(onnx::GraphProto* body) {
    EraseIf(body->mutable_initializer(), [&](onnx::TensorProto* tensor) {
      const std::string name = tensor->name();
      if (!IsFloatWithAxis(*tensor) || IsOutputOfBody(name, *body)) {
        return false;
      }
      Add(name, body, tensor);
      return true;
    });
  }

  onnx::GraphProto* graph_;
  std::set<std::string> taken_;
};

}  // namespace

void MakeInitializersOfConstants(onnx::ModelProto* model) {
  if (model->producer_name() == kPyTorch ||
      model->ir_version() < kMinIrOfLoneInitializers) {
    return;
  }
  Lifter(model->mutable_graph()).Lift();
}

}  // namespace loadline::models::onnx_internal
