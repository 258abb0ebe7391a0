// See search_memory.h. Tested in search_memory_test.cc.
#include "planner/search/search_memory.h"

#include <algorithm>

namespace loadline::planner {
namespace {

constexpr size_t kFewChanges = 24;
constexpr int kBlockSlots = 64;

}  // namespace

void SearchMemory::Reset(int slots) {
  bytes_.assign(slots, 0);
  ranges_.assign((slots + kBlockSlots - 1) / kBlockSlots, {});
  changes_.clear();
  Drop();
}

void SearchMemory::SetTarget(double target_bytes) {
  target_ = target_bytes;
  excess_area_ = 0;
  for (double bytes : bytes_) excess_area_ += std::max(0.0, bytes - target_);
}

void SearchMemory::Settle() {
  std::vector<double> rise(bytes_.size() + 1, 0);
  for (const Change& change : changes_) rise[change.slot] += change.bytes;
  double level = 0;
  for (size_t s = 0; s < bytes_.size(); ++s) bytes_[s] += level += rise[s];
  ranges_.assign(ranges_.size(), {});
  Drop();
  SetTarget(target_);
}

const SearchMemory::Range& SearchMemory::RangeOf(int block) {
  Range& range = ranges_[block];
  if (range.known) return range;
  const int lower = block * kBlockSlots;
  const int upper =
      std::min(lower + kBlockSlots, static_cast<int>(bytes_.size()));
  range = {bytes_[lower], bytes_[lower], true};
  for (int s = lower + 1; s < upper; ++s) {
    range.least = std::min(range.least, bytes_[s]);
    range.most = std::max(range.most, bytes_[s]);
  }
  return range;
}

// The growth of the excess area if [lower, upper) gets so many bytes more.
double SearchMemory::AreaOver(int lower, int upper, double bytes) {
  double excess_area = 0;
  int open = lower;  // slots from here to the block are not counted yet
  const int first = (lower + kBlockSlots - 1) / kBlockSlots;
  for (int block = first; (block + 1) * kBlockSlots <= upper; ++block) {
    const Range& range = RangeOf(block);
    const bool below = std::max(range.most, range.most + bytes) <= target_;
    const bool above = std::min(range.least, range.least + bytes) >= target_;
    if (!below && !above) continue;
    excess_area += AreaWithin(open, block * kBlockSlots, bytes);
    if (above) excess_area += bytes * kBlockSlots;
    open = (block + 1) * kBlockSlots;
  }
  return excess_area + AreaWithin(open, upper, bytes);
}

// The same, slot by slot.
double SearchMemory::AreaWithin(int lower, int upper, double bytes) const {
  typedef double Pair __attribute__((vector_size(16), aligned(8)));
  const double* mem = bytes_.data();
  const Pair target = {target_, target_};
  const Pair lifted = {target_ - bytes, target_ - bytes};
  const Pair zero = {0, 0};
  Pair sum[2] = {zero, zero};
  int s = lower;
  for (; s + 4 <= upper; s += 4) {
    for (int half = 0; half < 2; ++half) {
      const Pair at = *reinterpret_cast<const Pair*>(mem + s + 2 * half);
      const Pair now = at - lifted, old = at - target;
      sum[half] += (now > zero ? now : zero) - (old > zero ? old : zero);
    }
  }
  double total = sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1];
  for (; s < upper; ++s) {
    total += std::max(0.0, mem[s] + bytes - target_) -
             std::max(0.0, mem[s] - target_);
  }
  return total;
}

void SearchMemory::SortChanges() {
  if (changes_.size() > kFewChanges) {
    std::sort(changes_.begin(), changes_.end(),
              [](const Change& a, const Change& b) { return a.slot < b.slot; });
    return;
  }
  for (size_t i = 1; i < changes_.size(); ++i) {
    const Change change = changes_[i];
    size_t at = i;
    for (; at > 0 && changes_[at - 1].slot > change.slot; --at) {
      changes_[at] = changes_[at - 1];
    }
    changes_[at] = change;
  }
}

void SearchMemory::MergeChanges() {
  if (merged_) return;
  merged_ = true;
  SortChanges();
  size_t kept = 0;
  for (size_t i = 0; i < changes_.size(); ++i) {
    if (kept > 0 && changes_[kept - 1].slot == changes_[i].slot) {
      changes_[kept - 1].bytes += changes_[i].bytes;
    } else {
      changes_[kept++] = changes_[i];
    }
    if (changes_[kept - 1].bytes == 0 &&
        (i + 1 == changes_.size() ||
         changes_[i + 1].slot != changes_[i].slot)) {
      --kept;
    }
  }
  changes_.resize(kept);
  area_change_ = 0;
  double bytes = 0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    bytes += changes_[i].bytes;
    if (bytes == 0) continue;
    area_change_ += AreaOver(changes_[i].slot, changes_[i + 1].slot, bytes);
  }
}

double SearchMemory::excess_area() {
  MergeChanges();
  return excess_area_ + area_change_;
}

bool SearchMemory::Exceeds(double most_bytes) {
  MergeChanges();
  double bytes = 0;
  for (size_t i = 0; i + 1 < changes_.size(); ++i) {
    bytes += changes_[i].bytes;
    if (bytes > 0 &&
        AnyAbove(changes_[i].slot, changes_[i + 1].slot, most_bytes - bytes)) {
      return true;
    }
  }
  return false;
}

double SearchMemory::FreedArea(int lower, int upper, double bytes) {
  MergeChanges();
  double freed = 0, pending = 0;
  int open = lower;  // slots from here on are not counted yet
  const auto count_to = [&](int end) {
    end = std::min(end, upper);
    if (end <= open) return;
    freed -= AreaOver(open, end, pending - bytes);
    if (pending != 0) freed += AreaOver(open, end, pending);
    open = end;
  };
  for (const Change& change : changes_) {
    count_to(change.slot);
    pending += change.bytes;
  }
  count_to(upper);
  return freed;
}

// Whether a committed slot of [lower, upper) has more.
bool SearchMemory::AnyAbove(int lower, int upper, double most_bytes) {
  for (int s = lower; s < upper; ++s) {
    const int block = s / kBlockSlots, end = (block + 1) * kBlockSlots;
    if (s % kBlockSlots == 0 && end <= upper) {
      if (RangeOf(block).most > most_bytes) return true;
      s = end - 1;
    } else if (bytes_[s] > most_bytes) {
      return true;
    }
  }
  return false;
}

double SearchMemory::PeakBytes() const {
  std::vector<double> rise(bytes_.size() + 1, 0);
  for (const Change& change : changes_) rise[change.slot] += change.bytes;
  double peak = 0, level = 0;
  for (size_t s = 0; s < bytes_.size(); ++s) {
    level += rise[s];
    peak = std::max(peak, bytes_[s] + level);
  }
  return peak;
}

// The changes from `first` on remove the old lifetimes of a value, those from
// `second` on add the new ones, both in slot order. Most lifetimes are the
// same, so opposite changes are removed from both ends.
void SearchMemory::Cancel(size_t first, size_t second) {
  const auto opposite = [this](size_t a, size_t b) {
    return changes_[a].slot == changes_[b].slot &&
           changes_[a].bytes == -changes_[b].bytes;
  };
  size_t old_lower = first, old_upper = second;
  size_t new_lower = second, new_upper = changes_.size();
  while (old_lower < old_upper && new_lower < new_upper &&
         opposite(old_lower, new_lower)) {
    ++old_lower;
    ++new_lower;
  }
  while (old_lower < old_upper && new_lower < new_upper &&
         opposite(old_upper - 1, new_upper - 1)) {
    --old_upper;
    --new_upper;
  }
  size_t kept = first;
  for (size_t i = old_lower; i < old_upper; ++i) changes_[kept++] = changes_[i];
  for (size_t i = new_lower; i < new_upper; ++i) changes_[kept++] = changes_[i];
  changes_.resize(kept);
}

void SearchMemory::Lift(int lower, int upper, double bytes) {
  for (int s = lower; s < upper; ++s) bytes_[s] += bytes;
  for (int b = lower / kBlockSlots; b * kBlockSlots < upper; ++b) {
    Range& range = ranges_[b];
    range.least += bytes;
    range.most += bytes;
    range.known = range.known && lower <= b * kBlockSlots &&
                  upper >= (b + 1) * kBlockSlots;
  }
}

void SearchMemory::Commit() {
  MergeChanges();
  double bytes = 0;
  for (size_t i = 0; i + 1 < changes_.size(); ++i) {
    bytes += changes_[i].bytes;
    if (bytes != 0) Lift(changes_[i].slot, changes_[i + 1].slot, bytes);
  }
  excess_area_ += area_change_;
  Drop();
}

void SearchMemory::Drop() {
  changes_.clear();
  area_change_ = 0;
  merged_ = true;
}

// The first, if there are several.
int SearchMemory::PeakSlot() {
  int highest = 0;
  for (size_t b = 1; b < ranges_.size(); ++b) {
    const int block = static_cast<int>(b);
    if (RangeOf(block).most > RangeOf(highest).most) highest = block;
  }
  int slot = highest * kBlockSlots;
  while (bytes_[slot] < RangeOf(highest).most) ++slot;
  return slot;
}

}  // namespace loadline::planner
