// Union by size with path halving (Tarjan, van Leeuwen 1984). Facts of a
// channel are kept at its root and joined when two channels become one. Tested
// through tests/passes/compress/prune_groups_test.cc.
#include "passes/compress/axis_atoms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"

namespace loadline::passes {
namespace {

constexpr int64_t kMostAtoms = int64_t{1} << 28;

}  // namespace

absl::StatusOr<AxisAtoms> AxisAtoms::Create(const models::Graph& graph) {
  AxisAtoms atoms;
  int64_t count = 0;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    atoms.first_axis_.push_back(static_cast<int64_t>(atoms.axes_.size()));
    const std::vector<int64_t>& dims = graph.values[v].type.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      AxisSpan span;
      span.axis = {models::ValueId(static_cast<int32_t>(v)),
                   static_cast<int64_t>(axis)};
      span.size = dims[axis];
      span.long_axis = span.size > kLongestAxis;
      if (span.size > 1) {
        span.first = static_cast<int32_t>(count);
        count += span.long_axis ? 1 : span.size;
        if (count > kMostAtoms) {
          return absl::ResourceExhaustedError(absl::StrCat(
              "the model's values have more than ", kMostAtoms,
              " indices along their axes, too many to find what can be "
              "pruned"));
        }
      }
      atoms.axes_.push_back(span);
    }
  }
  atoms.first_axis_.push_back(static_cast<int64_t>(atoms.axes_.size()));
  atoms.parent_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < atoms.parent_.size(); ++i) {
    atoms.parent_[i] = static_cast<int32_t>(i);
  }
  atoms.weight_.assign(static_cast<size_t>(count), 1);
  atoms.facts_.resize(static_cast<size_t>(count));
  for (const AxisSpan& span : atoms.axes_) {
    if (!span.long_axis) continue;
    atoms.Freeze(span.axis,
                 absl::StrCat("an axis of ", span.size,
                              " indices, more than pruning looks at"));
  }
  return atoms;
}

int32_t AxisAtoms::Root(int32_t atom) {
  while (parent_[static_cast<size_t>(atom)] != atom) {
    int32_t& parent = parent_[static_cast<size_t>(atom)];
    parent = parent_[static_cast<size_t>(parent)];
    atom = parent;
  }
  return atom;
}

void AxisAtoms::UniteAtoms(int32_t a, int32_t b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  if (weight_[static_cast<size_t>(a)] < weight_[static_cast<size_t>(b)]) {
    std::swap(a, b);
  }
  parent_[static_cast<size_t>(b)] = a;
  weight_[static_cast<size_t>(a)] += weight_[static_cast<size_t>(b)];
  Facts& into = facts_[static_cast<size_t>(a)];
  const Facts& from = facts_[static_cast<size_t>(b)];
  into.frozen = std::min(into.frozen, from.frozen);
  into.approximate = std::min(into.approximate, from.approximate);
  into.maker = std::min(into.maker, from.maker);
  into.head = into.head || from.head;
  into.repeats = into.repeats && from.repeats;
}

void AxisAtoms::Unite(AxisRef a, int64_t i, AxisRef b, int64_t j) {
  UniteRanges(a, i, b, j, 1);
}

void AxisAtoms::UniteAxes(AxisRef a, AxisRef b) {
  if (size(a) == size(b)) UniteRanges(a, 0, b, 0, size(a));
}

void AxisAtoms::UniteRanges(AxisRef a, int64_t from, AxisRef b, int64_t to,
                            int64_t count) {
  const AxisSpan& left = axes_[Axis(a)];
  const AxisSpan& right = axes_[Axis(b)];
  LOADLINE_CHECK(from >= 0 && to >= 0 && from + count <= left.size &&
                 to + count <= right.size);
  // An axis of one index that is tied to one of several: removing that would
  // leave nothing of it.
  if (left.first < 0 || right.first < 0) {
    const AxisSpan& other = left.first < 0 ? right : left;
    const int64_t start = left.first < 0 ? to : from;
    if (other.first < 0) return;
    const int32_t reason = ReasonId("a part of one channel");
    for (int64_t i = 0; i < count; ++i) {
      Facts& facts = facts_[static_cast<size_t>(Root(Atom(other, start + i)))];
      facts.frozen = std::min(facts.frozen, reason);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    UniteAtoms(Atom(left, from + i), Atom(right, to + i));
  }
}

int32_t AxisAtoms::ReasonId(const std::string& reason) {
  if (reasons_.empty() || reasons_.back() != reason) reasons_.push_back(reason);
  return static_cast<int32_t>(reasons_.size()) - 1;
}

template <typename Change>
void AxisAtoms::ChangeFacts(AxisRef a, const Change& change) {
  const AxisSpan& span = axes_[Axis(a)];
  if (span.first < 0) return;
  for (int64_t i = 0; i < (span.long_axis ? 1 : span.size); ++i) {
    change(facts_[static_cast<size_t>(Root(Atom(span, i)))]);
  }
}

template <typename Test>
bool AxisAtoms::AnyFacts(AxisRef a, const Test& test) {
  const AxisSpan& span = axes_[Axis(a)];
  if (span.first < 0) return false;
  for (int64_t i = 0; i < (span.long_axis ? 1 : span.size); ++i) {
    if (test(facts_[static_cast<size_t>(Root(Atom(span, i)))])) return true;
  }
  return false;
}

void AxisAtoms::Freeze(AxisRef a, const std::string& reason) {
  const int32_t id = ReasonId(reason);
  ChangeFacts(a, [id](Facts& f) { f.frozen = std::min(f.frozen, id); });
}
void AxisAtoms::Approximate(AxisRef a, const std::string& reason) {
  const int32_t id = ReasonId(reason);
  ChangeFacts(a,
              [id](Facts& f) { f.approximate = std::min(f.approximate, id); });
}
void AxisAtoms::MarkHead(AxisRef a) {
  ChangeFacts(a, [](Facts& f) { f.head = true; });
}
void AxisAtoms::MarkRepeats(AxisRef a) {
  ChangeFacts(a, [](Facts& f) { f.repeats = true; });
}
void AxisAtoms::MarkMaker(AxisRef a, int32_t node) {
  ChangeFacts(a, [node](Facts& f) { f.maker = std::min(f.maker, node); });
}

bool AxisAtoms::AllFrozen(AxisRef a) {
  return !AnyFacts(a, [](const Facts& f) { return f.frozen == kNone; });
}
bool AxisAtoms::AnyApproximate(AxisRef a) {
  return AnyFacts(a, [](const Facts& f) { return f.approximate != kNone; });
}
bool AxisAtoms::AnyHead(AxisRef a) {
  return AnyFacts(a, [](const Facts& f) { return f.head; });
}
bool AxisAtoms::AllRepeats(AxisRef a) {
  return !AnyFacts(a, [](const Facts& f) { return !f.repeats; });
}

}  // namespace loadline::passes
