// Union-find over axis atoms: every index of every axis of every value.
#ifndef LOADLINE_PASSES_COMPRESS_AXIS_ATOMS_H_
#define LOADLINE_PASSES_COMPRESS_AXIS_ATOMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

struct AxisRef {
  models::ValueId value;
  int64_t axis = 0;
};

// An axis of at most one index has no atoms: it broadcasts, or could only
// become empty. An axis of more than kLongestAxis has one atom for all its
// indices, which is frozen; what is united with any of them is frozen too.
class AxisAtoms {
 public:
  static constexpr int64_t kLongestAxis = int64_t{1} << 20;

  // ResourceExhausted beyond 2^28 atoms.
  static absl::StatusOr<AxisAtoms> Create(const models::Graph& graph);

  int64_t size(AxisRef a) const { return axes_[Axis(a)].size; }
  int64_t rank(models::ValueId value) const {
    return first_axis_[Index(value) + 1] - first_axis_[Index(value)];
  }

  // The channel of one contains index i of a and index j of b.
  void Unite(AxisRef a, int64_t i, AxisRef b, int64_t j);
  // Index i of both belongs together, for every i. Nothing if the sizes
  // differ: one of them broadcasts.
  void UniteAxes(AxisRef a, AxisRef b);
  // Indices [from, from + count) of a and [to, to + count) of b belong
  // together.
  void UniteRanges(AxisRef a, int64_t from, AxisRef b, int64_t to,
                   int64_t count);

  // What is known of an axis spreads to whole channels. Of several reasons the
  // one that was given first stays.
  void Freeze(AxisRef a, const std::string& reason);
  void Approximate(AxisRef a, const std::string& reason);
  // The axis is a batch dimension of a product of two activations: an
  // attention head.
  void MarkHead(AxisRef a);
  // Expand repeats its input along this axis. Unlike other facts this one holds
  // only while nothing else belongs to the channel.
  void MarkRepeats(AxisRef a);
  // `node` makes the channels of this axis from a trained weight.
  void MarkMaker(AxisRef a, int32_t node);

  // Whether every index of the axis is frozen, or it has no atoms.
  bool AllFrozen(AxisRef a);
  bool AnyApproximate(AxisRef a);
  bool AnyHead(AxisRef a);
  bool AllRepeats(AxisRef a);

  // For building groups.
  static constexpr int32_t kNone = 0x7fffffff;
  struct Facts {
    int32_t frozen = kNone;       // a reason
    int32_t approximate = kNone;  // a reason
    int32_t maker = kNone;        // a node
    bool head = false;
    bool repeats = false;
  };
  int32_t count() const { return static_cast<int32_t>(parent_.size()); }
  int32_t Root(int32_t atom);
  // The root of index i. Requires an axis with atoms.
  int32_t ChannelOf(AxisRef a, int64_t i) {
    return Root(Atom(axes_[Axis(a)], i));
  }
  const Facts& facts(int32_t root) const {
    return facts_[static_cast<size_t>(root)];
  }
  const std::string& reason(int32_t id) const {
    return reasons_[static_cast<size_t>(id)];
  }
  // The axes with atoms, in order of value and axis; atoms of an axis follow
  // each other.
  struct AxisSpan {
    AxisRef axis;
    int64_t size = 0;
    int32_t first = -1;  // atom; -1: none
    bool long_axis = false;
  };
  const std::vector<AxisSpan>& axes() const { return axes_; }

 private:
  AxisAtoms() = default;
  size_t Axis(AxisRef a) const {
    return static_cast<size_t>(first_axis_[Index(a.value)] + a.axis);
  }
  void UniteAtoms(int32_t a, int32_t b);
  int32_t Atom(const AxisSpan& axis, int64_t i) const {
    return axis.long_axis ? axis.first : axis.first + static_cast<int32_t>(i);
  }
  int32_t ReasonId(const std::string& reason);
  template <typename Change>
  void ChangeFacts(AxisRef a, const Change& change);
  template <typename Test>
  bool AnyFacts(AxisRef a, const Test& test);

  std::vector<int64_t> first_axis_;  // by value; one more at the end
  std::vector<AxisSpan> axes_;
  std::vector<int32_t> parent_;
  std::vector<int32_t> weight_;  // atoms below a root
  std::vector<Facts> facts_;     // valid at roots
  std::vector<std::string> reasons_;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_AXIS_ATOMS_H_
