// Tested in tests/models/codec_test.cc.
#include "models/codec_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Dropouts count their salts from 0.
constexpr int64_t kFirstSalt = int64_t{1} << 31;

}  // namespace

absl::StatusOr<CodecNodes> AddCodecNodes(const Graph& of, ValueId id,
                                         absl::string_view codec,
                                         Graph* graph) {
  const Value& value = of.value(id);
  const std::string name = absl::StrCat(value.name, " by ", codec);
  const ValueId plain = graph->AddInput(name, value.type);
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> encoded,
      graph->AddNode("Encode", value.name, {plain},
                     {{"codec", std::string(codec)},
                      {"salt", kFirstSalt + static_cast<int64_t>(Index(id))}}));
  CodecNodes nodes;
  nodes.encode = NodeId{static_cast<int32_t>(graph->nodes.size() - 1)};
  nodes.encoded_bytes = graph->value(encoded[0]).type.bytes();
  LOADLINE_RETURN_IF_ERROR(
      graph
          ->AddNode("Decode", value.name, {encoded[0]},
                    {{"codec", std::string(codec)},
                     {"to", std::string(DTypeName(value.type.dtype))},
                     {"shape", value.type.dims}})
          .status());
  nodes.decode = NodeId{static_cast<int32_t>(graph->nodes.size() - 1)};
  return nodes;
}

}  // namespace loadline::models
