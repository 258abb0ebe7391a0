// Blocks are placed one after the other at the lowest or the best fitting
// offset that no placed neighbour covers. Improve moves the blocks that end
// above the target forward in the best order and places all blocks again.
// Quadratic, and mostly higher than lowest floor, but it uses the gaps in a
// block's life and the space below fixed blocks. Tested in
// pack_first_fit_test.cc and pack_test.cc.
#include "planner/pack/pack_first_fit.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "planner/base/align.h"

namespace loadline::planner {

PackFirstFit::PackFirstFit(const PackBlocks& blocks, int64_t alignment_bytes,
                           int64_t capacity_bytes, int64_t target_bytes,
                           uint64_t seed, const PackTuning& tuning)
    : blocks_(blocks),
      alignment_(alignment_bytes),
      capacity_(capacity_bytes),
      target_(target_bytes),
      tuning_(tuning),
      random_(seed),
      count_(blocks.blocks.size()),
      base_offset_(count_, -1) {
  StackResidents();
  FindNeighbours();
  for (size_t b = 0; b < count_; ++b) {
    if (blocks.blocks[b].fixed >= 0) base_offset_[b] = blocks.blocks[b].fixed;
    if (base_offset_[b] < 0) free_.push_back(static_cast<int>(b));
  }
}

// Blocks that are alive all the time go to the bottom: no layout is higher for
// it.
void PackFirstFit::StackResidents() {
  for (const PackBlock& block : blocks_.blocks) {
    if (block.fixed >= 0) return;
  }
  for (size_t b = 0; b < count_; ++b) {
    const PackBlock& block = blocks_.blocks[b];
    if (block.items != 1 || block.lower > 0 || block.upper < blocks_.sections) {
      continue;
    }
    base_offset_[b] = floor_;
    floor_ += block.padded;
  }
}

// Sweeps over the starts and pairs each item with those still alive.
void PackFirstFit::FindNeighbours() {
  conflict_.assign(count_ * count_, false);
  std::vector<int> items;
  for (size_t i = 0; i < blocks_.block_of_item.size(); ++i) {
    const int b = blocks_.block_of_item[i];
    if (b >= 0 && base_offset_[b] < 0) items.push_back(static_cast<int>(i));
  }
  std::stable_sort(items.begin(), items.end(), [&](int a, int b) {
    return blocks_.item_sections[a].first < blocks_.item_sections[b].first;
  });
  std::vector<int> alive;
  for (int i : items) {
    const size_t block = blocks_.block_of_item[i];
    std::erase_if(alive, [&](int j) {
      return blocks_.item_sections[j].second <= blocks_.item_sections[i].first;
    });
    for (int j : alive) {
      const size_t other = blocks_.block_of_item[j];
      if (other == block) continue;
      conflict_[block * count_ + other] = true;
      conflict_[other * count_ + block] = true;
    }
    alive.push_back(i);
  }
}

int64_t PackFirstFit::LayOut(const std::vector<int>& order, bool best_fit,
                             PackLayout& best) {
  offset_ = base_offset_;
  placed_.clear();
  int64_t height = 0;
  for (size_t b = 0; b < count_; ++b) {
    if (offset_[b] < 0) continue;
    height = std::max(height, offset_[b] + blocks_.blocks[b].size);
    if (blocks_.blocks[b].fixed >= 0) placed_.push_back(static_cast<int>(b));
  }
  const auto lower = [&](int a, int b) { return offset_[a] < offset_[b]; };
  std::stable_sort(placed_.begin(), placed_.end(), lower);
  for (int b : order) {
    const size_t row = static_cast<size_t>(b) * count_;
    const int64_t need = blocks_.blocks[b].size;
    int64_t end = floor_, chosen = -1;
    int64_t slack = std::numeric_limits<int64_t>::max();
    for (int other : placed_) {
      ++pairs_;
      const int64_t at = offset_[other];
      if (!best_fit && at >= end + need) break;
      if (!conflict_[row + other]) continue;
      if (at - end >= need && at - end < slack) {
        chosen = end;
        slack = at - end;
      }
      end = std::max(end, AlignUp(at + blocks_.blocks[other].size, alignment_));
    }
    offset_[b] = chosen >= 0 ? chosen : end;
    height = std::max(height, offset_[b] + need);
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), b, lower),
                   b);
  }
  if (height < height_) {
    height_ = height;
    best_offset_ = offset_;
    best_order_ = order;
    best_fit_ = best_fit;
  }
  if (height < best.height_bytes) {
    best.height_bytes = height;
    best.offsets = offset_;
  }
  return height;
}

void PackFirstFit::TryRules(PackLayout& best) {
  LayOut(free_, false, best);
  const auto by = [&](auto key) {
    std::vector<int> order = free_;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return key(blocks_.blocks[a]) > key(blocks_.blocks[b]);
    });
    for (bool best_fit : {false, true}) {
      if (best.height_bytes <= target_) return;
      LayOut(order, best_fit, best);
    }
  };
  const auto size = [](const PackBlock& b) {
    return static_cast<double>(b.size);
  };
  const auto life = [](const PackBlock& b) {
    return static_cast<double>(b.alive);
  };
  by(size);
  by([&](const PackBlock& b) { return size(b) * life(b); });
  by(life);
  by([&](const PackBlock& b) {
    return size(b) * std::max(1.0, life(b) / tuning_.short_life);
  });
  by([&](const PackBlock& b) { return -b.lower; });
  by([&](const PackBlock& b) { return b.upper; });
  by([&](const PackBlock& b) { return size(b) * size(b) * life(b); });
}

// Which blocks move and how far is drawn from the seed.
void PackFirstFit::Improve(PackWork& work, PackLayout& best) {
  if (free_.empty()) return;
  std::vector<int> order = best_order_;
  int64_t height = height_;
  std::vector<int64_t> offset = best_offset_;
  int fails = 0;
  while (best.height_bytes > target_ && !work.Done()) {
    const int64_t limit =
        std::max(capacity_, height_ - height_ / tuning_.improve_margin);
    std::vector<int> next = order;
    std::vector<int> high;
    for (int b : order) {
      if (offset[b] + blocks_.blocks[b].size > limit) high.push_back(b);
    }
    if (high.empty()) high.push_back(order[random_() % order.size()]);
    for (int b : high) {
      if (high.size() > 1 && random_() % tuning_.improve_stay == 0) continue;
      const auto from = std::find(next.begin(), next.end(), b);
      const size_t to = random_() % (from - next.begin() + 1);
      std::rotate(next.begin() + static_cast<std::ptrdiff_t>(to), from,
                  from + 1);
    }
    if (fails % tuning_.improve_swap == tuning_.improve_swap - 1) {
      std::swap(next[random_() % next.size()], next[random_() % next.size()]);
    }
    pairs_ = 0;
    const int64_t got = LayOut(next, best_fit_, best);
    work.left -= pairs_;
    if (got <= height || (fails > tuning_.improve_accept &&
                          got < height_ + height_ / tuning_.improve_worse)) {
      fails = got < height ? 0 : fails + 1;
      height = got;
      order = std::move(next);
      offset = offset_;
    } else if (++fails > tuning_.improve_restart) {
      order = best_order_;
      offset = best_offset_;
      height = height_;
      fails = 0;
    }
  }
}

}  // namespace loadline::planner
