// The skyline is a list of runs of sections at one height. The lowest run is
// filled first. A block that lies within the run in time rests on it. If there
// is none, no remaining block can use the run below its lower neighbour, so the
// run is raised to that neighbour and joined with it. This places next the
// block with the lowest legal offset without computing the offsets of the
// others. The best block within a run is found in a k-d tree (Bentley 1975)
// over (lower, upper) whose nodes keep the best key below them. Tested in
// pack_lowest_floor_test.cc and pack_test.cc.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/pack/pack_parts.h"

namespace loadline::planner {
namespace {

constexpr int kLeafBlocks = 8;  // of the tree: scanned in less than a descent

class Skyline {
 public:
  struct Event {
    int64_t height;
    int start, stamp;
    bool operator>(const Event& other) const {
      return std::tie(height, start, stamp) >
             std::tie(other.height, other.start, other.stamp);
    }
  };

  explicit Skyline(const std::vector<int64_t>& base)
      : end_(base.size()),
        previous_(base.size()),
        stamp_(base.size(), 0),
        height_(base) {
    const int sections = static_cast<int>(base.size());
    int last = -1;
    for (int s = 0; s < sections;) {
      int e = s + 1;
      while (e < sections && base[e] == base[s]) ++e;
      end_[s] = e;
      previous_[s] = last;
      last = s;
      Push(s);
      s = e;
    }
  }

  // The lowest run. Events of runs that have changed since are dropped.
  int Lowest() {
    while (stamp_[events_.top().start] != events_.top().stamp) events_.pop();
    return events_.top().start;
  }
  int End(int run) const { return end_[run]; }
  int64_t Height(int run) const { return height_[run]; }

  // Puts bytes on [lower, upper) of the run and leaves its other parts.
  void Stack(int run, int lower, int upper, int64_t bytes) {
    const int end = end_[run];
    const int64_t height = height_[run];
    const int previous = previous_[run];
    ++stamp_[run];
    int last = previous;
    if (run < lower) last = Add(run, lower, height, last);
    last = Add(lower, upper, height + bytes, last);
    const int top = last;
    if (upper < end) last = Add(upper, end, height, last);
    if (end < Sections()) previous_[end] = last;
    Join(top);
  }

  // Raises the run to its lower neighbour and joins them.
  void Raise(int run) {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    const int64_t left = previous_[run] < 0 ? kNone : height_[previous_[run]];
    const int64_t right = end_[run] == Sections() ? kNone : height_[end_[run]];
    height_[run] = std::min(left, right);
    ++stamp_[run];
    Push(run);
    Join(run);
  }

 private:
  int Sections() const { return static_cast<int>(end_.size()); }
  void Push(int run) { events_.push({height_[run], run, stamp_[run]}); }
  int Add(int start, int end, int64_t height, int previous) {
    end_[start] = end;
    height_[start] = height;
    previous_[start] = previous;
    ++stamp_[start];
    Push(start);
    return start;
  }
  void Join(int run) {
    const int next = end_[run];
    if (next < Sections() && height_[next] == height_[run]) Absorb(run, next);
    const int previous = previous_[run];
    if (previous >= 0 && height_[previous] == height_[run]) {
      Absorb(previous, run);
    }
  }
  void Absorb(int run, int next) {
    end_[run] = end_[next];
    ++stamp_[next];
    ++stamp_[run];
    if (end_[run] < Sections()) previous_[end_[run]] = run;
    Push(run);
  }

  std::vector<int> end_, previous_, stamp_;  // by first section of a run
  std::vector<int64_t> height_;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
};

}  // namespace

LowestFloor::LowestFloor(const PackBlocks& blocks)
    : blocks_(blocks), leaf_of_(blocks.blocks.size(), -1) {
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    if (blocks.blocks[b].fixed < 0) order_.push_back(static_cast<int>(b));
  }
  if (!order_.empty()) Build(0, 0, static_cast<int>(order_.size()), true);
}

void LowestFloor::Build(int node, int begin, int end, bool by_lower) {
  if (node >= static_cast<int>(nodes_.size())) nodes_.resize(node + 1);
  constexpr int kMost = std::numeric_limits<int>::max();
  Node built{kMost, 0, kMost, 0, begin, end, -1};
  for (int i = begin; i < end; ++i) {
    const PackBlock& block = blocks_.blocks[order_[i]];
    built.low_lower = std::min(built.low_lower, block.lower);
    built.high_lower = std::max(built.high_lower, block.lower);
    built.low_upper = std::min(built.low_upper, block.upper);
    built.high_upper = std::max(built.high_upper, block.upper);
  }
  nodes_[node] = built;
  if (end - begin <= kLeafBlocks) {
    for (int i = begin; i < end; ++i) leaf_of_[order_[i]] = node;
    return;
  }
  const int middle = begin + (end - begin) / 2;
  std::nth_element(order_.begin() + begin, order_.begin() + middle,
                   order_.begin() + end, [&](int a, int b) {
                     const PackBlock& x = blocks_.blocks[a];
                     const PackBlock& y = blocks_.blocks[b];
                     return by_lower ? std::tie(x.lower, x.upper, a) <
                                           std::tie(y.lower, y.upper, b)
                                     : std::tie(x.upper, x.lower, a) <
                                           std::tie(y.upper, y.lower, b);
                   });
  Build(2 * node + 1, begin, middle, !by_lower);
  Build(2 * node + 2, middle, end, !by_lower);
}

bool LowestFloor::Before(int a, int b) const {
  if (a < 0 || b < 0) return a >= 0;
  if ((*keys_)[a] != (*keys_)[b]) return (*keys_)[a] > (*keys_)[b];
  return a < b;
}

void LowestFloor::Refresh(int node) {
  Node& here = nodes_[node];
  here.best = -1;
  if (here.end - here.begin <= kLeafBlocks) {
    for (int i = here.begin; i < here.end; ++i) {
      if (!placed_[order_[i]] && Before(order_[i], here.best)) {
        here.best = order_[i];
      }
    }
    return;
  }
  const int a = nodes_[2 * node + 1].best, b = nodes_[2 * node + 2].best;
  here.best = Before(a, b) ? a : b;
}

void LowestFloor::Remove(int block) {
  placed_[block] = true;
  for (int node = leaf_of_[block];; node = (node - 1) / 2) {
    if (nodes_[node].best == block) Refresh(node);
    if (node == 0) return;
  }
}

void LowestFloor::Query(int node, int lower, int upper, int& best) const {
  const Node& here = nodes_[node];
  if (here.high_lower < lower || here.low_upper > upper ||
      !Before(here.best, best)) {
    return;
  }
  const PackBlock& block = blocks_.blocks[here.best];
  if (block.lower >= lower && block.upper <= upper) {
    best = here.best;
    return;
  }
  if (here.end - here.begin <= kLeafBlocks) {
    for (int i = here.begin; i < here.end; ++i) {
      const PackBlock& other = blocks_.blocks[order_[i]];
      if (!placed_[order_[i]] && other.lower >= lower && other.upper <= upper &&
          Before(order_[i], best)) {
        best = order_[i];
      }
    }
    return;
  }
  int first = 2 * node + 1, second = first + 1;
  if (Before(nodes_[second].best, nodes_[first].best)) std::swap(first, second);
  Query(first, lower, upper, best);
  Query(second, lower, upper, best);
}

PackLayout LowestFloor::LayOut(const std::vector<double>& keys) {
  PackLayout layout;
  layout.height_bytes = 0;
  layout.offsets.assign(blocks_.blocks.size(), 0);
  for (size_t b = 0; b < blocks_.blocks.size(); ++b) {
    const PackBlock& block = blocks_.blocks[b];
    if (block.fixed < 0) continue;
    layout.offsets[b] = block.fixed;
    layout.height_bytes =
        std::max(layout.height_bytes, block.fixed + block.size);
  }
  keys_ = &keys;
  placed_.assign(blocks_.blocks.size(), false);
  for (int node = static_cast<int>(nodes_.size()) - 1; node >= 0; --node) {
    if (nodes_[node].end > nodes_[node].begin) Refresh(node);
  }
  Skyline skyline(blocks_.base);
  for (size_t left = order_.size(); left > 0;) {
    const int run = skyline.Lowest();
    int best = -1;
    Query(0, run, skyline.End(run), best);
    if (best < 0) {
      skyline.Raise(run);
      continue;
    }
    const PackBlock& block = blocks_.blocks[best];
    layout.offsets[best] = skyline.Height(run);
    layout.height_bytes =
        std::max(layout.height_bytes, layout.offsets[best] + block.size);
    skyline.Stack(run, block.lower, block.upper, block.padded);
    Remove(best);
    --left;
  }
  return layout;
}

}  // namespace loadline::planner
