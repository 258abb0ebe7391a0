// Optimizer states in 8 bits, by their definition; for tests too.
#ifndef LOADLINE_EXECUTOR_REFERENCE_STATE_BLOCKS_H_
#define LOADLINE_EXECUTOR_REFERENCE_STATE_BLOCKS_H_

#include <vector>

#include "executor/reference/reference.h"

namespace loadline::reference {

// The number of each of the 256 codes.
std::vector<double> StateNumbers(bool has_sign);

// The code of the nearest number; without a sign, only 0 has the code 0.
int NearestStateCode(const std::vector<double>& numbers, double x);

// The update with states in 8 bits: `update` of their numbers, and the codes
// of what it gives. State i, input 2 + i, has a sign or none.
ReferenceFunction WithStateBlocks(const ReferenceFunction& update,
                                  const std::vector<bool>& has_sign);

}  // namespace loadline::reference

#endif  // LOADLINE_EXECUTOR_REFERENCE_STATE_BLOCKS_H_
