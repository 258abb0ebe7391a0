#include "passes/pass_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "passes/remove_dead_nodes.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Graph;
using ::testing::HasSubstr;

Graph GraphWithDeadNode() {
  Builder b;
  const models::ValueId x = b.Input("x", {2});
  b.Op("Exp", {x});
  b.Output(b.Op("Relu", {x}));
  return b.graph;
}

TEST(PassRunner, LogsEveryPassWithItsNodes) {
  std::vector<std::string> log;
  PassOptions options;
  options.log = [&](absl::string_view name, double seconds, size_t before,
                    size_t after) {
    EXPECT_GE(seconds, 0);
    log.push_back(std::string(name) + " " + std::to_string(before) + " " +
                  std::to_string(after));
  };
  PassRunner runner(options);
  Graph graph = GraphWithDeadNode();
  ASSERT_TRUE(
      runner.Run("dead", PassNeed::kOptional, RemoveDeadNodes, graph).ok());
  EXPECT_TRUE(runner.Finish().ok());
  EXPECT_THAT(log, testing::ElementsAre("dead 2 1"));
}

TEST(PassRunner, SwitchesOffByName) {
  PassOptions options;
  options.disabled = {"dead"};
  PassRunner runner(options);
  Graph graph = GraphWithDeadNode();
  ASSERT_TRUE(
      runner.Run("dead", PassNeed::kOptional, RemoveDeadNodes, graph).ok());
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_TRUE(runner.Finish().ok());
}

TEST(PassRunner, RefusesToSwitchOffWhatIsRequiredOrUnknown) {
  PassOptions options;
  options.disabled = {"dead"};
  PassRunner runner(options);
  Graph graph = GraphWithDeadNode();
  EXPECT_THAT(runner.Run("dead", PassNeed::kRequired, RemoveDeadNodes, graph)
                  .ToString(),
              HasSubstr("'dead' is required"));
  PassRunner other(options);
  ASSERT_TRUE(
      other.Run("alive", PassNeed::kOptional, RemoveDeadNodes, graph).ok());
  EXPECT_EQ(other.Finish().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(other.Finish().ToString(), HasSubstr("those that can: alive"));
}

TEST(PassRunner, CatchesAPassThatBreaksTheGraph) {
  PassRunner runner{PassOptions()};
  Graph graph = GraphWithDeadNode();
  const auto swap_nodes = [](Graph& g) {
    g.nodes[0].inputs[0] = g.nodes[1].outputs[0];  // read before it exists
    return absl::OkStatus();
  };
  const absl::Status status =
      runner.Run("swap_nodes", PassNeed::kOptional, swap_nodes, graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.ToString(), HasSubstr("'swap_nodes' broke the graph"));
}

TEST(PassRunner, DumpsTheTextAfterEveryPass) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "loadline_pass_dump";
  std::filesystem::remove_all(folder);
  PassOptions options;
  options.dump_dir = folder.string();
  PassRunner runner(options);
  Graph graph = GraphWithDeadNode();
  ASSERT_TRUE(
      runner.Run("dead", PassNeed::kOptional, RemoveDeadNodes, graph).ok());
  std::ifstream file(folder / "01-dead.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("Relu"));
  EXPECT_THAT(text.str(), testing::Not(HasSubstr("Exp")));
}

TEST(PassRunner, SaysWhereADumpCannotBeWritten) {
  PassOptions options;
  options.dump_dir = "/dev/null/dump";
  PassRunner runner(options);
  Graph graph = GraphWithDeadNode();
  EXPECT_THAT(runner.Run("dead", PassNeed::kOptional, RemoveDeadNodes, graph)
                  .ToString(),
              HasSubstr("/dev/null/dump/01-dead.txt"));
  options.dump_dir = "/dev/null";
  PassRunner of_file(options);
  EXPECT_THAT(of_file.Run("dead", PassNeed::kOptional, RemoveDeadNodes, graph)
                  .ToString(),
              HasSubstr("/dev/null is not a folder"));
}

}  // namespace
}  // namespace loadline::passes
