// Slices values by the indices that stay, adapts the attributes that name
// sizes, and checks that inference gives the very sizes that were kept: a rule
// of relate.cc that were wrong would show here. Tested in
// tests/passes/compress/prune_graph_test.cc.
#include "passes/compress/prune_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/ops/operator.h"
#include "passes/compress/separate_constants.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Ints;
using models::Node;
using models::Tensor;
using models::TensorType;
using models::Value;
using models::ValueId;

// For each value and axis that loses indices, which stay. Ordered by axis.
using Kept = std::vector<std::vector<KeptAxis>>;

const KeptAxis* Find(const std::vector<KeptAxis>& kept, int64_t axis) {
  for (const KeptAxis& k : kept) {
    if (k.axis == axis) return &k;
  }
  return nullptr;
}

absl::Status CheckRequest(const PruneGroup& group,
                          const std::vector<int64_t>& removed,
                          std::vector<bool>* gone) {
  gone->assign(static_cast<size_t>(group.width), false);
  for (int64_t channel : removed) {
    if (channel < 0 || channel >= group.width) {
      return absl::InvalidArgumentError(
          absl::StrCat("group \"", group.name, "\" has ", group.width,
                       " channels, and none with number ", channel));
    }
    (*gone)[static_cast<size_t>(channel)] = true;
  }
  if (removed.empty()) return absl::OkStatus();
  if (!group.frozen.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group \"", group.name, "\" cannot be pruned: ", group.frozen));
  }
  if (std::find(gone->begin(), gone->end(), false) == gone->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("group \"", group.name, "\" would lose all of its ",
                     group.width, " channels; at least one has to stay"));
  }
  return absl::OkStatus();
}

// Several groups may share an axis: first all that go, then what is left.
absl::StatusOr<Kept> KeptOf(const Graph& graph,
                            absl::Span<const PruneGroup> groups,
                            absl::Span<const std::vector<int64_t>> removed) {
  std::vector<std::map<int64_t, std::vector<bool>>> goes(graph.values.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<bool> gone;
    LOADLINE_RETURN_IF_ERROR(CheckRequest(groups[g], removed[g], &gone));
    if (removed[g].empty()) continue;
    for (const auto* members : {&groups[g].members, &groups[g].activations}) {
      for (const PruneMember& member : *members) {
        if (Index(member.value) >= graph.values.size() ||
            member.axis >= graph.value(member.value).type.rank() ||
            static_cast<int64_t>(member.channel_of.size()) !=
                graph.value(member.value)
                    .type.dims[static_cast<size_t>(member.axis)]) {
          return absl::InvalidArgumentError(absl::StrCat(
              "group \"", groups[g].name, "\" is not of this model"));
        }
        std::vector<bool>& flags = goes[Index(member.value)][member.axis];
        flags.resize(member.channel_of.size(), false);
        for (size_t i = 0; i < flags.size(); ++i) {
          const int32_t channel = member.channel_of[i];
          if (channel >= 0 && gone[static_cast<size_t>(channel)]) {
            flags[i] = true;
          }
        }
      }
    }
  }
  Kept kept(graph.values.size());
  for (size_t v = 0; v < kept.size(); ++v) {
    for (const auto& [axis, flags] : goes[v]) {
      KeptAxis k;
      k.axis = axis;
      for (size_t i = 0; i < flags.size(); ++i) {
        if (!flags[i]) k.indices.push_back(static_cast<int64_t>(i));
      }
      if (k.indices.size() < flags.size()) kept[v].push_back(std::move(k));
    }
  }
  return kept;
}

// How many of the kept indices lie before `position`.
int64_t Before(const KeptAxis& kept, int64_t position) {
  return std::lower_bound(kept.indices.begin(), kept.indices.end(), position) -
         kept.indices.begin();
}

std::vector<int64_t> NewDims(const Value& value,
                             const std::vector<KeptAxis>& kept) {
  std::vector<int64_t> dims = value.type.dims;
  for (const KeptAxis& k : kept) {
    dims[static_cast<size_t>(k.axis)] = static_cast<int64_t>(k.indices.size());
  }
  return dims;
}

// Elements per channel of the statistics that the node reads; 0: it reads none
// of a BatchNormTraining.
int64_t CountOfStatistics(const Graph& graph, const Kept& kept,
                          const Node& update) {
  for (const Node& norm : graph.nodes) {
    if (norm.op != "BatchNormTraining" || norm.outputs[1] != update.inputs[2]) {
      continue;
    }
    TensorType x = graph.value(norm.inputs[0]).type;
    x.dims = NewDims(graph.value(norm.inputs[0]), kept[Index(norm.inputs[0])]);
    return x.elements() / x.dims[1];
  }
  return 0;
}

// The attributes that name sizes or positions. `graph` still has the old types.
void RewriteAttributes(const Graph& graph, const Kept& kept, Node* node) {
  const auto dims = [&](ValueId id) {
    return NewDims(graph.value(id), kept[Index(id)]);
  };
  if (node->attributes.Has("shape")) {
    node->attributes.Set("shape", dims(node->outputs[0]));
  }
  if (node->op == "Split") {
    const auto axis = static_cast<size_t>(node->attributes.Int("axis", 0));
    Ints sizes;
    for (ValueId id : node->outputs) sizes.push_back(dims(id)[axis]);
    node->attributes.Set("sizes", sizes);
  }
  if (node->op == "Slice" || node->op == "SliceGrad") {
    const ValueId whole =
        node->op == "Slice" ? node->inputs[0] : node->outputs[0];
    Ints starts = node->attributes.IntList("starts");
    Ints ends = node->attributes.IntList("ends");
    const Ints axes = node->attributes.IntList("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const KeptAxis* k = Find(kept[Index(whole)], axes[i]);
      if (k == nullptr) continue;
      starts[i] = Before(*k, starts[i]);
      ends[i] = Before(*k, ends[i]);
    }
    node->attributes.Set("starts", starts);
    node->attributes.Set("ends", ends);
  }
  if (node->op == "RunningStatsUpdate") {
    const int64_t count = CountOfStatistics(graph, kept, *node);
    if (count > 0) node->attributes.Set("count", count);
  }
  if (node->op == "Conv" || node->op == "ConvInputGrad") {
    const ValueId reads =
        node->op == "Conv" ? node->inputs[0] : node->outputs[0];
    if (node->attributes.Has("group")) {
      node->attributes.Set("group", dims(reads)[1] / dims(node->inputs[1])[1]);
    }
  }
}

absl::Status InferAgain(Graph* graph, const Kept& kept) {
  for (const Node& node : graph->nodes) {
    std::vector<const TensorType*> types;
    for (ValueId id : node.inputs) {
      types.push_back(id == models::kNoValue ? nullptr
                                             : &graph->value(id).type);
    }
    const absl::StatusOr<std::vector<TensorType>> inferred =
        models::InferTypes(node, types);
    if (!inferred.ok()) {
      return absl::InternalError(
          absl::StrCat("after pruning: ", inferred.status().message()));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Value& value = graph->value(node.outputs[i]);
      const std::vector<int64_t> dims =
          NewDims(value, kept[Index(node.outputs[i])]);
      if ((*inferred)[i].dims != dims) {
        return absl::InternalError(
            absl::StrCat("after pruning, ", node.op, " \"", node.name,
                         "\" makes ", (*inferred)[i].ToString(), ", not [",
                         absl::StrJoin(dims, ","), "]"));
      }
      value.type = (*inferred)[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> KeepIndices(const Tensor& tensor,
                                   absl::Span<const KeptAxis> kept) {
  Tensor result = tensor;
  for (const KeptAxis& k : kept) {
    if (k.axis < 0 || k.axis >= result.type.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no axis ", k.axis, " in ", result.type.ToString()));
    }
    const auto axis = static_cast<size_t>(k.axis);
    const std::vector<int64_t>& old_dims = result.type.dims;
    for (int64_t i : k.indices) {
      if (i < 0 || i >= old_dims[axis]) {
        return absl::InvalidArgumentError(
            absl::StrCat("no index ", i, " along axis ", k.axis, " of ",
                         result.type.ToString()));
      }
    }
    TensorType type = result.type;
    type.dims[axis] = static_cast<int64_t>(k.indices.size());
    if (result.data == nullptr) {
      result.type = std::move(type);
      continue;
    }
    int64_t outer = 1;
    int64_t row_bytes = models::DTypeBytes(type.dtype);
    for (size_t a = 0; a < axis; ++a) outer *= old_dims[a];
    for (size_t a = axis + 1; a < old_dims.size(); ++a)
      row_bytes *= old_dims[a];
    auto bytes = std::make_shared<std::vector<std::byte>>(
        static_cast<size_t>(type.bytes()));
    std::byte* to = bytes->data();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i : k.indices) {
        if (row_bytes == 0) break;
        std::memcpy(to,
                    result.data->data() + (o * old_dims[axis] + i) * row_bytes,
                    static_cast<size_t>(row_bytes));
        to += row_bytes;
      }
    }
    result = Tensor{std::move(type), std::move(bytes)};
  }
  return result;
}

absl::StatusOr<PrunedGraph> PruneGraph(
    const Graph& model, absl::Span<const PruneGroup> groups,
    absl::Span<const std::vector<int64_t>> removed) {
  if (groups.size() != removed.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels to remove are given for ", removed.size(),
                     " groups, the model has ", groups.size()));
  }
  PrunedGraph pruned;
  pruned.graph = SeparateConstants(model);
  Graph& graph = pruned.graph;
  LOADLINE_ASSIGN_OR_RETURN(const Kept kept, KeptOf(graph, groups, removed));
  for (Node& node : graph.nodes) RewriteAttributes(graph, kept, &node);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    Value& value = graph.values[v];
    if (!value.initial.has_value() || kept[v].empty()) continue;
    LOADLINE_ASSIGN_OR_RETURN(Tensor sliced,
                              KeepIndices(*value.initial, kept[v]));
    value.type = sliced.type;
    value.initial = std::move(sliced);
    if (v < model.values.size()) pruned.kept[value.name] = kept[v];
  }
  LOADLINE_RETURN_IF_ERROR(InferAgain(&graph, kept));
  JoinConstants(model.values.size(), &graph);
  LOADLINE_RETURN_IF_ERROR(models::VerifyGraph(graph));
  return pruned;
}

}  // namespace loadline::passes
