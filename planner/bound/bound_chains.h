// Columns for where each persistent value is: its home between steps, whether
// some version of it is on the device at each cut, and its copies.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_CHAINS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_CHAINS_H_

#include <utility>
#include <vector>

#include "planner/bound/bound_context.h"
#include "planner/bound/bound_rows.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// One persistent value; columns, -1 where there is none. `keep` speaks of any
// version in any representation.
struct ChainColumn {
  bool fixed = false;     // some version is always on the device: no columns
  bool anywhere = false;  // may live on the host unread: counts nowhere
  int home_host = -1;     // lives on the host between steps
  std::vector<int> keep;  // by epoch from 1: on the device when it begins
  std::vector<int> in;    // by epoch from 0: copied in during it
  // By epoch from 1, and one more for the end: copied out before it begins.
  std::vector<int> out;
};

// Rows for each persistent value that may leave the device:
//   keep(1) <= (1 - home_host) + in(0), keep(i+1) <= keep(i) + in(i)
//       what is on the device was there or came;
//   keep(last) + in(last) + home_host >= 1
//       a value that lives on the device is there in the end;
//   out(i) + keep(i) + home_host >= 1, without home_host once the last update
//       has run: some version is needed later, so it is on the device or the
//       host; out(i) <= out(i+1);
//   out(end) >= home_host if it is updated: the last version must go home;
//   keep(from) + in(from) + ... + in(until-1) >= 1 for a node that reads it in
//       epochs [from, until), and keep = 1 at a cut that does;
//   in(0) + ... >= home_host for what is read before the first cut;
//   rerun <= keep(i) + in(i) for a rerun that reads it in epoch i, and no rerun
//       that reads a version after the node that surely overwrites it.
class ChainColumns {
 public:
  // Adds the columns and rows. The arguments must outlive this.
  ChainColumns(const BoundContext& context, const ValueColumns& values);

  const std::vector<ChainColumn>& chains() const {
    return chains_;
  }  // by chain
  // Nodes that read some version, ascending.
  std::vector<int> Readers(int chain) const;
  // The node that makes the last version; -1: the value is never updated.
  int LastUpdater(int chain) const;

 private:
  void FindReruns(const ValueColumns& values);
  bool GoneAt(int version, int i) const;
  void AddChain(int c);
  void AddCarries(const ChainColumn& chain);
  void AddOuts(int c, const ChainColumn& chain);
  void AddReads(int c, const ChainColumn& chain);

  const BoundContext& context_;
  std::vector<ChainColumn> chains_;
  // By chain: (epoch, column) of reruns that read a version of it.
  std::vector<std::vector<std::pair<int, int>>> reruns_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_CHAINS_H_
