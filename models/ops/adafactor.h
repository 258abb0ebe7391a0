// The states of Adafactor's update.
#ifndef LOADLINE_MODELS_OPS_ADAFACTOR_H_
#define LOADLINE_MODELS_OPS_ADAFACTOR_H_

#include <vector>

#include "models/types.h"

namespace loadline::models {

// Averages along the last axis and along the one before it, which have 1 there
// instead; of a parameter with fewer than two axes, one number per element.
std::vector<TensorType> AdafactorStates(const TensorType& parameter);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_ADAFACTOR_H_
