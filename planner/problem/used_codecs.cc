// Tested in tests/planner/problem/used_codecs_test.cc.
#include "planner/problem/used_codecs.h"

#include <algorithm>
#include <map>

namespace loadline::planner {

std::vector<UsedCodec> UsedCodecs(const Problem& problem, const Plan& plan) {
  std::vector<UsedCodec> used;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kEncode) continue;
    const ValueId value = plan.buffer(step.from).value;
    for (const Codec& codec : problem.value(value).stash) {
      if (codec.name != step.codec) continue;
      const bool known =
          std::any_of(used.begin(), used.end(), [&](const UsedCodec& earlier) {
            return earlier.value == value && earlier.codec == &codec;
          });
      if (!known) used.push_back({value, &codec});
    }
  }
  return used;
}

CodecFigures FiguresOf(const Problem& problem, const Plan& plan) {
  CodecFigures figures;
  std::map<ValueId, int64_t> smallest_bytes;
  for (const UsedCodec& used : UsedCodecs(problem, plan)) {
    const auto [at, first] =
        smallest_bytes.emplace(used.value, used.codec->bytes);
    at->second = std::min(at->second, used.codec->bytes);
    if (used.codec->lossless) continue;
    figures.lossy = true;
    figures.error += used.codec->error;
  }
  for (const auto& [value, bytes] : smallest_bytes) {
    ++figures.values;
    figures.bytes += problem.value(value).bytes;
    figures.saved_bytes += problem.value(value).bytes - bytes;
  }
  return figures;
}

}  // namespace loadline::planner
