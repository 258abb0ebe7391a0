// Cuts are ranked 64 at a time: one bit per cut is passed along the edges, so
// that one pass over the graph finds the ancestors and descendants of all 64.
// Tested in tests/planner/bound/bound_cuts_test.cc.
#include "planner/bound/bound_cuts.h"

#include <algorithm>
#include <utility>

namespace loadline::planner {
namespace {

constexpr int kBlock = 64;

bool HasStash(const SearchModel& model, int chain) {
  return std::any_of(model.chains[chain].versions.begin(),
                     model.chains[chain].versions.end(),
                     [&](int v) { return !model.stash[v].empty(); });
}

std::vector<char> Reach(const std::vector<std::vector<int>>& edges, int node) {
  std::vector<char> reached(edges.size(), 0);
  std::vector<int> open(edges.size() + 1);  // each node once, `node` twice
  size_t count = 0;
  open[count++] = node;
  while (count > 0) {
    for (int to : edges[open[--count]]) {
      if (reached[to]) continue;
      reached[to] = 1;
      open[count++] = to;
    }
  }
  return reached;
}

// One value that is kept, or brought back later, while a cut runs.
struct Forced {
  double bytes = 0;
  double price_ns = 0;
};

// The least cost of freeing `excess` bytes: cheapest per byte first, the last
// value in part.
double FractionalKnapsack(std::vector<Forced>& forced, double excess) {
  std::sort(forced.begin(), forced.end(), [](const Forced& a, const Forced& b) {
    return a.price_ns * b.bytes < b.price_ns * a.bytes;
  });
  double price_ns = 0;
  for (const Forced& item : forced) {
    if (excess <= 0) break;
    const double part = std::min(1.0, excess / item.bytes);
    price_ns += part * item.price_ns;
    excess -= item.bytes;
  }
  return price_ns;
}

class Ranker {
 public:
  Ranker(const SearchModel& model, const Precedence& precedence,
         const std::vector<int64_t>& node_ns, int64_t budget_bytes)
      : model_(model),
        precedence_(precedence),
        node_ns_(node_ns),
        budget_bytes_(budget_bytes) {
    for (size_t c = 0; c < model.chains.size(); ++c) {
      if (MayLiveOnHost(model, static_cast<int>(c))) {
        free_bytes_ += model.bytes[model.chains[c].versions.front()];
      }
    }
    for (int v = 0; v < model.value_count; ++v) {
      plain_ = plain_ && !model.may_copy[v] && model.stash[v].empty();
    }
    for (const auto& variants : model.variants) {
      plain_ = plain_ && variants.empty();
    }
  }

  void Rank(const std::vector<int>& nodes, std::vector<Cut>& cuts) {
    Flow(nodes);
    for (auto& forced : forced_) forced.clear();
    bytes_.assign(nodes.size(), 0);
    for (size_t i = 0; i < nodes.size(); ++i) AddOwn(nodes, i);
    for (int v = 0; v < model_.value_count; ++v) AddSpanning(v);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int64_t excess = bytes_[i] - budget_bytes_;
      cuts.push_back(
          {nodes[i], excess,
           FractionalKnapsack(forced_[i], static_cast<double>(excess))});
      if (Proves(nodes[i])) {
        const int64_t least = excess - free_bytes_ - OtherPairs(nodes[i]);
        cuts.back().proven_ns =
            least == excess
                ? cuts.back().price_ns
                : FractionalKnapsack(forced_[i], static_cast<double>(least));
      }
    }
  }

 private:
  // Is the knapsack a proof? When the cut first runs, all its ancestors have
  // run and no descendant has, so each forced value is on the device or is made
  // again later. If the cut read a later version, the persistent value would
  // count twice.
  bool Proves(int node) const {
    return plain_ && std::all_of(model_.reads[node].begin(),
                                 model_.reads[node].end(), [&](int v) {
                                   return model_.chain_of[v] < 0 ||
                                          model_.FirstVersion(v);
                                 });
  }

  // Bytes of outputs that a plan may place over an input although SearchModel
  // chose another pair.
  int64_t OtherPairs(int node) const {
    int64_t bytes = 0;
    std::vector<int> outputs;
    for (const auto& [in, out] : model_.overwrites[node]) {
      outputs.push_back(out);
    }
    for (const auto& [in, out] : model_.problem->nodes[node].inplace) {
      const int v = static_cast<int>(out);
      if (model_.chain_of[v] >= 0 ||
          std::find(outputs.begin(), outputs.end(), v) != outputs.end()) {
        continue;
      }
      outputs.push_back(v);
      bytes += model_.bytes[v];
    }
    return bytes;
  }

  // The given order is topological for all edges of Precedence.
  void Flow(const std::vector<int>& nodes) {
    before_.assign(model_.node_count, 0);
    after_.assign(model_.node_count, 0);
    own_.assign(model_.node_count, 0);
    for (size_t i = 0; i < nodes.size(); ++i) {
      own_[nodes[i]] = uint64_t{1} << i;
    }
    for (int n = 0; n < model_.node_count; ++n) {
      for (int p : precedence_.before()[n]) after_[n] |= after_[p] | own_[p];
    }
    for (int n = model_.node_count - 1; n >= 0; --n) {
      for (int s : precedence_.after()[n]) before_[n] |= before_[s] | own_[s];
    }
  }

  void AddOwn(const std::vector<int>& nodes, size_t i) {
    const int node = nodes[i];
    bytes_[i] += model_.workspace_bytes[node];
    for (int v : model_.reads[node]) bytes_[i] += model_.bytes[v];
    for (int v : model_.makes[node]) {
      if (model_.chain_of[v] < 0) bytes_[i] += model_.bytes[v];
    }
    for (const auto& [in, out] : model_.overwrites[node]) {
      if (model_.chain_of[out] < 0) bytes_[i] -= model_.bytes[out];
    }
  }

  // Adds the value to every cut between its producer and a later reader.
  void AddSpanning(int v) {
    if (model_.bytes[v] == 0) return;
    const int producer = model_.producer[v];
    uint64_t made = ~uint64_t{0};
    uint64_t needed = model_.is_output[v] ? ~uint64_t{0} : 0;
    uint64_t reading = 0;
    for (const NodeId id : model_.index.consumers[v]) {
      needed |= after_[Index(id)];
      reading |= own_[Index(id)];
    }
    if (model_.chain_of[v] >= 0) {
      if (!model_.FirstVersion(v)) return;
      needed = ~uint64_t{0};
    } else if (producer >= 0) {
      made = before_[producer];
    }
    uint64_t spanned = made & needed & ~reading;
    const Forced item = {static_cast<double>(model_.bytes[v]), Price(v)};
    while (spanned != 0) {
      const int i = __builtin_ctzll(spanned);
      spanned &= spanned - 1;
      if (i >= static_cast<int>(bytes_.size())) break;
      bytes_[i] += model_.bytes[v];
      if (item.price_ns >= 0) forced_[i].push_back(item);
    }
  }

  // Cost of freeing the value; -1: impossible.
  double Price(int v) const {
    double price_ns = -1;
    const int producer = model_.producer[v];
    if (producer >= 0 && model_.may_rerun[producer]) {
      price_ns = static_cast<double>(node_ns_[producer]) /
                 static_cast<double>(model_.makes[producer].size());
    }
    if (model_.may_copy[v]) {
      const double copy_ns =
          model_.out_ns[v] + model_.in_ns[v] + 2 * model_.copy_overhead_ns;
      price_ns = price_ns < 0 ? copy_ns : std::min(price_ns, copy_ns);
    }
    return price_ns;
  }

  const SearchModel& model_;
  const Precedence& precedence_;
  const std::vector<int64_t>& node_ns_;
  const int64_t budget_bytes_;
  bool plain_ = true;       // no copies, codecs or variants
  int64_t free_bytes_ = 0;  // of values that may live on the host unread
  // By node: bit i if it must run before (after) cut i of the block, is cut i.
  std::vector<uint64_t> before_, after_, own_;
  std::vector<int64_t> bytes_;
  std::vector<Forced> forced_[kBlock];
};

}  // namespace

bool MayLeave(const SearchModel& model, int chain) {
  const std::vector<int>& versions = model.chains[chain].versions;
  return std::any_of(versions.begin(), versions.end(),
                     [&](int v) { return model.may_copy[v] != 0; });
}

bool MayLiveOnHost(const SearchModel& model, int chain) {
  const std::vector<int>& versions = model.chains[chain].versions;
  const int first = versions.front();
  const int last = versions.back();
  const Problem& problem = *model.problem;
  if (!problem.values[first].offload || !problem.machine ||
      problem.machine->host_bytes <= 0) {
    return false;
  }
  if (first != last) return MayLeave(model, chain) && model.may_copy[last];
  return model.index.consumers[first].empty() || model.may_copy[first];
}

int Overwriter(const SearchModel& model, int version) {
  const int chain = model.chain_of[version];
  // docs/certificates.md uses the rule only with addresses.
  const bool one_address = chain >= 0 && model.problem->addresses &&
                           model.bytes[version] > 0 &&
                           !MayLeave(model, chain) && !HasStash(model, chain);
  return one_address ? model.Overwriter(version) : -1;
}

Precedence::Precedence(const SearchModel& model) {
  before_.resize(model.node_count);
  after_.resize(model.node_count);
  for (int n = 0; n < model.node_count; ++n) {
    for (int v : model.reads[n]) {
      if (model.producer[v] >= 0) before_[n].push_back(model.producer[v]);
    }
  }
  for (int v = 0; v < model.value_count; ++v) {
    const int overwriter = Overwriter(model, v);
    if (overwriter < 0) continue;
    for (const NodeId id : model.index.consumers[v]) {
      const int reader = static_cast<int>(id);
      if (reader != overwriter) before_[overwriter].push_back(reader);
    }
  }
  for (int n = 0; n < model.node_count; ++n) {
    std::sort(before_[n].begin(), before_[n].end());
    before_[n].erase(std::unique(before_[n].begin(), before_[n].end()),
                     before_[n].end());
    for (int p : before_[n]) after_[p].push_back(n);
  }
}

std::vector<char> Precedence::Ancestors(int node) const {
  return Reach(before_, node);
}

std::vector<char> Precedence::Descendants(int node) const {
  return Reach(after_, node);
}

std::vector<Cut> FindCuts(const SearchModel& model,
                          const Precedence& precedence,
                          const std::vector<int64_t>& node_ns,
                          int64_t budget_bytes, int most) {
  Ranker ranker(model, precedence, node_ns, budget_bytes);
  std::vector<Cut> cuts;
  std::vector<int> block;
  const auto rank = [&] {
    ranker.Rank(block, cuts);
    block.clear();
  };
  const auto sort = [&] {
    std::stable_sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) {
      return std::pair(a.price_ns, a.excess_bytes) >
             std::pair(b.price_ns, b.excess_bytes);
    });
  };
  const int64_t count = std::min(model.node_count, most);
  for (int64_t i = 0; i < count; ++i) {
    block.push_back(static_cast<int>(i * model.node_count / count));
    if (block.size() == kBlock || i + 1 == count) rank();
  }
  sort();
  if (count == model.node_count) return cuts;
  const int best = cuts.front().node;
  for (int n = best - kBlock / 2; n <= best + kBlock / 2; ++n) {
    if (n >= 0 && n < model.node_count && n != best && block.size() < kBlock) {
      block.push_back(n);
    }
  }
  rank();
  sort();
  // Remove cuts ranked twice.
  std::vector<char> seen(model.node_count, 0);
  std::erase_if(cuts, [&](const Cut& cut) {
    return std::exchange(seen[cut.node], 1) != 0;
  });
  return cuts;
}

}  // namespace loadline::planner
