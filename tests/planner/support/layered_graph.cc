#include "tests/planner/support/layered_graph.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int kMeanLayers = 28;
constexpr int kFarEdgesPart = 8;  // one in so many edges

// Layers as ranges of nodes [first[i], first[i + 1]); the first and the last
// have one node.
std::vector<int> FirstNodes(int nodes, TestRandom& random) {
  std::vector<int> first = {0};
  int next = 1;
  while (next < nodes - 1) {
    first.push_back(next);
    next += static_cast<int>(random.In(1, 2 + 2 * nodes / kMeanLayers));
    next = std::min(next, nodes - 1);
  }
  first.push_back(nodes - 1);
  first.push_back(nodes);
  return first;
}

using Edges = std::set<std::pair<int, int>>;  // reader, then what it reads

Edges DrawEdges(const std::vector<int>& first, TestRandom& random) {
  Edges edges;
  const auto pick = [&](size_t layer) {
    return static_cast<int>(random.In(first[layer], first[layer + 1] - 1));
  };
  const size_t layers = first.size() - 1;
  for (size_t layer = 1; layer < layers; ++layer) {
    for (int node = first[layer]; node < first[layer + 1]; ++node) {
      const int64_t reads = layer + 1 < layers ? random.In(1, 4) : 1;
      for (int64_t i = 0; i < reads; ++i) edges.insert({node, pick(layer - 1)});
    }
    // Every value is read.
    for (int node = first[layer - 1]; node < first[layer]; ++node) {
      edges.insert({pick(layer), node});
    }
  }
  const auto near = static_cast<int64_t>(edges.size());
  for (int64_t i = 0; i < near / kFarEdgesPart; ++i) {
    const auto from =
        static_cast<size_t>(random.In(0, static_cast<int64_t>(layers) - 2));
    const auto to = static_cast<size_t>(random.In(
        static_cast<int64_t>(from) + 1, static_cast<int64_t>(layers) - 1));
    edges.insert({pick(to), pick(from)});
  }
  return edges;
}

}  // namespace

Problem LayeredGraph(uint64_t seed, int nodes) {
  TestRandom random(seed);
  const std::vector<int> first = FirstNodes(nodes, random);
  const Edges edges = DrawEdges(first, random);
  Problem problem;
  problem.name = "layered" + std::to_string(nodes);
  problem.addresses = false;
  for (int n = 0; n < nodes; ++n) {
    Value value;
    value.file_id = n;
    value.name = std::to_string(n);
    // Mostly small, some large.
    value.bytes = 10 * random.In(2, 1 + random.In(1, 700));
    problem.values.push_back(std::move(value));
    Node node;
    node.file_id = n;
    node.name = std::to_string(n);
    node.time_ns = n == 0 || n == nodes - 1 ? 0 : random.In(0, 999);
    node.outputs = {ValueId{n}};
    problem.nodes.push_back(std::move(node));
  }
  for (const auto& [node, value] : edges) {
    problem.nodes[node].inputs.push_back(ValueId{value});
  }
  problem.outputs = {ValueId{nodes - 1}};
  return problem;
}

}  // namespace loadline::planner
