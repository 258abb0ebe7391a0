// ONNX's auto_pad is resolved here. Tested in tests/models/onnx_rules_test.cc.
#include "models/onnx/window.h"

#include "absl/strings/str_cat.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Larger sizes are refused, which keeps products within int64.
constexpr int64_t kMaxWindow = int64_t{1} << 20;

absl::Status CheckRange(absl::string_view name, const Ints& values,
                        size_t count, int64_t low) {
  if (values.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " numbers, not ", count));
  }
  for (int64_t v : values) {
    if (v < low || v > kMaxWindow) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " holds the absurd ", v));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Attributes> WindowAttributes(const onnx::NodeProto& node,
                                            const Ints& dims,
                                            const Ints& kernel) {
  if (dims.size() < 3) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  const Ints spatial(dims.begin() + 2, dims.end());
  const size_t n = spatial.size();
  const Ints shape = IntsAttribute(node, "kernel_shape", kernel);
  const Ints strides = IntsAttribute(node, "strides", Ints(n, 1));
  const Ints dilations = IntsAttribute(node, "dilations", Ints(n, 1));
  Ints pads = IntsAttribute(node, "pads", Ints(2 * n, 0));
  LOADLINE_RETURN_IF_ERROR(CheckRange("kernel_shape", shape, n, 1));
  LOADLINE_RETURN_IF_ERROR(CheckRange("strides", strides, n, 1));
  LOADLINE_RETURN_IF_ERROR(CheckRange("dilations", dilations, n, 1));
  const std::string auto_pad = StringAttribute(node, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(
        pads, AutoPads(auto_pad, spatial, shape, strides, dilations));
  }
  LOADLINE_RETURN_IF_ERROR(CheckRange("pads", pads, 2 * n, 0));
  return Attributes{{"kernel_shape", shape},
                    {"strides", strides},
                    {"pads", pads},
                    {"dilations", dilations}};
}

}  // namespace loadline::models::onnx_internal
