// As simple as possible: no planning and no reuse of memory.
#include "tests/conformance/interpreter.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/kernels.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

using models::Node;
using models::ValueId;

Interpreter::Memory Interpreter::Allocate(int64_t bytes) {
  constexpr size_t kAlignment = 256;
  const size_t padded =
      (static_cast<size_t>(bytes) / kAlignment + 1) * kAlignment;
  return Memory(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, padded)));
}

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreter::Make(
    const models::Graph& graph) {
  auto made = std::make_unique<Interpreter>();
  made->graph_ = &graph;
  for (const models::Value& value : graph.values) {
    made->memory_.push_back(Allocate(value.type.bytes()));
    // memcpy takes no null pointer, which an empty tensor may have.
    if (value.initial.has_value() && !value.initial->data->empty()) {
      std::memcpy(made->memory_.back().get(), value.initial->data->data(),
                  value.initial->data->size());
    }
  }
  int64_t workspace_bytes = 0;
  for (const Node& node : graph.nodes) {
    made->kernels_.emplace_back();
    if (models::IsView(node)) continue;
    LOADLINE_ASSIGN_OR_RETURN(made->kernels_.back(),
                              PrepareCpuKernel(graph, node));
    workspace_bytes =
        std::max(workspace_bytes, made->kernels_.back()->workspace_bytes());
  }
  made->workspace_ = Allocate(workspace_bytes);
  return made;
}

absl::Status Interpreter::Run(const StepScalars& scalars) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const Node& node = graph_->nodes[i];
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(
          id == models::kNoValue ? nullptr : memory_[models::Index(id)].get());
    }
    for (ValueId id : node.outputs) {
      outputs.push_back(memory_[models::Index(id)].get());
    }
    if (kernels_[i] == nullptr) {
      const models::TensorType& type = graph_->value(node.outputs[0]).type;
      std::copy_n(inputs[0] + models::ViewOffsetBytes(node, type), type.bytes(),
                  outputs[0]);
      continue;
    }
    LOADLINE_RETURN_IF_ERROR(
        kernels_[i]->Run({inputs, outputs, workspace_.get(), &scalars}));
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor
