// Tested in tests/passes/check_plan_matches_test.cc.
#include "passes/structure.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/micro_batches.h"

namespace loadline::passes {
namespace {

constexpr char kMicroBatches[] = " micro-batches";
constexpr char kOwnStatistics[] = " with own statistics";
constexpr char kSegments[] = "segments ";
constexpr char kSeparator[] = ", ";

// The two halves of a structure in words; empty where the step is whole.
struct Words {
  std::string parts;     // "4 micro-batches"
  std::string segments;  // "head=4 mlp=2"

  bool operator==(const Words&) const = default;
};

// The split of a node named "fc[head 1/4]" by passes/part_writer.h.
std::optional<Split> SplitOfNode(absl::string_view name) {
  const size_t open = name.rfind('[');
  if (open == absl::string_view::npos) return std::nullopt;
  const size_t close = name.find(']', open);
  if (close == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> label =
      absl::StrSplit(name.substr(open + 1, close - open - 1), ' ');
  if (label.size() != 2) return std::nullopt;
  const std::vector<absl::string_view> part = absl::StrSplit(label[1], '/');
  Split split{std::string(label[0]), 0};
  if (part.size() != 2 || !absl::SimpleAtoi(part[1], &split.segments)) {
    return std::nullopt;
  }
  return split;
}

Words WordsOf(const models::Graph& step) {
  Words words;
  const int64_t parts = models::MicroBatchesOf(step);
  if (parts > 1) {
    words.parts = absl::StrCat(parts, kMicroBatches,
                               HasOwnStatistics(step) ? kOwnStatistics : "");
  }
  words.segments = absl::StrJoin(
      SplitsIn(step), " ", [](std::string* out, const Split& split) {
        absl::StrAppend(out, split.chain, "=", split.segments);
      });
  return words;
}

// What a problem's name ends with.
Words WordsIn(absl::string_view problem_name) {
  Words words;
  const std::vector<absl::string_view> pieces =
      absl::StrSplit(problem_name, kSeparator);
  for (size_t i = pieces.size() > 2 ? pieces.size() - 2 : 1; i < pieces.size();
       ++i) {
    if (absl::EndsWith(absl::StripSuffix(pieces[i], kOwnStatistics),
                       kMicroBatches)) {
      words.parts = std::string(pieces[i]);
    } else if (absl::StartsWith(pieces[i], kSegments)) {
      words.segments = std::string(pieces[i].substr(sizeof(kSegments) - 1));
    }
  }
  return words;
}

std::string Join(const Words& words) {
  std::string out = words.parts;
  if (!words.segments.empty()) {
    absl::StrAppend(&out, out.empty() ? "" : kSeparator, kSegments,
                    words.segments);
  }
  return out;
}

std::string InWords(const Words& words) {
  std::string out =
      absl::StrCat("in ", words.parts.empty() ? "one piece" : words.parts);
  if (!words.segments.empty()) {
    absl::StrAppend(&out, " with ", kSegments, words.segments);
  }
  return out;
}

// The flags that make a step of this structure.
std::string FlagsFor(const Words& theirs, const Words& ours) {
  std::vector<std::string> flags;
  if (theirs.parts != ours.parts) {
    if (absl::EndsWith(theirs.parts, kOwnStatistics)) {
      flags.push_back("--allow-micro-batch-statistics");
    }
    flags.push_back(absl::StrCat(
        "--micro-batches ",
        theirs.parts.empty() ? "1"
                             : theirs.parts.substr(0, theirs.parts.find(' '))));
  }
  if (theirs.segments != ours.segments) {
    flags.push_back(theirs.segments.empty()
                        ? "no --split"
                        : absl::StrCat("--split ", absl::StrReplaceAll(
                                                       theirs.segments,
                                                       {{" ", " --split "}})));
  }
  return absl::StrJoin(flags, " and ");
}

}  // namespace

bool HasOwnStatistics(const models::Graph& step) {
  return std::any_of(step.nodes.begin(), step.nodes.end(),
                     [](const models::Node& node) {
                       return node.attributes.Int("part_statistics", 0) != 0;
                     });
}

std::vector<Split> SplitsIn(const models::Graph& step) {
  std::vector<Split> splits;
  for (const models::Node& node : step.nodes) {
    std::optional<Split> split = SplitOfNode(node.name);
    if (!split.has_value()) continue;
    const bool known =
        std::any_of(splits.begin(), splits.end(),
                    [&](const Split& s) { return s.chain == split->chain; });
    if (!known) splits.push_back(*std::move(split));
  }
  return splits;
}

std::string StructureOf(const models::Graph& step) {
  return Join(WordsOf(step));
}

std::string NameWithStructure(absl::string_view name,
                              const models::Graph& step) {
  const std::string structure = StructureOf(step);
  if (structure.empty()) return std::string(name);
  return absl::StrCat(name, kSeparator, structure);
}

absl::Status CheckNamedStructure(absl::string_view problem_name,
                                 const models::Graph& step) {
  const Words theirs = WordsIn(problem_name);
  const Words ours = WordsOf(step);
  if (theirs == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this plan is of a step ", InWords(theirs), ", and this step is ",
      InWords(ours), "; give ", FlagsFor(theirs, ours)));
}

}  // namespace loadline::passes
