// Chains are found by their largest value: the region around it, in which all
// values of at least half its bytes are inside, must be cuttable along one set
// of rows. The longest one that works is used: tokens rather than examples. A
// fused attention has no large value, but queries, keys and values together
// are larger than what enters and leaves, so its chain starts from them. Tested
// in tests/passes/split_operators_test.cc; results are compared in
// tests/conformance/split_operators_conformance_test.cc.
#include "passes/split_operators.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "passes/cross_entropy_rows.h"
#include "passes/row_region.h"
#include "passes/split_region.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ValueId;

// A chain is a few operators. What is longer is better cut as a whole, by
// micro-batches.
constexpr size_t kMostNodes = 64;

struct FoundChain {
  SplittableChain facts;
  RowRegion region;
};

class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph)
      : graph_(graph),
        index_(models::IndexGraph(graph)),
        roots_(models::StorageRoots(graph)),
        taken_(graph.nodes.size(), false) {}

  std::vector<FoundChain> Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op == "Attention") AroundAttention(graph_.nodes[n]);
    }
    std::vector<ValueId> values;
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (roots_[v] == ValueId{static_cast<int32_t>(v)} &&
          index_.producer[v] >= 0) {
        values.push_back(roots_[v]);
      }
    }
    std::stable_sort(values.begin(), values.end(),
                     [&](ValueId a, ValueId b) { return Bytes(a) > Bytes(b); });
    for (ValueId value : values) {
      if (!taken_[static_cast<size_t>(index_.producer[Index(value)])]) {
        Around({value}, value, Bytes(value) / 2);
      }
    }
    Name();
    return std::move(found_);
  }

 private:
  int64_t Bytes(ValueId id) const { return graph_.value(id).type.bytes(); }

  void AroundAttention(const Node& attention) {
    std::vector<ValueId> seeds(attention.inputs.begin(),
                               attention.inputs.begin() + 3);
    int64_t bytes = 0;
    for (ValueId id : seeds) bytes += Bytes(id);
    for (NodeId reader : index_.consumers[Index(attention.outputs[1])]) {
      const Node& gradient = graph_.node(reader);
      if (gradient.op != "AttentionGrad") continue;
      seeds.insert(seeds.end(), gradient.outputs.begin(),
                   gradient.outputs.end());
    }
    Around(seeds, attention.inputs[0], bytes * 2 / 3);
  }

  // Adds the chain around the seeds, if there is one; `first` is one of them.
  void Around(const std::vector<ValueId>& seeds, ValueId first,
              int64_t inside_bytes) {
    const std::vector<int64_t>& dims = graph_.value(first).type.dims;
    std::vector<int64_t> prefixes;
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      rows *= dims[i];
      if (rows >= 2) prefixes.push_back(rows);
    }
    for (size_t i = prefixes.size(); i-- > 0;) {
      if (i + 1 < prefixes.size() && prefixes[i] == prefixes[i + 1]) continue;
      std::optional<RowRegion> region = GrowRegion(
          graph_, index_, seeds, prefixes[i], inside_bytes, kMostNodes, taken_);
      if (region.has_value() && IsWorthwhile(*region)) {
        Keep(*std::move(region));
        return;
      }
    }
  }

  int64_t StorageBytes(const std::vector<ValueId>& values) const {
    std::set<ValueId> roots;
    int64_t bytes = 0;
    for (ValueId id : values) {
      if (roots.insert(roots_[Index(id)]).second) {
        bytes += Bytes(roots_[Index(id)]);
      }
    }
    return bytes;
  }

  // Large in the middle and small at the ends, with a product inside: otherwise
  // recomputing one operator is as good.
  bool IsWorthwhile(const RowRegion& region) const {
    bool has_product = false;
    for (const RegionNode& node : region.nodes) {
      has_product = has_product ||
                    models::CostOf(graph_, graph_.node(node.id)).matmul_like;
    }
    return has_product &&
           2 * StorageBytes(region.inside) >= 3 * StorageBytes(region.ends);
  }

  void Keep(RowRegion region) {
    FoundChain chain;
    chain.facts.kind = KindOf(region);
    ValueId largest = region.inside[0];
    for (ValueId id : region.inside) {
      if (Bytes(id) > Bytes(largest)) largest = id;
    }
    chain.facts.largest = graph_.value(largest).name;
    chain.facts.largest_bytes = Bytes(largest);
    chain.facts.rows = region.rows;
    chain.facts.end_bytes = StorageBytes(region.ends);
    for (const RegionNode& node : region.nodes) taken_[Index(node.id)] = true;
    chain.region = std::move(region);
    found_.push_back(std::move(chain));
  }

  std::string KindOf(const RowRegion& region) const {
    std::set<absl::string_view> ops;
    for (const RegionNode& node : region.nodes) {
      ops.insert(graph_.node(node.id).op);
    }
    const auto any = [&](std::initializer_list<absl::string_view> names) {
      return std::any_of(names.begin(), names.end(), [&](absl::string_view op) {
        return ops.count(op) != 0;
      });
    };
    if (any({"CrossEntropyRows"})) return "head";
    if (any({"Attention", "AttentionGrad", "Softmax", "SoftmaxGrad"})) {
      return "attention";
    }
    if (any({"Conv", "ConvInputGrad", "ConvWeightGrad"})) return "conv";
    return "mlp";
  }

  // Numbers the chains of a kind in the order of the graph; one head is "head".
  void Name() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const FoundChain& a, const FoundChain& b) {
                       return a.region.nodes[0].id < b.region.nodes[0].id;
                     });
    std::map<std::string, int> count;
    for (FoundChain& chain : found_) {
      chain.facts.name =
          absl::StrCat(chain.facts.kind, ".", count[chain.facts.kind]++);
    }
    for (FoundChain& chain : found_) {
      if (chain.facts.kind == "head" && count["head"] == 1) {
        chain.facts.name = "head";
      }
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const FoundChain& a, const FoundChain& b) {
                       return a.facts.largest_bytes > b.facts.largest_bytes;
                     });
  }

  const Graph& graph_;
  const models::GraphIndex index_;
  const std::vector<ValueId> roots_;
  std::vector<bool> taken_;  // by node: part of a chain
  std::vector<FoundChain> found_;
};

// The split of each chain; one segment where none names it.
absl::StatusOr<std::vector<Split>> SplitsOf(
    const std::vector<FoundChain>& chains, absl::Span<const Split> splits) {
  std::set<std::string> seen;
  std::set<std::string> names;
  for (const FoundChain& chain : chains) {
    names.insert(chain.facts.name);
    names.insert(chain.facts.kind);
  }
  std::map<std::string, int64_t> segments;
  for (const Split& split : splits) {
    if (names.count(split.chain) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the step has no chain '", split.chain, "' to split; ",
          names.empty()
              ? "it has none"
              : absl::StrCat("chains: ", absl::StrJoin(names, ", "))));
    }
    if (!segments.emplace(split.chain, split.segments).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("chain '", split.chain, "' is split twice"));
    }
  }
  std::vector<Split> result;
  for (const FoundChain& chain : chains) {
    auto found = segments.find(chain.facts.name);
    if (found == segments.end()) found = segments.find(chain.facts.kind);
    if (found == segments.end()) {
      result.push_back({chain.facts.name, 1});
      continue;
    }
    result.push_back({found->first, found->second});
    if (found->second < 1 || found->second > chain.facts.rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "chain '", chain.facts.name, "' cannot be split into ", found->second,
          " segments: it has ", chain.facts.rows, " rows"));
    }
  }
  return result;
}

// Drops the values that no node makes any more.
void DropUnmade(Graph& graph) {
  models::EraseNodes(&graph, std::vector<bool>(graph.nodes.size(), false));
}

}  // namespace

std::vector<SplittableChain> FindSplittableChains(const Graph& step) {
  Graph graph = step;
  std::vector<SplittableChain> chains;
  if (!DivideCrossEntropy(graph).ok()) return chains;
  for (FoundChain& chain : ChainFinder(graph).Run()) {
    chains.push_back(std::move(chain.facts));
  }
  return chains;
}

absl::StatusOr<Split> ParseSplit(absl::string_view text) {
  const std::pair<std::string, std::string> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  Split split{pair.first, 0};
  if (pair.first.empty() || !absl::SimpleAtoi(pair.second, &split.segments) ||
      split.segments < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no split: expected CHAIN=N, such as head=4"));
  }
  return split;
}

absl::Status SplitOperators(Graph& step, absl::Span<const Split> splits) {
  if (splits.empty()) return absl::OkStatus();
  Graph divided = step;
  LOADLINE_RETURN_IF_ERROR(DivideCrossEntropy(divided));
  const std::vector<FoundChain> chains = ChainFinder(divided).Run();
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<Split> split_of,
                            SplitsOf(chains, splits));
  // A loss whose head stays whole stays one operator.
  for (size_t i = 0; i < chains.size(); ++i) {
    if (split_of[i].segments > 1 && chains[i].facts.kind == "head") {
      step = std::move(divided);
      break;
    }
  }
  for (size_t i = 0; i < chains.size(); ++i) {
    if (split_of[i].segments == 1) continue;
    LOADLINE_RETURN_IF_ERROR(SplitRegion(
        step, chains[i].region, split_of[i].segments, split_of[i].chain));
  }
  DropUnmade(step);
  return absl::OkStatus();
}

}  // namespace loadline::passes
