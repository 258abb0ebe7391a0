// At the moment t_i when cut x_i starts for the first time, every ancestor of
// x_i has ended and no descendant has started. A value made by an ancestor and
// read by a descendant is on the device then (k), or on the host and copied
// back later (in), or made again later (r), or on the device encoded and
// decoded later; all that is on the device fits the budget. With several cuts
// this holds in every epoch [t_i, t_i+1), and what is on the device at t_i+1
// was there at t_i or came in the epoch. Nodes that are neither ancestor nor
// descendant are left free, and wherever a plan has more choices than these
// (copies in flight, second instances, encoded copies on the host) the program
// grants them for nothing: it is a relaxation of every valid plan.
//
// Time: compute in the epochs, reruns included, and the copy lanes: what is on
// the host at t_i was copied out before, what comes back in epoch i or later
// starts after t_i. Latencies count; that both lanes slow each other down
// counts over the whole step.
//
// Tested in tests/planner/bound_test.cc against exact optima of small problems
// (oracle.h) and every plan found on random ones.
#include "planner/bound_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/bound_cuts.h"

namespace loadline::planner {
namespace {

using Terms = std::vector<Term>;

void Append(Terms& to, const Terms& from, double factor) {
  for (const Term& term : from) {
    to.push_back({term.column, factor * term.coefficient});
  }
}

class Builder {
 public:
  Builder(const Model& model, const LeastCosts& least,
          const std::vector<int>& cuts, int64_t budget_bytes, double horizon_ns)
      : model_(model),
        least_(least),
        cuts_(cuts),
        epochs_(static_cast<int>(cuts.size())),
        horizon_ns_(horizon_ns),
        precedence_(model) {
    budget_bytes_ = static_cast<double>(
        AlignUp(std::min(budget_bytes, INT64_MAX - model.alignment_bytes),
                model.alignment_bytes));
    result_.unit_ns = std::max(1.0, static_cast<double>(least.compute_ns) /
                                        std::max(1, model.node_count));
    result_.offset_ns = static_cast<double>(least.compute_ns);
    for (const char may : model.may_copy) copies_ = copies_ || may;
  }

  BoundProgram Build() {
    FindEpochs();
    FindRelevant();
    if (copies_) AddTimes();
    AddValues();
    AddReruns();
    AddCarries();
    AddNeeds();
    for (size_t c = 0; c < model_.chains.size(); ++c) {
      AddChain(static_cast<int>(c));
    }
    for (int i = 1; i <= epochs_; ++i) AddBudget(i);
    if (copies_) AddLanes();
    return std::move(result_);
  }

 private:
  // What is known of one tracked value in one epoch.
  struct Tracked {
    int keep = -1;  // column: on the device, plain, when the epoch begins
    int host = -1;  // on the host then
    int in = -1;    // copied back in the epoch
    std::vector<int> encoded;  // by codec: on the device encoded
    std::vector<int> decode;   // by codec: decoded in the epoch
  };
  // One persistent value at every cut; columns, -1: does not exist.
  struct ChainColumns {
    bool fixed = false;  // some version is always on the device
    bool free = false;   // may be anywhere
    int home_host = -1;
    std::vector<int> keep;  // by epoch from 1
    std::vector<int> in;    // by epoch from 0
    std::vector<int> out;   // by epoch from 1, one more for the end
  };

  int Binary(double cost_ns) {
    return result_.program.AddColumn(copies_ ? 0 : cost_ns / result_.unit_ns, 0,
                                     1, true);
  }
  // A column whose cost is time on the compute lane in epoch i.
  int Work(int i, double ns) {
    const int column = Binary(ns);
    if (copies_ && ns > 0) work_[i].push_back({column, ns / result_.unit_ns});
    return column;
  }
  void Row(double lower, const Terms& terms) {
    result_.program.AddRow(lower, kNoLimit, terms);
  }
  int Consumers(int v) const {
    return static_cast<int>(model_.index.consumers[v].size());
  }

  // Epoch of each node: its first run is in [from_, until_).
  void FindEpochs() {
    from_.assign(model_.node_count, 0);
    until_.assign(model_.node_count, epochs_ + 1);
    for (int i = 1; i <= epochs_; ++i) {
      const int cut = cuts_[i - 1];
      const std::vector<char> before = precedence_.Ancestors(cut);
      const std::vector<char> after = precedence_.Descendants(cut);
      for (int n = 0; n < model_.node_count; ++n) {
        if (after[n]) from_[n] = i;
        if (before[n]) until_[n] = std::min(until_[n], i);
      }
      ancestors_.push_back(before);
    }
    is_cut_.assign(model_.node_count, 0);
    for (int i = 1; i <= epochs_; ++i) {
      from_[cuts_[i - 1]] = i;
      until_[cuts_[i - 1]] = i + 1;
      is_cut_[cuts_[i - 1]] = 1;
    }
    birth_.assign(model_.value_count, epochs_ + 1);
    for (int v = 0; v < model_.value_count; ++v) {
      if (model_.chain_of[v] >= 0) continue;
      const int producer = model_.producer[v];
      birth_[v] = producer < 0 ? 1 : FirstAfter(producer);
    }
  }
  // The first cut that `node` is an ancestor of; epochs_ + 1: none.
  int FirstAfter(int node) const {
    for (int i = 1; i <= epochs_; ++i) {
      if (ancestors_[i - 1][node]) return i;
    }
    return epochs_ + 1;
  }

  // Does a first run or the end surely need the value in epoch i or later?
  bool Wanted(int v, int i) const {
    if (model_.is_output[v]) return true;
    for (const NodeId id : model_.index.consumers[v]) {
      const int n = static_cast<int>(id);
      if (is_cut_[n] ? from_[n] > i : from_[n] >= birth_[v] && until_[n] > i) {
        return true;
      }
    }
    return false;
  }

  // tracked_[i]: the values that matter in epoch i. What is wanted, what was
  // tracked later, and inputs of what may run again for their sake.
  void FindRelevant() {
    tracked_.resize(epochs_ + 1);
    for (int i = epochs_; i >= 1; --i) {
      std::vector<char> relevant(model_.value_count, 0);
      for (int v = 0; v < model_.value_count; ++v) {
        relevant[v] =
            birth_[v] <= i &&
            (Wanted(v, i) || (i < epochs_ && tracked_[i + 1].count(v) > 0));
      }
      for (int n = model_.node_count - 1; n >= 0; --n) {
        if (!ancestors_[i - 1][n] || !model_.may_rerun[n]) continue;
        const bool again =
            std::any_of(model_.makes[n].begin(), model_.makes[n].end(),
                        [&](int v) { return relevant[v] != 0; });
        if (!again) continue;
        for (int u : model_.reads[n]) {
          if (model_.chain_of[u] < 0) relevant[u] = 1;
        }
      }
      for (int v = 0; v < model_.value_count; ++v) {
        if (relevant[v]) tracked_[i].emplace(v, Tracked());
      }
    }
  }

  void AddTimes() {
    const double unit = result_.unit_ns;
    const double most =
        std::max(0.0, horizon_ns_ - static_cast<double>(least_.compute_ns));
    extra_ = result_.program.AddColumn(1, 0, most / unit, false);
    starts_.push_back(-1);
    for (int i = 1; i <= epochs_; ++i) {
      starts_.push_back(
          result_.program.AddColumn(0, 0, horizon_ns_ / unit, false));
    }
    work_.resize(epochs_ + 1);
  }

  int64_t Charged(int64_t bytes) const {
    return AlignUp(bytes, model_.alignment_bytes);
  }

  // Bytes of the least form of a value.
  int64_t LeastBytes(int v) const {
    int64_t bytes = model_.problem->values[v].bytes;
    for (const Codec& codec : model_.problem->values[v].stash) {
      bytes = std::min(bytes, codec.bytes);
    }
    return bytes;
  }
  double OutNs(int v) const {
    return model_.latency_ns +
           static_cast<double>(LeastBytes(v)) / model_.d2h_bytes_per_ns;
  }
  double InNs(int v) const {
    return model_.latency_ns +
           static_cast<double>(LeastBytes(v)) / model_.h2d_bytes_per_ns;
  }

  bool Reads(int node, int v) const {
    return std::binary_search(model_.reads[node].begin(),
                              model_.reads[node].end(), v);
  }
  bool MayLoseBytes(int node, int v) const {
    for (const auto& [in, out] : model_.problem->nodes[node].inplace) {
      if (static_cast<int>(in) == v) return true;
    }
    return false;
  }

  void AddValues() {
    for (int i = 1; i <= epochs_; ++i) {
      for (auto& [v, tracked] : tracked_[i]) {
        tracked.keep = Binary(0);
        const int cut = cuts_[i - 1];
        if (Reads(cut, v) && !MayLoseBytes(cut, v)) {
          result_.program.columns[tracked.keep].lower = 1;
        }
        if (model_.may_copy[v]) {
          tracked.host = Binary(0);
          tracked.in = Binary(0);
          Row(0, {{tracked.host, 1}, {tracked.in, -1}});
        }
        AddCodecs(i, v, tracked);
      }
    }
  }

  void AddCodecs(int i, int v, Tracked& tracked) {
    const std::vector<Codec>& codecs = model_.problem->values[v].stash;
    for (size_t c = 0; c < codecs.size(); ++c) {
      tracked.encoded.push_back(Binary(0));
      tracked.decode.push_back(
          Work(i, static_cast<double>(codecs[c].decode_ns)));
      Row(0, {{tracked.encoded[c], 1}, {tracked.decode[c], -1}});
      // Encoded at least once; when does not matter.
      const auto [once, added] = encodes_.try_emplace({v, c}, -1);
      if (added) {
        once->second = Binary(static_cast<double>(codecs[c].encode_ns));
        if (copies_) {
          encode_work_.push_back(
              {once->second,
               static_cast<double>(codecs[c].encode_ns) / result_.unit_ns});
        }
      }
      Row(0, {{once->second, 1}, {tracked.encoded[c], -1}});
    }
  }

  // Everything that brings the value to the device in epoch i.
  Terms Arrivals(int v, int i) const {
    const auto found = tracked_[i].find(v);
    if (found == tracked_[i].end()) return {};
    Terms terms;
    if (found->second.in >= 0) terms.push_back({found->second.in, 1});
    for (int column : found->second.decode) terms.push_back({column, 1});
    const int producer = model_.producer[v];
    if (producer >= 0) {
      const auto again = reruns_.find({i, producer});
      if (again != reruns_.end()) terms.push_back({again->second, 1});
    }
    return terms;
  }
  Terms Available(int v, int i) const {
    Terms terms = Arrivals(v, i);
    terms.push_back({tracked_[i].at(v).keep, 1});
    return terms;
  }

  void AddReruns() {
    for (int i = 1; i <= epochs_; ++i) {
      for (const auto& [v, tracked] : tracked_[i]) {
        const int producer = model_.producer[v];
        if (producer < 0 || !model_.may_rerun[producer] ||
            reruns_.count({i, producer}) > 0) {
          continue;
        }
        reruns_[{i, producer}] =
            Work(i, static_cast<double>(least_.node_ns[producer]));
      }
    }
    for (const auto& [key, column] : reruns_) {
      const auto [i, node] = key;
      for (int u : model_.reads[node]) {
        if (model_.chain_of[u] >= 0) {
          if (GoneAt(u, i)) result_.program.columns[column].upper = 0;
          continue;
        }
        Terms terms = Available(u, i);
        terms.push_back({column, -1});
        Row(0, terms);
      }
    }
  }

  // Is this version surely overwritten once cut i has run?
  bool GoneAt(int version, int i) const {
    const int updater = model_.Updater(version);
    return updater >= 0 && OldVersionDies(model_, version) &&
           (updater == cuts_[i - 1] || ancestors_[i - 1][updater]);
  }

  void AddCarries() {
    for (int i = 1; i < epochs_; ++i) {
      for (const auto& [v, later] : tracked_[i + 1]) {
        const auto now = tracked_[i].find(v);
        if (now == tracked_[i].end()) continue;
        Terms terms = Available(v, i);
        terms.push_back({later.keep, -1});
        Row(0, terms);
        if (later.host >= 0) {
          Row(0, {{later.host, 1}, {now->second.host, -1}});
        }
        if (later.in >= 0) continue;  // encoded on the host, perhaps
        for (size_t c = 0; c < later.encoded.size(); ++c) {
          Terms encoded = Available(v, i);
          encoded.push_back({now->second.encoded[c], 1});
          encoded.push_back({later.encoded[c], -1});
          Row(0, encoded);
        }
      }
    }
  }

  // Some way to be there for a reader in epochs [from, until).
  void AddNeed(int v, int from, int until) {
    Terms terms = Available(v, from);
    for (int i = from + 1; i < until; ++i) Append(terms, Arrivals(v, i), 1);
    Row(1, terms);
  }

  void AddNeeds() {
    for (int v = 0; v < model_.value_count; ++v) {
      if (birth_[v] > epochs_) continue;
      std::vector<std::pair<int, int>> needs;
      if (model_.is_output[v]) needs.push_back({epochs_, epochs_ + 1});
      for (const NodeId id : model_.index.consumers[v]) {
        const int n = static_cast<int>(id);
        if (!is_cut_[n] && from_[n] >= birth_[v]) {
          needs.push_back({from_[n], until_[n]});
        }
      }
      std::sort(needs.begin(), needs.end());
      needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
      for (const auto& [from, until] : needs) AddNeed(v, from, until);
    }
  }

  // The nodes that touch some version of the chain.
  std::vector<int> Touchers(int c) const {
    std::vector<int> nodes;
    for (int v : model_.chains[c].versions) {
      for (const NodeId id : model_.index.consumers[v]) {
        nodes.push_back(static_cast<int>(id));
      }
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }
  int LastUpdater(int c) const {
    return model_.producer[model_.chains[c].versions.back()];
  }

  void AddChain(int c) {
    chains_.emplace_back();
    ChainColumns& chain = chains_.back();
    const std::vector<int> touchers = Touchers(c);
    if (!MayLeave(model_, c)) {
      chain.free = MayLiveOnHost(model_, c);
      chain.fixed = !chain.free;
      return;
    }
    chain.home_host = Binary(0);
    if (!MayLiveOnHost(model_, c)) {
      result_.program.columns[chain.home_host].upper = 0;
    }
    chain.keep.assign(epochs_ + 1, -1);
    for (int i = 0; i <= epochs_; ++i) chain.in.push_back(Binary(0));
    for (int i = 1; i <= epochs_; ++i) chain.keep[i] = Binary(0);
    chain.out.assign(epochs_ + 2, -1);
    for (int i = 1; i <= epochs_ + 1; ++i) chain.out[i] = Binary(0);
    AddChainCarries(chain);
    AddChainOuts(c, chain);
    int first_until = epochs_ + 2;
    for (int n : touchers) {
      if (is_cut_[n]) {
        result_.program.columns[chain.keep[from_[n]]].lower = 1;
      } else if (from_[n] > 0) {
        Terms terms = {{chain.keep[from_[n]], 1}};
        for (int i = from_[n]; i < until_[n]; ++i) {
          terms.push_back({chain.in[i], 1});
        }
        Row(1, terms);
      } else {
        first_until = std::min(first_until, until_[n]);
      }
    }
    if (first_until <= epochs_ + 1) {
      Terms terms = {{chain.home_host, -1}};
      for (int i = 0; i < first_until; ++i) terms.push_back({chain.in[i], 1});
      Row(0, terms);
    }
    for (const auto& [key, column] : reruns_) {
      const auto [i, node] = key;
      for (int u : model_.reads[node]) {
        if (model_.chain_of[u] != c) continue;
        Row(0, {{chain.keep[i], 1}, {chain.in[i], 1}, {column, -1}});
      }
    }
  }

  void AddChainCarries(const ChainColumns& chain) {
    // keep[1] <= (1 - home_host) + in[0]
    Row(-1, {{chain.home_host, -1}, {chain.in[0], 1}, {chain.keep[1], -1}});
    for (int i = 1; i < epochs_; ++i) {
      Row(0, {{chain.keep[i], 1}, {chain.in[i], 1}, {chain.keep[i + 1], -1}});
    }
    // At home on the device in the end.
    Row(1, {{chain.keep[epochs_], 1},
            {chain.in[epochs_], 1},
            {chain.home_host, 1}});
  }

  void AddChainOuts(int c, const ChainColumns& chain) {
    const int updater = LastUpdater(c);
    for (int i = 1; i <= epochs_; ++i) {
      Terms absent = {{chain.out[i], 1}, {chain.keep[i], 1}};
      const bool updated = updater >= 0 && ancestors_[i - 1][updater];
      if (!updated) absent.push_back({chain.home_host, 1});
      Row(1, absent);
      Row(0, {{chain.out[i + 1], 1}, {chain.out[i], -1}});
    }
    if (updater >= 0) {
      Row(0, {{chain.out[epochs_ + 1], 1}, {chain.home_host, -1}});
    }
  }

  void AddBudget(int i) {
    const int cut = cuts_[i - 1];
    Terms terms;
    double left =
        budget_bytes_ - static_cast<double>(least_.workspace_bytes[cut]);
    const auto bytes = [](int64_t b) { return static_cast<double>(b); };
    for (int v : model_.makes[cut]) {
      if (model_.chain_of[v] < 0) left -= bytes(model_.bytes[v]);
    }
    for (int v : model_.reads[cut]) {
      if (model_.chain_of[v] < 0 && tracked_[i].count(v) == 0) {
        left -= bytes(model_.bytes[v]);
      }
    }
    for (const auto& [v, tracked] : tracked_[i]) {
      // What the cut reads and may overwrite counts whole; see AddInPlace.
      if (Reads(cut, v)) {
        left -= bytes(model_.bytes[v]);
      } else {
        terms.push_back({tracked.keep, bytes(model_.bytes[v])});
      }
      for (size_t c = 0; c < tracked.encoded.size(); ++c) {
        terms.push_back(
            {tracked.encoded[c],
             bytes(Charged(model_.problem->values[v].stash[c].bytes))});
      }
    }
    AddChainBytes(i, terms, left);
    AddInPlace(i, terms, left);
    double unit = 1;
    for (const Term& term : terms) {
      unit = std::max(unit, std::fabs(term.coefficient));
    }
    for (Term& term : terms) term.coefficient /= unit;
    result_.program.AddRow(-kNoLimit, left / unit, terms);
  }

  void AddChainBytes(int i, Terms& terms, double& left) {
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].free) continue;
      const std::vector<int>& versions = model_.chains[c].versions;
      int64_t least = model_.bytes[versions.front()];
      bool touched = false;
      for (int v : versions) {
        least = std::min(least, Charged(LeastBytes(v)));
        touched = touched || Reads(cuts_[i - 1], v);
      }
      const double bytes =
          static_cast<double>(touched ? model_.bytes[versions.front()] : least);
      if (chains_[c].fixed || touched) {
        left -= bytes;
      } else {
        terms.push_back({chains_[c].keep[i], bytes});
      }
    }
  }

  // An output may take the bytes of an input that is not needed any more: such
  // an input is kept unless some output takes it.
  void AddInPlace(int i, Terms& terms, double& left) {
    const int cut = cuts_[i - 1];
    std::map<int, Terms> by_input, by_output;
    for (const auto& [from, to] : model_.problem->nodes[cut].inplace) {
      const int in = static_cast<int>(from);
      const int out = static_cast<int>(to);
      if (model_.chain_of[in] >= 0 &&
          model_.chain_of[in] == model_.chain_of[out]) {
        continue;
      }
      const int taken = Binary(0);
      terms.push_back({taken, -static_cast<double>(model_.bytes[out])});
      by_input[in].push_back({taken, 1});
      by_output[out].push_back({taken, 1});
    }
    left += 1e-6;  // less than a byte, more than a coefficient's rounding
    for (auto& [out, columns] : by_output) {
      result_.program.AddRow(-kNoLimit, 1, columns);
    }
    for (auto& [in, columns] : by_input) {
      const auto found = tracked_[i].find(in);
      if (found != tracked_[i].end()) {
        columns.push_back({found->second.keep, 1});
        result_.program.AddRow(1, 1, columns);
      } else {
        result_.program.AddRow(-kNoLimit, 1, columns);
      }
    }
  }

  // --- The three lanes.

  // end of epoch i minus its begin, with factor: as terms and a constant.
  void AddSpan(int from, int until, Terms& terms, double& constant) const {
    if (until <= epochs_) {
      terms.push_back({starts_[until], 1});
    } else {
      terms.push_back({extra_, 1});
      constant += static_cast<double>(least_.compute_ns) / result_.unit_ns;
    }
    if (from > 0) terms.push_back({starts_[from], -1});
  }

  void AddLanes() {
    AddCompute();
    for (int i = 1; i <= epochs_ + 1; ++i) AddOutsBefore(i);
    for (int i = 1; i <= epochs_; ++i) AddOutsAfter(i);
    for (int i = 0; i <= epochs_; ++i) AddInsFrom(i);
    for (int i = 1; i <= epochs_; ++i) AddInsBefore(i);
    if (model_.bidirectional < 1) AddBoth();
  }

  void AddCompute() {
    const double unit = result_.unit_ns;
    std::vector<double> sure(epochs_ + 1, 0);
    std::map<std::pair<int, int>, double> unsure;
    for (int n = 0; n < model_.node_count; ++n) {
      const double ns = static_cast<double>(least_.node_ns[n]) / unit;
      if (until_[n] == from_[n] + 1) {
        sure[from_[n]] += ns;
      } else {
        unsure[{from_[n], until_[n]}] += ns;
      }
    }
    std::vector<Terms> portions(epochs_ + 1);
    for (const auto& [range, ns] : unsure) {
      Terms all;
      for (int i = range.first; i < range.second; ++i) {
        const int column = result_.program.AddColumn(0, 0, ns, false);
        all.push_back({column, 1});
        portions[i].push_back({column, -1});
      }
      result_.program.AddRow(ns, ns, all);
    }
    Terms total = {{extra_, 1}};
    for (int i = 0; i <= epochs_; ++i) {
      Terms terms = portions[i];
      Append(terms, work_[i], -1);
      Append(total, work_[i], -1);
      double constant = 0;
      AddSpan(i, i + 1, terms, constant);
      Row(sure[i] - constant, terms);
    }
    Append(total, encode_work_, -1);
    Row(0, total);
  }

  // All that is on the host when cut i starts was copied out before.
  void AddOutsBefore(int i) {
    Terms terms;
    double constant = 0;
    AddSpan(0, i, terms, constant);
    for (const auto& [v, tracked] : tracked_[std::min(i, epochs_)]) {
      if (tracked.host < 0) continue;
      terms.push_back({tracked.host, -OutNs(v) / result_.unit_ns});
    }
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].home_host < 0) continue;
      terms.push_back({chains_[c].out[i],
                       -OutNs(model_.chains[c].versions[0]) / result_.unit_ns});
    }
    Row(-constant, terms);
  }

  // What lives on the host goes out after its last update.
  void AddOutsAfter(int i) {
    Terms terms;
    double constant = 0;
    AddSpan(i, epochs_ + 1, terms, constant);
    for (size_t c = 0; c < chains_.size(); ++c) {
      const int updater = LastUpdater(static_cast<int>(c));
      if (chains_[c].home_host < 0 || updater < 0 || from_[updater] < i) {
        continue;
      }
      terms.push_back({chains_[c].home_host,
                       -OutNs(model_.chains[c].versions[0]) / result_.unit_ns});
    }
    Row(-constant, terms);
  }

  // What comes in epoch i or later comes after its begin.
  void AddInsFrom(int i) {
    Terms terms;
    double constant = 0;
    AddSpan(i, epochs_ + 1, terms, constant);
    for (int j = std::max(i, 1); j <= epochs_; ++j) {
      for (const auto& [v, tracked] : tracked_[j]) {
        if (tracked.in < 0) continue;
        terms.push_back({tracked.in, -InNs(v) / result_.unit_ns});
      }
    }
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].home_host < 0) continue;
      for (int j = i; j <= epochs_; ++j) {
        terms.push_back({chains_[c].in[j], -InNs(model_.chains[c].versions[0]) /
                                               result_.unit_ns});
      }
    }
    Row(-constant, terms);
  }

  // What lives on the host and is read before cut i came before.
  void AddInsBefore(int i) {
    Terms terms;
    double constant = 0;
    AddSpan(0, i, terms, constant);
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].home_host < 0) continue;
      const std::vector<int> touchers = Touchers(static_cast<int>(c));
      const bool before = std::any_of(
          touchers.begin(), touchers.end(),
          [&](int n) { return n == cuts_[i - 1] || ancestors_[i - 1][n]; });
      if (!before) continue;
      terms.push_back({chains_[c].home_host,
                       -InNs(model_.chains[c].versions[0]) / result_.unit_ns});
    }
    Row(-constant, terms);
  }

  // While both lanes move bytes, together they do at most twice the factor of
  // the work of one.
  void AddBoth() {
    Terms terms;
    double constant = 0;
    AddSpan(0, epochs_ + 1, terms, constant);
    const double speed = std::max(1.0, 2 * model_.bidirectional);
    for (Term& term : terms) term.coefficient *= speed;
    constant *= speed;
    const double unit = result_.unit_ns;
    for (const auto& [v, tracked] : tracked_[epochs_]) {
      if (tracked.host < 0) continue;
      terms.push_back({tracked.host, (model_.latency_ns - OutNs(v)) / unit});
    }
    for (int j = 1; j <= epochs_; ++j) {
      for (const auto& [v, tracked] : tracked_[j]) {
        if (tracked.in < 0) continue;
        terms.push_back({tracked.in, (model_.latency_ns - InNs(v)) / unit});
      }
    }
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].home_host < 0) continue;
      const int v = model_.chains[c].versions[0];
      terms.push_back(
          {chains_[c].out[epochs_ + 1], (model_.latency_ns - OutNs(v)) / unit});
      for (int j = 0; j <= epochs_; ++j) {
        terms.push_back(
            {chains_[c].in[j], (model_.latency_ns - InNs(v)) / unit});
      }
    }
    Row(-constant, terms);
  }

  const Model& model_;
  const LeastCosts& least_;
  const std::vector<int>& cuts_;
  const int epochs_;
  const double horizon_ns_;
  const Precedence precedence_;
  bool copies_ = false;
  double budget_bytes_ = 0;
  BoundProgram result_;
  std::vector<std::vector<char>> ancestors_;  // by cut, by node
  std::vector<int> from_, until_;             // by node
  std::vector<char> is_cut_;                  // by node
  std::vector<int> birth_;  // by value: first cut by which it was made
  std::vector<std::map<int, Tracked>> tracked_;    // by epoch from 1
  std::map<std::pair<int, int>, int> reruns_;      // (epoch, node): column
  std::map<std::pair<int, size_t>, int> encodes_;  // (value, codec): column
  std::vector<ChainColumns> chains_;
  // With copies: the step's time beyond compute, the cuts' times, and what
  // the compute lane does besides first runs.
  int extra_ = -1;
  std::vector<int> starts_;
  std::vector<Terms> work_;
  Terms encode_work_;
};

}  // namespace

LeastCosts FindLeastCosts(const Model& model) {
  LeastCosts least;
  for (int n = 0; n < model.node_count; ++n) {
    int64_t ns = model.node_ns[n];
    int64_t bytes = model.workspace_bytes[n];
    for (const Variant& variant : model.problem->nodes[n].variants) {
      ns = std::min(ns, variant.time_ns);
      bytes = std::min(bytes,
                       AlignUp(variant.workspace_bytes, model.alignment_bytes));
    }
    least.node_ns.push_back(ns);
    least.workspace_bytes.push_back(bytes);
    least.compute_ns += ns;
  }
  return least;
}

BoundProgram MakeBoundProgram(const Model& model, const LeastCosts& least,
                              const std::vector<int>& cuts,
                              int64_t budget_bytes, double horizon_ns) {
  return Builder(model, least, cuts, budget_bytes, horizon_ns).Build();
}

}  // namespace loadline::planner
