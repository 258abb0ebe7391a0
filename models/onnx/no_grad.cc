// torch.export makes a submodule of such a region and inlines it again. The
// arguments of an autocast's are named arg0_1, arg1_1; those of a no_grad's
// keep their names. Tested in tests/models/onnx_export_marks_test.cc.
#include "models/onnx/no_grad.h"

#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr char kTrace[] = "pkg.torch.onnx.stack_trace";
constexpr char kGenerated[] = "File \"<eval_with_key>.";

// The number of the generated code; empty for code of the user, which has other
// frames or calls no operator of torch.ops.
absl::string_view RegionOf(absl::string_view trace) {
  if (!absl::StartsWith(trace, kGenerated) || trace.rfind("File \"") != 0 ||
      !absl::StrContains(trace, "torch.ops.")) {
    return {};
  }
  trace.remove_prefix(sizeof(kGenerated) - 1);
  return trace.substr(0, trace.find('"'));
}

// Whether the text has a name such as arg0_1.
bool HasNumberedArgument(absl::string_view text) {
  const auto digits = [&text](size_t at) {
    while (at < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    }
    return at;
  };
  for (size_t at = text.find("arg"); at != absl::string_view::npos;
       at = text.find("arg", at + 1)) {
    const size_t end = digits(at + 3);
    if (end > at + 3 && end < text.size() && text[end] == '_' &&
        digits(end + 1) > end + 1) {
      return true;
    }
  }
  return false;
}

// By node: its region, empty outside.
std::vector<std::string> NoGradRegions(const onnx::GraphProto& graph) {
  std::vector<std::string> regions;
  std::set<std::string> autocast;
  for (const auto& node : graph.node()) {
    const absl::string_view trace = Metadata(node, kTrace);
    regions.emplace_back(RegionOf(trace));
    if (HasNumberedArgument(trace)) autocast.insert(regions.back());
  }
  for (std::string& region : regions) {
    if (autocast.count(region) > 0) region.clear();
  }
  return regions;
}

}  // namespace

std::string DetachNoGradRegions(onnx::GraphProto* graph,
                                std::set<std::string>* detached) {
  const std::vector<std::string> regions = NoGradRegions(*graph);
  std::map<std::string, std::string> region_of;  // by value
  for (int n = 0; n < graph->node_size(); ++n) {
    const std::string& region = regions[static_cast<size_t>(n)];
    if (region.empty()) continue;
    for (const auto& name : graph->node(n).output()) region_of[name] = region;
  }
  if (region_of.empty()) return "";
  std::set<std::string> left;  // values that are read outside their region
  for (int n = 0; n < graph->node_size(); ++n) {
    for (auto& name : *graph->mutable_node(n)->mutable_input()) {
      const auto from = region_of.find(name);
      if (from == region_of.end() ||
          from->second == regions[static_cast<size_t>(n)]) {
        continue;
      }
      left.insert(name);
      name = absl::StrCat(name, "/no_grad");
    }
  }
  onnx::GraphProto rebuilt;
  for (auto& node : *graph->mutable_node()) {
    const std::vector<std::string> outputs(node.output().begin(),
                                           node.output().end());
    *rebuilt.add_node() = std::move(node);
    for (const std::string& name : outputs) {
      if (left.count(name) == 0) continue;
      onnx::NodeProto* identity = rebuilt.add_node();
      identity->set_op_type("Identity");
      identity->set_name(absl::StrCat(name, "/no_grad"));
      identity->add_input(name);
      identity->add_output(identity->name());
      detached->insert(identity->name());
    }
  }
  graph->mutable_node()->Swap(rebuilt.mutable_node());
  if (left.empty()) return "";
  return absl::StrCat(
      "no gradient passes through what torch.no_grad computed: ",
      absl::StrJoin(left, ", "));
}

}  // namespace loadline::models::onnx_internal
