// Regions of a model under torch.no_grad and torch.autocast. A file of torch's
// newer exporter has no trace of them but one: of their nodes it gives code
// that torch.export generated as the source, in place of the user's file. Which
// of the two a region is, only the names in that code tell.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_REGIONS_H_
#define LOADLINE_MODELS_ONNX_EXPORT_REGIONS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

enum class RegionKind {
  kNoGrad,
  kAutocast,
  kUnknown,  // one of the two
};

struct ExportRegions {
  std::vector<std::string> of_node;  // "" outside
  std::map<std::string, RegionKind> kinds;
};

// placeholders: names of inputs, parameters and buffers in the exported
// program's code.
ExportRegions FindExportRegions(const onnx::GraphProto& graph,
                                const std::set<std::string>& placeholders);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_EXPORT_REGIONS_H_
