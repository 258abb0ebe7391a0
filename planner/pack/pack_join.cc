// In a layout without holes, a block starts where another has just ended. If
// only one block of some size ends at a section and only one starts, the second
// probably takes the first one's place: joined, they are one block with a
// longer life. Two blocks of the same life, stacked, are one block with more
// bytes. Joined blocks may match again. A layout that was cut from one
// rectangle, cut by cut, is put together again in this way; of a layout with
// few holes little is left to search. Tested in pack_join_test.cc.
#include "planner/pack/pack_join.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace loadline::planner {
namespace {

class Joiner {
 public:
  Joiner(const PackBlocks& apart, const PackTuning& tuning)
      : apart_(apart),
        tuning_(tuning),
        ends_at_(apart.sections + 1, 0),
        starts_at_(apart.sections + 1, 0) {
    shapes_.reserve(2 * apart.blocks.size());
    for (const PackBlock& block : apart.blocks) {
      shapes_.push_back({block});
      unit_bytes_ = std::gcd(unit_bytes_, block.padded);
    }
  }

  PackJoined Join() {
    for (size_t b = 0; b < apart_.blocks.size(); ++b) {
      if (apart_.blocks[b].fixed < 0) Add(static_cast<int>(b));
    }
    Chain();
    const int64_t most_looks =
        tuning_.looks_per_block * static_cast<int64_t>(apart_.blocks.size());
    for (double doubt = tuning_.least_doubt; !shared_.empty() &&
                                             doubt < tuning_.most_doubt &&
                                             looks_ < most_looks;) {
      if (!StackWithin(doubt)) doubt *= 2;
    }
    return Result();
  }

 private:
  using Life = std::pair<int, int>;
  // Blocks of one padded size that end, or start, at a section.
  using Corner = std::pair<int, int64_t>;

  struct Shape {
    PackBlock block;
    int first = -1, second = -1;  // what it was joined from; -1: nothing
    bool stacked = false;         // the second lies on the first
    bool joined = false;          // part of another
  };

  void Add(int id) {
    const PackBlock& block = shapes_[id].block;
    std::vector<int>& same = of_life_[Life(block.lower, block.upper)];
    same.push_back(id);
    if (same.size() == 2) {
      shared_.emplace(block.lower, block.upper);
      shared_from_end_.emplace(block.upper, block.lower);
    }
    ends_[{block.upper, block.padded}].push_back(id);
    starts_[{block.lower, block.padded}].push_back(id);
    ++ends_at_[block.upper];
    ++starts_at_[block.lower];
    MarkChanged(block);
  }

  void Remove(int id) {
    const PackBlock& block = shapes_[id].block;
    std::vector<int>& same = of_life_[Life(block.lower, block.upper)];
    std::erase(same, id);
    if (same.size() == 1) {
      shared_.erase(Life(block.lower, block.upper));
      shared_from_end_.erase(Life(block.upper, block.lower));
    }
    std::erase(ends_[{block.upper, block.padded}], id);
    std::erase(starts_[{block.lower, block.padded}], id);
    --ends_at_[block.upper];
    --starts_at_[block.lower];
    MarkChanged(block);
  }

  // The block was added or removed: matches that this may change are tried
  // again.
  void MarkChanged(const PackBlock& block) {
    corners_.emplace_back(block.lower, block.padded);
    corners_.emplace_back(block.upper, block.padded);
    unlooked_.emplace(block.lower, block.upper);
    for (auto life = shared_.lower_bound(Life(block.upper, 0));
         life != shared_.end() && life->first == block.upper; ++life) {
      unlooked_.insert(*life);
    }
    for (auto life = shared_from_end_.lower_bound(Life(block.lower, 0));
         life != shared_from_end_.end() && life->first == block.lower; ++life) {
      unlooked_.emplace(life->second, life->first);
    }
  }

  void Chain() {
    while (!corners_.empty()) {
      const Corner corner = corners_.front();
      corners_.pop_front();
      JoinAt(corner);
    }
  }

  bool StackWithin(double doubt) {
    bool any = false;
    const std::vector<Life> lives(shared_.begin(), shared_.end());
    for (const Life& life : lives) {
      const std::vector<int> together = Together(life, doubt);
      if (together.empty()) continue;
      for (int id : together) Remove(id);
      int stack = together[0];
      for (size_t i = 1; i < together.size(); ++i) {
        stack = Make(stack, together[i], true);
      }
      Add(stack);
      Chain();
      any = true;
    }
    return any;
  }

  // Blocks of one life to stack at this level of doubt; empty: none.
  std::vector<int> Together(const Life& life, double doubt) {
    const std::vector<int>& same = of_life_[life];
    if (same.size() < 2) return {};
    std::vector<int> together;
    if (unlooked_.contains(life)) together = OfOneSize(life, same, doubt);
    if (!together.empty() || LifeDoubt(life, same) > doubt) return together;
    return same;
  }

  // The fewest whose bytes together are those of one before or after them.
  std::vector<int> OfOneSize(const Life& life, const std::vector<int>& same,
                             double doubt) {
    const size_t count = std::min(same.size(), tuning_.most_together);
    looks_ += int64_t{1} << count;
    uint32_t best = 0;
    double least_doubt = tuning_.most_doubt;
    for (uint32_t set = 3; set < 1U << count; ++set) {
      const int members = std::popcount(set);
      if (members < 2 || (best != 0 && members >= std::popcount(best))) {
        continue;
      }
      const double doubt_of_set = SizeDoubt(life, same, set, count);
      least_doubt = std::min(least_doubt, doubt_of_set);
      if (doubt_of_set <= doubt) best = set;
    }
    if (least_doubt >= tuning_.most_doubt) unlooked_.erase(life);
    std::vector<int> together;
    for (size_t i = 0; i < count; ++i) {
      if ((best >> i & 1) != 0) together.push_back(same[i]);
    }
    return together;
  }

  // Expected number of subsets that match by chance the bytes of the one block
  // that ends where they start, or starts where they end.
  double SizeDoubt(const Life& life, const std::vector<int>& same, uint32_t set,
                   size_t count) {
    int64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      if ((set >> i & 1) != 0) bytes += shapes_[same[i]].block.padded;
    }
    const auto one = [bytes](const auto& of_corner, int section) {
      const auto at = of_corner.find(Corner(section, bytes));
      return at != of_corner.end() && at->second.size() == 1;
    };
    const bool before = one(ends_, life.first);
    const bool after = one(starts_, life.second);
    if (!before && !after) return tuning_.most_doubt;
    const auto sets = static_cast<double>(int64_t{1} << count);
    const auto others =
        static_cast<double>(ends_at_[life.first] + starts_at_[life.second]);
    const double chance = sets * others * static_cast<double>(unit_bytes_) /
                          static_cast<double>(bytes);
    return tuning_.size_doubt * chance * (before && after ? chance : 1);
  }

  // Expected number of pairs with this life by chance: it falls with the number
  // of other blocks that start and end at the same sections.
  double LifeDoubt(const Life& life, const std::vector<int>& same) const {
    const auto others = static_cast<double>(starts_at_[life.first]) *
                        static_cast<double>(ends_at_[life.second]);
    return others * (same.size() > 2 ? static_cast<double>(same.size()) : 1);
  }

  int Make(int first, int second, bool stacked) {
    const PackBlock& a = shapes_[first].block;
    const PackBlock& b = shapes_[second].block;
    PackBlock block;
    block.lower = std::min(a.lower, b.lower);
    block.upper = std::max(a.upper, b.upper);
    block.size = stacked ? a.padded + b.size : std::max(a.size, b.size);
    block.padded = stacked ? a.padded + b.padded : a.padded;
    block.life = stacked ? a.life : a.life + b.life;
    block.alive = a.alive + b.alive;
    block.items = a.items + b.items;
    shapes_[first].joined = shapes_[second].joined = true;
    shapes_.push_back({block, first, second, stacked});
    return static_cast<int>(shapes_.size()) - 1;
  }

  void JoinAt(Corner corner) {
    const auto ends = ends_.find(corner), starts = starts_.find(corner);
    if (ends == ends_.end() || ends->second.size() != 1 ||
        starts == starts_.end() || starts->second.size() != 1) {
      return;
    }
    const int first = ends->second[0], second = starts->second[0];
    Remove(first);
    Remove(second);
    Add(Make(first, second, false));
  }

  // Joins neighbouring sections between which no block starts or ends any more
  // and fixed blocks end at the same height.
  void CopySections(PackBlocks& out) const {
    std::vector<int> section(apart_.sections + 1, 0);
    for (const PackBlock& block : out.blocks) {
      section[block.lower] = section[block.upper] = 1;
    }
    // A fixed block may be away in between.
    for (int s = 1; s < apart_.sections; ++s) {
      if (apart_.base[s] != apart_.base[s - 1]) section[s] = 1;
    }
    int count = 0;
    for (int s = 0; s <= apart_.sections; ++s) {
      if (section[s] == 0) continue;
      section[s] = count++;
      out.position.push_back(apart_.position[s]);
      if (s < apart_.sections) out.base.push_back(apart_.base[s]);
    }
    out.sections = std::max(0, count - 1);
    for (PackBlock& block : out.blocks) {
      block.lower = section[block.lower];
      block.upper = section[block.upper];
    }
  }

  PackJoined Result() const {
    PackJoined result;
    result.blocks.plain = false;  // its proofs say nothing of the blocks apart
    result.parts.resize(shapes_.size());
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (shapes_[i].joined) continue;
      result.parts[i].block = static_cast<int>(result.blocks.blocks.size());
      result.blocks.blocks.push_back(shapes_[i].block);
    }
    // What a shape was joined from comes before it.
    for (size_t i = shapes_.size(); i-- > 0;) {
      const Shape& shape = shapes_[i];
      if (shape.first < 0) continue;
      result.parts[shape.first] = result.parts[shape.second] = result.parts[i];
      if (shape.stacked) {
        result.parts[shape.second].above += shapes_[shape.first].block.padded;
      }
    }
    result.parts.resize(apart_.blocks.size());
    CopySections(result.blocks);
    return result;
  }

  const PackBlocks& apart_;
  const PackTuning& tuning_;
  std::vector<Shape> shapes_;  // the blocks, then what they make
  absl::flat_hash_map<Life, std::vector<int>> of_life_;
  // Lives of two or more; the second by their ends: (upper, lower).
  std::set<Life> shared_, shared_from_end_;
  // Lives of which OfOneSize may say something new.
  absl::flat_hash_set<Life> unlooked_;
  absl::flat_hash_map<Corner, std::vector<int>> ends_, starts_;
  std::vector<int64_t> ends_at_, starts_at_;  // by section, how many
  std::deque<Corner> corners_;                // to look at
  int64_t unit_bytes_ = 0;                    // all sizes are multiples of it
  int64_t looks_ = 0;
};

}  // namespace

PackJoined JoinBlocks(const PackBlocks& apart, const PackTuning& tuning) {
  return Joiner(apart, tuning).Join();
}

PackLayout PackJoined::Split(const PackBlocks& apart,
                             const PackLayout& layout) const {
  PackLayout split;
  split.height_bytes = 0;
  split.offsets.reserve(parts.size());
  for (size_t b = 0; b < parts.size(); ++b) {
    split.offsets.push_back(layout.offsets[parts[b].block] + parts[b].above);
    split.height_bytes = std::max(split.height_bytes,
                                  split.offsets.back() + apart.blocks[b].size);
  }
  return split;
}

}  // namespace loadline::planner
