// A block that is alive at both ends of the step but not in between has a hole:
// a value that is copied out and returns to its address. The lowest-floor rule
// treats holes as solid. So blocks with holes are fixed at the bottom, above
// blocks that are alive all the time; each hole is then a valley of the
// skyline. Blocks that leave late and return early should lie lowest. A local
// search over their order first lowers the highest section (fixed bytes plus
// all other bytes alive there), then the sum of the valley floors. Tested in
// pack_stack_test.cc.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "planner/pack/pack_parts.h"

namespace loadline::planner {
namespace {

class Stacker {
 public:
  Stacker(const PackBlocks& blocks, const PackTuning& tuning)
      : blocks_(blocks),
        lives_(blocks.blocks.size()),
        left_(blocks.sections, 0),
        work_(tuning.stack_order_work) {}

  std::optional<PackBlocks> Stack() {
    FindLives();
    if (Choose() == 0) return std::nullopt;
    Order();
    PackBlocks stacked = blocks_;
    stacked.plain = false;
    const int64_t offset = Fix(resident_, 0, stacked);
    FillFloor(holed_, offset);
    stacked.base = floor_;
    Fix(holed_, offset, stacked);
    return stacked;
  }

 private:
  using Lives = std::vector<std::pair<int, int>>;  // sections, in order

  // Lives of each block, joined where they meet.
  void FindLives() {
    for (size_t i = 0; i < blocks_.block_of_item.size(); ++i) {
      const int b = blocks_.block_of_item[i];
      if (b >= 0) lives_[b].push_back(blocks_.item_sections[i]);
    }
    for (Lives& lives : lives_) {
      std::sort(lives.begin(), lives.end());
      size_t kept = 0;
      for (size_t i = 1; i < lives.size(); ++i) {
        if (lives[i].first <= lives[kept].second) {
          lives[kept].second = std::max(lives[kept].second, lives[i].second);
        } else {
          lives[++kept] = lives[i];
        }
      }
      lives.resize(std::min(lives.size(), kept + 1));
    }
  }

  // Sorts the blocks by kind and returns how many have holes; 0 also if some
  // offset is given. `left_` collects changes first and is summed up once,
  // because many blocks live long.
  size_t Choose() {
    for (size_t b = 0; b < lives_.size(); ++b) {
      const PackBlock& block = blocks_.blocks[b];
      if (block.fixed >= 0) return 0;
      const bool around = block.lower == 0 && block.upper == blocks_.sections;
      if (around && lives_[b].size() == 1) {
        resident_.push_back(static_cast<int>(b));
      } else if (around) {
        holed_.push_back(static_cast<int>(b));
      } else {
        left_[block.lower] += block.padded;
        if (block.upper < blocks_.sections) left_[block.upper] -= block.padded;
      }
    }
    std::partial_sum(left_.begin(), left_.end(), left_.begin());
    for (int b : holed_) {
      for (const auto& [lower, upper] : lives_[b]) alive_ += upper - lower;
    }
    std::stable_sort(holed_.begin(), holed_.end(), [&](int a, int b) {
      return lives_[a].front().second > lives_[b].front().second;
    });
    return holed_.size();
  }

  struct Score {
    int64_t most = 0;  // bytes: highest floor plus all other bytes alive
    double floor = 0;  // bytes x sections
    bool operator<(const Score& other) const {
      return std::pair(most, floor) < std::pair(other.most, other.floor);
    }
  };

  // Sets floor_: the height of these blocks in each section, stacked in this
  // order from `bottom` on. From the top down, so that each section is written
  // once.
  void FillFloor(const std::vector<int>& order, int64_t bottom) {
    floor_.assign(blocks_.sections, bottom);
    unfilled_.resize(blocks_.sections + 1);
    std::iota(unfilled_.begin(), unfilled_.end(), 0);
    int64_t top = bottom;
    for (int b : order) top += blocks_.blocks[b].padded;
    for (size_t i = order.size(); i-- > 0;) {
      for (const auto& [lower, upper] : lives_[order[i]]) {
        for (int s = Unfilled(lower); s < upper; s = Unfilled(s)) {
          floor_[s] = top;
          unfilled_[s] = s + 1;
        }
      }
      top -= blocks_.blocks[order[i]].padded;
    }
  }

  // The first section from `s` on that is not filled (union-find).
  int Unfilled(int s) {
    while (unfilled_[s] != s) s = unfilled_[s] = unfilled_[unfilled_[s]];
    return s;
  }

  Score ScoreOf(const std::vector<int>& order) {
    FillFloor(order, 0);
    Score score;
    for (int s = 0; s < blocks_.sections; ++s) {
      score.most = std::max(score.most, floor_[s] + left_[s]);
      score.floor += static_cast<double>(floor_[s]);
    }
    work_ -= alive_ + blocks_.sections;
    return score;
  }

  // Moves one block at a time while that lowers the score.
  void Order() {
    Score best = ScoreOf(holed_);
    for (bool again = true; again;) {
      again = false;
      for (size_t from = 0; from < holed_.size(); ++from) {
        for (size_t to = 0; to < holed_.size(); ++to) {
          if (work_ <= 0) return;
          std::vector<int> next = holed_;
          const int b = next[from];
          next.erase(next.begin() + static_cast<std::ptrdiff_t>(from));
          next.insert(next.begin() + static_cast<std::ptrdiff_t>(to), b);
          const Score score = ScoreOf(next);
          if (!(score < best)) continue;
          best = score;
          holed_ = std::move(next);
          again = true;
        }
      }
    }
  }

  // Fixes the blocks from `offset` on; returns where they end.
  int64_t Fix(const std::vector<int>& blocks, int64_t offset,
              PackBlocks& stacked) const {
    for (int b : blocks) {
      stacked.blocks[b].fixed = offset;
      offset += blocks_.blocks[b].padded;
    }
    return offset;
  }

  const PackBlocks& blocks_;
  std::vector<Lives> lives_;    // by block
  std::vector<int64_t> left_;   // by section: bytes of what is not stacked
  int64_t alive_ = 0;           // sections, of those with holes together
  std::vector<int64_t> floor_;  // by section, see FillFloor
  std::vector<int> unfilled_;   // by section, see Unfilled
  std::vector<int> resident_, holed_;  // from the bottom up
  int64_t work_;
};

}  // namespace

std::optional<PackBlocks> StackAround(const PackBlocks& blocks,
                                      const PackTuning& tuning) {
  return Stacker(blocks, tuning).Stack();
}

}  // namespace loadline::planner
