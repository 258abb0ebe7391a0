// Tested in tests/conformance/ through Gemm, Conv and GemmGeluGrad, which use
// other operators' kernels for bias and slope.
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
  // Not AddNode: kernels support more types than graph inference does.
  one.node.outputs.push_back(one.graph.AddInput("output", output));
  return one;
}

}  // namespace loadline::executor
