// In a valid plan every access to an input's first buffer comes before every
// access to other buffers that share its bytes. So it is enough that its own
// accesses come after the upload. A lane works in order: only the first of its
// steps that needs an upload waits for it. Tested in
// tests/executor/program/uploads_test.cc.
#include "executor/program/uploads.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "planner/base/align.h"

namespace loadline::executor {

Uploads PlanUploads(const models::Graph& graph, const planner::Plan& plan,
                    const Placement& placement,
                    const std::vector<size_t>& order, int64_t least_bytes) {
  std::map<planner::BufferId, size_t> inputs;  // of those that have an upload
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::optional<Home>& home =
        placement.home[models::Index(graph.inputs[i])];
    const int64_t bytes = graph.value(graph.inputs[i]).type.bytes();
    if (home.has_value() && home->space == Space::kDevice && bytes > 0 &&
        bytes >= least_bytes) {
      inputs.emplace(home->buffer, i);
    }
  }
  Uploads made;
  made.wait.assign(plan.steps.size(), -1);
  std::map<planner::BufferId, int32_t> uploads;
  std::array<int32_t, planner::kLaneCount> waited;
  waited.fill(-1);
  for (const size_t s : order) {
    const planner::Step& step = plan.steps[s];
    std::vector<planner::BufferId> read = step.in;
    if (step.from != planner::kNoBuffer) read.push_back(step.from);
    int32_t last = -1;
    for (const planner::BufferId id : read) {
      const auto input = inputs.find(id);
      if (input == inputs.end()) continue;
      const auto [upload, is_new] =
          uploads.emplace(id, static_cast<int32_t>(made.uploads.size()));
      if (is_new) {
        const int64_t bytes =
            graph.value(graph.inputs[input->second]).type.bytes();
        made.uploads.push_back(
            {.input = input->second,
             .copy = {.lane = Lane::kH2d,
                      .device_offset = plan.buffer(id).offset,
                      .host_offset = made.bytes,
                      .bytes = bytes,
                      .trace_slot = static_cast<int32_t>(
                          plan.steps.size() + made.uploads.size())}});
        made.bytes += planner::AlignUp(bytes);
      }
      last = std::max(last, upload->second);
    }
    int32_t& known = waited[static_cast<size_t>(step.lane)];
    if (last > known) made.wait[s] = known = last;
  }
  return made;
}

}  // namespace loadline::executor
