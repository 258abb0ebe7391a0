// Tested in tests/passes/repeat_micro_batches_test.cc.
#include "models/micro_batches.h"

#include "absl/strings/str_cat.h"

namespace loadline::models {

std::string NameInPart(absl::string_view name, int64_t part) {
  return part == 0 ? std::string(name) : absl::StrCat(name, "@", part + 1);
}

int64_t MicroBatchesOf(const Graph& step) {
  const size_t inputs = step.inputs.size();
  const auto is_part = [&](size_t first, size_t part) {
    const Value& whole = step.value(step.inputs[first]);
    const Value& value = step.value(step.inputs[first + part]);
    return value.type == whole.type &&
           value.name == NameInPart(whole.name, static_cast<int64_t>(part));
  };
  size_t parts = 1;
  while (parts < inputs && is_part(0, parts)) ++parts;
  if (parts == 1 || inputs % parts != 0) return 1;
  for (size_t i = 0; i < inputs; ++i) {
    if (!is_part(i - i % parts, i % parts)) return 1;
  }
  return static_cast<int64_t>(parts);
}

}  // namespace loadline::models
