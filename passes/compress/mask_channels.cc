// Tested in tests/conformance/pruned_model_test.cc, where masked and removed
// channels give the same results.
#include "passes/compress/mask_channels.h"

#include <cstddef>

namespace loadline::passes {
namespace {

using models::Value;

void Mask(const PruneMember& member, const std::vector<bool>& masked,
          Value* value) {
  const std::vector<int64_t>& dims = value->type.dims;
  size_t inner = 1;
  for (auto a = static_cast<size_t>(member.axis) + 1; a < dims.size(); ++a) {
    inner *= static_cast<size_t>(dims[a]);
  }
  const size_t size = member.channel_of.size();
  const auto from = value->initial->as<float>();
  std::vector<float> contents(from.begin(), from.end());
  for (size_t i = 0; i < contents.size(); ++i) {
    const int32_t channel = member.channel_of[i / inner % size];
    if (channel >= 0 && masked[static_cast<size_t>(channel)]) contents[i] = 0;
  }
  value->initial = models::MakeTensor(value->type, contents.data());
}

}  // namespace

models::Graph MaskChannels(models::Graph model,
                           absl::Span<const PruneGroup> groups,
                           absl::Span<const std::vector<int64_t>> masked) {
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<bool> flags(static_cast<size_t>(groups[g].width), false);
    for (int64_t channel : masked[g]) {
      flags[static_cast<size_t>(channel)] = true;
    }
    if (masked[g].empty()) continue;
    for (const PruneMember& member : groups[g].members) {
      if (Index(member.value) >= model.values.size()) continue;
      Value& value = model.value(member.value);
      if (value.kind == models::ValueKind::kParameter &&
          value.type.dtype == models::DType::kF32 &&
          value.initial->data != nullptr) {
        Mask(member, flags, &value);
      }
    }
  }
  return model;
}

}  // namespace loadline::passes
