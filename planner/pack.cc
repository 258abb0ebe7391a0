// Blocks (items that share an offset) are placed one after the other at the
// lowest or the best fitting offset that no placed neighbour covers. Several
// orders are tried; then the blocks that stick out above the capacity are
// moved forward in the best order and everything is placed again, which is
// what closes the last few percent. Tested in pack_test.cc.
#include "planner/pack.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/model.h"

namespace loadline::planner {
namespace {

struct Block {
  std::vector<int> items;
  int64_t size = 0;      // of its largest item
  int64_t padded = 0;    // rounded up to the alignment
  int64_t lifetime = 0;  // sum over its items
  int64_t lower = 0, upper = 0;
  int64_t fixed = -1;
  bool always = false;  // alive over the whole span, free to lie anywhere
};

class Packer {
 public:
  Packer(const std::vector<PackItem>& items, const PackOptions& options)
      : items_(items), options_(options), random_(options.seed) {}

  absl::StatusOr<std::vector<int64_t>> Pack(PackReport* report);

 private:
  absl::Status Check() const;
  void MakeBlocks();
  void FindNeighbours();
  absl::Status PlaceFixed();
  void StackResidents();
  // Places the free blocks in this order; returns the height.
  int64_t Place(const std::vector<int>& order, bool best_fit);
  void TryOrder(std::vector<int> order);
  void Improve();
  bool Done() const {
    return best_height_ <= options_.capacity_bytes ||
           best_height_ <= lower_bound_ || work_ >= options_.work_limit ||
           (options_.cancel != nullptr && options_.cancel->load());
  }

  const std::vector<PackItem>& items_;
  const PackOptions& options_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  std::map<int64_t, int> block_of_group_;
  // conflict_[a * blocks + b]: alive together somewhere.
  std::vector<bool> conflict_;
  std::vector<int> placed_;  // by offset
  std::vector<int> free_;
  std::vector<int64_t> offset_;  // by block; -1: not placed
  std::vector<int64_t> base_offset_;
  int64_t lower_bound_ = 0;
  int64_t floor_ = 0;
  int64_t work_ = 0;
  std::vector<int64_t> best_offset_;
  std::vector<int> best_order_;
  bool best_fit_ = false;
  int64_t best_height_ = std::numeric_limits<int64_t>::max();
};

absl::Status Packer::Check() const {
  if (options_.alignment_bytes <= 0) {
    return absl::InvalidArgumentError("pack: the alignment must be positive");
  }
  for (const PackItem& item : items_) {
    if (item.size < 0 || item.upper < item.lower || item.fixed_offset < -1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pack: item ", item.id, " has a negative size, lifetime or offset"));
    }
    if (item.fixed_offset > 0 &&
        item.fixed_offset % options_.alignment_bytes != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pack: the fixed offset of item ", item.id,
                       " is not a multiple of ", options_.alignment_bytes));
    }
  }
  return absl::OkStatus();
}

void Packer::MakeBlocks() {
  for (size_t i = 0; i < items_.size(); ++i) {
    const PackItem& item = items_[i];
    if (item.size == 0 || item.upper == item.lower) continue;
    int block = static_cast<int>(blocks_.size());
    if (item.group >= 0) {
      block = block_of_group_.emplace(item.group, block).first->second;
    }
    if (block == static_cast<int>(blocks_.size())) {
      blocks_.push_back({});
      blocks_.back().lower = item.lower;
      blocks_.back().upper = item.upper;
    }
    Block& into = blocks_[block];
    into.items.push_back(static_cast<int>(i));
    into.size = std::max(into.size, item.size);
    into.lifetime += item.upper - item.lower;
    into.lower = std::min(into.lower, item.lower);
    into.upper = std::max(into.upper, item.upper);
    if (item.fixed_offset >= 0) into.fixed = item.fixed_offset;
  }
  for (Block& block : blocks_) {
    block.padded = AlignUp(block.size, options_.alignment_bytes);
  }
}

// Sweeps over the lifetimes' starts with the items still alive.
void Packer::FindNeighbours() {
  conflict_.assign(blocks_.size() * blocks_.size(), false);
  struct Span {
    int64_t lower, upper;
    int block;
  };
  std::vector<Span> spans;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].always) continue;
    for (int i : blocks_[b].items) {
      spans.push_back({items_[i].lower, items_[i].upper, static_cast<int>(b)});
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.lower, a.block) < std::tie(b.lower, b.block);
  });
  std::vector<Span> alive;
  for (const Span& span : spans) {
    size_t kept = 0;
    for (const Span& other : alive) {
      if (other.upper <= span.lower) continue;
      alive[kept++] = other;
      if (other.block == span.block) continue;
      conflict_[span.block * blocks_.size() + other.block] = true;
      conflict_[other.block * blocks_.size() + span.block] = true;
    }
    alive.resize(kept);
    alive.push_back(span);
  }
}

absl::Status Packer::PlaceFixed() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].fixed < 0) continue;
    for (size_t n = 0; n < b; ++n) {
      if (conflict_[b * blocks_.size() + n] && base_offset_[n] >= 0 &&
          base_offset_[n] < blocks_[b].fixed + blocks_[b].size &&
          blocks_[b].fixed < base_offset_[n] + blocks_[n].size) {
        return absl::InvalidArgumentError(absl::StrCat(
            "pack: the fixed offsets of items ", items_[blocks_[b].items[0]].id,
            " and ", items_[blocks_[n].items[0]].id, " collide"));
      }
    }
    base_offset_[b] = blocks_[b].fixed;
  }
  return absl::OkStatus();
}

// What is alive all the time may as well lie at the bottom.
void Packer::StackResidents() {
  int64_t lower = std::numeric_limits<int64_t>::max(), upper = 0;
  for (const Block& block : blocks_) {
    if (block.fixed >= 0) return;
    lower = std::min(lower, block.lower);
    upper = std::max(upper, block.upper);
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].items.size() != 1 || blocks_[b].lower != lower ||
        blocks_[b].upper != upper) {
      continue;
    }
    blocks_[b].always = true;
    base_offset_[b] = floor_;
    floor_ += blocks_[b].padded;
  }
}

int64_t Packer::Place(const std::vector<int>& order, bool best_fit) {
  offset_ = base_offset_;
  placed_.clear();
  int64_t height = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (offset_[b] < 0) continue;
    height = std::max(height, offset_[b] + blocks_[b].size);
    if (!blocks_[b].always) placed_.push_back(static_cast<int>(b));
  }
  const auto lower = [&](int a, int b) { return offset_[a] < offset_[b]; };
  std::sort(placed_.begin(), placed_.end(), lower);
  for (int b : order) {
    const size_t row = static_cast<size_t>(b) * blocks_.size();
    const int64_t need = blocks_[b].padded;
    int64_t end = floor_, chosen = -1;
    int64_t slack = std::numeric_limits<int64_t>::max();
    for (int other : placed_) {
      ++work_;
      const int64_t at = offset_[other];
      if (!best_fit && at >= end + need) break;
      if (!conflict_[row + other]) continue;
      if (at - end >= need && at - end < slack) {
        chosen = end;
        slack = at - end;
      }
      end = std::max(
          end, AlignUp(at + blocks_[other].size, options_.alignment_bytes));
    }
    offset_[b] = chosen >= 0 ? chosen : end;
    height = std::max(height, offset_[b] + blocks_[b].size);
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), b, lower),
                   b);
  }
  if (height < best_height_) {
    best_height_ = height;
    best_offset_ = offset_;
    best_order_ = order;
    best_fit_ = best_fit;
  }
  return height;
}

void Packer::TryOrder(std::vector<int> order) {
  for (bool best_fit : {false, true}) {
    if (best_height_ > std::max(options_.capacity_bytes, lower_bound_)) {
      Place(order, best_fit);
    }
  }
}

// Blocks that stick out move forward; ties and distances are drawn.
void Packer::Improve() {
  std::vector<int> order = best_order_;
  int64_t height = best_height_;
  std::vector<int64_t> offset = best_offset_;
  std::vector<int> at(blocks_.size());
  int fails = 0;
  while (!Done()) {
    const int64_t limit =
        std::max(options_.capacity_bytes, best_height_ - best_height_ / 64);
    std::vector<int> next = order;
    for (size_t i = 0; i < next.size(); ++i) at[next[i]] = static_cast<int>(i);
    std::vector<int> high;
    for (int b : order) {
      if (offset[b] + blocks_[b].size > limit) high.push_back(b);
    }
    if (high.empty()) high.push_back(order[random_() % order.size()]);
    for (int b : high) {
      if (high.size() > 1 && random_() % 4 == 0) continue;
      const int from = static_cast<int>(std::find(next.begin(), next.end(), b) -
                                        next.begin());
      const int to = static_cast<int>(random_() % (from + 1));
      next.erase(next.begin() + from);
      next.insert(next.begin() + to, b);
    }
    if (fails % 3 == 2) {
      std::swap(next[random_() % next.size()], next[random_() % next.size()]);
    }
    const int64_t got = Place(next, best_fit_);
    // A little worse is accepted now and then: plateaus are wide.
    if (got <= height ||
        (fails > 20 && got < best_height_ + best_height_ / 50)) {
      fails = got < height ? 0 : fails + 1;
      height = got;
      order = std::move(next);
      offset = offset_;
    } else if (++fails > 60) {
      order = best_order_;
      offset = best_offset_;
      height = best_height_;
      fails = 0;
    }
  }
}

absl::StatusOr<std::vector<int64_t>> Packer::Pack(PackReport* report) {
  if (absl::Status status = Check(); !status.ok()) return status;
  lower_bound_ = PackLowerBound(items_);
  MakeBlocks();
  base_offset_.assign(blocks_.size(), -1);
  StackResidents();
  FindNeighbours();
  if (absl::Status status = PlaceFixed(); !status.ok()) return status;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (base_offset_[b] < 0) free_.push_back(static_cast<int>(b));
  }
  Place(free_, false);
  const auto by = [&](auto key) {
    std::vector<int> order = free_;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return key(a) > key(b); });
    TryOrder(std::move(order));
  };
  const auto size = [&](int b) { return static_cast<double>(blocks_[b].size); };
  const auto life = [&](int b) {
    return static_cast<double>(blocks_[b].lifetime);
  };
  by([&](int b) { return size(b); });
  by([&](int b) { return size(b) * life(b); });
  by([&](int b) { return life(b); });
  by([&](int b) { return size(b) * std::max(1.0, life(b) / 16); });
  by([&](int b) { return -static_cast<double>(blocks_[b].lower); });
  by([&](int b) { return static_cast<double>(blocks_[b].upper); });
  by([&](int b) { return size(b) * size(b) * life(b); });
  work_ = 0;
  if (!free_.empty()) Improve();
  std::vector<int64_t> offsets(items_.size(), 0);
  if (report != nullptr) {
    report->height_bytes = best_height_;
    report->lower_bound_bytes = lower_bound_;
  }
  int64_t top = -1;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    for (int i : blocks_[b].items) offsets[i] = best_offset_[b];
    if (report != nullptr && best_offset_[b] + blocks_[b].size > top) {
      top = best_offset_[b] + blocks_[b].size;
      report->tallest_lower = blocks_[b].lower;
      report->tallest_upper = blocks_[b].upper;
    }
  }
  // Items without bytes or lifetime conflict with nothing but keep their
  // group's offset.
  for (size_t i = 0; i < items_.size(); ++i) {
    const PackItem& item = items_[i];
    if (item.size != 0 && item.upper != item.lower) continue;
    if (item.fixed_offset >= 0) offsets[i] = item.fixed_offset;
    const auto block = block_of_group_.find(item.group);
    if (item.group >= 0 && block != block_of_group_.end()) {
      offsets[i] = best_offset_[block->second];
    }
  }
  if (report != nullptr) report->offsets = offsets;
  if (best_height_ > options_.capacity_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pack: the best layout found is ", best_height_, " bytes high, ",
        best_height_ - options_.capacity_bytes, " above the capacity of ",
        options_.capacity_bytes, "; at least ", lower_bound_, " are needed"));
  }
  return offsets;
}

}  // namespace

int64_t PackLowerBound(const std::vector<PackItem>& items) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const PackItem& item : items) {
    if (item.size <= 0 || item.upper <= item.lower) continue;
    changes.emplace_back(item.lower, item.size);
    changes.emplace_back(item.upper, -item.size);
  }
  std::sort(changes.begin(), changes.end());  // ends before starts
  int64_t alive = 0, most = 0;
  for (const auto& [position, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

absl::StatusOr<std::vector<int64_t>> Pack(const std::vector<PackItem>& items,
                                          const PackOptions& options,
                                          PackReport* report) {
  return Packer(items, options).Pack(report);
}

}  // namespace loadline::planner
