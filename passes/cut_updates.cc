// Tested in tests/passes/cut_updates_test.cc.
#include "passes/cut_updates.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "models/ops/state_blocks.h"
#include "models/storage.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::ValueId;

constexpr size_t kFirstState = 2;  // among the inputs of an update

// Rows of a part are a multiple of this, so that every part begins at a
// multiple of 256 bytes. With states in 8 bits it begins with a block.
int64_t RowGrain(const Graph& graph, const Node& update) {
  const models::TensorType& type = graph.value(update.inputs[0]).type;
  constexpr int64_t kRows = 64;
  if (!models::IsStateBlocks(graph.value(update.inputs[kFirstState]).type)) {
    return kRows;
  }
  return std::lcm(kRows, models::kStateBlockElements /
                             std::gcd(models::kStateBlockElements,
                                      type.elements() / type.dims[0]));
}

// The type of a state's part: elements [first, end) of its parameter, which are
// rows of the type `rows`.
models::TensorType PartType(const models::TensorType& state,
                            const models::TensorType& rows) {
  return models::IsStateBlocks(state) ? models::StateBlocksType(rows.elements())
                                      : rows;
}

// The states of an update are its outputs after the parameter.
size_t StatesOf(const Node& update) { return update.outputs.size() - 1; }

// Whether the node can be cut: its operator updates a part of a parameter.
bool IsUpdateWithStates(const Node& node) {
  const models::Operator* op = models::FindOperator(node.op);
  return node.phase == models::Phase::kUpdate && !op->recompute &&
         node.outputs.size() > 1 && !node.attributes.Has("start") &&
         std::any_of(op->attributes.begin(), op->attributes.end(),
                     [](const models::AttributeSpec& attribute) {
                       return attribute.name == "start";
                     });
}

// Bytes of the storage that a node touches, where it works in place wherever
// it can.
int64_t BytesAtOnce(const Graph& graph, const std::vector<ValueId>& roots,
                    const Node& node) {
  std::set<ValueId> read;
  int64_t bytes = 0;
  for (ValueId id : node.inputs) {
    if (id != models::kNoValue && read.insert(roots[Index(id)]).second) {
      bytes += graph.value(roots[Index(id)]).type.bytes();
    }
  }
  const models::Operator* op = models::FindOperator(node.op);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const bool in_place = std::any_of(
        op->inplace.begin(), op->inplace.end(), [&](const auto& pair) {
          const auto input = static_cast<size_t>(pair.first);
          return static_cast<size_t>(pair.second) == i &&
                 input < node.inputs.size() &&
                 node.inputs[input] != models::kNoValue &&
                 graph.value(node.inputs[input]).type.bytes() ==
                     graph.value(node.outputs[i]).type.bytes();
        });
    if (!in_place) bytes += graph.value(node.outputs[i]).type.bytes();
  }
  return bytes;
}

// The most that a node that is no update needs at one moment.
int64_t MostElsewhere(const Graph& graph, const std::vector<ValueId>& roots) {
  int64_t most = 0;
  for (const Node& node : graph.nodes) {
    if (node.phase == models::Phase::kUpdate || models::IsView(node)) continue;
    most = std::max(most, BytesAtOnce(graph, roots, node));
  }
  return most;
}

// The part of a tensor that begins at a byte. Zeros are shared.
models::Tensor PartOf(const models::Tensor& whole, models::TensorType type,
                      int64_t first_byte) {
  if (whole.data == nullptr) return {std::move(type), nullptr};
  if (whole.data == models::ZeroTensor(whole.type).data) {
    return models::ZeroTensor(std::move(type));
  }
  return models::MakeTensor(std::move(type), whole.data->data() + first_byte);
}

class UpdateCutter {
 public:
  explicit UpdateCutter(Graph& graph) : graph_(graph) {}

  absl::Status Cut(const Node& update, int64_t parts) {
    const models::TensorType whole = graph_.value(update.inputs[0]).type;
    const int64_t rows = whole.dims[0];
    const int64_t row_elements = whole.elements() / rows;
    const int64_t grain = RowGrain(graph_, update);
    ValueId parameter = update.inputs[0];
    Wholes wholes = TakeStates(update);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = rows * part / parts / grain * grain;
      const int64_t end =
          part + 1 == parts ? rows : rows * (part + 1) / parts / grain * grain;
      models::TensorType type = whole;
      type.dims[0] = end - first;
      const std::string suffix = absl::StrCat("[", part + 1, "/", parts, "]");
      std::vector<ValueId> inputs = update.inputs;
      inputs[0] = parameter;
      for (size_t s = 0; s < wholes.size(); ++s) {
        // Of the parts before this one.
        models::TensorType before = type;
        before.dims[0] = first;
        const models::TensorType& state = wholes[s].type;
        inputs[kFirstState + s] =
            AddPart(wholes[s], update.inputs[kFirstState + s], part, suffix,
                    PartOf(*wholes[s].initial, PartType(state, type),
                           PartType(state, before).bytes()));
      }
      models::Attributes attributes = update.attributes;
      attributes.Set("start", first * row_elements);
      LOADLINE_ASSIGN_OR_RETURN(
          const std::vector<ValueId> made,
          graph_.AddNode(update.op, absl::StrCat(update.name, suffix), inputs,
                         std::move(attributes), update.phase));
      for (size_t s = 0; s < wholes.size(); ++s) {
        AddUpdate(update, inputs, s, part, made[1 + s]);
      }
      parameter = made[0];
    }
    graph_.nodes.back().outputs[0] = update.outputs[0];
    return absl::OkStatus();
  }

 private:
  using Wholes = std::vector<models::Value>;

  // The states as they are before the first part takes their ids.
  Wholes TakeStates(const Node& update) const {
    Wholes wholes;
    for (size_t s = 0; s < StatesOf(update); ++s) {
      wholes.push_back(graph_.value(update.inputs[kFirstState + s]));
    }
    return wholes;
  }

  ValueId AddPart(const models::Value& whole, ValueId id, int64_t part,
                  const std::string& suffix, models::Tensor initial) {
    const std::string name = absl::StrCat(whole.name, suffix);
    if (part > 0) return graph_.AddState(name, std::move(initial));
    models::Value& first = graph_.value(id);
    first.name = name;
    first.type = initial.type;
    first.initial = std::move(initial);
    return id;
  }

  // The first part has the ids of the whole state's update too.
  void AddUpdate(const Node& update, const std::vector<ValueId>& inputs,
                 size_t state, int64_t part, ValueId made) {
    if (part > 0) {
      graph_.updates.emplace_back(inputs[kFirstState + state], made);
      return;
    }
    const ValueId next = update.outputs[1 + state];
    graph_.value(next).type = graph_.value(made).type;
    graph_.nodes.back().outputs[1 + state] = next;
  }

  Graph& graph_;
};

// How many parts the update has; 1: it stays whole.
int64_t PartsOf(const Graph& graph, const Node& update, int64_t part_bytes) {
  const models::TensorType& type = graph.value(update.inputs[0]).type;
  if (type.rank() == 0 || type.elements() == 0) return 1;
  const int64_t state_bytes =
      graph.value(update.inputs[kFirstState]).type.bytes();
  return std::min({kMostUpdateParts, state_bytes / part_bytes,
                   type.dims[0] / RowGrain(graph, update)});
}

}  // namespace

absl::Status CutUpdates(Graph& step, int64_t part_bytes) {
  LOADLINE_CHECK(part_bytes >= 1);
  const std::vector<ValueId> roots = models::StorageRoots(step);
  const int64_t most = MostElsewhere(step, roots);
  std::vector<Node> old = std::move(step.nodes);
  step.nodes.clear();
  std::vector<int64_t> parts(old.size(), 1);
  for (size_t n = 0; n < old.size(); ++n) {
    if (IsUpdateWithStates(old[n]) && BytesAtOnce(step, roots, old[n]) > most) {
      parts[n] = PartsOf(step, old[n], part_bytes);
    }
  }
  UpdateCutter cutter(step);
  for (size_t n = 0; n < old.size(); ++n) {
    if (parts[n] < 2) {
      step.nodes.push_back(std::move(old[n]));
    } else {
      LOADLINE_RETURN_IF_ERROR(cutter.Cut(old[n], parts[n]));
    }
  }
  models::EraseNodes(&step, std::vector<bool>(step.nodes.size(), false));
  return absl::OkStatus();
}

}  // namespace loadline::passes
