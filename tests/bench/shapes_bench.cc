// Planning time of large problems of simple shapes.
//
//   shapes_bench [--nodes=100000] [--percent=60] [--limit_s=N] [SHAPE...]
//
// For each shape, or those that are named, one line: nodes, seconds of wall and
// processor time of Solve, and the overhead of the plan over running every node
// once, or why there is none. `--limit_s` is SolveOptions::time_limit.
//
//   chain         a training step: forward, and backward that reads activations
//   chain-copies  the same on a machine that copies
//   layers        random layers of ten nodes, forward and backward
//   star          one node reads what all others make (no plan exists at 60 %)
//   tree          pairs are joined until one value is left
//   disconnected  pairs of nodes that share nothing
//   in-place      a chain in which every node may overwrite its input
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/base/random.h"
#include "planner/solve/solve.h"

namespace loadline::planner {
namespace {

class Builder {
 public:
  explicit Builder(uint64_t seed) : random_(seed) {}

  ValueId Value(int64_t bytes) {
    const auto id = static_cast<int>(problem_.values.size());
    problem_.values.push_back({.file_id = id, .bytes = bytes});
    return ValueId{id};
  }
  // Up to 32 KiB.
  ValueId AnyValue() { return Value(4096 * (1 + random_.Below(8))); }
  void AddNode(std::vector<ValueId> inputs, ValueId output,
               bool in_place = false) {
    Node node;
    node.file_id = static_cast<int64_t>(problem_.nodes.size());
    node.time_ns = 1000 * (1 + random_.Below(20));
    if (in_place) node.inplace = {{inputs.front(), output}};
    node.inputs = std::move(inputs);
    node.outputs = {output};
    problem_.nodes.push_back(std::move(node));
  }
  int Below(int count) { return random_.Below(count); }
  Problem Finish(std::vector<ValueId> outputs) {
    problem_.outputs = std::move(outputs);
    return std::move(problem_);
  }

 private:
  Problem problem_;
  Random random_;
};

Problem Chain(int nodes) {
  Builder builder(1);
  std::vector<ValueId> made = {builder.Value(1024)};
  for (int n = 0; n < nodes / 2; ++n) {
    const ValueId output = builder.AnyValue();
    builder.AddNode({made.back()}, output);
    made.push_back(output);
  }
  ValueId gradient = made.back();
  for (int n = nodes / 2 - 1; n >= 0; --n) {
    const ValueId output = builder.Value(4096);
    builder.AddNode({gradient, made[n]}, output);
    gradient = output;
  }
  return builder.Finish({gradient});
}

Problem ChainWithCopies(int nodes) {
  Problem problem = Chain(nodes);
  Machine machine;
  machine.name = "copies";
  machine.device_bytes = int64_t{1} << 40;
  machine.host_bytes = int64_t{1} << 40;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 1e10;
  machine.d2h.latency_ns = machine.h2d.latency_ns = 100;
  problem.machine = machine;
  return problem;
}

Problem Layers(int nodes) {
  constexpr int kWidth = 10;
  Builder builder(2);
  std::vector<ValueId> above = {builder.Value(4096)};
  std::vector<std::pair<ValueId, ValueId>> forward;  // input, output
  for (int layer = 0; layer < nodes / 2 / kWidth; ++layer) {
    std::vector<ValueId> made;
    for (int n = 0; n < kWidth; ++n) {
      const ValueId input =
          above[builder.Below(static_cast<int>(above.size()))];
      made.push_back(builder.AnyValue());
      builder.AddNode({input}, made.back());
      forward.emplace_back(input, made.back());
    }
    above = std::move(made);
  }
  ValueId gradient = builder.Value(4096);
  builder.AddNode(above, gradient);
  for (size_t n = forward.size(); n-- > 0;) {
    const ValueId output = builder.Value(4096);
    builder.AddNode({gradient, forward[n].first, forward[n].second}, output);
    gradient = output;
  }
  return builder.Finish({gradient});
}

Problem Star(int nodes) {
  Builder builder(3);
  const ValueId input = builder.Value(4096);
  std::vector<ValueId> made;
  for (int n = 1; n < nodes; ++n) {
    made.push_back(builder.Value(4096));
    builder.AddNode({input}, made.back());
  }
  const ValueId output = builder.Value(4096);
  builder.AddNode(made, output);
  return builder.Finish({output});
}

Problem Tree(int nodes) {
  Builder builder(4);
  std::vector<ValueId> level;
  for (int n = 0; n < nodes / 2; ++n) {
    const ValueId input = builder.Value(4096);
    level.push_back(builder.AnyValue());
    builder.AddNode({input}, level.back());
  }
  while (level.size() > 1) {
    std::vector<ValueId> joined;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      joined.push_back(builder.AnyValue());
      builder.AddNode({level[i], level[i + 1]}, joined.back());
    }
    if (level.size() % 2 == 1) joined.push_back(level.back());
    level = std::move(joined);
  }
  return builder.Finish(level);
}

Problem Disconnected(int nodes) {
  Builder builder(5);
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (int n = 0; n < nodes / 2; ++n) {
    const ValueId input = builder.Value(4096);
    const ValueId made = builder.Value(8192);
    builder.AddNode({input}, made);
    pairs.emplace_back(made, builder.Value(512));
  }
  for (const auto& [made, output] : pairs) builder.AddNode({made}, output);
  return builder.Finish({pairs.front().second});
}

Problem InPlace(int nodes) {
  Builder builder(6);
  std::vector<ValueId> made = {builder.Value(4096)};
  for (int n = 0; n < nodes / 2; ++n) {
    const ValueId output = builder.Value(4096);
    builder.AddNode({made.back()}, output, true);
    made.push_back(output);
  }
  ValueId gradient = made.back();
  for (int n = nodes / 2; n > 0; --n) {
    const ValueId output = builder.Value(4096);
    builder.AddNode({gradient, made[n]}, output, true);
    gradient = output;
  }
  return builder.Finish({gradient});
}

struct Shape {
  const char* name;
  Problem (*make)(int nodes);
};
constexpr Shape kShapes[] = {
    {"chain", Chain},     {"chain-copies", ChainWithCopies},
    {"layers", Layers},   {"star", Star},
    {"tree", Tree},       {"disconnected", Disconnected},
    {"in-place", InPlace}};

void Measure(const Shape& shape, int nodes, double percent,
             SolveOptions options) {
  const Problem problem = shape.make(nodes);
  const auto keep = KeepEverything(problem);
  if (!keep.ok()) return;
  options.budget_bytes = static_cast<int64_t>(
      percent / 100 * static_cast<double>(keep->predicted.peak_bytes));
  const absl::Time start = absl::Now();
  const std::clock_t start_clock = std::clock();
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  const double cpu_s =
      static_cast<double>(std::clock() - start_clock) / CLOCKS_PER_SEC;
  std::printf("%-13s %7zu nodes %6.1f s %6.1f s processor  ", shape.name,
              problem.nodes.size(), absl::ToDoubleSeconds(absl::Now() - start),
              cpu_s);
  if (plan.ok()) {
    const auto once_ns = static_cast<double>(keep->predicted.compute_ns);
    std::printf(
        "+%.2f %%, bound +%.2f %%\n",
        100 * (static_cast<double>(plan->predicted.step_ns) / once_ns - 1),
        100 * (static_cast<double>(plan->bounds.step_ns) / once_ns - 1));
  } else {
    const std::string why(plan.status().message());
    std::printf("%.60s\n", why.c_str());
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  int nodes = 100'000;
  double percent = 60;
  SolveOptions options;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const char* value = equals == std::string::npos ? "" : argv[i] + equals + 1;
    if (flag == "--nodes") {
      nodes = std::atoi(value);
    } else if (flag == "--percent") {
      percent = std::atof(value);
    } else if (flag == "--limit_s") {
      options.time_limit = absl::Seconds(std::atof(value));
    } else {
      names.push_back(argument);
    }
  }
  for (const Shape& shape : kShapes) {
    bool wanted = names.empty();
    for (const std::string& name : names) wanted |= name == shape.name;
    if (wanted) Measure(shape, nodes, percent, options);
  }
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
