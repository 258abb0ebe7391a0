// In a canonical layout every block rests on another block or on the base. The
// search builds such a layout pocket by pocket. A *pocket* is a run of the
// skyline below both of its neighbours. Only blocks that lie within the pocket
// in time may rest on its floor. The search branches on which of them comes
// first from the left (or from the right, if fewer candidates are left then).
// The gap between the pocket's wall and that block is raised to the lower of
// the two: every block that lies across the gap is at least that high. A block
// that fits in the gap below this height could be moved down into it, so
// candidates that leave room for one are not tried. A pocket stays empty only
// where every block is too tall for it. The quick searches, which are not
// complete, check only whether a block fits in time. Pockets may be decided in
// any order: the one with the fewest candidates comes first.
//
// Pruning: in each section, height + bytes not placed yet must not exceed the
// capacity. A dead end records the sections that its proof read; candidates
// that changed none of them are skipped (conflict-directed backjumping, Prosser
// 1993). Sections and canonical order follow Moffitt, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
// (ASPLOS 2023); pockets and backjumping are ours. Tested in
// pack_search_test.cc and pack_exact_test.cc.
#include "planner/pack/pack_search.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace loadline::planner {

PackSearch::PackSearch(const PackBlocks& blocks, int64_t capacity_bytes)
    : blocks_(blocks),
      capacity_(capacity_bytes),
      starting_(blocks.sections),
      twin_(blocks.blocks.size(), -1),
      conflict_(blocks.sections) {
  std::map<std::tuple<int, int, int64_t>, int> last;
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    const PackBlock& block = blocks.blocks[b];
    if (block.fixed >= 0) continue;
    const int id = static_cast<int>(b);
    starting_[block.lower].push_back(id);
    const auto [at, fresh] =
        last.emplace(std::tuple(block.lower, block.upper, block.padded), id);
    if (!fresh) twin_[b] = std::exchange(at->second, id);
  }
  Restart({}, 0);
}

double PackSearch::Load(int block) const {
  int64_t most = 0;
  for (int s = blocks_.blocks[block].lower; s < blocks_.blocks[block].upper;
       ++s) {
    most = std::max(most, left_[s]);
  }
  return static_cast<double>(most);
}

void PackSearch::Restart(const std::vector<double>& keys, int64_t limit) {
  keys_ = &keys;
  limit_ = limit;
  nodes_ = 0;
  height_ = blocks_.base;
  left_.assign(blocks_.sections, 0);
  placed_.assign(blocks_.blocks.size(), false);
  offset_.assign(blocks_.blocks.size(), 0);
  heights_log_.clear();
  raises_log_.clear();
  blocks_left_ = 0;
  area_left_ = 0;
  for (size_t b = 0; b < blocks_.blocks.size(); ++b) {
    const PackBlock& block = blocks_.blocks[b];
    if (block.fixed >= 0) {
      offset_[b] = block.fixed;
      continue;
    }
    ++blocks_left_;
    area_left_ +=
        static_cast<double>(block.padded) * static_cast<double>(block.life);
    for (int s = block.lower; s < block.upper; ++s) left_[s] += block.padded;
  }
  least_left_ = area_left_;
}

bool PackSearch::SetHeight(int s, int64_t height) {
  if (height_[s] != height) {
    heights_log_.emplace_back(s, height_[s]);
    height_[s] = height;
  }
  return height_[s] + left_[s] <= capacity_;
}

// The dead end's proof looked at a pocket and its two neighbours.
bool PackSearch::Blame(int lower, int upper) {
  conflict_.Clear();
  conflict_.Add(std::max(lower - 1, 0), std::min(upper + 1, blocks_.sections));
  return false;
}

bool PackSearch::Raise(int lower, int upper) {
  const int64_t height = std::min(Wall(lower - 1), Wall(upper));
  if (height == kWall) return Blame(lower, upper);
  for (int s = lower; s < upper; ++s) {
    if (!SetHeight(s, height)) return Blame(lower, upper);
  }
  raises_log_.emplace_back(lower, upper);
  return true;
}

void PackSearch::Collect(int lower, int upper) {
  inside_.clear();
  for (int s = lower; s < upper; ++s) {
    for (int b : starting_[s]) {
      if (!placed_[b] && blocks_.blocks[b].upper <= upper) inside_.push_back(b);
    }
  }
}

// Whether a block fits on the floor between the wall and the first one, in time
// and below the lowest height that a block across that gap can have.
bool PackSearch::FitsBeside(const PackBlock& first, int64_t room,
                            bool from_right) const {
  return std::any_of(inside_.begin(), inside_.end(), [&](int b) {
    const PackBlock& block = blocks_.blocks[b];
    return (from_right ? block.lower >= first.upper
                       : block.upper <= first.lower) &&
           block.padded <= room;
  });
}

// The blocks that may come first from this side.
void PackSearch::Filter(int lower, int upper, bool from_right,
                        std::vector<int>& out) {
  out.clear();
  int first_end = upper, last_start = lower;
  for (int b : inside_) {
    first_end = std::min(first_end, blocks_.blocks[b].upper);
    last_start = std::max(last_start, blocks_.blocks[b].lower);
  }
  const int64_t floor = height_[lower];
  const int64_t wall = from_right ? Wall(upper) : Wall(lower - 1);
  for (int b : inside_) {
    const PackBlock& block = blocks_.blocks[b];
    if (twin_[b] >= 0 && !placed_[twin_[b]]) continue;
    if (floor + block.padded > capacity_) continue;
    const int64_t raised = std::min(wall, floor + block.padded);
    const bool time_beside =
        from_right ? block.upper <= last_start : block.lower >= first_end;
    if (time_beside &&
        (!complete_ || FitsBeside(block, raised - floor, from_right))) {
      continue;
    }
    const int gap_lower = from_right ? block.upper : lower;
    const int gap_upper = from_right ? upper : block.lower;
    bool fits = true;
    for (int s = gap_lower; s < gap_upper && fits; ++s) {
      fits = raised + left_[s] <= capacity_;
    }
    if (fits) out.push_back(b);
  }
}

// Whether every block inside is too tall to stay below one across the pocket.
bool PackSearch::MayLeaveEmpty(int lower, int upper) const {
  const int64_t wall = std::min(Wall(lower - 1), Wall(upper));
  if (!complete_ || wall == kWall) return false;
  return std::all_of(inside_.begin(), inside_.end(), [&](int b) {
    return blocks_.blocks[b].padded > wall - height_[lower];
  });
}

PackSearch::Look PackSearch::LookAt(int lower, int upper, Pocket& best,
                                    int64_t& best_height) {
  Collect(lower, upper);
  if (inside_.empty()) {
    return Raise(lower, upper) ? Look::kRaised : Look::kDeadEnd;
  }
  Filter(lower, upper, false, from_left_);
  Filter(lower, upper, true, from_right_);
  if (MayLeaveEmpty(lower, upper)) {
    from_left_.push_back(kLeaveEmpty);
    from_right_.push_back(kLeaveEmpty);
  }
  if (from_left_.empty() || from_right_.empty()) {
    Blame(lower, upper);
    return Look::kDeadEnd;
  }
  const bool from_right = from_right_.size() < from_left_.size();
  std::vector<int>& candidates = from_right ? from_right_ : from_left_;
  if (best.candidates.empty() ||
      std::pair(candidates.size(), height_[lower]) <
          std::pair(best.candidates.size(), best_height)) {
    best.lower = lower;
    best.upper = upper;
    best.from_right = from_right;
    best.candidates.swap(candidates);
    best_height = height_[lower];
  }
  return Look::kPocket;
}

// The pocket to decide next, after raising what no block can use. False: a
// dead end, named by conflict_.
bool PackSearch::Choose(Pocket& best) {
  for (bool again = true; again;) {
    again = false;
    best.candidates.clear();
    int64_t best_height = 0;
    for (int s = 0; s < blocks_.sections && !again;) {
      if (left_[s] == 0) {
        ++s;
        continue;
      }
      const int lower = s;
      while (Open(s) && height_[s] == height_[lower]) ++s;
      if (std::min(Wall(lower - 1), Wall(s)) < height_[lower]) continue;
      const Look look = LookAt(lower, s, best, best_height);
      if (look == Look::kDeadEnd) return false;
      again = look == Look::kRaised;
      if (best.candidates.size() == 1) return true;
    }
  }
  return true;
}

// Undoes this node. A raise that the proof stands on adds what it looked at.
ExactResult PackSearch::Fail(size_t heights, size_t raises) {
  while (raises_log_.size() > raises) {
    const auto [lower, upper] = raises_log_.back();
    raises_log_.pop_back();
    if (conflict_.Meets(lower, upper)) {
      conflict_.Add(std::max(lower - 1, 0),
                    std::min(upper + 1, blocks_.sections));
    }
  }
  Undo(heights);
  return ExactResult::kNone;
}

// [lower, upper) becomes what the choice changed.
ExactResult PackSearch::Try(int b, const Pocket& pocket, int depth, int& lower,
                            int& upper) {
  const PackBlock& block = blocks_.blocks[b];
  const int64_t top = height_[block.lower] + block.padded;
  placed_[b] = true;
  offset_[b] = height_[block.lower];
  --blocks_left_;
  area_left_ -=
      static_cast<double>(block.padded) * static_cast<double>(block.life);
  for (int s = block.lower; s < block.upper; ++s) {
    left_[s] -= block.padded;
    SetHeight(s, top);
  }
  const int gap_lower = pocket.from_right ? block.upper : pocket.lower;
  const int gap_upper = pocket.from_right ? pocket.upper : block.lower;
  const int64_t wall =
      pocket.from_right ? Wall(pocket.upper) : Wall(pocket.lower - 1);
  for (int s = gap_lower; s < gap_upper; ++s) {
    SetHeight(s, std::min(wall, top));  // fits: Filter has looked
  }
  lower = std::min(block.lower, gap_lower);
  upper = std::max(block.upper, gap_upper);
  return Dive(depth + 1);
}

// Raises the pocket without using it.
ExactResult PackSearch::LeaveEmpty(const Pocket& pocket, int depth) {
  const int64_t wall = std::min(Wall(pocket.lower - 1), Wall(pocket.upper));
  bool fits = true;
  for (int s = pocket.lower; s < pocket.upper; ++s) {
    fits = SetHeight(s, wall) && fits;
  }
  if (fits) return Dive(depth + 1);
  Blame(pocket.lower, pocket.upper);
  return ExactResult::kNone;
}

void PackSearch::Undo(size_t heights) {
  while (heights_log_.size() > heights) {
    height_[heights_log_.back().first] = heights_log_.back().second;
    heights_log_.pop_back();
  }
}

void PackSearch::TakeBack(int b) {
  const PackBlock& block = blocks_.blocks[b];
  for (int s = block.lower; s < block.upper; ++s) left_[s] += block.padded;
  placed_[b] = false;
  ++blocks_left_;
  area_left_ +=
      static_cast<double>(block.padded) * static_cast<double>(block.life);
}

ExactResult PackSearch::Dive(int depth) {
  least_left_ = std::min(least_left_, area_left_);
  if (blocks_left_ == 0) return ExactResult::kFound;
  if (++nodes_ > limit_) return ExactResult::kGaveUp;
  const size_t heights = heights_log_.size(), raises = raises_log_.size();
  Pocket pocket;
  if (!Choose(pocket)) return Fail(heights, raises);
  std::sort(
      pocket.candidates.begin(), pocket.candidates.end(), [&](int a, int b) {
        if (a < 0 || b < 0) return b < a;  // an empty pocket last
        return (*keys_)[a] != (*keys_)[b] ? (*keys_)[a] > (*keys_)[b] : a < b;
      });
  const size_t inner = heights_log_.size();
  Blame(pocket.lower, pocket.upper);
  while (static_cast<int>(conflict_at_.size()) <= depth) {
    conflict_at_.emplace_back(blocks_.sections);
  }
  conflict_at_[depth] = conflict_;
  for (int b : pocket.candidates) {
    int lower = pocket.lower, upper = pocket.upper;
    const ExactResult result = b == kLeaveEmpty
                                   ? LeaveEmpty(pocket, depth)
                                   : Try(b, pocket, depth, lower, upper);
    if (result != ExactResult::kNone) return result;
    if (b != kLeaveEmpty) TakeBack(b);
    Undo(inner);
    if (!conflict_.Meets(lower, upper)) return Fail(heights, raises);
    conflict_at_[depth].Add(conflict_);
  }
  conflict_ = conflict_at_[depth];
  return Fail(heights, raises);
}

ExactResult PackSearch::Run(const std::vector<double>& keys, int64_t limit,
                            bool complete) {
  complete_ = complete;
  Restart(keys, limit);
  for (int s = 0; s < blocks_.sections; ++s) {
    if (height_[s] + left_[s] > capacity_) return ExactResult::kNone;
  }
  return Dive(0);
}

}  // namespace loadline::planner
