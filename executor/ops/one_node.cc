// Tested in tests/conformance/, by Gemm, Conv and GemmGeluGrad with what they
// add to a product.
#include "executor/ops/one_node.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace loadline::executor {

OneNode MakeOneNode(const Prepare& whole, absl::string_view op,
                    const std::vector<TensorType>& inputs,
                    const TensorType& output, models::Attributes attributes) {
  OneNode one;
  one.node.name = whole.node().name;
  one.node.op = std::string(op);
  one.node.attributes = std::move(attributes);
  for (const TensorType& type : inputs) {
    one.node.inputs.push_back(one.graph.AddInput(
        absl::StrCat("input", one.node.inputs.size()), type));
  }
  // Not by AddNode: kernels take more types than graphs have so far.
  one.node.outputs.push_back(one.graph.AddInput("output", output));
  return one;
}

}  // namespace loadline::executor
