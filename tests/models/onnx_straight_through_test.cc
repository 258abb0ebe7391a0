#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/differentiate.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// y = f(x w, u) with q = round(x w) u, as of a quantizer with a trained scale
// u.
onnx::ModelProto Model(const std::string& f) {
  return ModelFromText(
      absl::StrCat("g (float[2,2] x) => (float[2,2] y) "
                   "<float[2,2] w = {1,2,3,4}, float[2] u = {1,1}> {"
                   " z = MatMul(x, w) r = Round(z) q = Mul(r, u) ",
                   f, " }"));
}

// Which of z and q, by the name of what reads them, get a gradient.
std::vector<bool> Active(const Graph& graph, const std::string& parameter) {
  const std::vector<bool> active =
      ActiveValues(graph, {*graph.Find(parameter)}, {});
  std::vector<bool> found;
  for (const ValueId output : graph.outputs) {
    found.push_back(active[Index(output)]);
  }
  return found;
}

TEST(StraightThrough, PassesTheGradientToWhatWasQuantizedAlone) {
  for (const char* f :
       {"s = Sub(q, z) y = Add(z, s)", "s = Sub(q, z) y = Add(s, z)",
        "s = Sub(z, q) y = Sub(z, s)", "s = Add(q, z) y = Sub(s, z)",
        "s = Add(z, q) y = Sub(s, z)"}) {
    const auto imported = ImportOnnxBytes(Bytes(Model(f)), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_TRUE(Active(imported->graph, "w")[0]) << f;
    EXPECT_FALSE(Active(imported->graph, "u")[0]) << f;
    EXPECT_THAT(imported->warnings, Contains(HasSubstr("lost: y"))) << f;
  }
}

TEST(StraightThrough, IsListedTenTimesAtMost) {
  std::string twelve = "s0 = Sub(q, z) v0 = Add(z, s0) ", sum = "v0";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&twelve, "s", i, " = Sub(q, z) v", i, " = Add(z, s", i,
                    ") ");
    sum += absl::StrCat(", v", i);
  }
  const auto imported = ImportOnnxBytes(
      Bytes(Model(absl::StrCat(twelve, "y = Sum(", sum, ")"))), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings, Contains(HasSubstr("v8, v9 and 2 more")));
}

TEST(StraightThrough, IsNoOtherSumOrDifference) {
  for (const char* f :
       {"s = Sub(z, q) y = Add(z, s)", "s = Sub(q, r) y = Add(z, s)",
        "s = Sub(q, z) y = Sub(s, z)", "s = Add(q, z) y = Add(s, z)",
        "s = Add(z, z) y = Sub(s, z)",
        // The gradient passes through q.
        "t = Tanh(z) s = Sub(t, z) y = Add(z, s)",
        "t = ReduceMean(z) s = Sub(z, t) y = Sub(z, s)",
        "t = Mul(z, q) s = Add(t, z) y = Sub(s, z)"}) {
    const auto imported = ImportOnnxBytes(Bytes(Model(f)), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    for (const std::string& warning : imported->warnings) {
      EXPECT_THAT(warning, Not(HasSubstr("straight"))) << f;
    }
  }
}

TEST(StraightThrough, IsLeftAsItIsWhereTheFileHasDetach) {
  onnx::ModelProto model = Model("d = Identity(q) s = Sub(d, z) y = Add(z, s)");
  auto* entry = model.mutable_graph()->mutable_node(3)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.fx_node");
  entry->set_value(
      "%detach : [num_users=1] = call_function[target=torch.ops.aten.detach."
      "default](args = (%q,), kwargs = {})");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  for (const std::string& warning : imported->warnings) {
    EXPECT_THAT(warning, Not(HasSubstr("straight")));
  }
}

}  // namespace
}  // namespace loadline::models
