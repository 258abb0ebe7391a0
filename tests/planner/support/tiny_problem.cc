// A forward and a backward half: old values that are read again are what a
// budget drops. Tested in tests/planner/bound/bound_oracle_test.cc (they are
// valid).
#include "tests/planner/support/tiny_problem.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

class TinyMaker {
 public:
  TinyMaker(uint64_t seed, const TinyFeatures& features)
      : random_(seed * 8 + (features.codecs ? 1 : 0) +
                (features.copies ? 2 : 0) + (features.versions ? 4 : 0)),
        features_(features) {}

  Problem Make() {
    problem_.name = "tiny";
    problem_.alignment_bytes = 1;
    problem_.addresses = !features_.copies && !features_.codecs;
    plain_.push_back(AddValue(random_.In(0, 2)));
    if (features_.versions) AddPersistent();
    nodes_ = random_.In(4, features_.copies ? 6 : 8);
    for (int64_t n = 0; n < nodes_; ++n) {
      if (updates_left_ > 0 &&
          (random_.OneIn(3) || nodes_ - n <= updates_left_)) {
        AddUpdate();
      } else {
        AddNode();
      }
    }
    problem_.outputs.push_back(plain_.back());
    if (random_.OneIn(3) && plain_.size() > 3) {
      problem_.outputs.push_back(plain_[random_.In(1, 2)]);
    }
    if (features_.copies) AddMachine();
    return problem_;
  }

 private:
  ValueId AddValue(int64_t bytes) {
    const auto id = static_cast<int32_t>(problem_.values.size());
    Value value;
    value.file_id = id;
    value.name = absl::StrCat("v", id);
    value.bytes = bytes;
    value.offload = features_.copies && !random_.OneIn(3);
    if (features_.codecs && bytes > 2 && random_.OneIn(2)) {
      value.stash.push_back({"c", random_.In(1, bytes / 2), random_.In(0, 20),
                             random_.In(0, 20), true, 0});
      if (random_.OneIn(4)) {
        value.stash.push_back({"d", random_.In(1, bytes / 2), random_.In(0, 20),
                               random_.In(0, 20), true, 0});
      }
    }
    problem_.values.push_back(value);
    return ValueId{id};
  }

  void AddPersistent() {
    version_ = AddValue(random_.In(1, 8));
    problem_.values[Index(version_)].persistent = true;
    updates_left_ = random_.In(1, 3);
  }

  Node NewNode() {
    Node node;
    node.file_id = static_cast<int64_t>(problem_.nodes.size());
    node.name = absl::StrCat("n", node.file_id);
    const int64_t times[] = {0, 8, 16, 40, 200, 1000};
    node.time_ns = times[random_.In(0, 5)];
    if (random_.OneIn(3)) node.workspace_bytes = random_.In(1, 15);
    // The last value, and in the second half of the nodes mostly the value as
    // far from the middle on the other side, as a backward pass does.
    const auto count = static_cast<int64_t>(plain_.size());
    const auto n = static_cast<int64_t>(problem_.nodes.size());
    node.inputs.push_back(
        plain_[count - 1 - (random_.OneIn(4) ? count / 2 : 0)]);
    const int64_t mirror = nodes_ - n;
    if (2 * n >= nodes_ && mirror < count && !random_.OneIn(5)) {
      Read(plain_[mirror], node);
    } else if (random_.OneIn(3)) {
      Read(plain_[random_.In(0, count - 1)], node);
    }
    return node;
  }

  static void Read(ValueId id, Node& node) {
    for (ValueId input : node.inputs) {
      if (input == id) return;
    }
    node.inputs.push_back(id);
  }

  void AddNode() {
    Node node = NewNode();
    node.recompute = !random_.OneIn(5);
    if (features_.versions && random_.OneIn(2)) Read(version_, node);
    int64_t bytes = random_.In(1, 12);
    const bool in_place = random_.OneIn(4);
    if (in_place) bytes = problem_.value(node.inputs[0]).bytes;
    const ValueId made = AddValue(bytes);
    node.outputs.push_back(made);
    if (in_place) node.inplace.push_back({node.inputs[0], made});
    plain_.push_back(made);
    problem_.nodes.push_back(node);
  }

  void AddUpdate() {
    Node node = NewNode();
    node.recompute = false;
    Read(version_, node);
    const ValueId made = AddValue(problem_.value(version_).bytes);
    node.outputs.push_back(made);
    node.inplace.push_back({version_, made});
    version_ = made;
    --updates_left_;
    problem_.nodes.push_back(node);
  }

  void AddMachine() {
    Machine machine;
    machine.name = "tiny";
    machine.device_bytes = 1000;
    machine.host_bytes = 1000;
    const double rates[] = {0.125e9, 0.25e9, 1e9, 4e9};
    machine.d2h.bytes_per_s = rates[random_.In(0, 3)];
    machine.h2d.bytes_per_s = rates[random_.In(0, 3)];
    machine.d2h.latency_ns = machine.h2d.latency_ns = random_.OneIn(2) ? 0 : 4;
    const double factors[] = {1.0, 0.875, 0.75, 0.625, 0.5, 0.25};
    machine.d2h_h2d_factor = factors[random_.In(0, 5)];
    if (random_.OneIn(4)) machine.h2d.latency_ns = 2;
    if (random_.OneIn(3)) machine.copy_overhead_ns = random_.In(1, 20);
    problem_.machine = machine;
  }

  TestRandom random_;
  const TinyFeatures features_;
  Problem problem_;
  std::vector<ValueId> plain_;  // values that are not persistent
  ValueId version_ = kNoValue;
  int64_t updates_left_ = 0;
  int64_t nodes_ = 0;
};

}  // namespace

Problem TinyProblem(uint64_t seed, const TinyFeatures& features) {
  return TinyMaker(seed, features).Make();
}

}  // namespace loadline::planner
