// Builds the program of bound_program.h. Internal: bound_program.cc has the
// whole and the bytes at the cuts, bound_epochs.cc what matters at which cut,
// bound_values.cc the values, bound_chains.cc what is persistent, bound_fits.cc
// the bytes of reruns, bound_lanes.cc the time.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_BUILDER_H_
#define LOADLINE_PLANNER_BOUND_BOUND_BUILDER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_program.h"
#include "planner/bound/mip.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

class ProgramBuilder {
 public:
  ProgramBuilder(const SearchModel& model, const LeastCosts& least,
                 const Precedence& precedence, const std::vector<int>& cuts,
                 int until, int64_t budget_bytes, double horizon_ns,
                 bool free_nodes);
  BoundProgram Build();

 private:
  using Terms = std::vector<Term>;

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

  int Binary(double cost_ns);
  // A column whose cost is time on the compute lane in epoch i.
  int Work(int i, double ns);
  // terms >= lower.
  void Row(double lower, const Terms& terms);
  static void Append(Terms& to, const Terms& from, double factor);

  void FindEpochs();
  // Columns for the nodes that are free to run before or after the only cut.
  void AddFreeNodes();
  // Has the node run, perhaps, before cut i?
  bool MayHaveRun(int node, int i) const {
    return ancestors_[i - 1][node] || ran_[node] >= 0;
  }
  // The first cut that `node` is an ancestor of; epochs_ + 1: none.
  int FirstAfter(int node) const;
  // Does a first run or the end surely need the value in epoch i or later?
  bool Wanted(int v, int i) const;
  // Fills tracked_: what is wanted, what is tracked in the next epoch, and the
  // inputs of what may run again for their sake.
  void FindRelevant();

  int64_t Charged(int64_t bytes) const;
  // Bytes of the least form of a value.
  int64_t LeastBytes(int v) const;
  bool Reads(int node, int v) const;
  bool MayLoseBytes(int node, int v) const;
  void AddValues();
  void AddCodecs(int i, int v, Tracked& tracked);
  // Everything that brings the value to the device in epoch i.
  Terms Arrivals(int v, int i) const;
  Terms Available(int v, int i) const;
  void AddReruns();
  void AddCarries();
  // Some way to be there for a reader in epochs [from, until).
  void AddNeed(int v, int from, int until);
  // The same where the maker or the reader is a free node.
  void AddFreeNeeds(int v);
  void AddNeeds();
  void AddBudget(int i);
  // An output may take the bytes of an input that is not needed any more: such
  // an input is kept unless some output takes it.
  void AddInPlace(int i, Terms& terms, double& left);

  // Reruns beside what stays between cuts i and i + 1; see bound_fits.cc.
  void AddRerunFits(int i);
  // Is the value followed at both ends of epoch i?
  bool Stays(int v, int i) const;
  // At most its bytes, where it stays on the device through epoch i, else 0.
  Terms StayingBytes(int v, int i) const;
  // At least what a run of node n has on the device, less what always is.
  int64_t RunBytes(int n) const;

  // Persistent values.
  std::vector<int> Touchers(int c) const;
  int LastUpdater(int c) const;
  // Is this version surely overwritten once cut i has run?
  bool GoneAt(int version, int i) const;
  int64_t ChainLeastBytes(int c) const;
  void AddChain(int c);
  void AddChainCarries(const ChainColumns& chain);
  void AddChainOuts(int c, const ChainColumns& chain);
  void AddChainReads(int c, const ChainColumns& chain);
  void AddChainBytes(int i, Terms& terms, double& left);

  // The three lanes; only where something may be copied. Times are in units.
  void AddTimes();
  double OutTime(int64_t bytes) const;
  double InTime(int64_t bytes) const;
  double ChainOutTime(int c) const { return OutTime(ChainLeastBytes(c)); }
  double ChainInTime(int c) const { return InTime(ChainLeastBytes(c)); }
  // From the begin of epoch `from` to that of epoch `until`: adds its columns
  // to `terms` and returns its constant part.
  double AddSpan(int from, int until, Terms& terms) const;
  void AddLanes();
  void AddCompute();
  void AddOutsBefore(int i);
  void AddOutsAfter(int i);
  void AddInsFrom(int i);
  void AddInsBefore(int i);
  void AddBoth();

  const SearchModel& model_;
  const LeastCosts& least_;
  const std::vector<int>& cuts_;
  const int epochs_;
  const double horizon_ns_;
  const bool free_nodes_;
  const int until_node_;
  const Precedence& precedence_;
  bool copies_ = false;
  double budget_bytes_ = 0;
  BoundProgram result_;

  std::vector<std::vector<char>> ancestors_;  // by cut, by node
  std::vector<int> from_, until_;  // by node: first run in [from_, until_)
  std::vector<char> is_cut_;       // by node
  std::vector<char> in_span_;      // by node: does its first run count?
  // By node: column, has it run before the only cut? -1: not free.
  std::vector<int> ran_;
  std::vector<int> birth_;  // by value: first cut by which it was made
  std::vector<std::map<int, Tracked>> tracked_;    // by epoch from 1, value
  std::map<std::pair<int, int>, int> reruns_;      // (epoch, node): column
  std::map<std::pair<int, size_t>, int> encodes_;  // (value, codec): column
  std::vector<ChainColumns> chains_;
  // By chain: (epoch, column) of reruns that read a version of it.
  std::vector<std::vector<std::pair<int, int>>> chain_reruns_;
  // Columns: the step's time beyond compute, and the cuts' times.
  int extra_ = -1;
  std::vector<int> starts_;
  // What the compute lane does besides first runs, by epoch, and encodes.
  std::vector<Terms> work_;
  Terms encode_work_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_BUILDER_H_
