// SHA-256, to name a problem by its bytes.
#ifndef LOADLINE_PLANNER_BASE_SHA256_H_
#define LOADLINE_PLANNER_BASE_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace loadline::planner {

// The SHA-256 of `bytes` as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_SHA256_H_
