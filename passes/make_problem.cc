// Tested in tests/passes/make_problem_test.cc: a small MLP compared with its
// problem file, and each rule for views and in-place pairs separately.
#include "passes/make_problem.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/codec_nodes.h"
#include "models/ops/codec.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "passes/lossless_codecs.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;

class ProblemBuilder {
 public:
  ProblemBuilder(const Graph& graph, const MakeProblemOptions& options)
      : graph_(graph),
        options_(options),
        roots_(models::StorageRoots(graph)),
        planner_ids_(graph.values.size(), planner::kNoValue),
        is_output_(graph.values.size(), false),
        next_(graph.values.size(), models::kNoValue),
        is_next_(graph.values.size(), false) {}

  absl::StatusOr<planner::Problem> Run() {
    problem_.name = options_.name;
    problem_.alignment_bytes = options_.alignment_bytes;
    problem_.machine = options_.machine;
    CollectRoles();
    AddValues();
    AddCodecs();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (models::IsView(graph_.nodes[i])) continue;
      LOADLINE_RETURN_IF_ERROR(AddNode(static_cast<int64_t>(i)));
    }
    for (size_t i = 0; i < next_.size(); ++i) {
      if (next_[i] == models::kNoValue || paired_.contains(i)) continue;
      return absl::UnimplementedError(absl::StrCat(
          "the new contents of '", graph_.values[i].name, "', '",
          graph_.value(next_[i]).name,
          "', are not made by a node that writes them over the old ones"));
    }
    std::set<models::ValueId> seen;
    for (models::ValueId id : graph_.outputs) {
      if (!seen.insert(Root(id)).second) continue;
      problem_.outputs.push_back(PlannerValue(id));
    }
    return std::move(problem_);
  }

 private:
  models::ValueId Root(models::ValueId id) const { return roots_[Index(id)]; }
  planner::ValueId PlannerValue(models::ValueId id) const {
    const planner::ValueId id_in_problem = planner_ids_[Index(Root(id))];
    LOADLINE_CHECK(id_in_problem != planner::kNoValue);
    return id_in_problem;
  }

  void CollectRoles() {
    for (models::ValueId id : graph_.outputs) {
      is_output_[Index(Root(id))] = true;
    }
    const models::GraphIndex index = models::IndexGraph(graph_);
    for (const auto& [state, next] : graph_.updates) {
      const std::vector<models::ValueId> versions =
          Versions(index, Root(state), Root(next));
      for (size_t i = 1; i < versions.size(); ++i) {
        next_[Index(versions[i - 1])] = versions[i];
        is_next_[Index(versions[i])] = true;
      }
    }
  }

  // From a persistent value to its new contents, as the updates make one
  // version of another; only these two if something else makes them.
  std::vector<models::ValueId> Versions(const models::GraphIndex& index,
                                        models::ValueId first,
                                        models::ValueId last) const {
    std::vector<models::ValueId> versions = {last};
    while (versions.back() != first) {
      const models::ValueId earlier = EarlierVersion(index, versions.back());
      if (earlier == models::kNoValue) return {first, last};
      versions.push_back(earlier);
    }
    std::reverse(versions.begin(), versions.end());
    return versions;
  }

  // What the maker of a version, an update, writes it over; none if another
  // operator makes it.
  models::ValueId EarlierVersion(const models::GraphIndex& index,
                                 models::ValueId version) const {
    const int32_t maker = index.producer[Index(version)];
    if (maker < 0) return models::kNoValue;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    const models::Operator* op = models::FindOperator(node.op);
    LOADLINE_CHECK(op != nullptr);
    if (op->recompute) return models::kNoValue;
    for (const auto& [input, output] : op->inplace) {
      if (static_cast<size_t>(output) < node.outputs.size() &&
          node.outputs[static_cast<size_t>(output)] == version) {
        return Root(node.inputs[static_cast<size_t>(input)]);
      }
    }
    return models::kNoValue;
  }

  // Adds roots that a node touches or that are outputs, in order of their ids.
  void AddValues() {
    std::vector<bool> used = is_output_;
    for (const Node& node : graph_.nodes) {
      if (models::IsView(node)) continue;
      for (models::ValueId id : node.inputs) {
        if (id != models::kNoValue) used[Index(Root(id))] = true;
      }
      for (models::ValueId id : node.outputs) used[Index(Root(id))] = true;
    }
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (!used[i]) continue;
      const models::Value& value = graph_.values[i];
      planner_ids_[i] =
          planner::ValueId{static_cast<int32_t>(problem_.values.size())};
      planner::Value made;
      made.file_id = static_cast<int64_t>(i);
      made.name = value.name;
      made.bytes = value.type.bytes();
      made.persistent = IsPersistent(value.kind) || is_next_[i];
      made.offload = made.bytes >= options_.smallest_offload_bytes;
      problem_.values.push_back(std::move(made));
    }
  }

  // Offers codecs of values that are read after the loss.
  void AddCodecs() {
    const std::vector<std::string> lossless = LosslessCodecs(graph_);
    std::vector<bool> saved(graph_.values.size(), false);
    for (const Node& node : graph_.nodes) {
      const bool later = node.phase == models::Phase::kBackward ||
                         node.phase == models::Phase::kUpdate;
      if (!later || models::IsView(node)) continue;
      for (models::ValueId id : node.inputs) {
        if (id != models::kNoValue) saved[Index(Root(id))] = true;
      }
    }
    for (planner::Value& value : problem_.values) {
      const auto v = static_cast<size_t>(value.file_id);
      if (value.persistent || !saved[v] || is_output_[v] ||
          value.bytes < options_.smallest_stash_bytes) {
        continue;
      }
      if (!lossless[v].empty()) AddCodec(lossless[v], 0, value);
      AddLossyCodecs(value);
    }
  }

  // Errors of different values are independent, so their squares add up: a
  // codec's `error` is its share of the largest square.
  void AddLossyCodecs(planner::Value& value) {
    const auto v = static_cast<size_t>(value.file_id);
    const models::DType dtype = graph_.values[v].type.dtype;
    if (v >= options_.gradient_errors.size() ||
        options_.gradient_errors[v] < 0 ||
        (dtype != models::DType::kF32 && dtype != models::DType::kBF16)) {
      return;
    }
    for (int bits : {8, 4, 2, 1}) {
      const double share = options_.gradient_errors[v] * 255.0 /
                           ((1 << bits) - 1) / options_.max_gradient_error;
      if (!(share <= 1)) break;
      AddCodec(absl::StrCat("group", bits), share * share, value);
    }
  }

  // A codec whose time is unknown is not offered.
  void AddCodec(const std::string& name, double error, planner::Value& value) {
    const models::ValueId id{static_cast<int32_t>(value.file_id)};
    models::Graph graph;
    const auto nodes = models::AddCodecNodes(graph_, id, name, &graph);
    LOADLINE_CHECK(nodes.ok());
    const auto encode = options_.cost(graph, graph.node(nodes->encode));
    const auto decode = options_.cost(graph, graph.node(nodes->decode));
    if (!encode.ok() || !decode.ok() || nodes->encoded_bytes >= value.bytes) {
      return;
    }
    value.stash.push_back({.name = name,
                           .bytes = nodes->encoded_bytes,
                           .encode_ns = encode->time_ns,
                           .decode_ns = decode->time_ns,
                           .lossless = models::CodecFromName(name)->lossless(),
                           .error = error});
  }

  absl::Status AddNode(int64_t id) {
    const Node& node = graph_.nodes[static_cast<size_t>(id)];
    const models::Operator* op = models::FindOperator(node.op);
    LOADLINE_CHECK(op != nullptr);
    planner::Node made;
    made.file_id = id;
    made.name = node.name;
    for (models::ValueId input : node.inputs) {
      if (input != models::kNoValue) made.inputs.push_back(PlannerValue(input));
    }
    for (models::ValueId output : node.outputs) {
      made.outputs.push_back(PlannerValue(output));
    }
    made.recompute = op->recompute;
    for (const auto& [input, output] : op->inplace) {
      AddPair(node, static_cast<size_t>(input), static_cast<size_t>(output),
              made);
    }
    LOADLINE_ASSIGN_OR_RETURN(const NodeCost cost, options_.cost(graph_, node));
    made.time_ns = cost.time_ns;
    made.workspace_bytes = cost.workspace_bytes;
    problem_.nodes.push_back(std::move(made));
    return absl::OkStatus();
  }

  // Adds the operator's in-place pair if it is safe for this node: input and
  // output have the same type and size (no broadcasting), the node reads the
  // input's storage nowhere else, and the old contents are not needed later. So
  // the input is no output and no new contents of a persistent value, and it is
  // persistent only if the node is its update.
  void AddPair(const Node& node, size_t input, size_t output,
               planner::Node& out) {
    if (input >= node.inputs.size() || output >= node.outputs.size() ||
        node.inputs[input] == models::kNoValue) {
      return;
    }
    const models::ValueId from = Root(node.inputs[input]);
    const models::ValueId to = node.outputs[output];
    const models::Value& old = graph_.value(from);
    const models::Value& made = graph_.value(to);
    if (old.type.dtype != made.type.dtype ||
        old.type.bytes() != made.type.bytes() ||
        graph_.value(node.inputs[input]).type.bytes() != made.type.bytes() ||
        is_output_[Index(from)]) {
      return;
    }
    int reads = 0;
    for (models::ValueId id : node.inputs) {
      reads += id != models::kNoValue && Root(id) == from;
    }
    if (reads != 1) return;
    const bool is_update = next_[Index(from)] == to;
    if ((IsPersistent(old.kind) || is_next_[Index(from)]) && !is_update) return;
    if (is_update) {
      paired_.insert(Index(from));
      out.recompute = false;  // also where the operator may run again elsewhere
    }
    out.inplace.emplace_back(PlannerValue(from), PlannerValue(to));
  }

  const Graph& graph_;
  const MakeProblemOptions& options_;
  const std::vector<models::ValueId> roots_;
  std::vector<planner::ValueId> planner_ids_;  // by root
  std::vector<bool> is_output_;                // by root
  std::vector<models::ValueId> next_;  // by persistent root: its new contents
  std::vector<bool> is_next_;          // new contents of a persistent root
  std::set<size_t> paired_;            // updates that a node does in place
  planner::Problem problem_;
};

}  // namespace

absl::StatusOr<planner::Problem> MakeProblem(
    const Graph& graph, const MakeProblemOptions& options) {
  return ProblemBuilder(graph, options).Run();
}

}  // namespace loadline::passes
