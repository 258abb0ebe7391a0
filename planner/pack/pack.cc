// Tries, in this order, until a layout fits:
// - lowest floor by several rules, then with blocks that have holes at the
//   bottom (pack_stack.cc);
// - both again with blocks joined to rectangles (pack_join.h), exact search
//   included;
// - blocks that fill a rectangle by the order in which they take each other's
//   place (pack_tiling.h);
// - first fit, up to a few thousand blocks: only it uses gaps in lives;
// - lowest floor with growing preference for blocks that end above the capacity
//   (squeaky wheel optimization, Joslin and Clements 1999);
// - exact search at the capacity, then between it and the best layout;
// - first fit in changing orders, unless the best layout is proven the lowest.
// pack_tuning.h has the limits. Tested in pack_test.cc and pack_tuning_test.cc.
#include "planner/pack/pack.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/pack/pack_first_fit.h"
#include "planner/pack/pack_join.h"
#include "planner/pack/pack_parts.h"
#include "planner/pack/pack_tiling.h"

namespace loadline::planner {
namespace {

// Greedy layouts by one set of blocks: as they are, or joined.
class FloorTries {
 public:
  // `blocks` and `tuning` must outlive this.
  FloorTries(const PackBlocks& blocks, int64_t target_bytes,
             const PackTuning& tuning)
      : blocks_(blocks),
        target_(target_bytes),
        tuning_(tuning),
        packer_(blocks) {}

  // Runs whatever the work limit, so that there is a layout; of very many
  // blocks, or once it must stop, only one rule.
  void TryRules(const Stop& stop);
  void TrySqueakyWheel(PackWork& work);

  bool Fits() const { return best_.height_bytes <= target_; }
  const PackLayout& best() const { return best_; }

 private:
  const PackBlocks& blocks_;
  const int64_t target_;
  const PackTuning& tuning_;
  LowestFloor packer_;
  PackLayout best_;
  std::vector<double> best_keys_;  // of the lowest layout of the rules
};

void FloorTries::TryRules(const Stop& stop) {
  std::vector<double> keys(blocks_.blocks.size());
  for (double power : tuning_.life_powers) {
    if (Fits()) return;
    if (!best_keys_.empty() &&
        (keys.size() > tuning_.most_rule_blocks || stop.Now())) {
      return;
    }
    for (size_t b = 0; b < keys.size(); ++b) {
      keys[b] = std::log(static_cast<double>(blocks_.blocks[b].padded)) +
                power * std::log(static_cast<double>(blocks_.blocks[b].life));
    }
    PackLayout layout = packer_.LayOut(keys);
    if (layout.height_bytes >= best_.height_bytes) continue;
    best_ = std::move(layout);
    best_keys_ = keys;
  }
}

void FloorTries::TrySqueakyWheel(PackWork& work) {
  if (Fits() || blocks_.blocks.size() > tuning_.most_rule_blocks) return;
  std::vector<double> keys = best_keys_;
  PackLayout last = packer_.LayOut(keys);
  for (int round = 0; round < tuning_.squeaky_rounds && !work.Done(); ++round) {
    for (size_t b = 0; b < keys.size(); ++b) {
      if (last.offsets[b] + blocks_.blocks[b].size > target_) {
        keys[b] += tuning_.squeak;
      }
    }
    last = packer_.LayOut(keys);
    work.left -=
        tuning_.work_per_floor_block * static_cast<int64_t>(keys.size());
    if (last.height_bytes < best_.height_bytes) best_ = last;
    if (Fits()) return;
  }
}

class Packer {
 public:
  Packer(const std::vector<PackItem>& items, const PackOptions& options,
         PackBlocks blocks)
      : items_(items),
        options_(options),
        tuning_(options.tuning),
        blocks_(std::move(blocks)),
        work_{options.work_limit, options.stop},
        lower_bound_(PackLowerBound(items, options.alignment_bytes)),
        target_(std::max(std::min(options.capacity_bytes, kMostTarget),
                         lower_bound_)) {}

  absl::StatusOr<std::vector<int64_t>> Pack(PackReport* report);

 private:
  bool Fits() const { return best_.height_bytes <= target_; }
  void Take(PackLayout layout) {
    if (layout.height_bytes < best_.height_bytes) best_ = std::move(layout);
  }
  void Try();
  void TryJoined(const PackBlocks& blocks);
  void TryTiling();
  void TryExact(const PackBlocks& blocks, PackWork work,
                const std::function<PackLayout(PackLayout)>& split);
  std::vector<int64_t> ItemOffsets() const;
  // Less than the height of a layout that does not exist yet.
  static constexpr int64_t kMostTarget = INT64_MAX - 1;
  void FindWindow(PackReport& report) const;

  const std::vector<PackItem>& items_;
  const PackOptions& options_;
  const PackTuning& tuning_;
  const PackBlocks blocks_;
  PackWork work_;
  int64_t lower_bound_;
  const int64_t target_;
  PackLayout best_;
};

// First at the target height, then halfway between the lowest height still open
// and the best layout; a search that gives up counts like one that proves that
// there is no layout, but raises no bound.
void Packer::TryExact(const PackBlocks& blocks, PackWork work,
                      const std::function<PackLayout(PackLayout)>& split) {
  if (blocks.blocks.size() > tuning_.most_exact_blocks) return;
  int64_t low = target_;  // nothing is looked for below
  const int64_t alignment = options_.alignment_bytes;
  for (int round = 0; !Fits() && !work.Done() && low < best_.height_bytes;
       ++round) {
    const int64_t height =
        low + (round == 0 ? 0 : (best_.height_bytes - low) / 2);
    PackWork share{work.left / (round == 0 ? tuning_.exact_first_part
                                           : tuning_.exact_part),
                   work.stop};
    const int64_t given = share.left;
    if (given < tuning_.least_exact_work) return;
    PackLayout layout;
    const ExactResult result =
        PackExact(blocks, height - height % alignment, options_.seed + round,
                  tuning_, share, layout);
    work.left -= given - share.left;
    work_.left -= given - share.left;
    const int64_t before = best_.height_bytes;
    if (result == ExactResult::kFound) Take(split(std::move(layout)));
    if (best_.height_bytes == before) low = height + 1;
    if (result == ExactResult::kNone && blocks.plain) {
      lower_bound_ = std::max(lower_bound_, height + 1);
    }
  }
}

// If few blocks are left after joining, their search ends soon.
void Packer::TryJoined(const PackBlocks& blocks) {
  const PackJoined joined = JoinBlocks(blocks, tuning_);
  if (joined.blocks.blocks.size() == blocks.blocks.size()) return;
  const auto split = [&](const PackLayout& layout) {
    return joined.Split(blocks, layout);
  };
  FloorTries floor(joined.blocks, target_, tuning_);
  floor.TryRules(work_.stop);
  floor.TrySqueakyWheel(work_);
  Take(split(floor.best()));
  TryExact(joined.blocks, {work_.left / tuning_.joined_part, work_.stop},
           split);
}

// Joining what certainly belongs together first leaves fewer runs that end at
// one time.
void Packer::TryTiling() {
  if (!CanTile(blocks_, tuning_)) return;
  PackTuning sure = tuning_;
  sure.most_doubt = tuning_.tiling_join_doubt;
  const PackJoined joined = JoinBlocks(blocks_, sure);
  PackWork own{options_.work_limit, options_.stop};
  const auto layout = PackTiling(joined.blocks, tuning_, own);
  if (layout) Take(joined.Split(blocks_, *layout));
}

// Items without bytes or life conflict with nothing; they take their group's
// offset.
std::vector<int64_t> Packer::ItemOffsets() const {
  std::vector<int64_t> offsets(items_.size(), 0);
  absl::flat_hash_map<int64_t, int64_t> of_group;
  for (size_t i = 0; i < items_.size(); ++i) {
    const int b = blocks_.block_of_item[i];
    if (b < 0) continue;
    offsets[i] = best_.offsets[b];
    if (items_[i].group >= 0) of_group[items_[i].group] = offsets[i];
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    if (blocks_.block_of_item[i] >= 0) continue;
    const auto group = of_group.find(items_[i].group);
    if (items_[i].fixed_offset >= 0) {
      offsets[i] = items_[i].fixed_offset;
    } else if (items_[i].group >= 0 && group != of_group.end()) {
      offsets[i] = group->second;
    }
  }
  return offsets;
}

void Packer::FindWindow(PackReport& report) const {
  // +1 and -1 where a block above the capacity starts and ends.
  std::vector<int> above(blocks_.sections + 1, 0);
  size_t top = 0;
  const auto end = [&](size_t b) {
    return best_.offsets[b] + blocks_.blocks[b].size;
  };
  for (size_t b = 0; b < blocks_.blocks.size(); ++b) {
    if (end(b) > end(top)) top = b;
    if (end(b) <= options_.capacity_bytes) continue;
    ++above[blocks_.blocks[b].lower];
    --above[blocks_.blocks[b].upper];
  }
  for (int s = 0; s < blocks_.sections; ++s) above[s + 1] += above[s];
  int lower = blocks_.blocks[top].lower, upper = blocks_.blocks[top].upper;
  while (lower > 0 && above[lower - 1] > 0) --lower;
  while (upper < blocks_.sections && above[upper] > 0) ++upper;
  report.tallest_lower = blocks_.position[lower];
  report.tallest_upper = blocks_.position[upper];
  for (size_t i = 0; i < items_.size(); ++i) {
    const auto [item_lower, item_upper] = blocks_.item_sections[i];
    if (blocks_.block_of_item[i] >= 0 && item_lower < upper &&
        lower < item_upper) {
      report.tallest_items.push_back(static_cast<int>(i));
    }
  }
}

void Packer::Try() {
  const size_t count = blocks_.blocks.size();
  if (count == 0) {
    best_.height_bytes = 0;
    return;
  }
  FloorTries floor(blocks_, target_, tuning_);
  floor.TryRules(work_.stop);
  Take(floor.best());
  if (Fits() || work_.stop.Now()) return;
  std::optional<PackBlocks> stacked;
  if (tuning_.stack_stage) stacked = StackAround(blocks_, tuning_);
  const PackBlocks& blocks = stacked ? *stacked : blocks_;
  std::optional<FloorTries> stacked_floor;
  if (stacked) {
    stacked_floor.emplace(blocks, target_, tuning_);
    stacked_floor->TryRules(work_.stop);
    Take(stacked_floor->best());
  }
  if (!Fits() && tuning_.join_stage) TryJoined(blocks);
  if (!Fits() && tuning_.tiling_stage) TryTiling();
  std::optional<PackFirstFit> first_fit;
  if (!Fits() && tuning_.first_fit_stage &&
      count <= tuning_.most_first_fit_blocks) {
    first_fit.emplace(blocks, options_.alignment_bytes, options_.capacity_bytes,
                      target_, options_.seed, tuning_);
    first_fit->TryRules(best_);
  }
  if (!Fits() && tuning_.squeaky_stage) {
    FloorTries& last = stacked_floor ? *stacked_floor : floor;
    last.TrySqueakyWheel(work_);
    Take(last.best());
  }
  if (!Fits() && tuning_.exact_stage) {
    TryExact(blocks, work_, [](PackLayout layout) { return layout; });
  }
  if (!tuning_.improve_stage || !first_fit || Fits() ||
      best_.height_bytes <= lower_bound_)
    return;
  PackWork own{options_.work_limit, options_.stop};
  first_fit->Improve(own, best_);
}

absl::StatusOr<std::vector<int64_t>> Packer::Pack(PackReport* report) {
  Try();
  std::vector<int64_t> offsets = ItemOffsets();
  const bool fits = best_.height_bytes <= options_.capacity_bytes;
  if (report != nullptr) {
    *report = {};
    report->height_bytes = best_.height_bytes;
    report->lower_bound_bytes = lower_bound_;
    report->offsets = offsets;
    if (!fits && !blocks_.blocks.empty()) FindWindow(*report);
  }
  if (!fits) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pack: the best layout found is ", best_.height_bytes, " bytes high, ",
        best_.height_bytes - options_.capacity_bytes, " above the capacity of ",
        options_.capacity_bytes, "; at least ", lower_bound_, " are needed"));
  }
  return offsets;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> Pack(const std::vector<PackItem>& items,
                                          const PackOptions& options,
                                          PackReport* report) {
  LOADLINE_ASSIGN_OR_RETURN(PackBlocks blocks,
                            MakePackBlocks(items, options.alignment_bytes));
  return Packer(items, options, std::move(blocks)).Pack(report);
}

}  // namespace loadline::planner
