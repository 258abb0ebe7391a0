// Walks both graphs side by side and maps each value to its partner at its
// first use. Tested in tests/models/compare_graphs_test.cc.
#include "models/compare_graphs.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

template <typename... Parts>
absl::Status Differ(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

std::string AttributesText(const Node& node) {
  std::string text = "{";
  for (const auto& [name, value] : node.attributes.map()) {
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", name, " = ",
                    AttributeToText(value));
  }
  return absl::StrCat(text, "}");
}

bool SameContents(const Tensor& a, const Tensor& b) {
  if (a.type != b.type) return false;
  if (a.data == nullptr || b.data == nullptr) return a.data == b.data;
  return a.data == b.data || *a.data == *b.data;
}

class Comparison {
 public:
  Comparison(const Graph& want, const Graph& got)
      : want_(want),
        got_(got),
        got_of_(want.values.size(), kNoValue),
        want_of_(got.values.size(), kNoValue) {}

  absl::Status Run() {
    LOADLINE_RETURN_IF_ERROR(Lists("inputs", want_.inputs, got_.inputs));
    const size_t both = std::min(want_.nodes.size(), got_.nodes.size());
    for (size_t n = 0; n < both; ++n) {
      LOADLINE_RETURN_IF_ERROR(Nodes(want_.nodes[n], got_.nodes[n]));
    }
    if (want_.nodes.size() != got_.nodes.size()) {
      return Differ(got_.nodes.size(), " nodes instead of ",
                    want_.nodes.size());
    }
    LOADLINE_RETURN_IF_ERROR(Lists("outputs", want_.outputs, got_.outputs));
    if (want_.updates.size() != got_.updates.size()) {
      return Differ("another number of updates");
    }
    for (size_t i = 0; i < want_.updates.size(); ++i) {
      LOADLINE_RETURN_IF_ERROR(
          Values(want_.updates[i].first, got_.updates[i].first));
      LOADLINE_RETURN_IF_ERROR(
          Values(want_.updates[i].second, got_.updates[i].second));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Lists(const char* what, const std::vector<ValueId>& want,
                     const std::vector<ValueId>& got) {
    if (want.size() != got.size()) {
      return Differ(got.size(), " ", what, " instead of ", want.size());
    }
    for (size_t i = 0; i < want.size(); ++i) {
      LOADLINE_RETURN_IF_ERROR(Values(want[i], got[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Nodes(const Node& want, const Node& got) {
    if (want.op != got.op || !(want.attributes == got.attributes) ||
        want.phase != got.phase) {
      return Differ("node \"", want.name, "\" is ", got.op, " ",
                    AttributesText(got), " instead of ", want.op, " ",
                    AttributesText(want));
    }
    absl::Status status = Lists("inputs", want.inputs, got.inputs);
    if (status.ok()) status = Lists("outputs", want.outputs, got.outputs);
    if (status.ok()) return status;
    return Differ("node \"", want.name, "\": ", status.message());
  }

  // Both are used at the same place.
  absl::Status Values(ValueId want, ValueId got) {
    if (want == kNoValue || got == kNoValue) {
      return want == got ? absl::OkStatus() : Differ("an input is missing");
    }
    const Value& w = want_.value(want);
    const Value& g = got_.value(got);
    if (w.type != g.type || w.kind != g.kind) {
      return Differ("value \"", w.name, "\" is ", g.type.ToString(),
                    " instead of ", w.type.ToString(),
                    w.kind != g.kind ? ", and of another kind" : "");
    }
    if (w.kind == ValueKind::kConstant) {
      return SameContents(*w.initial, *g.initial)
                 ? absl::OkStatus()
                 : Differ("constant \"", w.name, "\" has other contents");
    }
    if (got_of_[Index(want)] != kNoValue || want_of_[Index(got)] != kNoValue) {
      if (got_of_[Index(want)] == got) return absl::OkStatus();
      return Differ("value \"", g.name, "\" stands where \"", w.name,
                    "\" does");
    }
    got_of_[Index(want)] = got;
    want_of_[Index(got)] = want;
    if (w.kind == ValueKind::kIntermediate) return absl::OkStatus();
    if (w.name != g.name) {
      return Differ("\"", g.name, "\" stands where \"", w.name, "\" does");
    }
    if (w.initial.has_value() && !SameContents(*w.initial, *g.initial)) {
      return Differ("\"", w.name, "\" has other contents");
    }
    return absl::OkStatus();
  }

  const Graph& want_;
  const Graph& got_;
  std::vector<ValueId> got_of_, want_of_;  // partners
};

}  // namespace

absl::Status CompareGraphs(const Graph& want, const Graph& got) {
  return Comparison(want, got).Run();
}

}  // namespace loadline::models
