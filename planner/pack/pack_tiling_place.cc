// Offsets of a tiling, from the end of time to its start. Blocks that were
// exchanged for a run without holes get that run's bytes. Where the run has no
// such place, because what is known of the neighbours was wrong, they fill the
// gaps between the blocks that stay: exactly, if some of them do, otherwise the
// smallest gap that has room. So a mistake ends with the blocks that it is
// about. Tested in pack_tiling_test.cc.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "planner/pack/pack_tiling.h"
#include "planner/pack/zero_sums.h"

namespace loadline::planner {
namespace {

class BackwardPlacer {
 public:
  BackwardPlacer(const TilingEvents& events,
                 std::vector<TilingExchange>& exchanges,
                 const PackTuning& tuning, int64_t& work)
      : events_(events),
        exchanges_(exchanges),
        tuning_(tuning),
        work_(work),
        offsets_(events.bytes.size(), -1) {}

  std::vector<int64_t> Place(const std::vector<int>& last) {
    PutInRow(last, 0);
    for (size_t end = exchanges_.size(); end > 0;) {
      size_t begin = end;
      while (begin > 0 &&
             exchanges_[begin - 1].event == exchanges_[end - 1].event) {
        --begin;
      }
      PlaceEvent(begin, end);
      end = begin;
    }
    return std::move(offsets_);
  }

 private:
  void PutInRow(const std::vector<int>& blocks, int64_t offset) {
    for (int b : blocks) {
      offsets_[b] = offset;
      live_.emplace(offset, b);
      offset += events_.bytes[b];
    }
  }

  void Put(PqTree::Replaced& replaced, int64_t offset) {
    const int neighbor = replaced.neighbor;
    if (neighbor >= 0 && offsets_[neighbor] >= 0 &&
        (offsets_[neighbor] < offset) != replaced.neighbor_is_before) {
      std::reverse(replaced.order.begin(), replaced.order.end());
    }
    PutInRow(replaced.order, offset);
  }

  // Where the blocks lie, if in one piece of so many bytes; else -1.
  int64_t Piece(const std::vector<int>& blocks, int64_t bytes) const {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int b : blocks) {
      if (offsets_[b] < 0) return -1;
      pieces.emplace_back(offsets_[b], events_.bytes[b]);
    }
    if (pieces.empty()) return -1;
    std::sort(pieces.begin(), pieces.end());
    int64_t end = pieces[0].first;
    for (const auto& [offset, size] : pieces) {
      if (offset != end) return -1;
      end += size;
    }
    return end - pieces[0].first == bytes ? pieces[0].first : -1;
  }

  int64_t Bytes(size_t exchange) const {
    return events_.Bytes(exchanges_[exchange].replaced.order);
  }

  void PlaceEvent(size_t begin, size_t end) {
    for (int b : events_.starts[exchanges_[begin].event]) {
      if (offsets_[b] >= 0) live_.erase({offsets_[b], b});
    }
    std::vector<size_t> open;
    for (size_t i = end; i-- > begin;) {
      const int64_t offset = Piece(exchanges_[i].by, Bytes(i));
      if (offset >= 0) {
        Put(exchanges_[i].replaced, offset);
      } else {
        open.push_back(i);
      }
    }
    if (open.empty()) return;
    FindGaps();
    std::stable_sort(open.begin(), open.end(),
                     [&](size_t a, size_t b) { return Bytes(a) > Bytes(b); });
    std::erase_if(open, [&](size_t i) {
      const auto gap = gaps_.find(Bytes(i));
      if (gap == gaps_.end()) return false;
      Put(exchanges_[i].replaced, gap->second);
      gaps_.erase(gap);
      return true;
    });
    FillGaps(open);
    PutInSmallestGaps(open);
  }

  void FindGaps() {
    gaps_.clear();
    int64_t end = 0;
    for (const auto& [offset, b] : live_) {
      if (offset > end) gaps_.emplace(offset - end, end);
      end = std::max(end, offset + events_.bytes[b]);
    }
    if (end < events_.height_bytes) {
      gaps_.emplace(events_.height_bytes - end, end);
    }
    work_ -= static_cast<int64_t>(live_.size());
  }

  // Blocks of whatever exchange whose bytes are together those of a gap.
  void FillGaps(const std::vector<size_t>& open) {
    std::vector<int> blocks;
    for (size_t i : open) {
      const std::vector<int>& order = exchanges_[i].replaced.order;
      blocks.insert(blocks.end(), order.begin(), order.end());
    }
    while (!blocks.empty() && !gaps_.empty() && FillOneGap(blocks)) {
    }
    for (size_t i : open) {
      std::erase_if(exchanges_[i].replaced.order,
                    [&](int b) { return offsets_[b] >= 0; });
    }
  }

  bool FillOneGap(std::vector<int>& blocks) {
    const int count = static_cast<int>(blocks.size());
    std::vector<int64_t> values;
    for (int b : blocks) values.push_back(events_.bytes[b]);
    std::vector<std::multimap<int64_t, int64_t>::iterator> gaps;
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      gaps.push_back(gap);
      values.push_back(-gap->first);
    }
    int64_t looked = 0;
    const std::vector<ZeroSum> sums = FindZeroSums(values, tuning_, looked);
    work_ -= looked;
    for (const ZeroSum& sum : sums) {
      // Members are in ascending order: blocks, then gaps.
      if (sum.members.size() < 2 || sum.members.back() < count ||
          sum.members[sum.members.size() - 2] >= count) {
        continue;
      }
      std::vector<int> row;
      for (int m : sum.members) {
        if (m < count) row.push_back(blocks[m]);
      }
      const auto gap = gaps[sum.members.back() - count];
      PutInRow(row, gap->second);
      gaps_.erase(gap);
      for (int b : row) std::erase(blocks, b);
      return true;
    }
    return false;
  }

  // Of the smallest gap with room; -1: there is none.
  int64_t TakeGap(int64_t bytes) {
    const auto gap = gaps_.lower_bound(bytes);
    if (gap == gaps_.end()) return -1;
    const auto [room, offset] = *gap;
    gaps_.erase(gap);
    if (room > bytes) gaps_.emplace(room - bytes, offset + bytes);
    return offset;
  }

  // Neighbours together where possible.
  void PutInSmallestGaps(const std::vector<size_t>& open) {
    std::vector<int> single;
    for (size_t i : open) {
      PqTree::Replaced& replaced = exchanges_[i].replaced;
      if (replaced.order.empty()) continue;
      const int64_t offset = TakeGap(Bytes(i));
      if (offset >= 0) {
        Put(replaced, offset);
      } else {
        single.insert(single.end(), replaced.order.begin(),
                      replaced.order.end());
      }
    }
    std::stable_sort(single.begin(), single.end(), [&](int a, int b) {
      return events_.bytes[a] > events_.bytes[b];
    });
    for (int b : single) {
      const int64_t offset = TakeGap(events_.bytes[b]);
      if (offset >= 0) PutInRow({b}, offset);
    }
  }

  const TilingEvents& events_;
  std::vector<TilingExchange>& exchanges_;
  const PackTuning& tuning_;
  int64_t& work_;
  std::vector<int64_t> offsets_;
  std::set<std::pair<int64_t, int>> live_;  // offset, block
  std::multimap<int64_t, int64_t> gaps_;    // bytes, offset
};

// Moves smaller blocks out of the way of larger ones.
class HoleFiller {
 public:
  HoleFiller(const PackBlocks& blocks, int64_t height_bytes,
             const PackTuning& tuning, PackWork& work,
             std::vector<int64_t>& offsets)
      : blocks_(blocks.blocks),
        height_(height_bytes),
        tuning_(tuning),
        work_(work),
        offsets_(offsets) {}

  void Fill() {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (offsets_[b] < 0) Open(static_cast<int>(b));
    }
    for (int tries = 0; !open_.empty(); ++tries) {
      const int block = open_.begin()->second;
      open_.erase(open_.begin());
      FindNear(block);
      const int64_t offset =
          tries < tuning_.most_evictions && !work_.Done() ? Best(block) : -1;
      if (offset < 0) {
        offsets_[block] = Lowest(block);
        continue;
      }
      for (int other : near_) {
        if (offsets_[other] >= offset + Bytes(block)) break;
        if (offsets_[other] + Bytes(other) > offset) Open(other);
      }
      offsets_[block] = offset;
    }
  }

 private:
  int64_t Bytes(int block) const { return blocks_[block].padded; }

  void Open(int block) {
    offsets_[block] = -1;
    open_.emplace(-Bytes(block), block);
  }

  // Blocks with an offset that are alive together with this one, by offset.
  void FindNear(int block) {
    near_.clear();
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (offsets_[b] >= 0 && blocks_[b].lower < blocks_[block].upper &&
          blocks_[block].lower < blocks_[b].upper) {
        near_.push_back(static_cast<int>(b));
      }
    }
    std::sort(near_.begin(), near_.end(), [&](int a, int b) {
      return std::pair(offsets_[a], a) < std::pair(offsets_[b], b);
    });
    work_.left -= static_cast<int64_t>(blocks_.size());
  }

  // Below the height, where the largest block in the way is smallest, and
  // smaller than this one; -1: nowhere.
  int64_t Best(int block) const {
    const int64_t bytes = Bytes(block);
    std::vector<int64_t> candidates = {0, height_ - bytes};
    std::vector<int64_t> ends;  // the highest so far
    for (int other : near_) {
      const int64_t end = offsets_[other] + Bytes(other);
      candidates.push_back(end);
      candidates.push_back(offsets_[other] - bytes);
      ends.push_back(std::max(end, ends.empty() ? 0 : ends.back()));
    }
    int64_t best = -1;
    std::pair<int64_t, double> least = {bytes, 0};  // largest, area
    for (int64_t offset : candidates) {
      if (offset < 0 || offset + bytes > height_) continue;
      std::pair<int64_t, double> cost = {0, 0};
      const auto first = std::upper_bound(ends.begin(), ends.end(), offset);
      for (size_t i = first - ends.begin(); i < near_.size(); ++i) {
        const int other = near_[i];
        if (offsets_[other] >= offset + bytes || cost >= least) break;
        if (offsets_[other] + Bytes(other) <= offset) continue;
        cost.first = std::max(cost.first, Bytes(other));
        cost.second += static_cast<double>(Bytes(other)) *
                       static_cast<double>(blocks_[other].life);
      }
      if (cost >= least) continue;
      least = cost;
      best = offset;
    }
    return best;
  }

  int64_t Lowest(int block) const {
    int64_t end = 0;
    for (int other : near_) {
      if (offsets_[other] - end >= Bytes(block)) break;
      end = std::max(end, offsets_[other] + Bytes(other));
    }
    return end;
  }

  const std::vector<PackBlock>& blocks_;
  const int64_t height_;
  const PackTuning& tuning_;
  PackWork& work_;
  std::vector<int64_t>& offsets_;
  std::set<std::pair<int64_t, int>> open_;  // bytes, negative, and block
  std::vector<int> near_;
};

}  // namespace

std::vector<int64_t> PlaceBackwards(const TilingEvents& events,
                                    std::vector<TilingExchange>& exchanges,
                                    const std::vector<int>& last,
                                    const PackTuning& tuning, int64_t& work) {
  return BackwardPlacer(events, exchanges, tuning, work).Place(last);
}

void FillHoles(const PackBlocks& blocks, int64_t height_bytes,
               const PackTuning& tuning, PackWork& work,
               std::vector<int64_t>& offsets) {
  HoleFiller(blocks, height_bytes, tuning, work, offsets).Fill();
}

}  // namespace loadline::planner
