// The toy model and its kernels; its plans are in toy_plans.cc.
#include "tests/executor/support/toy.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"

namespace loadline::executor {
namespace {

using models::DType;
using models::Graph;
using models::Phase;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

const float* F(const std::byte* p) { return reinterpret_cast<const float*>(p); }
float* F(std::byte* p) { return reinterpret_cast<float*>(p); }

class ToyKernel : public Kernel {
 public:
  ToyKernel(std::string op, int64_t batch, int64_t width)
      : op_(std::move(op)), batch_(batch), width_(width) {}

  int64_t workspace_bytes() const override {
    return op_ == "ToyMulGrad" ? width_ * 4 : 0;
  }

  absl::Status Run(const KernelArgs& a) override {
    if (op_ == "ToyMul") {
      const float* h = F(a.inputs[0]);
      const float* w = F(a.inputs[1]);
      for (int64_t i = 0; i < batch_ * width_; ++i) {
        F(a.outputs[0])[i] = h[i] * w[i % width_];
      }
    } else if (op_ == "ToyLoss") {
      float sum = 0;
      for (int64_t i = 0; i < batch_ * width_; ++i) {
        const float d = F(a.inputs[0])[i] - F(a.inputs[1])[i];
        sum += d * d;
        F(a.outputs[1])[i] = 2 * d / static_cast<float>(batch_ * width_);
      }
      *F(a.outputs[0]) = sum / static_cast<float>(batch_ * width_);
    } else if (op_ == "ToyMulGrad") {
      MulGrad(a);
    } else if (op_ == "ToySgd") {
      for (int64_t i = 0; i < width_; ++i) {
        F(a.outputs[0])
        [i] = F(a.inputs[0])[i] - a.scalars->learning_rate * F(a.inputs[1])[i];
      }
    } else {  // ToyCount
      int64_t n;
      std::memcpy(&n, a.inputs[0], 8);
      n += a.scalars->step;
      std::memcpy(a.outputs[0], &n, 8);
    }
    return absl::OkStatus();
  }

 private:
  void MulGrad(const KernelArgs& a) const {
    float* g = F(a.workspace);
    std::fill(g, g + width_, 0.0f);
    for (int64_t i = 0; i < batch_ * width_; ++i) {
      g[i % width_] += F(a.inputs[0])[i] * F(a.inputs[1])[i];
      F(a.outputs[0])[i] = F(a.inputs[0])[i] * F(a.inputs[2])[i % width_];
    }
    std::memcpy(a.outputs[1], g, width_ * 4);
  }

  std::string op_;
  int64_t batch_;
  int64_t width_;
};

ValueId AddValue(Graph* graph, std::string name, TensorType type,
                 ValueKind kind = ValueKind::kIntermediate) {
  models::Value value;
  value.name = std::move(name);
  value.type = std::move(type);
  value.kind = kind;
  graph->values.push_back(std::move(value));
  return ValueId{static_cast<int32_t>(graph->values.size() - 1)};
}

void AddNode(Graph* graph, std::string op, std::vector<ValueId> in,
             std::vector<ValueId> out) {
  models::Node node;
  node.name = absl::StrCat(op, "-", graph->nodes.size());
  node.op = std::move(op);
  node.inputs = std::move(in);
  node.outputs = std::move(out);
  graph->nodes.push_back(std::move(node));
}

Graph MakeGraph(const ToyOptions& o) {
  Graph graph;
  graph.name = "toy";
  const TensorType rows{DType::kF32, {o.batch, o.width}};
  const TensorType row{DType::kF32, {o.width}};
  const ValueId x = AddValue(&graph, "x", rows, ValueKind::kInput);
  const ValueId target = AddValue(&graph, "target", rows, ValueKind::kInput);
  graph.inputs = {x, target};
  std::vector<ValueId> w;
  std::mt19937 random(7);
  for (int i = 1; i <= o.depth; ++i) {
    w.push_back(
        AddValue(&graph, absl::StrCat("w", i), row, ValueKind::kParameter));
    std::vector<float> initial(o.width);
    for (float& f : initial) {
      f = 0.8f + 0.4f * static_cast<float>(random() % 1000) / 1000;
    }
    graph.value(w.back()).initial = models::MakeTensor(row, initial.data());
  }
  const TensorType count{DType::kI64, {}};
  const ValueId counter = AddValue(&graph, "counter", count, ValueKind::kState);
  const int64_t zero = 0;
  graph.value(counter).initial = models::MakeTensor(count, &zero);

  std::vector<ValueId> h = {x};
  for (int i = 1; i <= o.depth; ++i) {
    h.push_back(AddValue(&graph, absl::StrCat("h", i), rows));
    AddNode(&graph, "ToyMul", {h[i - 1], w[i - 1]}, {h[i]});
  }
  const ValueId loss = AddValue(&graph, "loss", {DType::kF32, {}});
  ValueId d = AddValue(&graph, absl::StrCat("d", o.depth), rows);
  AddNode(&graph, "ToyLoss", {h.back(), target}, {loss, d});
  const ValueId counted = AddValue(&graph, "counted", count);
  AddNode(&graph, "ToyCount", {counter}, {counted});
  graph.outputs = {loss};
  if (!o.train) {
    graph.outputs.push_back(counted);
    return graph;
  }
  graph.updates.push_back({counter, counted});
  for (int i = o.depth; i >= 1; --i) {
    const ValueId next = AddValue(&graph, absl::StrCat("d", i - 1), rows);
    const ValueId g = AddValue(&graph, absl::StrCat("g", i), row);
    AddNode(&graph, "ToyMulGrad", {d, h[i - 1], w[i - 1]}, {next, g});
    const ValueId updated = AddValue(&graph, absl::StrCat("w", i, "'"), row);
    AddNode(&graph, "ToySgd", {w[i - 1], g}, {updated});
    graph.updates.push_back({w[i - 1], updated});
    d = next;
  }
  return graph;
}

planner::ValueId Planned(ValueId id) {
  return planner::ValueId{static_cast<int32_t>(id)};
}

planner::Problem MakeProblem(const Graph& graph, const ToyOptions& options) {
  planner::Problem problem;
  problem.name = graph.name;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const models::Value& value = graph.values[v];
    problem.values.push_back({.file_id = static_cast<int64_t>(v),
                              .name = value.name,
                              .bytes = value.type.bytes(),
                              .persistent = value.initial.has_value()});
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const models::Node& node = graph.nodes[n];
    planner::Node planned;
    planned.file_id = static_cast<int64_t>(n);
    planned.name = node.name;
    planned.time_ns = 1000 + static_cast<int64_t>(n);
    for (ValueId id : node.inputs) {
      if (id != models::kNoValue) planned.inputs.push_back(Planned(id));
    }
    for (ValueId id : node.outputs) planned.outputs.push_back(Planned(id));
    if (node.op == "ToyMulGrad") {
      planned.workspace_bytes =
          options.width * 4 + options.more_workspace_bytes;
    }
    for (const auto& [before, after] : graph.updates) {
      if (after != node.outputs[0]) continue;
      planned.recompute = false;
      planned.inplace.push_back({Planned(before), Planned(after)});
      problem.values[models::Index(after)].persistent = true;
    }
    problem.nodes.push_back(std::move(planned));
  }
  for (ValueId id : graph.outputs) problem.outputs.push_back(Planned(id));
  problem.machine = planner::Machine{.name = "toy",
                                     .device_bytes = int64_t{1} << 30,
                                     .host_bytes = int64_t{1} << 30,
                                     .d2h = {1e9, 100},
                                     .h2d = {0.8e9, 100},
                                     .d2h_h2d_factor = 0.7};
  return problem;
}

}  // namespace

Toy MakeToy(const ToyOptions& options) {
  Toy toy;
  toy.options = options;
  toy.graph = MakeGraph(options);
  toy.problem = MakeProblem(toy.graph, options);
  return toy;
}

Toy ToyOf(models::Graph graph) {
  Toy toy;
  toy.problem = MakeProblem(graph, toy.options);
  toy.graph = std::move(graph);
  return toy;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareToyKernel(
    const models::Graph& graph, const models::Node& node) {
  const models::TensorType& rows = graph.value(graph.inputs[0]).type;
  return std::unique_ptr<Kernel>(
      new ToyKernel(node.op, rows.dims[0], rows.dims[1]));
}

CpuDeviceOptions ToyDevice() {
  CpuDeviceOptions options;
  options.prepare = PrepareToyKernel;
  return options;
}

DataSet ToyData(const Toy& toy, int64_t examples, uint64_t seed) {
  DataSet data;
  data.examples = examples;
  std::mt19937_64 random(seed);
  for (const char* name : {"x", "target"}) {
    std::vector<float> rows(examples * toy.options.width);
    for (float& f : rows) {
      f = static_cast<float>(random() % 2000) / 1000 - 1;
    }
    Column column;
    column.name = name;
    column.row_bytes = toy.options.width * 4;
    column.data.resize(rows.size() * 4);
    std::memcpy(column.data.data(), rows.data(), column.data.size());
    data.columns.push_back(std::move(column));
  }
  return data;
}

std::vector<std::vector<std::byte>> AllWeights(Program& program) {
  std::vector<std::vector<std::byte>> all;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    all.emplace_back(value.type.bytes());
    LOADLINE_CHECK(
        program.ReadPersistent(value.name, absl::MakeSpan(all.back())).ok());
  }
  return all;
}

std::string TemporaryPath(const std::string& name) {
  struct Folder {
    std::string path;
    Folder() {
      path = std::filesystem::temp_directory_path() /
             absl::StrCat("loadline-test-", getpid());
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static Folder folder;
  return absl::StrCat(folder.path, "/", name);
}

}  // namespace loadline::executor
