// Used by random_plans.cc and mutated_plans.cc.
#include "tests/campaign/walk_plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// What a byte holds. A value's contents in one training step, plain or encoded;
// or garbage of a step that is writing.
struct Contents {
  int value = -1;
  std::string codec;
  int training_step = 0;
  int writer = -1;  // garbage

  bool operator==(const Contents&) const = default;
};

// Disjoint stretches of bytes with one kind of contents.
class Memory {
 public:
  void Write(int64_t offset, int64_t bytes, const Contents& contents) {
    if (bytes == 0) return;
    Cut(offset);
    Cut(offset + bytes);
    stretches_.erase(stretches_.lower_bound(offset),
                     stretches_.lower_bound(offset + bytes));
    stretches_[offset] = {offset + bytes, contents};
  }

  bool Holds(int64_t offset, int64_t bytes, const Contents& contents) const {
    const int64_t end = offset + bytes;
    auto it = stretches_.upper_bound(offset);
    if (bytes > 0 && it != stretches_.begin()) --it;
    for (int64_t at = offset; at < end; ++it) {
      if (it == stretches_.end() || it->first > at || it->second.end <= at ||
          it->second.contents != contents) {
        return false;
      }
      at = it->second.end;
    }
    return true;
  }

 private:
  struct Stretch {
    int64_t end = 0;
    Contents contents;
  };

  void Cut(int64_t at) {
    auto it = stretches_.lower_bound(at);
    if (it == stretches_.begin()) return;
    --it;
    if (it->second.end <= at) return;
    stretches_[at] = it->second;
    it->second.end = at;
  }

  std::map<int64_t, Stretch> stretches_;
};

class Walk {
 public:
  Walk(const Problem& problem, const Plan& plan, uint64_t seed)
      : problem_(problem),
        plan_(plan),
        random_(seed),
        index_(IndexProblem(problem)) {
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      lanes_[static_cast<size_t>(plan.steps[s].lane)].push_back(
          static_cast<int>(s));
    }
    written_.assign(plan.buffers.size(), false);
    for (const Step& step : plan.steps) {
      for (BufferId b : Writes(step)) written_[Index(b)] = true;
    }
  }

  std::string Run() {
    std::string wrong;
    for (turn_ = 0; turn_ < 2 && wrong.empty(); ++turn_) {
      wrong = Begin();
      if (wrong.empty()) wrong = RunLanes();
      if (wrong.empty()) wrong = End();
    }
    return wrong;
  }

 private:
  Memory& MemoryOf(const Buffer& b) {
    return memory_[static_cast<size_t>(b.space)];
  }

  static std::vector<BufferId> Writes(const Step& step) {
    if (step.kind != StepKind::kNode) return {step.to};
    std::vector<BufferId> all = step.out;
    if (step.workspace != kNoBuffer) all.push_back(step.workspace);
    return all;
  }

  static std::vector<BufferId> Reads(const Step& step) {
    if (step.kind != StepKind::kNode) return {step.from};
    return step.in;
  }

  Contents Plain(ValueId value) const {
    return {.value = static_cast<int>(Index(value)), .training_step = turn_};
  }

  bool Has(const Buffer& b, const Contents& contents) {
    return MemoryOf(b).Holds(b.offset, b.bytes, contents);
  }

  void Put(const Buffer& b, const Contents& contents) {
    MemoryOf(b).Write(b.offset, b.bytes, contents);
  }

  // Inputs are written; what persists must be there from the last turn.
  std::string Begin() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (written_[b] || buffer.value == kNoValue) continue;
      if (turn_ > 0 && problem_.value(buffer.value).persistent) {
        const ValueId last = LastVersion(buffer.value);
        const Contents before = {.value = static_cast<int>(Index(last)),
                                 .training_step = turn_ - 1};
        if (!Has(buffer, before)) {
          return absl::StrCat("the begin misses version ", Index(last));
        }
      }
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (!written_[b] && buffer.value != kNoValue) {
        Put(buffer, Plain(buffer.value));
      }
    }
    return "";
  }

  ValueId LastVersion(ValueId value) const {
    while (index_.next_version[Index(value)] != kNoValue) {
      value = index_.next_version[Index(value)];
    }
    return value;
  }

  std::string RunLanes() {
    std::vector<bool> ended(plan_.steps.size(), false);
    std::array<size_t, kLaneCount> next = {};
    std::array<bool, kLaneCount> running = {};
    for (;;) {
      std::vector<size_t> able;  // lanes with something to begin or to end
      for (size_t lane = 0; lane < kLaneCount; ++lane) {
        if (next[lane] == lanes_[lane].size()) continue;
        const Step& step = StepAt(lane, next[lane]);
        if (running[lane] ||
            std::all_of(step.wait.begin(), step.wait.end(),
                        [&](StepId w) { return ended[Index(w)]; })) {
          able.push_back(lane);
        }
      }
      if (able.empty()) break;
      const size_t lane = able[static_cast<size_t>(
          random_.In(0, static_cast<int64_t>(able.size()) - 1))];
      const int s = lanes_[lane][next[lane]];
      std::string wrong = running[lane] ? EndStep(s) : BeginStep(s);
      if (!wrong.empty()) return wrong;
      if (running[lane]) {
        ended[static_cast<size_t>(s)] = true;
        ++next[lane];
      }
      running[lane] = !running[lane];
    }
    for (size_t lane = 0; lane < kLaneCount; ++lane) {
      if (next[lane] < lanes_[lane].size()) {
        return absl::StrCat("step ", lanes_[lane][next[lane]],
                            " can never begin");
      }
    }
    return "";
  }

  const Step& StepAt(size_t lane, size_t position) const {
    return plan_.steps[static_cast<size_t>(lanes_[lane][position])];
  }

  // What the step must find in what it reads.
  std::string WrongRead(int s, bool at_end) {
    const Step& step = plan_.steps[static_cast<size_t>(s)];
    for (BufferId b : Reads(step)) {
      const Buffer& buffer = plan_.buffer(b);
      if (at_end && BecomesOutput(step, buffer)) continue;
      Contents wanted = Plain(buffer.value);
      if (step.kind == StepKind::kDecode) wanted.codec = step.codec;
      if (step.kind == StepKind::kCopy) wanted.codec = CodecOfCopy(step);
      if (!Has(buffer, wanted)) {
        return absl::StrCat("step ", s, " misses what it reads at its ",
                            at_end ? "end" : "begin");
      }
    }
    return "";
  }

  // In place: the input's bytes become the output's.
  bool BecomesOutput(const Step& step, const Buffer& in) const {
    if (step.kind != StepKind::kNode || in.bytes == 0) return false;
    const auto& pairs = problem_.node(step.node).inplace;
    return std::any_of(step.out.begin(), step.out.end(), [&](BufferId o) {
      const Buffer& out = plan_.buffer(o);
      return out.offset == in.offset &&
             std::count(pairs.begin(), pairs.end(),
                        std::pair(in.value, out.value)) > 0;
    });
  }

  // A copy moves what is there.
  std::string CodecOfCopy(const Step& step) {
    const Buffer& from = plan_.buffer(step.from);
    for (const Codec& codec : problem_.value(from.value).stash) {
      Contents encoded = Plain(from.value);
      encoded.codec = codec.name;
      if (from.bytes > 0 && Has(from, encoded)) return codec.name;
    }
    return "";
  }

  std::string BeginStep(int s) {
    std::string wrong = WrongRead(s, /*at_end=*/false);
    if (!wrong.empty()) return wrong;
    const Step& step = plan_.steps[static_cast<size_t>(s)];
    moved_codec_[s] =
        step.kind == StepKind::kCopy ? CodecOfCopy(step) : std::string();
    for (BufferId b : Writes(step)) Put(plan_.buffer(b), {.writer = s});
    return "";
  }

  std::string EndStep(int s) {
    const Step& step = plan_.steps[static_cast<size_t>(s)];
    std::string wrong = WrongRead(s, /*at_end=*/true);
    if (!wrong.empty()) return wrong;
    for (BufferId b : Writes(step)) {
      const Buffer& buffer = plan_.buffer(b);
      if (!Has(buffer, {.writer = s})) {
        return absl::StrCat("another step writes what step ", s, " writes");
      }
      if (b == step.workspace && step.kind == StepKind::kNode) continue;
      Contents made = Plain(buffer.value);
      if (step.kind == StepKind::kEncode) made.codec = step.codec;
      if (step.kind == StepKind::kCopy) made.codec = moved_codec_[s];
      Put(buffer, made);
    }
    return "";
  }

  std::string End() {
    for (ValueId output : problem_.outputs) {
      const bool is_there = std::any_of(
          plan_.buffers.begin(), plan_.buffers.end(), [&](const Buffer& b) {
            return b.value == output && b.space == Space::kDevice &&
                   b.bytes == problem_.value(output).bytes &&
                   Has(b, Plain(output));
          });
      if (!is_there) return absl::StrCat("output ", Index(output), " is lost");
    }
    return "";
  }

  const Problem& problem_;
  const Plan& plan_;
  TestRandom random_;
  const ProblemIndex index_;
  std::array<std::vector<int>, kLaneCount> lanes_;
  std::vector<bool> written_;
  std::array<Memory, 2> memory_;
  std::map<int, std::string> moved_codec_;
  int turn_ = 0;
};

}  // namespace

std::string WalkPlan(const Problem& problem, const Plan& plan, uint64_t seed) {
  return Walk(problem, plan, seed).Run();
}

}  // namespace loadline::planner
