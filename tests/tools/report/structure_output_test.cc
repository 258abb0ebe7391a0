// What is said of a choice of structure.
#include "tools/report/structure_output.h"

#include <gtest/gtest.h>

#include <string>

#include "models/micro_batches.h"
#include "nlohmann/json.hpp"

namespace loadline::tools {
namespace {

models::Graph InParts(int64_t parts) {
  models::Graph graph;
  for (int64_t part = 0; part < parts; ++part) {
    graph.AddInput(models::NameInPart("x", part), {models::DType::kF32, {2}});
  }
  return graph;
}

Swept Front(int64_t parts, std::vector<std::pair<int64_t, int64_t>> points) {
  Swept swept;
  swept.step.graph = InParts(parts);
  for (const auto& [bytes, ns] : points) {
    ParetoPoint point;
    point.plan.budget_bytes = bytes;
    point.plan.predicted.step_ns = ns;
    swept.points.push_back(std::move(point));
  }
  return swept;
}

TEST(StructureText, ListsWhatWasTried) {
  PlannedStep step;
  EXPECT_EQ(StructureText(step), "");
  step.graph = InParts(2);
  EXPECT_EQ(StructureText(step),
            "The step runs in 2 micro-batches, whose gradients are added "
            "up.\n");
  models::Node norm;
  norm.op = "BatchNormTraining";
  norm.attributes.Set("part_statistics", int64_t{1});
  step.graph.nodes = {norm};
  EXPECT_EQ(StructureText(step),
            "The step runs in 2 micro-batches, whose gradients are added up.\n"
            "Each micro-batch is normalized by its own batch statistics.\n");
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  AddStructure(step, &out);
  EXPECT_EQ(out["micro_batch_statistics"], true);
  step.graph.nodes.clear();
  step.tried = {{1, "needs at least 3.00 GiB"}, {2, "12.0 ms"}};
  EXPECT_EQ(StructureText(step),
            "The step runs in 2 micro-batches, chosen of:\n"
            "  one piece         needs at least 3.00 GiB\n"
            "  2 micro-batches   12.0 ms\n");
}

TEST(StructureText, NamesSegmentsAndCountsWhatIsAlike) {
  PlannedStep step;
  step.tried = {{1, "12.0 ms"}, {1, "13.0 ms", {"head=4"}}};
  for (int64_t parts : {2, 4, 8, 16}) {
    step.tried.push_back({parts, "cannot be faster"});
  }
  step.tried.push_back({2, "14.0 ms", {"head=4", "mlp=2"}});
  EXPECT_EQ(StructureText(step),
            "The step runs in one piece, chosen of:\n"
            "  one piece                                  12.0 ms\n"
            "  segments head=4                            13.0 ms\n"
            "  2 micro-batches and segments head=4 mlp=2  14.0 ms\n"
            "  4 others                                   cannot be faster\n");
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  AddStructure(step, &out);
  EXPECT_FALSE(out.contains("splits"));
  EXPECT_EQ(out["structures"].size(), 7u);
  EXPECT_EQ(out["structures"][1]["splits"][0], "head=4");
}

TEST(AddStructure, SaysNothingOfOnePieceByRequest) {
  PlannedStep step;
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  AddStructure(step, &out);
  EXPECT_TRUE(out.empty());
  step.tried = {{1, "12.0 ms"}};
  AddStructure(step, &out);
  EXPECT_EQ(out["micro_batches"], 1);
  EXPECT_EQ(out["structures"][0]["outcome"], "12.0 ms");
}

TEST(StructuresFront, HasTheFastestPlanOfEachBudget) {
  EXPECT_EQ(
      StructuresFront({Front(1, {{2048, 900'000'000}, {4096, 100'000'000}}),
                       Front(2, {{1024, 300'000'000}, {3072, 200'000'000}})}),
      "    budget      step   in\n"
      "  1.00 KiB    300 ms   2 micro-batches\n"
      "  3.00 KiB    200 ms   2 micro-batches\n"
      "  4.00 KiB    100 ms   one piece\n");
}

}  // namespace
}  // namespace loadline::tools
