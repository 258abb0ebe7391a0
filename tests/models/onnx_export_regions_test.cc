// Traces as torch 2.15 writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/differentiate.h"
#include "models/onnx/export_regions.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using onnx_internal::FindExportRegions;
using onnx_internal::RegionKind;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A frame of generated code.
std::string Frame(int number, const std::string& line) {
  return absl::StrCat("File \"<eval_with_key>.", number,
                      "\", line 5, in forward\n    ", line);
}

std::string Mm(const std::string& arguments) {
  return absl::StrCat("mm = torch.ops.aten.mm.default(", arguments, ")");
}

const std::set<std::string> kPlaceholders = {"p_w", "b_table", "x"};
constexpr char kTanh[] = "tanh = torch.ops.aten.tanh.default(mm);  mm = None";

void WriteTrace(const std::string& trace, onnx::NodeProto* node) {
  if (trace.empty()) return;
  auto* entry = node->add_metadata_props();
  entry->set_key("pkg.torch.onnx.stack_trace");
  entry->set_value(trace);
}

// y = t (t w) with t = tanh(x w), whose product and tanh have these traces.
onnx::ModelProto Model(const std::string& product, const std::string& tanh,
                       const std::string& second = "File \"b.py\", line 1") {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {"
      " m = MatMul(x, w) t = Tanh(m) u = MatMul(t, w) y = Mul(u, t) }");
  auto* nodes = model.mutable_graph()->mutable_node();
  WriteTrace(product, &(*nodes)[0]);
  WriteTrace(tanh, &(*nodes)[1]);
  WriteTrace(second, &(*nodes)[2]);
  auto* signature = model.mutable_graph()->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value(
      "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n\n"
      "# outputs\ny: USER_OUTPUT\n");
  auto* info = model.mutable_graph()->add_value_info();
  info->set_name("w");
  auto* kind = info->add_metadata_props();
  kind->set_key("pkg.torch.export.graph_signature.InputSpec.kind");
  kind->set_value("PARAMETER");
  return model;
}

TEST(ExportRegions, AreToldApartByTheNamesOfInputsAndParameters) {
  const std::pair<const char*, RegionKind> cases[] = {
      {"x, p_w", RegionKind::kNoGrad},
      {"linear, p_w", RegionKind::kNoGrad},
      {"linear, b_table", RegionKind::kNoGrad},
      {"x, linear", RegionKind::kNoGrad},
      {"linear, arg1_1", RegionKind::kAutocast},
      {"arg0_1, arg1_1", RegionKind::kAutocast},
      {"linear, linear_1", RegionKind::kUnknown},
      {"linear, argument_1", RegionKind::kUnknown},
      {"getitem_2, linear", RegionKind::kUnknown},  // as of a split
      {"p_w, arg1_1", RegionKind::kUnknown}};
  for (const auto& [arguments, kind] : cases) {
    const auto regions = FindExportRegions(
        Model(Frame(36, Mm(arguments)), Frame(36, kTanh)).graph(),
        kPlaceholders);
    EXPECT_THAT(regions.of_node, ElementsAre("36", "36", "", "")) << arguments;
    EXPECT_EQ(regions.kinds.at("36"), kind) << arguments;
  }
}

TEST(ExportRegions, AreToldApartByTheNamesOfResultsOfOthers) {
  // The second reads a result of the first.
  const std::pair<const char*, RegionKind> cases[] = {
      {"tanh, linear", RegionKind::kAutocast},
      {"getitem_2, linear", RegionKind::kNoGrad},
      {"linear, linear_1", RegionKind::kUnknown}};
  for (const auto& [arguments, kind] : cases) {
    const auto regions = FindExportRegions(
        Model(Frame(36, Mm("linear, linear_1")), Frame(36, kTanh),
              Frame(37, absl::StrCat("mm_1 = torch.ops.aten.mm.default(",
                                     arguments, ")")))
            .graph(),
        kPlaceholders);
    EXPECT_THAT(regions.of_node, ElementsAre("36", "36", "37", ""));
    EXPECT_EQ(regions.kinds.at("36"), RegionKind::kUnknown);
    EXPECT_EQ(regions.kinds.at("37"), kind) << arguments;
  }
}

TEST(ExportRegions, OfNestedCodeAreOfTheNoGrad) {
  const std::string tanh = Frame(37, kTanh);
  const auto kinds = [&](const std::string& outer, const std::string& product) {
    return FindExportRegions(
        Model(product,
              absl::StrCat(Frame(36, absl::StrCat("tanh = torch.ops.higher_"
                                                  "order.",
                                                  outer, ", submod, mm)")),
                           "\n  ", tanh))
            .graph(),
        kPlaceholders);
  };
  const auto around = kinds("wrap_with_autocast('cpu', torch.bfloat16, False",
                            Frame(36, Mm("linear, linear_1")));
  EXPECT_THAT(around.of_node, ElementsAre("36", "36", "", ""));
  EXPECT_EQ(around.kinds.at("36"), RegionKind::kNoGrad);

  const auto inside = kinds("wrap_with_set_grad_enabled(False",
                            Frame(36, Mm("linear, arg1_1")));
  EXPECT_THAT(inside.of_node, ElementsAre("36", "37", "", ""));
  EXPECT_EQ(inside.kinds.at("36"), RegionKind::kAutocast);
  EXPECT_EQ(inside.kinds.at("37"), RegionKind::kNoGrad);

  const auto enabled =
      kinds("wrap_with_set_grad_enabled(True", Frame(36, Mm("x, p_w")));
  EXPECT_THAT(enabled.of_node, ElementsAre("36", "", "", ""));
}

TEST(ExportRegions, AreNotInCodeOfTheUser) {
  for (const std::string& trace :
       {std::string(), Frame(36, "mm = torch.mm(x, p_w)"),
        std::string("File \"a.py\", line 3, in forward\n    mm = f(x)"),
        "File \"a.py\", line 3, in forward\n    y = f(x)\n  " +
            Frame(36, Mm("x, p_w"))}) {
    EXPECT_THAT(
        FindExportRegions(Model(trace, trace).graph(), kPlaceholders).of_node,
        ElementsAre("", "", "", ""))
        << trace;
  }
}

// Values that the gradient of y reaches: of m, t, what leaves, u and y.
std::vector<bool> Reached(const Graph& graph) {
  const std::vector<bool> active = ActiveValues(graph, {*graph.Find("w")}, {});
  std::vector<bool> reached;
  for (const Node& node : graph.nodes) {
    reached.push_back(active[Index(node.outputs[0])]);
  }
  return reached;
}

TEST(ExportRegions, OfNoGradStopTheGradient) {
  const auto imported = ImportOnnxBytes(
      Bytes(Model(Frame(36, Mm("x, p_w")), Frame(36, kTanh))), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Reached(imported->graph),
              ElementsAre(true, true, false, true, true));
  EXPECT_THAT(imported->warnings,
              Contains(HasSubstr("torch.no_grad computed: t")));
}

TEST(ExportRegions, OfAutocastPassTheGradient) {
  const auto imported = ImportOnnxBytes(
      Bytes(Model(Frame(36, Mm("arg0_1, p")), Frame(36, kTanh))), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Reached(imported->graph), ElementsAre(true, true, true, true));
  EXPECT_THAT(imported->warnings, IsEmpty());
}

TEST(ExportRegions, ThatMayBeEitherPassTheGradientWithAWarning) {
  const auto imported = ImportOnnxBytes(
      Bytes(Model(Frame(36, Mm("linear, linear_1")), Frame(36, kTanh))), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Reached(imported->graph), ElementsAre(true, true, true, true));
  EXPECT_THAT(imported->warnings,
              Contains(HasSubstr("a gradient passes through t, which")));
}

}  // namespace
}  // namespace loadline::models
