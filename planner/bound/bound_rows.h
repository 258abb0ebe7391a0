// The integer program of a bound while it is built: binary columns, rows, and
// how compute time is charged.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_ROWS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_ROWS_H_

#include <utility>
#include <vector>

#include "planner/bound/mip.h"

namespace loadline::planner {

using Terms = std::vector<Term>;

// Adds factor * `from` to `to`.
void Append(Terms& to, const Terms& from, double factor);

// Times are divided by `unit_ns`, so that coefficients are near 1.
//
// Compute time is charged in one of two ways. Without copies the step is as
// long as its compute, so the objective is the compute time beyond the first
// run of every node, and a column's time is its cost. With copies
// (`timed_lanes`) the objective is one column, the time of the lanes beyond
// compute (LaneTimes), and the overhead of copies (LaneRows); a column's time
// is then only recorded here, and LaneRows charges it to the compute lane of
// its epoch.
class BoundRows {
 public:
  // Epochs are numbered from 0 (before the first cut) to `epochs`.
  BoundRows(double unit_ns, int epochs, bool timed_lanes);

  // A column in {0, 1} that costs nothing.
  int Binary();
  // A column in {0, 1} for `ns` of compute in this epoch.
  int Work(int epoch, double ns);
  // The same in an unknown epoch.
  int WorkSomewhere(double ns);
  // Adds terms >= lower.
  void AtLeast(double lower, const Terms& terms);
  // Adds terms <= upper.
  void AtMost(double upper, const Terms& terms);

  double unit_ns() const { return unit_ns_; }
  bool timed_lanes() const { return timed_lanes_; }
  // Recorded compute, in units: of one epoch, and of no certain one.
  const Terms& work(int epoch) const { return work_[epoch]; }
  const Terms& work_somewhere() const { return work_somewhere_; }

  MipProgram& program() { return program_; }
  MipProgram::Column& column(int index) { return program_.columns[index]; }

 private:
  int Charged(double ns);

  const double unit_ns_;
  const bool timed_lanes_;
  MipProgram program_;
  std::vector<Terms> work_;  // by epoch
  Terms work_somewhere_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_ROWS_H_
