// VerifyGraph, with one corruption at a time: each is found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;

TEST(VerifyGraph, AcceptsValidGraphs) {
  EXPECT_TRUE(VerifyGraph(Graph()).ok());
  EXPECT_TRUE(VerifyGraph(SmallStep()).ok()) << VerifyGraph(SmallStep());
  for (int seed = 0; seed < 50; ++seed) {
    const Graph g = RandomGraph(seed, 30);
    EXPECT_TRUE(VerifyGraph(g).ok()) << VerifyGraph(g);
  }
}

struct Corruption {
  const char* message;
  std::function<void(Graph&)> corrupt;
};

// In SmallStep: values x w w.momentum fc relu flat loss dw w.sgd w.sgd.1;
// nodes fc relu flat loss dw w.sgd.
const Corruption kCorruptions[] = {
    {"two values are named \"x\"", [](Graph& g) { g.values[3].name = "x"; }},
    {"two nodes are named \"fc\"", [](Graph& g) { g.nodes[1].name = "fc"; }},
    {"a value has no name", [](Graph& g) { g.values[3].name.clear(); }},
    {"a node has no name", [](Graph& g) { g.nodes[3].name.clear(); }},
    {"value \"x\": negative dimension",
     [](Graph& g) { g.values[0].type.dims[0] = -4; }},
    {"\"w\" is persistent but lacks",
     [](Graph& g) { g.values[1].initial.reset(); }},
    {"\"fc\" is not persistent but has",
     [](Graph& g) {
       g.values[3].initial = ZeroTensor(F32({4, 2}));
     }},
    {"first contents of value \"w\"",
     [](Graph& g) {
       g.values[1].initial = ZeroTensor(F32({2, 3}));
     }},
    {"first contents of value \"w\"",
     [](Graph& g) {
       // A constant, unlike a weight, cannot be missing.
       g.values[1].kind = ValueKind::kConstant;
       g.values[1].initial->data = nullptr;
     }},
    {"first contents of value \"w\"",
     [](Graph& g) {
       g.values[1].initial->data = std::make_shared<std::vector<std::byte>>(23);
     }},
    {"an input is no value", [](Graph& g) { g.inputs[0] = ValueId(99); }},
    {"\"w\" is listed as an input",
     [](Graph& g) { g.inputs.push_back(ValueId(1)); }},
    {"input \"x\" is listed twice",
     [](Graph& g) { g.inputs.push_back(ValueId(0)); }},
    {"input \"x\" is not listed", [](Graph& g) { g.inputs.clear(); }},
    {"\"relu\" reads no value",
     [](Graph& g) { g.nodes[1].inputs[0] = ValueId(10); }},
    {"\"relu\" reads no value",
     [](Graph& g) { g.nodes[1].inputs[0] = ValueId(-2); }},
    {"input 0 is missing", [](Graph& g) { g.nodes[1].inputs[0] = kNoValue; }},
    {"\"fc\" reads \"relu\" before it is made",
     [](Graph& g) { g.nodes[0].inputs[0] = ValueId(4); }},
    {"before it is made", [](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }},
    {"inner dimensions", [](Graph& g) { g.nodes[0].inputs[1] = ValueId(0); }},
    {"unknown operator Relo", [](Graph& g) { g.nodes[1].op = "Relo"; }},
    {"unknown attribute alpha",
     [](Graph& g) { g.nodes[1].attributes.Set("alpha", 1.0); }},
    {"attribute shape is missing",
     [](Graph& g) { g.nodes[2].attributes.Erase("shape"); }},
    {"attribute trans_a is 1.0, not an integer",
     [](Graph& g) { g.nodes[4].attributes.Set("trans_a", 1.0); }},
    {"\"w.sgd\" has 1 outputs",
     [](Graph& g) { g.nodes[5].outputs.pop_back(); }},
    {"\"relu\" makes no value",
     [](Graph& g) { g.nodes[1].outputs[0] = ValueId(10); }},
    {"\"relu\" makes no value",
     [](Graph& g) { g.nodes[1].outputs[0] = kNoValue; }},
    {"\"relu\" makes \"w\", which is not an intermediate",
     [](Graph& g) { g.nodes[1].outputs[0] = ValueId(1); }},
    {"\"fc\" is made twice",
     [](Graph& g) { g.nodes[1].outputs[0] = ValueId(3); }},
    {"value \"relu\" is f32[2,4] but",
     [](Graph& g) {
       g.values[4].type = F32({2, 4});
     }},
    {"value \"w.sgd\" is made by no node",
     [](Graph& g) {
       g.nodes.pop_back();
       g.updates.clear();
     }},
    {"an output is no value", [](Graph& g) { g.outputs[0] = kNoValue; }},
    {"an update names no value",
     [](Graph& g) { g.updates[0].second = ValueId(10); }},
    {"changes \"x\", which is neither",
     [](Graph& g) { g.updates[0].first = ValueId(0); }},
    {"update of \"w\" is not made by a node",
     [](Graph& g) { g.updates[0].second = ValueId(2); }},
    {"update of \"w\" is f32[4,2]",
     [](Graph& g) { g.updates[0].second = ValueId(3); }},
    {"\"w\" is updated twice",
     [](Graph& g) { g.updates[1].first = ValueId(1); }},
    {"updates two values",
     [](Graph& g) { g.updates[1].second = g.updates[0].second; }},
};

TEST(VerifyGraph, NamesEachCorruption) {
  for (const Corruption& corruption : kCorruptions) {
    Graph g = SmallStep();
    corruption.corrupt(g);
    const absl::Status status = VerifyGraph(g);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << corruption.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(corruption.message));
  }
}

}  // namespace
}  // namespace loadline::models
