// Builds the step layer by layer; the backward pass mirrors a tape of the
// forward pass. Times are a roofline of flops and bytes.
#include "tests/planner/support/transformer_problem.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace loadline::planner {
namespace {

constexpr int64_t kFloat = 4;

class Builder {
 public:
  explicit Builder(const TransformerShape& shape) : shape_(shape) {}

  Problem Build() {
    problem_.name = "transformer";
    if (shape_.copies) {
      Machine machine;
      machine.name = "test";
      machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 5e9;
      machine.d2h.latency_ns = machine.h2d.latency_ns = 10'000;
      machine.d2h_h2d_factor = 0.8;
      machine.host_bytes = int64_t{1} << 40;
      problem_.machine = machine;
    }
    const int64_t stream = shape_.tokens * shape_.width * kFloat;
    ids_ = AddValue("ids", shape_.tokens * 8, false);
    const int64_t table = shape_.vocabulary * shape_.width * kFloat;
    const int embedding = Parameter("embedding", table);
    int x = Forward("embed", {ids_, embedding}, stream, 0, {embedding});
    for (int layer = 0; layer < shape_.layers; ++layer) {
      x = Layer(absl::StrCat("l", layer, "."), x, stream);
    }
    x = Norm("final.", x, stream);
    const int64_t logits_bytes = shape_.tokens * shape_.vocabulary * kFloat;
    const int logits = Forward(
        "head", {x, embedding}, logits_bytes,
        2.0 * shape_.tokens * shape_.width * shape_.vocabulary, {embedding});
    const int loss = AddValue("loss", 4, false);
    const int gradient = AddValue("logits.grad", logits_bytes, false);
    AddNode("loss", {logits, ids_}, {loss, gradient}, 0);
    problem_.outputs.push_back(ValueId{loss});
    Backward(logits, gradient);
    return std::move(problem_);
  }

 private:
  struct Tape {
    std::string name;
    std::vector<int> inputs;
    int output;
    double flop;
  };

  int AddValue(const std::string& name, int64_t bytes, bool persistent) {
    Value value;
    value.file_id = static_cast<int64_t>(problem_.values.size());
    value.name = name;
    value.bytes = bytes;
    value.persistent = persistent;
    problem_.values.push_back(value);
    return static_cast<int>(problem_.values.size()) - 1;
  }

  NodeId AddNode(const std::string& name, const std::vector<int>& inputs,
                 const std::vector<int>& outputs, double flop) {
    Node node;
    node.file_id = static_cast<int64_t>(problem_.nodes.size());
    node.name = name;
    double bytes = 0;
    for (int v : inputs) {
      node.inputs.push_back(ValueId{v});
      bytes += static_cast<double>(problem_.values[v].bytes);
    }
    for (int v : outputs) {
      node.outputs.push_back(ValueId{v});
      bytes += static_cast<double>(problem_.values[v].bytes);
    }
    node.time_ns =
        static_cast<int64_t>(1e9 * std::max(flop / shape_.flop_per_s,
                                            bytes / shape_.memory_bytes_per_s));
    if (flop > 0) node.workspace_bytes = 1 << 20;
    problem_.nodes.push_back(node);
    return NodeId{static_cast<int32_t>(problem_.nodes.size()) - 1};
  }

  int Parameter(const std::string& name, int64_t bytes) {
    const int value = AddValue(name, bytes, true);
    parameters_.push_back(value);
    gradient_.resize(problem_.values.size(), -1);
    return value;
  }

  int Forward(const std::string& name, const std::vector<int>& inputs,
              int64_t bytes, double flop, const std::vector<int>&) {
    const int output = AddValue(absl::StrCat(name, ".out"), bytes, false);
    AddNode(name, inputs, {output}, flop);
    tape_.push_back({name, inputs, output, flop});
    return output;
  }

  int Norm(const std::string& prefix, int x, int64_t stream) {
    const int scale =
        Parameter(absl::StrCat(prefix, "scale"), shape_.width * kFloat);
    const int bias =
        Parameter(absl::StrCat(prefix, "bias"), shape_.width * kFloat);
    return Forward(absl::StrCat(prefix, "norm"), {x, scale, bias}, stream, 0,
                   {});
  }

  int Linear(const std::string& name, int x, int64_t in, int64_t out) {
    const int weight = Parameter(absl::StrCat(name, ".w"), in * out * kFloat);
    const int bias = Parameter(absl::StrCat(name, ".b"), out * kFloat);
    const int64_t bytes = shape_.tokens * out * kFloat;
    const int product = Forward(absl::StrCat(name, ".matmul"), {x, weight},
                                bytes, 2.0 * shape_.tokens * in * out, {});
    return Forward(absl::StrCat(name, ".bias"), {product, bias}, bytes, 0, {});
  }

  int Layer(const std::string& prefix, int x, int64_t stream) {
    const int64_t width = shape_.width;
    const int normed = Norm(absl::StrCat(prefix, "1."), x, stream);
    const int qkv =
        Linear(absl::StrCat(prefix, "qkv"), normed, width, 3 * width);
    std::vector<int> parts;
    for (const char* part : {"q", "k", "v"}) {
      parts.push_back(
          Forward(absl::StrCat(prefix, part), {qkv}, stream, 0, {}));
    }
    const int64_t heads = width / 64;
    const int64_t scores = shape_.tokens * shape_.sequence * heads * kFloat;
    const double flop = 2.0 * shape_.tokens * shape_.sequence * width;
    int s = Forward(absl::StrCat(prefix, "qk"), {parts[0], parts[1]}, scores,
                    flop, {});
    for (const char* step : {"scale", "mask", "softmax"}) {
      s = Forward(absl::StrCat(prefix, step), {s}, scores, 0, {});
    }
    int a =
        Forward(absl::StrCat(prefix, "av"), {s, parts[2]}, stream, flop, {});
    a = Linear(absl::StrCat(prefix, "out"), a, width, width);
    x = Forward(absl::StrCat(prefix, "add1"), {x, a}, stream, 0, {});
    const int normed2 = Norm(absl::StrCat(prefix, "2."), x, stream);
    int h = Linear(absl::StrCat(prefix, "up"), normed2, width, 4 * width);
    h = Forward(absl::StrCat(prefix, "gelu"), {h}, 4 * stream, 0, {});
    h = Linear(absl::StrCat(prefix, "down"), h, 4 * width, width);
    return Forward(absl::StrCat(prefix, "add2"), {x, h}, stream, 0, {});
  }

  // Adds one more part of the gradient of a value.
  void Accumulate(int value, int part) {
    gradient_.resize(problem_.values.size(), -1);
    if (gradient_[value] < 0) {
      gradient_[value] = part;
      return;
    }
    const int sum = AddValue(absl::StrCat(problem_.values[value].name, ".sum"),
                             problem_.values[value].bytes, false);
    const NodeId node =
        AddNode(absl::StrCat(problem_.values[value].name, ".add"),
                {gradient_[value], part}, {sum}, 0);
    problem_.nodes[Index(node)].inplace.emplace_back(ValueId{gradient_[value]},
                                                     ValueId{sum});
    gradient_[value] = sum;
  }

  void Backward(int logits, int logits_gradient) {
    gradient_.assign(problem_.values.size(), -1);
    gradient_[logits] = logits_gradient;
    for (size_t t = tape_.size(); t-- > 0;) {
      const Tape& op = tape_[t];
      for (int input : op.inputs) {
        if (input == ids_) continue;
        const int part = AddValue(absl::StrCat(op.name, ".grad", input),
                                  problem_.values[input].bytes, false);
        std::vector<int> reads = {gradient_[op.output]};
        for (int other : op.inputs) {
          if (other != input || op.flop == 0) reads.push_back(other);
        }
        std::sort(reads.begin(), reads.end());
        reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
        AddNode(absl::StrCat(op.name, ".d", input), reads, {part}, op.flop);
        Accumulate(input, part);
      }
    }
    Updates();
  }

  // AdamW at the end of the given order, as a frontend poses it.
  void Updates() {
    for (int parameter : parameters_) {
      const std::string name = problem_.values[parameter].name;
      const int64_t bytes = problem_.values[parameter].bytes;
      std::vector<int> before = {parameter};
      for (const char* moment : {".m", ".v"}) {
        before.push_back(AddValue(absl::StrCat(name, moment), bytes, true));
      }
      std::vector<int> after;
      for (int old : before) {
        after.push_back(AddValue(absl::StrCat(problem_.values[old].name, "'"),
                                 bytes, true));
      }
      std::vector<int> inputs = before;
      inputs.push_back(gradient_[parameter]);
      const NodeId id = AddNode(absl::StrCat(name, ".adamw"), inputs, after, 0);
      Node& node = problem_.nodes[Index(id)];
      node.recompute = false;
      for (size_t i = 0; i < before.size(); ++i) {
        node.inplace.emplace_back(ValueId{before[i]}, ValueId{after[i]});
      }
    }
  }

  const TransformerShape shape_;
  Problem problem_;
  int ids_ = 0;
  std::vector<int> parameters_;
  std::vector<int> gradient_;  // by value; -1: none yet
  std::vector<Tape> tape_;
};

}  // namespace

Problem TransformerProblem(const TransformerShape& shape) {
  return Builder(shape).Build();
}

}  // namespace loadline::planner
