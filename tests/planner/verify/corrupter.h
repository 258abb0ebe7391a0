// Plans made invalid, one way after the other. Internal: corrupt_plan.cc has
// what a plan says of itself, corrupt_buffers.cc its buffers, corrupt_steps.cc
// its steps.
#ifndef LOADLINE_TESTS_PLANNER_VERIFY_CORRUPTER_H_
#define LOADLINE_TESTS_PLANNER_VERIFY_CORRUPTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/verify/corrupt_plan.h"

namespace loadline::planner {

class Corrupter {
 public:
  Corrupter(const Problem& problem, const Plan& plan, TestRandom& random)
      : problem_(problem),
        plan_(plan),
        index_(IndexProblem(problem)),
        random_(random) {}

  // False: the plan has no place for it.
  bool Apply(Corruption kind);
  Plan Take() { return std::move(plan_); }

 private:
  template <typename T>
  const T& Pick(const std::vector<T>& places) {
    return places[static_cast<size_t>(
        random_.In(0, static_cast<int64_t>(places.size()) - 1))];
  }

  std::vector<size_t> StepsOf(StepKind kind) const;
  // A buffer that some node reads or writes as a value.
  std::optional<BufferId> PickNodeBuffer();
  Buffer& At(BufferId id) { return plan_.buffers[Index(id)]; }

  // What the plan says of itself.
  bool WrongPrediction();
  bool BoundTooHigh();

  // Buffers.
  bool Oversize();
  bool Misaligned();
  bool OutsideArena();
  bool HostSpace();
  bool InplaceListed(const Node& node, BufferId in, BufferId out);
  bool WrongAddress();
  bool ShiftedHome();
  bool WrongValue();
  bool StaleVersion();
  bool SwappedBuffers();

  // Steps.
  void Remove(size_t position);
  void Move(size_t from, size_t to);
  void ResetSequence();
  bool WrongLane();
  bool DroppedNode();
  bool WrittenTwice();
  bool DroppedCopy();
  bool Reads(const Step& step, BufferId buffer) const;
  bool ReorderedReader();
  bool LateReader();
  bool Leads(size_t from, size_t to) const;
  bool MissingWait();
  bool WaitCycle();
  bool MissingWorkspace();
  bool DanglingId();

  const Problem& problem_;
  Plan plan_;
  ProblemIndex index_;
  TestRandom& random_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_VERIFY_CORRUPTER_H_
