// Tested in tests/models/onnx_export_regions_test.cc.
#include "models/onnx/no_grad.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/export_regions.h"
#include "models/onnx/name_list.h"

namespace loadline::models::onnx_internal {
namespace {

using Names = std::set<std::string>;

// Parameters, and what is computed from them.
Names DependsOnParameters(const onnx::GraphProto& graph,
                          const ExportMarks& marks) {
  Names found;
  for (const auto& one : graph.initializer()) {
    const auto mark = marks.marks.find(one.name());
    if (mark != marks.marks.end() && mark->second == Mark::kParameter) {
      found.insert(one.name());
    }
  }
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input()) {
      if (found.count(name) == 0) continue;
      found.insert(node.output().begin(), node.output().end());
      break;
    }
  }
  return found;
}

// Values of regions of one kind that are read outside of their region.
Names LeavingValues(const onnx::GraphProto& graph, const ExportRegions& regions,
                    RegionKind kind) {
  std::map<std::string, std::string> region_of;
  for (int n = 0; n < graph.node_size(); ++n) {
    const std::string& region = regions.of_node[static_cast<size_t>(n)];
    if (region.empty() || regions.kinds.at(region) != kind) continue;
    for (const auto& name : graph.node(n).output()) region_of[name] = region;
  }
  Names left;
  for (int n = 0; n < graph.node_size(); ++n) {
    for (const auto& name : graph.node(n).input()) {
      const auto from = region_of.find(name);
      if (from != region_of.end() &&
          from->second != regions.of_node[static_cast<size_t>(n)]) {
        left.insert(name);
      }
    }
  }
  return left;
}

// Puts an Identity between each of these values and its readers in another
// region or in none.
void Detach(const Names& values, const ExportRegions& regions,
            onnx::GraphProto* graph, Names* detached) {
  std::map<std::string, std::string> region_of;
  onnx::GraphProto rebuilt;
  for (int n = 0; n < graph->node_size(); ++n) {
    const std::string& region = regions.of_node[static_cast<size_t>(n)];
    onnx::NodeProto& node = *graph->mutable_node(n);
    for (auto& name : *node.mutable_input()) {
      const auto from = region_of.find(name);
      if (from != region_of.end() && from->second != region) {
        name = absl::StrCat(name, "/no_grad");
      }
    }
    const std::vector<std::string> outputs(node.output().begin(),
                                           node.output().end());
    *rebuilt.add_node() = std::move(node);
    for (const std::string& name : outputs) {
      if (values.count(name) == 0) continue;
      region_of[name] = region;
      onnx::NodeProto* identity = rebuilt.add_node();
      identity->set_op_type("Identity");
      identity->set_name(absl::StrCat(name, "/no_grad"));
      identity->add_input(name);
      identity->add_output(identity->name());
      detached->insert(identity->name());
    }
  }
  graph->mutable_node()->Swap(rebuilt.mutable_node());
}

}  // namespace

std::vector<std::string> DetachNoGradRegions(onnx::GraphProto* graph,
                                             ExportMarks* marks) {
  const ExportRegions regions = FindExportRegions(*graph, marks->placeholders);
  std::vector<std::string> warnings;
  if (regions.kinds.empty()) return warnings;
  const Names trained = DependsOnParameters(*graph, *marks);
  std::vector<std::string> unknown;
  for (const std::string& name :
       LeavingValues(*graph, regions, RegionKind::kUnknown)) {
    if (trained.count(name) > 0) unknown.push_back(name);
  }
  const Names left = LeavingValues(*graph, regions, RegionKind::kNoGrad);
  if (!left.empty()) {
    Detach(left, regions, graph, &marks->detached);
    warnings.push_back(
        absl::StrCat("no gradient passes through what torch.no_grad computed: ",
                     absl::StrJoin(left, ", ")));
  }
  if (!unknown.empty()) {
    warnings.push_back(absl::StrCat(
        "a gradient passes through ", NameList(unknown),
        ", which torch.autocast or torch.no_grad computed: the file does not "
        "say which; if it was torch.no_grad, export the model with detach() "
        "of the result"));
  }
  return warnings;
}

}  // namespace loadline::models::onnx_internal
