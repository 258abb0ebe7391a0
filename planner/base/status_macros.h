// Return early with an error status. Every room may include this header.
//
//   LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
//   LOADLINE_ASSIGN_OR_RETURN(Plan plan, Solve(problem, options));
#ifndef LOADLINE_PLANNER_BASE_STATUS_MACROS_H_
#define LOADLINE_PLANNER_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LOADLINE_CONCAT_INNER(a, b) a##b
#define LOADLINE_CONCAT(a, b) LOADLINE_CONCAT_INNER(a, b)

#define LOADLINE_RETURN_IF_ERROR(expr)     \
  do {                                     \
    absl::Status loadline_status = (expr); \
    if (!loadline_status.ok()) {           \
      return loadline_status;              \
    }                                      \
  } while (false)

#define LOADLINE_ASSIGN_OR_RETURN_INNER(name, lhs, expr) \
  auto name = (expr);                                    \
  if (!name.ok()) {                                      \
    return std::move(name).status();                     \
  }                                                      \
  lhs = *std::move(name)  // NOLINT(bugprone-macro-parentheses): may declare

#define LOADLINE_ASSIGN_OR_RETURN(lhs, expr)                               \
  LOADLINE_ASSIGN_OR_RETURN_INNER(LOADLINE_CONCAT(loadline_or_, __LINE__), \
                                  lhs, expr)

#endif  // LOADLINE_PLANNER_BASE_STATUS_MACROS_H_
