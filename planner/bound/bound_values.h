// Columns for where each tracked value is when an epoch begins and for what
// brings it back to the device, with the rows that make each way honest.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_VALUES_H_
#define LOADLINE_PLANNER_BOUND_BOUND_VALUES_H_

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "planner/bound/bound_context.h"
#include "planner/bound/bound_rows.h"
#include "planner/bound/bound_tracking.h"

namespace loadline::planner {

// One value in one epoch; columns, -1 where there is none.
struct ValueColumn {
  int keep = -1;             // on the device, plain, when the epoch begins
  int host = -1;             // has been copied to the host by then
  int in = -1;               // copied back in the epoch
  std::vector<int> encoded;  // by codec: encoded on the device at the begin
  std::vector<int> decode;   // by codec: decoded in the epoch
  // By codec: encoded and decoded within the epoch; empty in the last one.
  std::vector<int> recode;
};

// Rows, for value v, epoch i, codec c, and node n run again:
//   in <= host              a copy back needs a copy out
//   decode[c] <= encoded[c] a decode needs the encoded value
//   encoded[c] <= once[c]   which was encoded at least once in the step
//   recode[c] <= once[c]
//   recode[c] <= Available(v, i)   the first encode reads the plain value
//   rerun <= ran[n]         only what has run can run again (free nodes)
//   rerun <= Available(u, i) for each input u of n that is no persistent value
// They hold for every plan if each way back but recode is read as the *first*
// one in its epoch, when the value was not on the device as the epoch began.
// Then recode is no arrival: it matters only for what has stayed
// (bound_fits.h).
class ValueColumns {
 public:
  // Adds the columns and rows. The arguments must outlive this.
  ValueColumns(const BoundContext& context, const TrackedValues& tracked);

  const std::map<int, ValueColumn>& In(int epoch) const { return in_[epoch]; }
  const ValueColumn* Find(int value, int epoch) const;  // null: not tracked
  // Reruns: (epoch, node) to column.
  const std::map<std::pair<int, int>, int>& reruns() const { return reruns_; }

  // All that brings the value to the device in the epoch; empty if it is not
  // tracked there.
  Terms Arrivals(int value, int epoch) const;
  // Arrivals, or there already. The value must be tracked.
  Terms Available(int value, int epoch) const;

 private:
  void AddValue(int i, int v, ValueColumn& column);
  void AddCodecs(int i, int v, ValueColumn& column);
  void AddReruns();
  void AddRecodes(int i, int v, ValueColumn& column);
  void AddRerunRows(int i, int node, int column);

  const BoundContext& context_;
  std::vector<std::map<int, ValueColumn>> in_;     // by epoch from 1, value
  std::map<std::pair<int, int>, int> reruns_;      // (epoch, node)
  std::map<std::pair<int, size_t>, int> encodes_;  // (value, codec)
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_VALUES_H_
