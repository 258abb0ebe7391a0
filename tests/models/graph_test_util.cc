// Graphs for this folder's tests.
#include "tests/models/graph_test_util.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"

namespace loadline::models {
namespace {

ValueId Only(absl::StatusOr<std::vector<ValueId>> outputs) {
  LOADLINE_CHECK(outputs.ok());
  return (*outputs)[0];
}

Tensor RandomTensor(std::mt19937& random, const TensorType& type) {
  std::vector<float> numbers(type.elements());
  std::normal_distribution<float> normal;
  for (float& number : numbers) number = normal(random);
  return MakeTensor(type, numbers.data());
}

}  // namespace

Graph SmallStep() {
  Graph g;
  g.name = "small";
  const ValueId x = g.AddInput("x", F32({4, 3}));
  const ValueId w = g.AddParameter("w", ZeroTensor(F32({3, 2})));
  const ValueId momentum = g.AddState("w.momentum", ZeroTensor(F32({3, 2})));
  const ValueId y = Only(g.AddNode("MatMul", "fc", {x, w}));
  const ValueId r = Only(g.AddNode("Relu", "relu", {y}));
  const ValueId flat =
      Only(g.AddNode("Reshape", "flat", {r}, {{"shape", Ints{8}}}));
  const ValueId loss = Only(
      g.AddNode("ReduceSum", "loss", {flat}, {{"keepdims", 0}}, Phase::kLoss));
  const ValueId dw = Only(
      g.AddNode("MatMul", "dw", {x, r}, {{"trans_a", 1}}, Phase::kBackward));
  const std::vector<ValueId> updated = *g.AddNode(
      "Sgd", "w.sgd", {w, dw, momentum}, {{"momentum", 0.9}}, Phase::kUpdate);
  g.outputs = {loss};
  g.updates = {{w, updated[0]}, {momentum, updated[1]}};
  return g;
}

Graph RandomGraph(int seed, int nodes) {
  std::mt19937 random(seed);
  auto below = [&random](size_t n) { return random() % n; };
  Graph g;
  g.name = absl::StrCat("random \"", seed, "\"\n\xc3\xa9");
  const std::vector<TensorType> types = {F32({4, 6}), F32({6}), F32({}),
                                         F32({1, 6})};
  std::vector<ValueId> pool;
  for (const TensorType& type : types) {
    pool.push_back(g.AddInput("in", type));
    pool.push_back(g.AddParameter("p\tq", RandomTensor(random, type)));
    pool.push_back(g.AddState("s", RandomTensor(random, type)));
    pool.push_back(g.AddConstant("c", RandomTensor(random, type)));
  }
  while (static_cast<int>(g.nodes.size()) < nodes) {
    const ValueId a = pool[below(pool.size())];
    const ValueId b = pool[below(pool.size())];
    const int64_t rank = g.value(a).type.rank();
    absl::StatusOr<std::vector<ValueId>> made;
    switch (below(6)) {
      case 0:
        made = g.AddNode("Tanh", "t", {a});
        break;
      case 1:
        made = g.AddNode("Mul", "m", {a, b}, {}, Phase::kBackward);
        break;
      case 2:
        made = g.AddNode("Gelu", "gelu", {a}, {{"approximate", "tanh"}});
        break;
      case 3:
        made = g.AddNode("ReduceMean", "mean", {a}, {{"axes", Ints{-1}}});
        break;
      case 4:
        made = g.AddNode("Dropout", "d", {a},
                         {{"ratio", 1.0 / (1 + below(7)) / 2},
                          {"salt", static_cast<int64_t>(below(99))}});
        break;
      case 5:
        made = rank == 2 ? g.AddNode("MatMul", "mm", {a, a}, {{"trans_b", 1}})
                         : g.AddNode("Softmax", "soft", {a}, {{"axis", -1}});
        break;
    }
    // Nodes that inference refuses (shapes that do not broadcast) are skipped.
    if (made.ok()) pool.insert(pool.end(), made->begin(), made->end());
  }
  g.outputs = {pool.back(), pool[pool.size() - 2]};
  const ValueId p = *g.Find("p\tq");
  const ValueId next =
      Only(g.AddNode("Sgd", "sgd", {p, p}, {}, Phase::kUpdate));
  g.updates = {{p, next}};
  return g;
}

}  // namespace loadline::models
