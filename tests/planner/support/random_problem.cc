// A small builder writes the step in the order a framework would: forward,
// loss, backward from the last layer to the first, each update right after its
// gradient. Tested in problem_json_test.cc (every seed gives a valid problem).
#include "tests/planner/support/random_problem.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace loadline::planner {

uint64_t TestRandom::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t TestRandom::In(int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
}

namespace {

struct Weights {
  ValueId weight = kNoValue;
  ValueId optimizer = kNoValue;
};

struct Layer {
  ValueId in = kNoValue;
  ValueId skip = kNoValue;  // second input, kNoValue: none
  ValueId out = kNoValue;
  ValueId mask = kNoValue;  // small by-product that backward reads
  Weights weights;
};

class Builder {
 public:
  Builder(uint64_t seed, bool persistent)
      : random_(seed * 2 + (persistent ? 1 : 0)), persistent_(persistent) {}

  Problem Build(int nodes, bool copies) {
    problem_.name = "random";
    const int64_t alignments[] = {1, 64, 256};
    problem_.alignment_bytes = alignments[random_.In(0, 2)];
    const int layers = std::max(1, (nodes - 1) / (persistent_ ? 4 : 2));
    Forward(layers);
    const ValueId last_gradient = Loss();
    Backward(last_gradient);
    if (copies) problem_.machine = RandomMachine();
    return std::move(problem_);
  }

 private:
  ValueId AddValue(std::string name, int64_t bytes) {
    Value value;
    value.file_id = next_file_id_;
    next_file_id_ += random_.In(1, 3);
    value.name = std::move(name);
    value.bytes = bytes;
    value.offload = !random_.OneIn(12);
    problem_.values.push_back(std::move(value));
    return ValueId(static_cast<int32_t>(problem_.values.size() - 1));
  }

  Node& AddNode(std::string name, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs) {
    Node node;
    node.file_id = 2 * static_cast<int64_t>(problem_.nodes.size()) + 5;
    node.name = std::move(name);
    node.time_ns = random_.OneIn(10) ? 0 : random_.In(100, 20'000);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.workspace_bytes = random_.OneIn(4) ? random_.In(1, 30'000) : 0;
    problem_.nodes.push_back(std::move(node));
    return problem_.nodes.back();
  }

  int64_t RandomBytes() {
    return random_.OneIn(20) ? 0 : random_.In(1, 100'000);
  }

  Weights AddWeights(const std::string& name) {
    Weights weights;
    weights.weight = AddValue(name + ".w", random_.In(1, 60'000));
    problem_.values[Index(weights.weight)].persistent = true;
    weights.optimizer =
        AddValue(name + ".opt", 2 * problem_.value(weights.weight).bytes);
    problem_.values[Index(weights.optimizer)].persistent = true;
    return weights;
  }

  void Forward(int layers) {
    ValueId current = AddValue("data", random_.In(1, 50'000));
    std::vector<ValueId> history = {current};
    for (int i = 0; i < layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      Layer layer;
      layer.in = current;
      if (random_.OneIn(3)) {
        const int64_t size = static_cast<int64_t>(history.size());
        layer.skip =
            history[random_.In(std::max<int64_t>(0, size - 6), size - 1)];
      }
      const bool pointwise = random_.OneIn(3);
      const int64_t bytes =
          pointwise ? problem_.value(current).bytes : RandomBytes();
      if (persistent_ && !pointwise) layer.weights = AddWeights(name);
      layer.out = AddValue(name + ".out", bytes);
      AddForwardNode(name, pointwise, layer);
      layers_.push_back(layer);
      current = layer.out;
      history.push_back(current);
    }
    if (random_.OneIn(3)) problem_.outputs.push_back(current);
  }

  void AddForwardNode(const std::string& name, bool pointwise, Layer& layer) {
    std::vector<ValueId> inputs = {layer.in};
    if (layer.skip != kNoValue) inputs.push_back(layer.skip);
    if (layer.weights.weight != kNoValue) {
      inputs.push_back(layer.weights.weight);
    }
    std::vector<ValueId> outputs = {layer.out};
    if (random_.OneIn(6)) {
      layer.mask = AddValue(name + ".mask", random_.In(0, 2'000));
      outputs.push_back(layer.mask);
    }
    Node& node = AddNode(name, std::move(inputs), std::move(outputs));
    node.recompute = !random_.OneIn(15);
    // Graph inputs may be written over too: nothing reads them afterwards
    // unless the graph says so.
    if (pointwise) node.inplace.push_back({layer.in, layer.out});
    if (random_.OneIn(10)) {
      node.variants.push_back(
          {"fast", node.time_ns / 2, node.workspace_bytes + 4096, false});
    }
    if (random_.OneIn(8)) {
      Value& out = problem_.values[Index(layer.out)];
      out.stash.push_back(
          {"half", (out.bytes + 1) / 2, random_.In(0, 500), 100, false, 0.01});
    }
  }

  ValueId Loss() {
    const ValueId out = layers_.back().out;
    const ValueId target = AddValue("target", random_.In(1, 4'000));
    const ValueId loss = AddValue("loss", 4);
    const ValueId gradient = AddValue("loss.grad", problem_.value(out).bytes);
    AddNode("loss", {out, target}, {loss, gradient});
    problem_.outputs.push_back(loss);
    return gradient;
  }

  void Backward(ValueId gradient) {
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const std::string name = "layer" + std::to_string(i);
      if (layer.weights.weight != kNoValue) {
        // The data gradient reads the weight, so it comes before the update.
        const ValueId next = DataGradient(name, layer, gradient);
        WeightGradient(name, layer, gradient);
        gradient = next;
      } else {
        gradient = DataGradient(name, layer, gradient);
      }
    }
  }

  ValueId DataGradient(const std::string& name, const Layer& layer,
                       ValueId gradient) {
    const ValueId next =
        AddValue(name + ".in.grad", problem_.value(layer.in).bytes);
    std::vector<ValueId> inputs = {gradient};
    inputs.push_back(random_.OneIn(2) ? layer.out : layer.in);
    if (layer.mask != kNoValue) inputs.push_back(layer.mask);
    if (layer.skip != kNoValue && random_.OneIn(2)) {
      inputs.push_back(layer.skip);
    }
    if (layer.weights.weight != kNoValue) {
      inputs.push_back(layer.weights.weight);
    }
    Node& node = AddNode(name + ".grad", std::move(inputs), {next});
    if (problem_.value(next).bytes == problem_.value(gradient).bytes &&
        random_.OneIn(2)) {
      node.inplace.push_back({gradient, next});
    }
    return next;
  }

  void WeightGradient(const std::string& name, const Layer& layer,
                      ValueId gradient) {
    const Weights& old = layer.weights;
    const int64_t bytes = problem_.value(old.weight).bytes;
    const ValueId weight_gradient = AddValue(name + ".w.grad", bytes);
    AddNode(name + ".w.grad", {layer.in, gradient}, {weight_gradient});
    const Weights next = {AddVersion(old.weight, "'"),
                          AddVersion(old.optimizer, "'")};
    Node& update =
        AddNode(name + ".update", {weight_gradient, old.weight, old.optimizer},
                {next.weight, next.optimizer});
    update.recompute = false;
    update.inplace = {{old.weight, next.weight},
                      {old.optimizer, next.optimizer}};
    if (random_.OneIn(8)) {
      const ValueId clipped = AddVersion(next.weight, "'");
      Node& clip = AddNode(name + ".clip", {next.weight}, {clipped});
      clip.recompute = false;
      clip.inplace = {{next.weight, clipped}};
    }
  }

  ValueId AddVersion(ValueId old, const std::string& suffix) {
    const Value& value = problem_.value(old);
    const std::string name = value.name + suffix;
    const bool offload = value.offload;
    const ValueId id = AddValue(name, value.bytes);
    problem_.values[Index(id)].persistent = true;
    problem_.values[Index(id)].offload = offload;
    return id;
  }

  Machine RandomMachine() {
    Machine machine;
    machine.name = "test";
    machine.device_bytes = int64_t{1} << 40;
    machine.d2h.bytes_per_s = static_cast<double>(random_.In(1, 40)) * 1e9;
    machine.h2d.bytes_per_s = static_cast<double>(random_.In(1, 40)) * 1e9;
    machine.d2h.latency_ns = machine.h2d.latency_ns = random_.In(0, 500);
    machine.d2h_h2d_factor = random_.OneIn(2) ? 1.0 : 0.6;
    machine.host_bytes = int64_t{1} << 40;
    if (random_.OneIn(4)) machine.h2d.latency_ns = random_.In(0, 500);
    if (random_.OneIn(3)) machine.copy_overhead_ns = random_.In(1, 300);
    return machine;
  }

  TestRandom random_;
  bool persistent_;
  Problem problem_;
  int64_t next_file_id_ = 10;
  std::vector<Layer> layers_;
};

}  // namespace

void AddRandomChoices(uint64_t seed, Problem& problem) {
  TestRandom random(seed + 4'000'000);
  for (Value& value : problem.values) {
    for (int c = 0; c < 2 && random.OneIn(2); ++c) {
      Codec codec;
      codec.name = c == 0 ? "mask" : "zip";
      codec.bytes = value.bytes * random.In(1, 10) / 9;
      codec.encode_ns = random.In(0, 800);
      codec.decode_ns = random.In(0, 800);
      codec.lossless = !random.OneIn(3);
      codec.error = codec.lossless ? 0 : 0.01;
      value.stash.push_back(codec);
    }
  }
  for (Node& node : problem.nodes) {
    if (random.OneIn(3)) {
      node.variants.push_back({"quick", node.time_ns * random.In(3, 9) / 10,
                               node.workspace_bytes + random.In(1, 60'000),
                               !random.OneIn(3)});
    }
    if (node.workspace_bytes > 0 && random.OneIn(2)) {
      node.variants.push_back({"small", node.time_ns + random.In(0, 3'000),
                               node.workspace_bytes / random.In(2, 9),
                               !random.OneIn(3)});
    }
  }
}

Problem RandomProblem(uint64_t seed, int nodes, bool persistent, bool copies) {
  return Builder(seed, persistent).Build(nodes, copies);
}

}  // namespace loadline::planner
