// torch.export makes a submodule of a region and inlines it again. In the
// submodule of an autocast, an input or parameter of the model has a name such
// as arg0_1, and a result of another region keeps its name. In that of a
// no_grad, the first keep their names (x, p_weight, b_mean), and a result of
// another region is one of getitem. Other values have the same names in both.
// An autocast inside of a no_grad is a submodule of its submodule; of a no_grad
// inside of an autocast torch 2.15 keeps nothing. Tested in
// tests/models/onnx_export_regions_test.cc.
#include "models/onnx/export_regions.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {
namespace {

using Names = std::set<std::string>;

constexpr char kTrace[] = "pkg.torch.onnx.stack_trace";
constexpr char kFrame[] = "File \"";
constexpr char kGenerated[] = "File \"<eval_with_key>.";

// One frame of generated code: its number, and the line that it runs, such as
// `mul = torch.ops.aten.mul.Tensor(linear, 2);  linear = None`.
struct Frame {
  std::string number;
  absl::string_view line;
};

// Empty if one of the frames is code of the user, or calls no operator of
// torch.ops.
std::vector<Frame> GeneratedFrames(absl::string_view trace) {
  std::vector<Frame> frames;
  while (absl::ConsumePrefix(&trace, kGenerated)) {
    Frame frame;
    frame.number = std::string(trace.substr(0, trace.find('"')));
    const size_t next = trace.find(kFrame);
    frame.line = trace.substr(0, next);
    frame.line.remove_prefix(
        std::min(frame.line.find('\n'), frame.line.size()));
    if (!absl::StrContains(frame.line, "torch.ops.")) return {};
    frames.push_back(frame);
    if (next == absl::string_view::npos) return frames;
    trace.remove_prefix(next);
  }
  return {};
}

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Names of values, not those of torch.ops.aten.mul.Tensor.
Names NamesIn(absl::string_view text) {
  Names names;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsOfName(text[end])) ++end;
    const bool dotted = (at > 0 && text[at - 1] == '.') ||
                        (end < text.size() && text[end] == '.');
    if (end > at && !dotted) names.emplace(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// What the line computes; "" if it has another form.
std::string ResultOf(absl::string_view line) {
  const size_t end = line.find(" = torch.ops.");
  if (end == absl::string_view::npos) return "";
  size_t begin = end;
  while (begin > 0 && IsOfName(line[begin - 1])) --begin;
  return std::string(line.substr(begin, end - begin));
}

bool ConsumeDigits(absl::string_view* text) {
  const size_t before = text->size();
  while (!text->empty() &&
         std::isdigit(static_cast<unsigned char>(text->front())) != 0) {
    text->remove_prefix(1);
  }
  return text->size() < before;
}

// A name such as arg0_1.
bool IsNumberedArgument(absl::string_view name) {
  return absl::ConsumePrefix(&name, "arg") && ConsumeDigits(&name) &&
         absl::ConsumePrefix(&name, "_") && ConsumeDigits(&name) &&
         name.empty();
}

struct Region {
  Names reads, makes;
  bool reads_other = false;  // a result of another region
  bool is_no_grad = false;   // by what is in it, or around it
};

class Finder {
 public:
  Finder(const onnx::GraphProto& graph, const Names& placeholders)
      : placeholders_(placeholders) {
    Names variable;  // Regions share constants without reading them.
    for (const auto& input : graph.input()) variable.insert(input.name());
    for (const auto& one : graph.initializer()) variable.insert(one.name());
    std::map<std::string, std::string> region_of;  // by variable value
    for (const auto& node : graph.node()) {
      const std::string number = Add(node);
      found_.of_node.push_back(number);
      bool varies = false;
      for (const auto& name : node.input()) {
        varies |= variable.count(name) > 0;
        const auto from = region_of.find(name);
        if (!number.empty() && from != region_of.end() &&
            !from->second.empty() && from->second != number) {
          regions_[number].reads_other = true;
        }
      }
      if (!varies) continue;
      for (const auto& name : node.output()) {
        variable.insert(name);
        region_of[name] = number;
      }
    }
  }

  ExportRegions Run() {
    for (const auto& [number, region] : regions_) {
      found_.kinds[number] = KindOf(region);
    }
    return std::move(found_);
  }

 private:
  // The number of the node's region.
  std::string Add(const onnx::NodeProto& node) {
    const std::vector<Frame> frames = GeneratedFrames(Metadata(node, kTrace));
    if (frames.empty()) return "";
    const Frame& frame = frames.front();
    if (absl::StrContains(frame.line, "wrap_with_set_grad_enabled(True")) {
      return "";
    }
    if (absl::StrContains(frame.line, "wrap_with_set_grad_enabled(False")) {
      regions_[frames.back().number].is_no_grad = true;
      return frames.back().number;
    }
    Region& region = regions_[frame.number];
    if (frames.size() > 1) {
      region.is_no_grad |= absl::StrContains(frame.line, "wrap_with_autocast");
      return frame.number;
    }
    region.makes.insert(ResultOf(frame.line));
    made_.insert(ResultOf(frame.line));
    for (const std::string& name : NamesIn(frame.line)) {
      region.reads.insert(name);
    }
    return frame.number;
  }

  RegionKind KindOf(const Region& region) const {
    bool numbered = false, named = false, item = false, kept = false;
    for (const std::string& name : region.reads) {
      if (region.makes.count(name) > 0) continue;
      if (IsNumberedArgument(name)) {
        numbered = true;
      } else if (placeholders_.count(name) > 0) {
        named = true;
      } else if (absl::StartsWith(name, "getitem")) {
        item = true;
      } else if (region.reads_other && made_.count(name) > 0) {
        kept = true;
      }
    }
    item &= region.reads_other && !kept;
    const bool no_grad = region.is_no_grad || named || item;
    const bool autocast = numbered || kept;
    if (no_grad == autocast) return RegionKind::kUnknown;
    return no_grad ? RegionKind::kNoGrad : RegionKind::kAutocast;
  }

  const Names& placeholders_;
  Names made_;  // by any region
  std::map<std::string, Region> regions_;
  ExportRegions found_;
};

}  // namespace

ExportRegions FindExportRegions(const onnx::GraphProto& graph,
                                const std::set<std::string>& placeholders) {
  return Finder(graph, placeholders).Run();
}

}  // namespace loadline::models::onnx_internal
