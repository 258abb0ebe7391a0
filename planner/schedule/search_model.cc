// Builds SearchModel from Problem. Tested in search_model_test.cc.
#include "planner/schedule/search_model.h"

#include <algorithm>
#include <utility>

#include "planner/base/align.h"

namespace loadline::planner {
namespace {

// The caller adds what the job reads, makes and overwrites, and may_rerun.
void AddJob(const Job& job, int64_t ns, int64_t workspace_bytes,
            SearchModel& model) {
  model.jobs.push_back(job);
  model.node_ns.push_back(ns);
  model.raw_workspace_bytes.push_back(workspace_bytes);
  model.workspace_bytes.push_back(
      AlignUp(workspace_bytes, model.alignment_bytes));
}

// An encoded representation stays on the device and within the step.
void AddRepresentation(int value, int64_t bytes, int producer,
                       SearchModel& model) {
  model.value_of.push_back(value);
  model.raw_bytes.push_back(bytes);
  model.bytes.push_back(AlignUp(bytes, model.alignment_bytes));
  model.producer.push_back(producer);
  if (model.representation_count() <= model.value_count) return;
  model.chain_of.push_back(-1);
  model.is_output.push_back(0);
  model.may_copy.push_back(0);
  model.out_ns.push_back(0);
  model.in_ns.push_back(0);
  model.index.next_version.push_back(kNoValue);
  model.index.previous_version.push_back(kNoValue);
}

void AddNodes(const Problem& problem, bool allow_recompute,
              SearchModel& model) {
  for (const Node& node : problem.nodes) {
    std::vector<int> reads;
    for (ValueId id : node.inputs) reads.push_back(static_cast<int>(id));
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    model.reads.push_back(std::move(reads));
    std::vector<int> makes;
    for (ValueId id : node.outputs) makes.push_back(static_cast<int>(id));
    model.makes.push_back(std::move(makes));
    AddJob({.node = static_cast<int>(model.jobs.size())}, node.time_ns,
           node.workspace_bytes, model);
    model.may_rerun.push_back(allow_recompute && node.recompute);
  }
}

// Adds the permitted variants; jobs_of keeps those that are not dominated in
// both time and workspace.
void AddVariants(const Problem& problem, const Permissions& permissions,
                 SearchModel& model) {
  for (int n = 0; n < model.node_count; ++n) {
    std::vector<int> jobs = {n};
    std::vector<Variant> permitted;
    for (const Variant& variant : problem.nodes[n].variants) {
      if (variant.exact ? !permissions.variants : !permissions.inexact)
        continue;
      const int job = model.job_count();
      jobs.push_back(job);
      AddJob({.node = n, .variant = static_cast<int>(permitted.size())},
             variant.time_ns, variant.workspace_bytes, model);
      model.reads.push_back(model.reads[n]);
      model.makes.push_back(model.makes[n]);
      model.overwrites.push_back(model.overwrites[n]);
      model.may_rerun.push_back(model.may_rerun[n]);
      permitted.push_back(variant);
    }
    const auto key = [&](int job) {
      return std::pair(model.node_ns[job], model.workspace_bytes[job]);
    };
    std::stable_sort(jobs.begin(), jobs.end(),
                     [&](int a, int b) { return key(a) < key(b); });
    size_t kept = 1;
    for (size_t i = 1; i < jobs.size(); ++i) {
      if (model.workspace_bytes[jobs[i]] <
          model.workspace_bytes[jobs[kept - 1]]) {
        jobs[kept++] = jobs[i];
      }
    }
    jobs.resize(kept);
    model.compute_ns += model.node_ns[jobs.front()];
    model.jobs_of.push_back(std::move(jobs));
    model.variants.push_back(std::move(permitted));
  }
}

void AddCodecJob(Job job, int64_t ns, int from, int to, SearchModel& model) {
  AddJob(job, ns, 0, model);
  model.reads.push_back({from});
  model.makes.push_back({to});
  model.overwrites.emplace_back();
  model.may_rerun.push_back(1);
}

// The permitted codecs; those that save bytes get a representation and two
// jobs.
void AddCodings(const Problem& problem, const Permissions& permissions,
                SearchModel& model) {
  model.codings.resize(model.value_count);
  for (int v = 0; v < model.value_count; ++v) {
    std::vector<Codec> permitted;
    for (const Codec& codec : problem.values[v].stash) {
      if (codec.lossless ? !permissions.codecs : !permissions.lossy) continue;
      Job job = {.value = v, .codec = static_cast<int>(permitted.size())};
      permitted.push_back(codec);
      const int64_t bytes = AlignUp(codec.bytes, model.alignment_bytes);
      if (bytes >= model.bytes[v]) continue;
      const int encoded = model.representation_count();
      model.codings[v].push_back(
          {encoded, model.job_count(), model.job_count() + 1});
      AddRepresentation(v, codec.bytes, model.job_count(), model);
      AddCodecJob(job, codec.encode_ns, v, encoded, model);
      job.decodes = true;
      AddCodecJob(job, codec.decode_ns, encoded, v, model);
    }
    model.stash.push_back(std::move(permitted));
  }
}

void AddChains(const Problem& problem, SearchModel& model) {
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

// Pairs are chosen once and not per schedule, so that a lifetime depends on the
// accesses of one value only.
void AddOverwrites(const Problem& problem, SearchModel& model) {
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

SearchModel MakeSearchModel(const Problem& problem,
                            const SearchModelOptions& options) {
  SearchModel model;
  model.tuning = options.tuning;
  model.problem = &problem;
  model.index = IndexProblem(problem);
  model.node_count = static_cast<int>(problem.nodes.size());
  model.value_count = static_cast<int>(problem.values.size());
  model.alignment_bytes =
      problem.addresses ? std::max<int64_t>(problem.alignment_bytes, 1) : 1;
  AddNodes(problem, options.allow_recompute, model);
  const bool copies =
      options.allow_offload && problem.machine && problem.machine->CanCopy();
  if (copies) {
    model.out_latency_ns = static_cast<double>(problem.machine->d2h.latency_ns);
    model.in_latency_ns = static_cast<double>(problem.machine->h2d.latency_ns);
    model.d2h_bytes_per_ns = problem.machine->d2h.bytes_per_s / 1e9;
    model.h2d_bytes_per_ns = problem.machine->h2d.bytes_per_s / 1e9;
    model.copies_exclude_compute = problem.machine->copies_exclude_compute;
    // Copies that stop compute never run at the same time.
    model.bidirectional =
        model.copies_exclude_compute ? 1 : problem.machine->d2h_h2d_factor;
    model.copy_overhead_ns =
        static_cast<double>(problem.machine->copy_overhead_ns);
    model.host_limit_bytes = problem.machine->host_bytes;
  }
  for (int v = 0; v < model.value_count; ++v) {
    const Value& value = problem.values[v];
    AddRepresentation(v, value.bytes, model.index.producer[v], model);
    model.is_output.push_back(model.index.is_output[v]);
    model.may_copy.push_back(copies && value.offload && value.bytes > 0);
    const double bytes = static_cast<double>(value.bytes);
    model.out_ns.push_back(
        copies ? model.out_latency_ns + bytes / model.d2h_bytes_per_ns : 0);
    model.in_ns.push_back(
        copies ? model.in_latency_ns + bytes / model.h2d_bytes_per_ns : 0);
  }
  AddChains(problem, model);
  AddOverwrites(problem, model);
  AddVariants(problem, options.permissions, model);
  AddCodings(problem, options.permissions, model);
  return model;
}

SearchModel WithApartLanes(SearchModel model) {
  const double speed = model.bidirectional;
  for (int v = 0; v < model.value_count; ++v) {
    for (auto [ns, latency_ns] :
         {std::pair(&model.out_ns[v], model.out_latency_ns),
          std::pair(&model.in_ns[v], model.in_latency_ns)}) {
      *ns = latency_ns + (*ns - latency_ns) / speed;
    }
  }
  model.d2h_bytes_per_ns *= speed;
  model.h2d_bytes_per_ns *= speed;
  model.bidirectional = 1;
  return model;
}

}  // namespace loadline::planner
