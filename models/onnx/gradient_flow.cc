// One backward sweep over the nodes, with a table of the operators that have
// inputs without a gradient. Tested in tests/models/onnx_classify_test.cc.
#include "models/onnx/gradient_flow.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "models/onnx/supported.h"

namespace loadline::models::onnx_internal {
namespace {

using InputsByOperator = std::map<std::string, std::set<int>>;

// The inputs that a gradient flows to. Of an operator that is not here: all.
const InputsByOperator& DifferentiableInputs() {
  static const auto* const kInputs = new InputsByOperator{
      {"And", {}},
      {"ArgMax", {}},
      {"ArgMin", {}},
      {"BatchNormalization", {0, 1, 2}},
      {"Bernoulli", {}},
      {"CastLike", {0}},
      {"Ceil", {}},
      {"ConstantOfShape", {}},
      {"CumSum", {0}},
      {"Dropout", {0}},
      {"Equal", {}},
      {"Expand", {0}},
      {"EyeLike", {}},
      {"Floor", {}},
      {"Gather", {0}},
      {"GatherElements", {0}},
      {"GatherND", {0}},
      {"Greater", {}},
      {"GreaterOrEqual", {}},
      {"Hardmax", {}},
      {"Less", {}},
      {"LessOrEqual", {}},
      {"NonZero", {}},
      {"Not", {}},
      {"OneHot", {2}},
      {"Or", {}},
      {"Pad", {0}},
      {"RandomNormalLike", {}},
      {"RandomUniformLike", {}},
      {"Range", {}},
      {"ReduceLogSumExp", {0}},
      {"ReduceMax", {0}},
      {"ReduceMean", {0}},
      {"ReduceMin", {0}},
      {"ReduceProd", {0}},
      {"ReduceSum", {0}},
      {"Reshape", {0}},
      {"Resize", {0}},
      {"Round", {}},
      {"Scatter", {0, 2}},
      {"ScatterElements", {0, 2}},
      {"ScatterND", {0, 2}},
      {"SequenceAt", {0}},
      {"Shape", {}},
      {"Sign", {}},
      {"Size", {}},
      {"Slice", {0}},
      {"Split", {0}},
      {"SplitToSequence", {0}},
      {"Squeeze", {0}},
      {"Tile", {0}},
      {"TopK", {0}},
      {"Trilu", {0}},
      {"Unsqueeze", {0}},
      {"Where", {1, 2}},
      {"Xor", {}},
      {"BitwiseAnd", {}},
      {"BitwiseNot", {}},
      {"BitwiseOr", {}},
      {"BitwiseXor", {}},
  };
  return *kInputs;
}

// Whether a Cast's result has a gradient: not if it is of integers or booleans.
bool CastsToFloat(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "to") {
      return attribute.i() == onnx::TensorProto::FLOAT ||
             attribute.i() == onnx::TensorProto::DOUBLE ||
             attribute.i() == onnx::TensorProto::FLOAT16 ||
             attribute.i() == onnx::TensorProto::BFLOAT16;
    }
  }
  return true;
}

// Whether a gradient flows from the node's output to its input i.
bool GradientFlows(const onnx::NodeProto& node, int i) {
  if (node.op_type() == "Cast") return CastsToFloat(node);
  const auto inputs = DifferentiableInputs().find(node.op_type());
  return inputs == DifferentiableInputs().end() || inputs->second.count(i) > 0;
}

}  // namespace

std::set<std::string> ReachedByGradient(const onnx::GraphProto& graph,
                                        const std::set<std::string>& detached) {
  std::set<std::string> outputs;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  return ReachedByGradient(graph, std::move(outputs), detached, 0,
                           graph.node_size() - 1);
}

std::set<std::string> ReachedByGradient(const onnx::GraphProto& graph,
                                        std::set<std::string> reached,
                                        const std::set<std::string>& detached,
                                        int first, int last) {
  for (int n = last; n >= first; --n) {
    const auto& node = graph.node(n);
    const bool flows = std::any_of(
        node.output().begin(), node.output().end(), [&](const auto& name) {
          return reached.count(name) > 0 && detached.count(name) == 0;
        });
    if (!flows) continue;
    for (int i = 0; i < node.input_size(); ++i) {
      if (GradientFlows(node, i)) reached.insert(node.input(i));
    }
    const std::string& op = node.op_type();
    if (op == "If" || op == "Loop" || op == "Scan") {
      for (std::string& name : ReadNames(node)) reached.insert(std::move(name));
    }
  }
  return reached;
}

}  // namespace loadline::models::onnx_internal
