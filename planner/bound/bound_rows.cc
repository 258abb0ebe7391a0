// Tested in tests/planner/bound/bound_rows_test.cc.
#include "planner/bound/bound_rows.h"

namespace loadline::planner {

void Append(Terms& to, const Terms& from, double factor) {
  for (const Term& term : from) {
    to.push_back({term.column, factor * term.coefficient});
  }
}

BoundRows::BoundRows(double unit_ns, int epochs, bool timed_lanes)
    : unit_ns_(unit_ns), timed_lanes_(timed_lanes), work_(epochs + 1) {}

int BoundRows::Binary() { return Charged(0); }

int BoundRows::Charged(double ns) {
  return program_.AddColumn(timed_lanes_ ? 0 : ns / unit_ns_, 0, 1, true);
}

int BoundRows::Work(int epoch, double ns) {
  const int column = Charged(ns);
  if (timed_lanes_ && ns > 0) {
    work_[epoch].push_back({column, ns / unit_ns_});
  }
  return column;
}

int BoundRows::WorkSomewhere(double ns) {
  const int column = Charged(ns);
  if (timed_lanes_) work_somewhere_.push_back({column, ns / unit_ns_});
  return column;
}

void BoundRows::AtLeast(double lower, const Terms& terms) {
  program_.AddRow(lower, kNoLimit, terms);
}

void BoundRows::AtMost(double upper, const Terms& terms) {
  program_.AddRow(-kNoLimit, upper, terms);
}

}  // namespace loadline::planner
