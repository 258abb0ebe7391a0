// Rules for the operators of ai.onnx.preview.training. Optimizers become our
// own, with the learning rate and the number of earlier updates as inputs: the
// model computes them. Tested in tests/models/onnx_training_test.cc and with
// ONNX's node tests in tests/conformance/onnx_node_test.cc.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/differentiate.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/supported.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// The nodes of a gradient belong to the forward pass of the model that asks for
// it.
void MakeForward(Graph& graph, size_t first) {
  for (size_t i = first; i < graph.nodes.size(); ++i) {
    graph.nodes[i].phase = Phase::kForward;
  }
}

absl::Status Gradient(Importer& importer, const onnx::NodeProto& node) {
  const std::vector<std::string> xs = StringsAttribute(node, "xs");
  std::vector<std::string> names = xs;
  for (std::string& z : StringsAttribute(node, "zs")) {
    names.push_back(std::move(z));
  }
  const std::string y = StringAttribute(node, "y", "");
  if (node.input_size() != static_cast<int>(names.size()) ||
      node.output_size() != static_cast<int>(xs.size()) || xs.empty() ||
      y.empty()) {
    return absl::InvalidArgumentError(
        "it needs y, an input for each of xs and zs, and an output for each "
        "of xs");
  }
  Differential what = {.seed_name = absl::StrCat(node.output(0), ".seed"),
                       .ends = "y and one of xs"};
  for (int i = 0; i < node.input_size(); ++i) {
    const std::string& name = node.input(i);
    if (name != names[static_cast<size_t>(i)]) {
      importer.Unsupported(
          node, absl::StrCat("at '", name, "', not at what xs and zs name"));
      return absl::OkStatus();
    }
    if (importer.IsConstant(node, i)) {
      importer.Unsupported(
          node, absl::StrCat("with '", name, "', which is a constant"));
      return absl::OkStatus();
    }
    const bool target = static_cast<size_t>(i) < xs.size();
    (target ? what.targets : what.held).push_back(importer.Input(node, i).id);
  }
  what.y = importer.Named(y).id;
  if (what.y == kNoValue) {
    importer.Unsupported(
        node, absl::StrCat("of '", y, "', which no input or weight changes"));
    return absl::OkStatus();
  }
  Graph& graph = importer.graph();
  const TensorType type = graph.value(what.y).type;
  if (type.elements() != 1 || type.dtype != DType::kF32) {
    importer.Unsupported(node, absl::StrCat("of '", y, "', ", type.ToString(),
                                            ": it must be one f32 number"));
    return absl::OkStatus();
  }
  const size_t first = graph.nodes.size();
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                            Differentiate(graph, what));
  MakeForward(graph, first);
  for (size_t i = 0; i < gradients.size(); ++i) {
    ValueId gradient = gradients[i];
    if (gradient == kNoValue) {
      const TensorType of_x = graph.value(what.targets[i]).type;
      gradient =
          graph.AddConstant(node.output(static_cast<int>(i)), ZeroTensor(of_x));
    }
    importer.Define(node, static_cast<int>(i), gradient);
  }
  return absl::OkStatus();
}

// Inputs R, T, then all X, all G and all tensors of each state; outputs all
// new X, and the new ones of each state.
absl::Status Update(Importer& importer, const onnx::NodeProto& node,
                    const std::string& op, int states, Attributes attributes) {
  const int tensors = (node.input_size() - 2) / (2 + states);
  if (node.input_size() != 2 + tensors * (2 + states) ||
      node.output_size() != tensors * (1 + states)) {
    return absl::InvalidArgumentError(
        "its inputs and outputs are not those of whole groups");
  }
  Emitter e(importer, node);
  const ValueId rate = e.Reshape(e.Input(0), {});
  const ValueId count = e.Cast(e.Reshape(e.Input(1), {}), DType::kF32);
  for (int i = 0; i < tensors; ++i) {
    std::vector<ValueId> inputs;
    for (int group = 0; group < 2 + states; ++group) {
      inputs.push_back(e.Input(2 + group * tensors + i));
    }
    inputs.insert(inputs.end(), {kNoValue, rate, count});
    const std::vector<ValueId> outputs =
        e.EmitAll(op, inputs, attributes, static_cast<size_t>(1 + states));
    LOADLINE_RETURN_IF_ERROR(e.status());
    for (int group = 0; group < 1 + states; ++group) {
      importer.Define(node, group * tensors + i,
                      outputs[static_cast<size_t>(group)]);
    }
  }
  return e.status();
}

absl::Status Adagrad(Importer& importer, const onnx::NodeProto& node) {
  return Update(importer, node, "Adagrad", 1,
                {{"epsilon", FloatAttribute(node, "epsilon", 1e-6)},
                 {"weight_decay", FloatAttribute(node, "norm_coefficient", 0)},
                 {"rate_decay", FloatAttribute(node, "decay_factor", 0)}});
}

absl::Status Adam(Importer& importer, const onnx::NodeProto& node) {
  return Update(
      importer, node, "Adam", 2,
      {{"beta1", FloatAttribute(node, "alpha", 0.9)},
       {"beta2", FloatAttribute(node, "beta", 0.999)},
       {"epsilon", FloatAttribute(node, "epsilon", 1e-6)},
       {"weight_decay", FloatAttribute(node, "norm_coefficient", 0)},
       {"epsilon_hat", int64_t{1}},
       {"decay_after", FloatAttribute(node, "norm_coefficient_post", 0)}});
}

absl::Status Momentum(Importer& importer, const onnx::NodeProto& node) {
  const std::string mode = StringAttribute(node, "mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return absl::InvalidArgumentError(
        absl::StrCat("mode '", mode, "' is neither standard nor nesterov"));
  }
  return Update(importer, node, "Sgd", 1,
                {{"momentum", FloatAttribute(node, "alpha", 0)},
                 {"dampening", 1 - FloatAttribute(node, "beta", 0)},
                 {"weight_decay", FloatAttribute(node, "norm_coefficient", 0)},
                 {"nesterov", int64_t{mode == "nesterov"}}});
}

}  // namespace

const std::map<std::string, Rule>& TrainingRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {absl::StrCat(kTrainingDomain, "::Gradient"), Gradient},
      {absl::StrCat(kTrainingDomain, "::Adagrad"), Adagrad},
      {absl::StrCat(kTrainingDomain, "::Adam"), Adam},
      {absl::StrCat(kTrainingDomain, "::Momentum"), Momentum},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
