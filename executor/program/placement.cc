// A buffer that no step writes holds its value when the step starts: this is
// the value's home. Verify has proved that the last version of a persistent
// value ends at the same place. If an output has several device buffers, the
// one to read is the one that is never overwritten. Tested in
// tests/executor/program/program_test.cc.
#include "executor/program/placement.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using BufferStep = std::vector<int32_t>;  // by buffer: writing step, -1: none

BufferStep WritingSteps(const planner::Plan& plan) {
  BufferStep writer(plan.buffers.size(), -1);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    const auto at = static_cast<int32_t>(s);
    for (planner::BufferId id : step.out) writer[planner::Index(id)] = at;
    if (step.to != planner::kNoBuffer) writer[planner::Index(step.to)] = at;
    if (step.workspace != planner::kNoBuffer) {
      writer[planner::Index(step.workspace)] = at;
    }
  }
  return writer;
}

// Whether the bytes of device buffer `id` are written again after its writer.
bool Overwritten(const planner::Plan& plan, const BufferStep& writer,
                 size_t id) {
  const Region mine = {plan.buffers[id].offset, plan.buffers[id].bytes};
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const planner::Buffer& other = plan.buffers[b];
    if (b != id && other.space == Space::kDevice && writer[b] > writer[id] &&
        Overlap(mine, {other.offset, other.bytes})) {
      return true;
    }
  }
  return false;
}

Home HomeOf(const planner::Plan& plan, size_t buffer) {
  return {plan.buffers[buffer].space, plan.buffers[buffer].offset,
          planner::BufferId{static_cast<int32_t>(buffer)}};
}

}  // namespace

absl::StatusOr<Placement> PlaceValues(const models::Graph& graph,
                                      const planner::Problem& problem,
                                      const planner::Plan& plan) {
  Placement placement;
  placement.roots = models::StorageRoots(graph);
  placement.offsets = models::StorageOffsets(graph);
  placement.home.resize(graph.values.size());
  const BufferStep writer = WritingSteps(plan);
  const planner::ProblemIndex index = planner::IndexProblem(problem);

  std::map<int64_t, planner::ValueId> by_file_id;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    by_file_id[problem.values[v].file_id] =
        planner::ValueId{static_cast<int32_t>(v)};
  }
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const planner::ValueId value = plan.buffers[b].value;
    if (value == planner::kNoValue || writer[b] != -1 ||
        index.producer[planner::Index(value)] != -1) {
      continue;
    }
    const int64_t id = problem.value(value).file_id;
    if (id < 0 || id >= static_cast<int64_t>(graph.values.size()) ||
        graph.values[id].type.bytes() > plan.buffers[b].bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan was made for another graph: value ", id, " (",
                       problem.value(value).name, ") is not in this one"));
    }
    placement.home[id] = HomeOf(plan, b);
  }

  for (models::ValueId output : graph.outputs) {
    const models::ValueId root = placement.roots[models::Index(output)];
    const int64_t offset = placement.offsets[models::Index(output)];
    const auto found =
        by_file_id.find(static_cast<int64_t>(models::Index(root)));
    std::optional<Home> home;
    for (size_t b = 0; found != by_file_id.end() && b < plan.buffers.size();
         ++b) {
      if (plan.buffers[b].value == found->second &&
          plan.buffers[b].space == Space::kDevice &&
          plan.buffers[b].bytes >= offset + graph.value(output).type.bytes() &&
          !Overwritten(plan, writer, b)) {
        home = HomeOf(plan, b);
      }
    }
    if (!home.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan does not keep the output ",
                       graph.value(output).name, " to the end of the step"));
    }
    home->offset += offset;
    placement.outputs.push_back(*home);
  }
  return placement;
}

}  // namespace loadline::executor
