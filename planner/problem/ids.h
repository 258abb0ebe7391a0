// Ids of the planner's things. An id is the position of the thing in its
// vector; the id a file gave it is kept beside the thing (`file_id`), so that
// files with gaps or other orders round-trip.
//
// Example:
//   const Value& v = problem.values[Index(id)];
#ifndef LOADLINE_PLANNER_PROBLEM_IDS_H_
#define LOADLINE_PLANNER_PROBLEM_IDS_H_

#include <cstddef>
#include <cstdint>

namespace loadline::planner {

enum class ValueId : int32_t {};
enum class NodeId : int32_t {};
enum class BufferId : int32_t {};
enum class StepId : int32_t {};

inline constexpr ValueId kNoValue{-1};
inline constexpr BufferId kNoBuffer{-1};

constexpr size_t Index(ValueId id) { return static_cast<size_t>(id); }
constexpr size_t Index(NodeId id) { return static_cast<size_t>(id); }
constexpr size_t Index(BufferId id) { return static_cast<size_t>(id); }
constexpr size_t Index(StepId id) { return static_cast<size_t>(id); }

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_IDS_H_
