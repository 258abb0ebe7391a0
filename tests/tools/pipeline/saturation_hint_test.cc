#include "tools/pipeline/saturation_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"

namespace loadline::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// `twice`: both products read one weight.
std::string Hint(bool twice, passes::QuantizeSpec spec) {
  passes::Builder b;
  const auto x = b.Input("x", {2, 4});
  const auto w = b.Parameter("w", {4, 4});
  const auto v = twice ? w : b.Parameter("v", {4, 4});
  const auto y = b.Op("Relu", {b.Op("MatMul", {x, w})});
  b.Output(b.Op("MatMul", {y, v}));
  passes::QuantizeRequest request;
  request.spec = spec;
  for (size_t i = 0; i < b.graph.nodes.size(); ++i) {
    if (b.graph.nodes[i].op != "MatMul") continue;
    request.nodes.push_back(models::NodeId{static_cast<int32_t>(i)});
  }
  const std::vector<passes::QuantizeRequest> requests = {request};
  const auto tensors = passes::AddFakeQuantize(b.graph, requests);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  return tensors.ok() ? SaturationHint(b.graph, *tensors) : "";
}

TEST(SaturationHint, NamesTheOptionThatLoads) {
  EXPECT_THAT(Hint(/*twice=*/false, {}),
              AllOf(HasSubstr("session.x64quantprecision is 1"),
                    HasSubstr("reduce_range")));
  EXPECT_THAT(Hint(/*twice=*/true, {}),
              AllOf(Not(HasSubstr("session.x64quantprecision is 1")),
                    HasSubstr("reduce_range")));
}

TEST(SaturationHint, IsEmptyWhereNothingSaturates) {
  passes::QuantizeSpec reduced;
  reduced.bits.weight = 4;
  EXPECT_EQ(Hint(/*twice=*/false, reduced), "");
  passes::QuantizeSpec codebook;
  codebook.quantizer = passes::Quantizer::kKMeans;
  codebook.targets = {true, false, false};
  EXPECT_EQ(Hint(/*twice=*/true, codebook), "");
}

}  // namespace
}  // namespace loadline::tools
