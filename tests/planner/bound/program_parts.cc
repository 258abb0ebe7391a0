// Tested by the tests that use it.
#include "tests/planner/bound/program_parts.h"

#include <algorithm>

#include "planner/bound/mip.h"

namespace loadline::planner {
namespace {

bool MayCopy(const SearchModel& model) {
  return std::any_of(model.may_copy.begin(), model.may_copy.end(),
                     [](char may) { return may != 0; });
}

std::optional<LaneTimes> Times(const SearchModel& model, int epochs,
                               const LeastCosts& least, double horizon_ns,
                               BoundRows& rows) {
  if (!MayCopy(model)) return std::nullopt;
  return LaneTimes(epochs, static_cast<double>(least.compute_ns), horizon_ns,
                   rows);
}

Machine SlowMachine() {
  Machine machine;
  machine.name = "test";
  machine.device_bytes = 1 << 20;
  machine.d2h.bytes_per_s = 1e9;
  machine.h2d.bytes_per_s = 2e9;
  machine.d2h.latency_ns = machine.h2d.latency_ns = 4;
  machine.host_bytes = 1000;
  return machine;
}

Value MakeValue(int id, const char* name, int64_t bytes) {
  Value value;
  value.file_id = id;
  value.name = name;
  value.bytes = bytes;
  return value;
}

}  // namespace

ProgramParts::ProgramParts(const SearchModel& model, const BoundQuery& query)
    : least(FindLeastCosts(model)),
      precedence(model),
      epochs(model, precedence, query.cuts, query.until),
      rows(1, epochs.count(), MayCopy(model)),
      free(model, precedence, epochs, query.free_nodes, rows),
      context{
          model, least, epochs, free, static_cast<double>(query.budget_bytes),
          rows},
      tracked(model, epochs, free),
      times(Times(model, epochs.count(), least, query.horizon_ns, rows)),
      values(context, tracked),
      chains(context, values) {}

std::optional<double> ProgramParts::LeastCost(
    const std::vector<std::pair<int, double>>& fixed) {
  MipProgram program = rows.program();
  for (const auto& [column, value] : fixed) {
    if (program.columns[column].lower > value ||
        program.columns[column].upper < value) {
      return std::nullopt;
    }
    program.columns[column].lower = program.columns[column].upper = value;
  }
  const MipBound bound = SolveMip(program, {1'000'000}, kNoLimit);
  if (bound.infeasible) return std::nullopt;
  return bound.cost;
}

Problem LineProblem() {
  Problem problem;
  problem.name = "line";
  problem.addresses = false;
  problem.alignment_bytes = 1;
  const char* const names[] = {"in", "a", "b", "c", "d"};
  for (int v = 0; v < 5; ++v) {
    problem.values.push_back(MakeValue(v, names[v], v == 0 ? 0 : 10));
  }
  const ValueId in{0}, a{1}, b{2}, c{3}, d{4};
  problem.nodes = {{0, "A", 5, {in}, {a}, 0, true, {}, {}},
                   {1, "B", 7, {a}, {b}, 0, true, {}, {}},
                   {2, "C", 11, {b}, {c}, 0, true, {}, {}},
                   {3, "D", 13, {a, c}, {d}, 0, true, {}, {}}};
  problem.outputs = {d};
  return problem;
}

Problem LineProblemWithCopies() {
  Problem problem = LineProblem();
  for (Value& value : problem.values) value.offload = value.name == "a";
  problem.machine = SlowMachine();
  return problem;
}

Problem WeightProblem() {
  Problem problem;
  problem.name = "weight";
  problem.addresses = false;
  problem.alignment_bytes = 1;
  const char* const names[] = {"w", "x", "y", "g", "w'"};
  for (int v = 0; v < 5; ++v) {
    problem.values.push_back(MakeValue(v, names[v], v == 1 ? 0 : 10));
    problem.values[v].persistent = v == 0 || v == 4;
    problem.values[v].offload = v == 0 || v == 4;
  }
  const ValueId w{0}, x{1}, y{2}, g{3}, w2{4};
  problem.nodes = {{0, "F", 5, {x, w}, {y}, 0, true, {}, {}},
                   {1, "G", 7, {y}, {g}, 0, true, {}, {}},
                   {2, "U", 11, {g, w}, {w2}, 0, false, {{w, w2}}, {}}};
  problem.outputs = {y};
  problem.machine = SlowMachine();
  return problem;
}

}  // namespace loadline::planner
