// Used by random_plans.cc and mutated_plans.cc.
#include "tests/campaign/odd_problem.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/check.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed + 0x0dd) {
    problem_.name = "odd";
    problem_.alignment_bytes =
        Any<int64_t>({1, 1, 2, 3, 64, 255, 256, 4096, int64_t{1} << 20});
    scale_bytes_ = Any<int64_t>(
        {3, 16, 300, 4096, 100'000, int64_t{1} << 33, int64_t{1} << 50});
    scale_ns_ = Any<int64_t>({0, 1, 20, 1000, 1'000'000, 1'000'000'000'000});
  }

  Problem Draw(int most_nodes) {
    for (int64_t i = random_.In(0, 3); i > 0; --i) AddInput();
    for (int64_t n = random_.In(0, most_nodes); n > 0; --n) AddNode();
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if (!updated_[v] && random_.OneIn(5)) problem_.outputs.push_back(Id(v));
    }
    if (!random_.OneIn(4)) AddMachine();
    const absl::Status valid = ValidateProblem(problem_);
    LOADLINE_CHECK(valid.ok());
    return std::move(problem_);
  }

 private:
  static ValueId Id(size_t v) { return ValueId(static_cast<int32_t>(v)); }

  template <typename T>
  T Any(const std::vector<T>& all) {
    return all[static_cast<size_t>(
        random_.In(0, static_cast<int64_t>(all.size()) - 1))];
  }

  int64_t Bytes() {
    const int64_t a = problem_.alignment_bytes;
    switch (random_.In(0, 7)) {
      case 0:
        return 0;
      case 1:
        return std::max<int64_t>(0, random_.In(1, 3) * a + random_.In(-1, 1));
      case 2:
        return scale_bytes_;
      default:
        return random_.In(1, scale_bytes_);
    }
  }

  int64_t Time() { return random_.OneIn(6) ? 0 : random_.In(0, scale_ns_); }

  ValueId AddValue(int64_t bytes) {
    Value value;
    value.file_id = 3 * static_cast<int64_t>(problem_.values.size()) + 1;
    value.name = "v" + std::to_string(problem_.values.size());
    value.bytes = bytes;
    value.offload = !random_.OneIn(6);
    for (int c = 0; c < 2 && random_.OneIn(4); ++c) {
      Codec codec;
      codec.name = c == 0 ? "mask" : "zip";
      codec.bytes = bytes / random_.In(1, 6) + random_.In(0, 1);
      codec.encode_ns = Time();
      codec.decode_ns = Time();
      codec.lossless = random_.OneIn(2);
      if (!codec.lossless) {
        codec.error = static_cast<double>(random_.In(0, 12)) / 10;
      }
      value.stash.push_back(std::move(codec));
    }
    problem_.values.push_back(std::move(value));
    updated_.push_back(false);
    version_.push_back(false);
    return Id(problem_.values.size() - 1);
  }

  ValueId AddInput() {
    const ValueId value = AddValue(Bytes());
    if (random_.OneIn(3)) {
      problem_.values[Index(value)].persistent = true;
      version_[Index(value)] = true;
    }
    return value;
  }

  void AddNode() {
    Node node;
    node.file_id = 2 * static_cast<int64_t>(problem_.nodes.size());
    node.name = "n" + std::to_string(problem_.nodes.size());
    node.time_ns = Time();
    node.workspace_bytes = random_.OneIn(4) ? Bytes() : 0;
    node.recompute = !random_.OneIn(6);
    for (int64_t i = random_.In(0, 4); i > 0; --i) {
      const ValueId in = AnyInput();
      if (in == kNoValue) continue;
      node.inputs.push_back(in);
    }
    for (int64_t i = random_.OneIn(10) ? 0 : random_.In(1, 3); i > 0; --i) {
      AddOutput(node);
    }
    // What is updated is not read by later nodes.
    for (const auto& [in, out] : node.inplace) {
      if (version_[Index(in)]) updated_[Index(in)] = true;
    }
    for (int v = 0; v < 2 && random_.OneIn(4); ++v) {
      node.variants.push_back({v == 0 ? "quick" : "small", Time(),
                               random_.OneIn(3) ? 0 : Bytes(),
                               random_.OneIn(2)});
    }
    problem_.nodes.push_back(std::move(node));
  }

  // A value that may still be read: recent ones rather than old ones.
  ValueId AnyInput() {
    if (random_.OneIn(6)) return AddInput();
    const int64_t count = static_cast<int64_t>(problem_.values.size());
    for (int attempt = 0; count > 0 && attempt < 8; ++attempt) {
      const int64_t oldest =
          random_.OneIn(3) ? 0 : std::max<int64_t>(0, count - 4);
      const auto v = static_cast<size_t>(random_.In(oldest, count - 1));
      if (!updated_[v]) return Id(v);
    }
    return kNoValue;
  }

  void AddOutput(Node& node) {
    const ValueId in =
        node.inputs.empty() || random_.OneIn(2) ? kNoValue : Any(node.inputs);
    if (in == kNoValue) {
      node.outputs.push_back(AddValue(Bytes()));
      return;
    }
    const bool update = version_[Index(in)];
    const bool taken = std::any_of(
        node.inplace.begin(), node.inplace.end(),
        [&](const auto& pair) { return update && pair.first == in; });
    const ValueId out = AddValue(problem_.value(in).bytes);
    node.outputs.push_back(out);
    if (taken) return;
    node.inplace.push_back({in, out});
    if (!update) return;
    node.recompute = false;
    version_[Index(out)] = true;
    problem_.values[Index(out)].persistent = random_.OneIn(2);
  }

  void AddMachine() {
    Machine machine;
    machine.name = "odd";
    machine.device_bytes = int64_t{1} << 60;
    const auto link = [&] {
      const double per_ns =
          Any<double>({0.001, 0.5, 1, 4, 40, 1e6}) *
          static_cast<double>(std::max<int64_t>(1, scale_bytes_ / 1000));
      return Link{std::clamp(per_ns * 1e9, 1.0, 1e18),
                  random_.OneIn(2) ? 0 : Time()};
    };
    machine.d2h = link();
    machine.h2d = random_.OneIn(2) ? machine.d2h : link();
    machine.d2h_h2d_factor = Any<double>({1.0, 0.75, 0.6, 0.5, 0.01});
    machine.copy_overhead_ns = random_.OneIn(3) ? Time() : 0;
    machine.copies_exclude_compute = random_.OneIn(4);
    machine.host_bytes =
        Any<int64_t>({0, scale_bytes_, 3 * scale_bytes_, int64_t{1} << 60});
    problem_.machine = machine;
  }

  TestRandom random_;
  Problem problem_;
  int64_t scale_bytes_ = 1;
  int64_t scale_ns_ = 1;
  std::vector<bool> updated_;
  std::vector<bool> version_;
};

}  // namespace

Problem OddProblem(uint64_t seed, int most_nodes) {
  return Drawing(seed).Draw(most_nodes);
}

}  // namespace loadline::planner
