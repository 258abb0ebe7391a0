// Lifetimes, memory by position and times of the three lanes of a Schedule,
// computed from scratch. SearchState (search_state.h) computes the same
// incrementally; tests compare both with each other and with Replay.
#ifndef LOADLINE_PLANNER_SCHEDULE_SIMULATE_H_
#define LOADLINE_PLANNER_SCHEDULE_SIMULATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// One instance of a value on the device: alive over positions [lower, upper).
struct Instance {
  int value = 0;       // or encoded representation
  int made_at = -1;    // position of its Run or In; -1: there at the start
  int last_read = -1;  // position; -1: never
  int lower = 0;
  int upper = 0;
  int overwrites = -1;  // instance whose bytes it took over
  bool last = false;    // holds an output or the last version at the end
};

// One list of instances for each position, all in one array.
class InstanceLists {
 public:
  std::span<const int> operator[](size_t position) const {
    return {ids_.data() + begin_[position], ids_.data() + begin_[position + 1]};
  }
  // Adds to the list of the next position; CloseList ends that list.
  void Add(int instance) { ids_.push_back(instance); }
  void CloseList() { begin_.push_back(ids_.size()); }

 private:
  std::vector<size_t> begin_ = {0};
  std::vector<int> ids_;
};

struct Lifetimes {
  bool valid = false;
  std::vector<Instance> instances;
  // By position: the instances that a Run (as model.reads) or an Out reads, and
  // those that a Run (as model.makes) or an In makes.
  InstanceLists reads;
  InstanceLists makes;
  std::vector<int64_t> live_bytes;  // by position; one entry without items
  int64_t peak_bytes = 0;
  int64_t raw_peak_bytes = 0;  // without the padding to the alignment
};

// `valid` is false if a read finds no instance, an In has no copy on the host
// or no reader, a version is read or made after its Overwriter, a node is
// missing or repeated without permission, or an output or a last version is not
// where it must be at the end.
Lifetimes FindLifetimes(const SearchModel& model, const Schedule& schedule);

struct Times {
  double lanes_ns = 0;  // end of the last lane
  double step_ns = 0;   // with SearchModel::copy_overhead_ns for each copy
  int64_t compute_ns = 0;
  std::vector<double> passed_ns;  // by position: when compute has passed it
};

// Slower schedules are no plans: times in a plan are int64.
inline constexpr double kMostStepNs = 9.2e18;

// Requires valid lifetimes. Exact for any copy latency, rates and
// bidirectional factor: lanes_ns equals Replay of the emitted plan.
Times FindTimes(const SearchModel& model, const Schedule& schedule);

// One copy of one lane, in the order of the sequence.
struct LaneOp {
  double bytes = 0;
  int item = 0;        // position of its Out or In
  int after_run = -1;  // an Out starts once this position has been passed
  int after_in = -1;   // or once this copy back has ended
};

// The times of the lanes alone; keeps its tables between calls.
class LaneSimulator {
 public:
  explicit LaneSimulator(const SearchModel& model) : model_(model) {}
  // Returns the end of the last step on any lane; `passed_ns` may be null.
  double Run(const std::vector<Item>& items, std::vector<double>* passed_ns);

 private:
  void Bind(const std::vector<Item>& items);
  double RunIndependent(const std::vector<Item>& items,
                        std::vector<double>* passed_ns);
  double RunCoupled(const std::vector<Item>& items,
                    std::vector<double>* passed_ns);

  const SearchModel& model_;
  std::vector<double> ready_ns_;  // by representation
  // Coupled lanes only.
  std::vector<LaneOp> outs_, ins_;
  // By position: the last copy back a Run waits for; an Out's own index.
  std::vector<int> wait_in_;
  std::vector<int> from_run_, from_in_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SIMULATE_H_
