// Every pair of steps and every pair of buffers is looked at. Used by
// mutated_plans.cc and random_plans.cc.
#include "tests/campaign/plan_judge.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/check.h"
#include "planner/verify/verify.h"

namespace loadline::planner {
namespace {

class Judge {
 public:
  Judge(const Problem& problem, const Plan& plan)
      : problem_(problem),
        plan_(plan),
        step_count_(static_cast<int>(plan.steps.size())),
        buffer_count_(static_cast<int>(plan.buffers.size())) {}

  int BrokenRule() {
    if (!IdsExist()) return -1;
    if (!Headings()) return 1;
    if (!Places()) return 2;
    FindOrder();
    if (HasCycle()) return 8;
    FindAccesses();
    if (!Writers()) return 3;
    if (!Lanes()) return 4;
    if (!NodeBuffers()) return 5;
    if (!Codecs()) return 6;
    if (!Runs()) return 7;
    if (!ReadsFollowWrites()) return 8;
    if (!FindFinals()) return 10;
    if (!Sharing()) return 9;
    if (!Decisions()) return 11;
    if (!Figures()) return 12;
    if (!Errors()) return 13;
    return 0;
  }

 private:
  static bool In(int64_t id, size_t count) {
    return id >= 0 && id < static_cast<int64_t>(count);
  }
  bool IsBuffer(BufferId id) const {
    return In(static_cast<int32_t>(id), plan_.buffers.size());
  }
  const Buffer& At(int b) const { return plan_.buffers[b]; }
  const Value& ValueOf(int b) const { return problem_.value(At(b).value); }
  static int Int(BufferId id) { return static_cast<int>(id); }

  bool IdsExist() const {
    for (const Buffer& b : plan_.buffers) {
      if (b.value != kNoValue &&
          !In(static_cast<int32_t>(b.value), problem_.values.size())) {
        return false;
      }
    }
    for (const Step& s : plan_.steps) {
      for (StepId w : s.wait) {
        if (!In(static_cast<int32_t>(w), plan_.steps.size())) return false;
      }
      if (s.kind != StepKind::kNode) {
        if (!IsBuffer(s.from) || !IsBuffer(s.to)) return false;
        continue;
      }
      if (!In(static_cast<int32_t>(s.node), problem_.nodes.size())) {
        return false;
      }
      for (BufferId b : s.in) {
        if (!IsBuffer(b)) return false;
      }
      for (BufferId b : s.out) {
        if (!IsBuffer(b)) return false;
      }
      if (s.workspace != kNoBuffer && !IsBuffer(s.workspace)) return false;
    }
    return true;
  }

  bool Headings() const {
    const int64_t host = problem_.machine ? problem_.machine->host_bytes : 0;
    return plan_.arena_bytes >= 0 && plan_.host_bytes >= 0 &&
           plan_.problem_name == problem_.name &&
           plan_.problem_sha256 == ProblemSha256(problem_) &&
           plan_.arena_bytes <= plan_.budget_bytes && plan_.host_bytes <= host;
  }

  bool Places() const {
    for (const Buffer& b : plan_.buffers) {
      const int64_t limit =
          b.space == Space::kDevice ? plan_.arena_bytes : plan_.host_bytes;
      if (b.bytes < 0 || b.offset < 0 || b.offset + b.bytes > limit ||
          b.offset % problem_.alignment_bytes != 0) {
        return false;
      }
    }
    return true;
  }

  // before_[a][b]: a has ended when b starts, in any timing.
  void FindOrder() {
    before_.assign(step_count_, std::vector<char>(step_count_, 0));
    std::map<Lane, int> last;
    for (int s = 0; s < step_count_; ++s) {
      const Step& step = plan_.steps[s];
      if (last.count(step.lane) > 0) before_[last[step.lane]][s] = 1;
      last[step.lane] = s;
      for (StepId w : step.wait) before_[Index(w)][s] = 1;
    }
    for (int k = 0; k < step_count_; ++k) {
      for (int a = 0; a < step_count_; ++a) {
        if (!before_[a][k]) continue;
        for (int b = 0; b < step_count_; ++b) {
          if (before_[k][b]) before_[a][b] = 1;
        }
      }
    }
  }

  bool HasCycle() const {
    for (int s = 0; s < step_count_; ++s) {
      if (before_[s][s]) return true;
    }
    return false;
  }

  void FindAccesses() {
    reads_.assign(buffer_count_, {});
    writes_.assign(buffer_count_, {});
    works_.assign(buffer_count_, {});
    for (int s = 0; s < step_count_; ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::kNode) {
        reads_[Int(step.from)].push_back(s);
        writes_[Int(step.to)].push_back(s);
        continue;
      }
      for (BufferId b : step.in) reads_[Int(b)].push_back(s);
      for (BufferId b : step.out) writes_[Int(b)].push_back(s);
      if (step.workspace != kNoBuffer) works_[Int(step.workspace)].push_back(s);
    }
    accesses_.assign(buffer_count_, {});
    for (int b = 0; b < buffer_count_; ++b) {
      for (const auto* steps : {&reads_[b], &writes_[b], &works_[b]}) {
        accesses_[b].insert(accesses_[b].end(), steps->begin(), steps->end());
      }
    }
  }

  bool IsInput(ValueId value) const {
    for (const Node& node : problem_.nodes) {
      for (ValueId out : node.outputs) {
        if (out == value) return false;
      }
    }
    return true;
  }

  bool IsInitial(int b) const {
    return writes_[b].empty() && works_[b].empty();
  }

  bool Writers() {
    home_.assign(problem_.values.size(), -1);
    for (int b = 0; b < buffer_count_; ++b) {
      if (writes_[b].size() + works_[b].size() > 1) return false;
      if (!IsInitial(b)) continue;
      if (At(b).value == kNoValue || !IsInput(At(b).value)) return false;
      if (At(b).bytes != ValueOf(b).bytes) return false;
      if (home_[Index(At(b).value)] >= 0) return false;
      home_[Index(At(b).value)] = b;
      if (At(b).space == Space::kHost &&
          !(ValueOf(b).persistent && ValueOf(b).offload)) {
        return false;
      }
    }
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if (problem_.values[v].persistent &&
          IsInput(ValueId(static_cast<int32_t>(v))) && home_[v] < 0) {
        return false;
      }
    }
    return true;
  }

  bool Lanes() const {
    for (const Step& s : plan_.steps) {
      if (s.kind == StepKind::kCopy) {
        const bool out = s.lane == Lane::kD2h;
        const Buffer& from = At(Int(s.from));
        const Buffer& to = At(Int(s.to));
        if (s.lane == Lane::kCompute || !problem_.machine ||
            !problem_.machine->CanCopy() ||
            from.space != (out ? Space::kDevice : Space::kHost) ||
            to.space != (out ? Space::kHost : Space::kDevice) ||
            from.value != to.value || from.bytes != to.bytes ||
            from.value == kNoValue || !problem_.value(from.value).offload) {
          return false;
        }
        continue;
      }
      if (s.lane != Lane::kCompute) return false;
      std::vector<BufferId> all = s.in;
      all.insert(all.end(), s.out.begin(), s.out.end());
      if (s.kind != StepKind::kNode) all = {s.from, s.to};
      if (s.kind == StepKind::kNode && s.workspace != kNoBuffer) {
        all.push_back(s.workspace);
      }
      for (BufferId b : all) {
        if (At(Int(b)).space != Space::kDevice) return false;
      }
    }
    return true;
  }

  // The codec whose bytes the buffer has; "": plain; none: nothing makes it.
  std::optional<std::string> CodecOf(int b) const {
    if (IsInitial(b)) return "";
    if (writes_[b].empty()) return std::nullopt;
    const Step& writer = plan_.steps[writes_[b][0]];
    if (writer.kind == StepKind::kEncode) return writer.codec;
    if (writer.kind != StepKind::kCopy) return "";
    // Copies cannot go in a circle: one of them would start before its write.
    int from = Int(writer.from);
    for (int hops = 0; hops < step_count_; ++hops) {
      if (IsInitial(from)) return "";
      if (writes_[from].empty()) return std::nullopt;
      const Step& source = plan_.steps[writes_[from][0]];
      if (source.kind == StepKind::kEncode) return source.codec;
      if (source.kind != StepKind::kCopy) return "";
      from = Int(source.from);
    }
    return std::nullopt;
  }

  bool Hold(const std::vector<BufferId>& buffers,
            const std::vector<ValueId>& values) const {
    if (buffers.size() != values.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      const int b = Int(buffers[i]);
      if (At(b).value != values[i] || CodecOf(b) != "" ||
          At(b).bytes != problem_.value(values[i]).bytes) {
        return false;
      }
    }
    return true;
  }

  bool NodeBuffers() const {
    for (const Step& s : plan_.steps) {
      if (s.kind != StepKind::kNode) continue;
      const Node& node = problem_.node(s.node);
      if (!Hold(s.in, node.inputs) || !Hold(s.out, node.outputs)) return false;
      int64_t bytes = node.workspace_bytes;
      if (!s.variant.empty()) {
        const auto variant =
            std::find_if(node.variants.begin(), node.variants.end(),
                         [&](const Variant& v) { return v.name == s.variant; });
        if (variant == node.variants.end()) return false;
        bytes = variant->workspace_bytes;
      }
      if ((bytes == 0) != (s.workspace == kNoBuffer)) return false;
      if (bytes == 0) continue;
      const int w = Int(s.workspace);
      if (At(w).value != kNoValue || At(w).bytes != bytes ||
          accesses_[w].size() != 1) {
        return false;
      }
    }
    return true;
  }

  bool Codecs() const {
    for (const Step& s : plan_.steps) {
      if (s.kind != StepKind::kEncode && s.kind != StepKind::kDecode) continue;
      const bool encode = s.kind == StepKind::kEncode;
      const int plain = Int(encode ? s.from : s.to);
      const int packed = Int(encode ? s.to : s.from);
      if (At(plain).value == kNoValue || At(plain).value != At(packed).value) {
        return false;
      }
      const Value& value = ValueOf(plain);
      const auto codec =
          std::find_if(value.stash.begin(), value.stash.end(),
                       [&](const Codec& c) { return c.name == s.codec; });
      if (codec == value.stash.end() || At(plain).bytes != value.bytes ||
          At(packed).bytes != codec->bytes || CodecOf(plain) != "" ||
          CodecOf(packed) != s.codec) {
        return false;
      }
    }
    return true;
  }

  bool Runs() const {
    std::vector<int> runs(problem_.nodes.size(), 0);
    std::vector<NodeId> sequence;
    for (const Step& s : plan_.steps) {
      if (s.kind != StepKind::kNode) continue;
      ++runs[Index(s.node)];
      sequence.push_back(s.node);
    }
    for (size_t n = 0; n < runs.size(); ++n) {
      if (runs[n] == 0 || (runs[n] > 1 && !problem_.nodes[n].recompute)) {
        return false;
      }
    }
    return sequence == plan_.sequence;
  }

  bool ReadsFollowWrites() const {
    for (int b = 0; b < buffer_count_; ++b) {
      for (int read : reads_[b]) {
        for (int write : writes_[b]) {
          if (!before_[write][read]) return false;
        }
      }
    }
    return true;
  }

  // Whether every access of `a` comes before every access of `b`.
  bool AllBefore(int a, int b) const {
    if (is_final_[a] || IsInitial(b)) return false;
    for (int x : accesses_[a]) {
      for (int y : accesses_[b]) {
        if (!before_[x][y]) return false;
      }
    }
    return true;
  }

  // Rule 9's exception.
  bool InPlace(int in, int out) const {
    if (writes_[out].empty() || is_final_[in] ||
        At(in).offset != At(out).offset) {
      return false;
    }
    const int s = writes_[out][0];
    const Step& step = plan_.steps[s];
    if (step.kind != StepKind::kNode) return false;
    if (std::find(reads_[in].begin(), reads_[in].end(), s) ==
        reads_[in].end()) {
      return false;
    }
    const auto& pairs = problem_.node(step.node).inplace;
    if (std::find(pairs.begin(), pairs.end(),
                  std::pair(At(in).value, At(out).value)) == pairs.end()) {
      return false;
    }
    return std::all_of(accesses_[in].begin(), accesses_[in].end(),
                       [&](int x) { return x == s || before_[x][s]; });
  }

  bool MayCoexist(int a, int b) const {
    const Buffer& x = At(a);
    const Buffer& y = At(b);
    if (x.bytes == 0 || y.bytes == 0 || x.space != y.space ||
        x.offset >= y.offset + y.bytes || y.offset >= x.offset + x.bytes) {
      return true;
    }
    return AllBefore(a, b) || AllBefore(b, a) || InPlace(a, b) || InPlace(b, a);
  }

  // Whether nothing conflicts with the buffer if it lives to the end.
  bool IsIntact(int b) {
    is_final_[b] = true;
    bool intact = true;
    for (int other = 0; other < buffer_count_; ++other) {
      if (other != b) intact = intact && MayCoexist(b, other);
    }
    is_final_[b] = false;
    return intact;
  }

  // The version of `value` that no node updates.
  ValueId LastVersion(ValueId value) const {
    for (const Node& node : problem_.nodes) {
      for (const auto& [in, out] : node.inplace) {
        if (in == value && !node.recompute && IsPersistent(in)) {
          return LastVersion(out);
        }
      }
    }
    return value;
  }
  bool IsPersistent(ValueId value) const {
    if (problem_.value(value).persistent) return true;
    for (const Node& node : problem_.nodes) {
      for (const auto& [in, out] : node.inplace) {
        if (out == value && !node.recompute && in != value) {
          return IsPersistent(in);
        }
      }
    }
    return false;
  }

  bool FindFinals() {
    is_final_.assign(buffer_count_, false);
    std::vector<int> finals;
    for (ValueId output : problem_.outputs) {
      const int b = FinalOf(output, Space::kDevice, std::nullopt);
      if (b < 0) return false;
      finals.push_back(b);
    }
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const ValueId value{static_cast<int32_t>(v)};
      if (!problem_.values[v].persistent || !IsInput(value)) continue;
      const Buffer& home = At(home_[v]);
      const int b = FinalOf(LastVersion(value), home.space, home.offset);
      if (b < 0) return false;
      finals.push_back(b);
    }
    for (int b : finals) is_final_[b] = true;
    return true;
  }

  int FinalOf(ValueId value, Space space, std::optional<int64_t> offset) {
    int best = -1;
    for (int b = 0; b < buffer_count_; ++b) {
      if (At(b).value != value || At(b).space != space || CodecOf(b) != "" ||
          At(b).bytes != problem_.value(value).bytes ||
          (offset.has_value() && At(b).offset != *offset) || !IsIntact(b)) {
        continue;
      }
      if (best < 0 || writes_[best].empty() ||
          (!writes_[b].empty() && writes_[best][0] < writes_[b][0])) {
        best = b;
      }
    }
    return best;
  }

  bool Sharing() const {
    for (int a = 0; a < buffer_count_; ++a) {
      for (int b = a + 1; b < buffer_count_; ++b) {
        if (!MayCoexist(a, b)) return false;
      }
    }
    return true;
  }

  bool Decisions() const {
    std::vector<int> count(problem_.values.size(), 0);
    for (const Decision& d : plan_.decisions) {
      if (!In(static_cast<int32_t>(d.value), count.size()) ||
          ++count[Index(d.value)] > 1) {
        return false;
      }
    }
    return true;
  }

  bool Figures() const {
    LOADLINE_CHECK(!plan_.certificate.has_value());
    const auto replay = Replay(problem_, plan_);
    if (!replay.ok()) return false;
    const Prediction& p = plan_.predicted;
    for (const auto& [said, is] : {std::pair(p.step_ns, replay->step_ns),
                                   {p.compute_ns, replay->compute_ns},
                                   {p.recompute_ns, replay->recompute_ns},
                                   {p.d2h_bytes, replay->d2h_bytes},
                                   {p.h2d_bytes, replay->h2d_bytes},
                                   {p.stall_ns, replay->stall_ns},
                                   {p.peak_bytes, replay->peak_bytes}}) {
      if (std::abs(said - is) > is / 1'000'000 + 1) return false;
    }
    return plan_.bounds.peak_bytes <= p.peak_bytes &&
           plan_.bounds.step_ns <= p.step_ns;
  }

  bool Errors() const {
    std::map<std::pair<ValueId, std::string>, double> errors;
    for (const Step& s : plan_.steps) {
      if (s.kind != StepKind::kEncode) continue;
      const ValueId value = At(Int(s.from)).value;
      for (const Codec& codec : problem_.value(value).stash) {
        if (codec.name == s.codec) errors[{value, s.codec}] = codec.error;
      }
    }
    double sum = 0;
    for (const auto& [use, error] : errors) sum += error;
    return sum <= 1 + 1e-9;  // the format leaves room for rounding
  }

  const Problem& problem_;
  const Plan& plan_;
  const int step_count_;
  const int buffer_count_;
  std::vector<std::vector<char>> before_;
  // Steps, by buffer.
  std::vector<std::vector<int>> reads_, writes_, works_, accesses_;
  std::vector<int> home_;  // initial buffer, by value
  std::vector<bool> is_final_;
};

}  // namespace

int BrokenRule(const Problem& problem, const Plan& plan) {
  return Judge(problem, plan).BrokenRule();
}

}  // namespace loadline::planner
