// The order of the sum is that of the parameters. Tested in
// tests/passes/add_optimizer_test.cc.
#include "passes/clip_gradients.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

absl::StatusOr<models::ValueId> AddClipFactor(models::Graph& graph,
                                              const Gradients& gradients,
                                              double max_norm) {
  LOADLINE_CHECK(!gradients.empty());
  std::vector<models::ValueId> squares;
  for (const auto& [parameter, gradient] : gradients) {
    LOADLINE_ASSIGN_OR_RETURN(
        const auto sum,
        graph.AddNode("SumSquares",
                      absl::StrCat(graph.value(parameter).name, ".norm"),
                      {gradient}, {}, models::Phase::kBackward));
    squares.push_back(sum[0]);
  }
  if (squares.size() > 1) {
    LOADLINE_ASSIGN_OR_RETURN(
        squares,
        graph.AddNode("Concat", "clip.norms", squares, {{"axis", int64_t{0}}},
                      models::Phase::kBackward));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const auto factor,
      graph.AddNode("ClipFactor", "clip.factor", squares,
                    {{"max_norm", max_norm}}, models::Phase::kBackward));
  return factor[0];
}

}  // namespace loadline::passes
