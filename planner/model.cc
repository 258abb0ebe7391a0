// Builds Model from Problem. Tested through every solve (solve_test.cc).
#include "planner/model.h"

#include <algorithm>

namespace loadline::planner {
namespace {

void AddNodes(const Problem& problem, bool allow_recompute, Model& model) {
  for (const Node& node : problem.nodes) {
    std::vector<int> reads;
    for (ValueId id : node.inputs) reads.push_back(static_cast<int>(id));
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    model.reads.push_back(std::move(reads));
    std::vector<int> makes;
    for (ValueId id : node.outputs) makes.push_back(static_cast<int>(id));
    model.makes.push_back(std::move(makes));
    model.node_ns.push_back(node.time_ns);
    model.compute_ns += node.time_ns;
    model.workspace_bytes.push_back(
        AlignUp(node.workspace_bytes, model.alignment_bytes));
    model.may_rerun.push_back(allow_recompute && node.recompute);
  }
}

void AddChains(const Problem& problem, Model& model) {
  model.chain_of.assign(model.value_count, -1);
  for (int v = 0; v < model.value_count; ++v) {
    if (!problem.values[v].persistent || model.producer[v] >= 0) continue;
    Chain chain;
    chain.can_host = true;
    for (ValueId id = ValueId{v}; id != kNoValue;
         id = model.index.next_version[Index(id)]) {
      const int version = static_cast<int>(id);
      chain.versions.push_back(version);
      model.chain_of[version] = static_cast<int>(model.chains.size());
      if (!model.may_copy[version] || model.is_output[version]) {
        chain.can_host = false;
      }
    }
    model.chains.push_back(std::move(chain));
  }
}

// A static choice keeps every lifetime a function of one value's own touches.
void AddOverwrites(const Problem& problem, Model& model) {
  for (const Node& node : problem.nodes) {
    std::vector<std::pair<int, int>> chosen;
    const auto taken = [&](int in, int out) {
      return std::any_of(chosen.begin(), chosen.end(), [&](const auto& pair) {
        return pair.first == in || pair.second == out;
      });
    };
    const auto add = [&](bool updates) {
      for (const auto& [from, to] : node.inplace) {
        const int in = static_cast<int>(from);
        const int out = static_cast<int>(to);
        const bool update = model.index.next_version[in] == to;
        if (update != updates || taken(in, out)) continue;
        if (!update && (model.chain_of[in] >= 0 || model.chain_of[out] >= 0 ||
                        model.is_output[in])) {
          continue;
        }
        chosen.emplace_back(in, out);
      }
    };
    add(true);
    add(false);
    model.overwrites.push_back(std::move(chosen));
  }
}

}  // namespace

int64_t AlignUp(int64_t bytes, int64_t alignment) {
  const int64_t rest = bytes % alignment;
  return rest == 0 ? bytes : bytes + (alignment - rest);
}

Model MakeModel(const Problem& problem, bool allow_recompute,
                bool allow_offload) {
  Model model;
  model.problem = &problem;
  model.index = IndexProblem(problem);
  model.node_count = static_cast<int>(problem.nodes.size());
  model.value_count = static_cast<int>(problem.values.size());
  model.alignment_bytes =
      problem.addresses ? std::max<int64_t>(problem.alignment_bytes, 1) : 1;
  AddNodes(problem, allow_recompute, model);
  const bool copies =
      allow_offload && problem.machine && problem.machine->CanCopy();
  if (copies) {
    model.latency_ns = static_cast<double>(problem.machine->copy_latency_ns);
    model.d2h_bytes_per_ns = problem.machine->d2h_bytes_per_s / 1e9;
    model.h2d_bytes_per_ns = problem.machine->h2d_bytes_per_s / 1e9;
    model.bidirectional = problem.machine->bidirectional;
    model.host_limit_bytes = problem.machine->host_bytes;
  }
  for (int v = 0; v < model.value_count; ++v) {
    const Value& value = problem.values[v];
    model.bytes.push_back(AlignUp(value.bytes, model.alignment_bytes));
    model.producer.push_back(model.index.producer[v]);
    model.is_output.push_back(model.index.is_output[v]);
    model.may_copy.push_back(copies && value.offload && value.bytes > 0);
    const double bytes = static_cast<double>(value.bytes);
    model.out_ns.push_back(
        copies ? model.latency_ns + bytes / model.d2h_bytes_per_ns : 0);
    model.in_ns.push_back(
        copies ? model.latency_ns + bytes / model.h2d_bytes_per_ns : 0);
  }
  AddChains(problem, model);
  AddOverwrites(problem, model);
  return model;
}

}  // namespace loadline::planner
