// Cuts optimizer updates of large parameters into parts of rows, one after the
// other, with states in parts:
//
//   w', m', v' = AdamW(w, g, m, v)  =>  w1, m1', v1' = AdamW(w, g, m1, v1)
//                                       w', m2', v2' = AdamW(w1, g, m2, v2)
//
// A whole update needs parameter, gradient and all states at one moment: four
// times the parameter for AdamW, which for a large vocabulary can be more than
// any other moment of the step needs. In n parts it needs 2 + 2/n times; the
// planner keeps the other parts of the states on the host. Every element is
// computed as before, so results have the same bits.
#ifndef LOADLINE_PASSES_CUT_UPDATES_H_
#define LOADLINE_PASSES_CUT_UPDATES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// The least bytes of a state's part. A copy of so many takes 50 times as long
// as it takes to begin, on every nominal machine.
inline constexpr int64_t kUpdatePartBytes = int64_t{16} << 20;
// More parts bring little: with 64 AdamW needs 2.03 times the parameter, with
// 16 2.125 times.
inline constexpr int64_t kMostUpdateParts = 64;

// Cuts every update that needs more bytes at one moment than each node that is
// no update, if its states have at least two parts of `part_bytes`. Parts of
// the state "w.exp_avg" are named "w.exp_avg[1/16]", and so are nodes. `step`:
// after AddOptimizer.
absl::Status CutUpdates(models::Graph& step,
                        int64_t part_bytes = kUpdatePartBytes);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CUT_UPDATES_H_
