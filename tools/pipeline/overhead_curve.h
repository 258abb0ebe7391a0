// What less memory costs a training step, as a curve that carries over to the
// same step in micro-batches or segments.
#ifndef LOADLINE_TOOLS_PIPELINE_OVERHEAD_CURVE_H_
#define LOADLINE_TOOLS_PIPELINE_OVERHEAD_CURVE_H_

#include <cstdint>
#include <map>

namespace loadline::tools {

// Of the bytes that a step may save (from keeping everything down to the
// proven floor), the share that a budget grants: 0 at the floor, 1 where
// everything is kept. Negative below the floor.
double GrantedShare(int64_t floor_bytes, int64_t keep_bytes,
                    int64_t budget_bytes);

// Overhead: time of a plan beside that of its operators, as a share of the
// latter.
class OverheadCurve {
 public:
  // A plan that was found. Searches differ in length, so the least overhead
  // counts that any plan at a share at most as large shows, carried to this
  // share: linear in the logarithm of the share, down to 0 at share 1.
  void Add(double share, double overhead);

  // Linear in the logarithm of the share between the plans that were added, and
  // 0 from share 1 on. Below the smallest share it grows as the share falls.
  // `without`: the overhead at share 0.1 if no plan was added.
  double At(double share, double without) const;

 private:
  std::map<double, double> overhead_of_;  // by share
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_OVERHEAD_CURVE_H_
