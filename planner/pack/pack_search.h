// Depth-first search for a layout no higher than a capacity, over canonical
// layouts only. For pack_exact.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_PACK_SEARCH_H_
#define LOADLINE_PLANNER_PACK_PACK_SEARCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "planner/pack/pack_parts.h"

namespace loadline::planner {

// A set of sections.
class SectionSet {
 public:
  explicit SectionSet(int sections = 0) : words_(sections / 64 + 1, 0) {}
  void Clear() { std::fill(words_.begin(), words_.end(), 0); }
  void Add(int lower, int upper) {
    for (int s = lower; s < upper; ++s) words_[s / 64] |= Bit(s);
  }
  void Add(const SectionSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  bool Meets(int lower, int upper) const {
    for (int s = lower; s < upper; ++s) {
      if (words_[s / 64] & Bit(s)) return true;
    }
    return false;
  }

 private:
  static uint64_t Bit(int s) { return uint64_t{1} << (s % 64); }
  std::vector<uint64_t> words_;
};

// One depth-first search at a time, over the same blocks and capacity.
class PackSearch {
 public:
  PackSearch(const PackBlocks& blocks, int64_t capacity_bytes);
  // At most `limit` nodes from the empty layout, blocks of high keys first.
  // Unless `complete`, a pocket is always filled as far as blocks fit in it,
  // and kNone proves nothing.
  ExactResult Run(const std::vector<double>& keys, int64_t limit,
                  bool complete);

  int64_t nodes() const { return nodes_; }
  double least_left() const { return least_left_; }  // bytes x time
  const std::vector<int64_t>& offsets() const { return offset_; }
  // Most bytes alive in a section of the block.
  double Load(int block) const;

 private:
  struct Pocket {
    int lower = 0, upper = 0;
    bool from_right = false;
    std::vector<int> candidates;  // blocks, or kLeaveEmpty
  };
  enum class Look { kPocket, kRaised, kDeadEnd };
  static constexpr int kLeaveEmpty = -1;
  static constexpr int64_t kWall = std::numeric_limits<int64_t>::max();

  bool Open(int s) const {
    return s >= 0 && s < blocks_.sections && left_[s] > 0;
  }
  int64_t Wall(int s) const { return Open(s) ? height_[s] : kWall; }
  // False if what is left no longer fits above.
  bool SetHeight(int s, int64_t height);
  void Restart(const std::vector<double>& keys, int64_t limit);
  ExactResult Dive(int depth);
  bool Choose(Pocket& best);
  Look LookAt(int lower, int upper, Pocket& best, int64_t& best_height);
  bool Raise(int lower, int upper);
  bool MayLeaveEmpty(int lower, int upper) const;
  void Collect(int lower, int upper);
  void Filter(int lower, int upper, bool from_right, std::vector<int>& out);
  bool FitsBeside(const PackBlock& first, int64_t room, bool from_right) const;
  ExactResult LeaveEmpty(const Pocket& pocket, int depth);
  ExactResult Try(int block, const Pocket& pocket, int depth, int& lower,
                  int& upper);
  void TakeBack(int block);
  void Undo(size_t heights);
  bool Blame(int lower, int upper);
  ExactResult Fail(size_t heights, size_t raises);

  const PackBlocks& blocks_;
  const int64_t capacity_;
  std::vector<std::vector<int>> starting_;  // blocks, by first section
  std::vector<int> twin_;  // an equal block that goes first; -1: none
  const std::vector<double>* keys_ = nullptr;
  std::vector<int64_t> height_, left_;  // by section
  std::vector<bool> placed_;
  std::vector<int64_t> offset_;
  size_t blocks_left_ = 0;
  double area_left_ = 0, least_left_ = 0;
  int64_t nodes_ = 0, limit_ = 0;
  bool complete_ = false;
  std::vector<std::pair<int, int64_t>> heights_log_;
  std::vector<std::pair<int, int>> raises_log_;
  std::vector<int> inside_, from_left_, from_right_;  // scratch
  SectionSet conflict_;
  std::vector<SectionSet> conflict_at_;  // by depth
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_SEARCH_H_
