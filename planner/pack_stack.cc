// A block that is alive at both ends of the step and not in between (a value
// that is copied out and comes back to its address) leaves a hole, and the
// skyline sees no holes. So such blocks go to the very bottom, as fixed ones,
// above what stays all the time: then a hole is a valley of the skyline
// wherever nothing above it is alive. Those that leave late and come back early
// should lie low. A local search over the order lowers first the most bytes
// that the skyline must reach somewhere, then the valleys' floors. Tested in
// pack_test.cc.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/pack_parts.h"

namespace loadline::planner {
namespace {

constexpr int64_t kOrderWork = 4'000'000;  // sections looked at

class Stacker {
 public:
  explicit Stacker(const PackBlocks& blocks)
      : blocks_(blocks),
        lives_(blocks.blocks.size()),
        left_(blocks.sections, 0) {}

  std::optional<PackBlocks> Stack() {
    FindLives();
    if (Choose() == 0) return std::nullopt;
    Order();
    PackBlocks stacked = blocks_;
    stacked.plain = false;
    int64_t offset = 0;
    for (int b : resident_) Fix(b, offset, stacked);
    for (int b : holed_) Fix(b, offset, stacked);
    return stacked;
  }

 private:
  using Lives = std::vector<std::pair<int, int>>;  // sections, in order

  // By block, joined where they meet.
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

  // Returns how many have holes; 0 also where offsets are given.
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
        for (int s = block.lower; s < block.upper; ++s) {
          left_[s] += block.padded;
        }
      }
    }
    std::stable_sort(holed_.begin(), holed_.end(), [&](int a, int b) {
      return lives_[a].front().second > lives_[b].front().second;
    });
    return holed_.size();
  }

  struct Score {
    int64_t most = 0;  // bytes, of floor and all above it
    double floor = 0;  // byte-sections
    bool operator<(const Score& other) const {
      return std::pair(most, floor) < std::pair(other.most, other.floor);
    }
  };

  Score ScoreOf(const std::vector<int>& order) {
    floor_.assign(blocks_.sections, 0);
    int64_t top = 0;
    for (int b : order) {
      top += blocks_.blocks[b].padded;
      for (const auto& [lower, upper] : lives_[b]) {
        std::fill(floor_.begin() + lower, floor_.begin() + upper, top);
        work_ -= upper - lower;
      }
    }
    Score score;
    for (int s = 0; s < blocks_.sections; ++s) {
      score.most = std::max(score.most, floor_[s] + left_[s]);
      score.floor += static_cast<double>(floor_[s]);
    }
    work_ -= blocks_.sections;
    return score;
  }

  // Moves one block at a time to wherever that is better.
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

  void Fix(int b, int64_t& offset, PackBlocks& stacked) const {
    stacked.blocks[b].fixed = offset;
    offset += blocks_.blocks[b].padded;
    for (const auto& [lower, upper] : lives_[b]) {
      std::fill(stacked.base.begin() + lower, stacked.base.begin() + upper,
                offset);
    }
  }

  const PackBlocks& blocks_;
  std::vector<Lives> lives_;    // by block
  std::vector<int64_t> left_;   // by section: bytes of what is not stacked
  std::vector<int64_t> floor_;  // by section, scratch
  std::vector<int> resident_, holed_;  // from the bottom up
  int64_t work_ = kOrderWork;
};

}  // namespace

std::optional<PackBlocks> StackAround(const PackBlocks& blocks) {
  return Stacker(blocks).Stack();
}

}  // namespace loadline::planner
