// From items to blocks: items that share an offset become one block, and
// positions become sections, at most two per item. Tested in
// pack_blocks_test.cc.
#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"
#include "planner/pack/pack_parts.h"

namespace loadline::planner {
namespace {

// No sum overflows; areas are doubles.
constexpr int64_t kMostBytes = INT64_MAX;

bool Empty(const PackItem& item) {
  return item.size == 0 || item.upper == item.lower;
}

absl::Status CheckItems(const std::vector<PackItem>& items, int64_t alignment) {
  if (alignment <= 0 || alignment > (int64_t{1} << 60)) {
    return absl::InvalidArgumentError(
        "pack: the alignment must be positive and at most 2^60");
  }
  int64_t sum = 0, highest = 0;
  for (const PackItem& item : items) {
    if (item.size < 0 || item.upper < item.lower || item.fixed_offset < -1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pack: item ", item.id, " has a negative size, lifetime or offset"));
    }
    if (item.fixed_offset > 0 && item.fixed_offset % alignment != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pack: the fixed offset of item ", item.id,
                       " is not a multiple of ", alignment));
    }
    highest = std::max(highest, item.fixed_offset);
    if (item.size > kMostBytes - alignment - sum ||
        highest > kMostBytes - alignment - sum - item.size) {
      return absl::InvalidArgumentError(
          "pack: sizes and offsets add up to more than 2^63 - 1 bytes");
    }
    sum += item.size + (item.size > 0 ? alignment - 1 : 0);
  }
  return absl::OkStatus();
}

void MakeSections(const std::vector<PackItem>& items, PackBlocks& out) {
  for (const PackItem& item : items) {
    if (Empty(item)) continue;
    out.position.push_back(item.lower);
    out.position.push_back(item.upper);
  }
  std::sort(out.position.begin(), out.position.end());
  out.position.erase(std::unique(out.position.begin(), out.position.end()),
                     out.position.end());
  out.sections = std::max<int>(0, static_cast<int>(out.position.size()) - 1);
  const auto section = [&](int64_t position) {
    return static_cast<int>(
        std::lower_bound(out.position.begin(), out.position.end(), position) -
        out.position.begin());
  };
  out.item_sections.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (Empty(items[i])) continue;
    out.item_sections[i] = {section(items[i].lower), section(items[i].upper)};
  }
}

absl::Status JoinGroups(const std::vector<PackItem>& items, int64_t alignment,
                        PackBlocks& out) {
  absl::flat_hash_map<int64_t, int> block_of_group;
  out.block_of_item.assign(items.size(), -1);
  for (size_t i = 0; i < items.size(); ++i) {
    const PackItem& item = items[i];
    if (Empty(item)) continue;
    const int next = static_cast<int>(out.blocks.size());
    int b = next;
    if (item.group >= 0) {
      b = block_of_group.emplace(item.group, next).first->second;
    }
    const auto [lower, upper] = out.item_sections[i];
    if (b == next) {
      out.blocks.push_back({.lower = lower, .upper = upper});
    }
    out.block_of_item[i] = b;
    PackBlock& block = out.blocks[b];
    ++block.items;
    block.lower = std::min(block.lower, lower);
    block.upper = std::max(block.upper, upper);
    block.size = std::max(block.size, item.size);
    block.alive += item.upper - item.lower;
    if (item.fixed_offset < 0) continue;
    if (block.fixed >= 0 && block.fixed != item.fixed_offset) {
      return absl::InvalidArgumentError(
          absl::StrCat("pack: item ", item.id,
                       " shares an offset with an item fixed elsewhere"));
    }
    block.fixed = item.fixed_offset;
  }
  for (PackBlock& block : out.blocks) {
    block.padded = AlignUp(block.size, alignment);
    block.life = out.position[block.upper] - out.position[block.lower];
    if (block.fixed >= 0 || block.padded != block.size) out.plain = false;
  }
  return absl::OkStatus();
}

// Blocks of groups whose items leave a gap or differ in size take more room
// than their items: proofs about blocks do not hold for the items.
void FindGaps(const std::vector<PackItem>& items, PackBlocks& out) {
  std::vector<size_t> grouped;
  for (size_t i = 0; i < items.size(); ++i) {
    if (out.block_of_item[i] < 0 || items[i].group < 0) continue;
    grouped.push_back(i);
    if (items[i].size != out.blocks[out.block_of_item[i]].size) {
      out.plain = false;
    }
  }
  std::sort(grouped.begin(), grouped.end(), [&](size_t a, size_t b) {
    return std::tie(out.block_of_item[a], items[a].lower, a) <
           std::tie(out.block_of_item[b], items[b].lower, b);
  });
  int block = -1;
  int64_t end = 0;
  for (size_t i : grouped) {
    if (out.block_of_item[i] != block) {
      block = out.block_of_item[i];
      end = items[i].upper;
    }
    if (items[i].lower > end) out.plain = false;
    end = std::max(end, items[i].upper);
  }
}

absl::Status LayFixed(const std::vector<PackItem>& items, PackBlocks& out) {
  out.base.assign(out.sections, 0);
  struct Piece {
    int64_t offset, size;
    int lower, upper;
    int block;
    int64_t id;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < items.size(); ++i) {
    const int b = out.block_of_item[i];
    if (b < 0 || out.blocks[b].fixed < 0) continue;
    const auto [lower, upper] = out.item_sections[i];
    pieces.push_back({out.blocks[b].fixed, out.blocks[b].size, lower, upper, b,
                      items[i].id});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.offset, a.lower, a.id) <
           std::tie(b.offset, b.lower, b.id);
  });
  // By offset: a piece collides if the highest end below it is above it.
  std::vector<int> owner(out.sections, -1);
  std::vector<int64_t> top(out.sections, 0);
  for (const Piece& piece : pieces) {
    for (int s = piece.lower; s < piece.upper; ++s) {
      if (top[s] > piece.offset && owner[s] != piece.block) {
        return absl::InvalidArgumentError(absl::StrCat(
            "pack: the fixed offset of item ", piece.id, " collides"));
      }
      if (piece.offset + piece.size > top[s]) {
        top[s] = piece.offset + piece.size;
        owner[s] = piece.block;
      }
    }
  }
  for (const PackBlock& block : out.blocks) {
    if (block.fixed < 0) continue;
    for (int s = block.lower; s < block.upper; ++s) {
      out.base[s] = std::max(out.base[s], block.fixed + block.padded);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PackBlocks> MakePackBlocks(const std::vector<PackItem>& items,
                                          int64_t alignment_bytes) {
  LOADLINE_RETURN_IF_ERROR(CheckItems(items, alignment_bytes));
  PackBlocks out;
  MakeSections(items, out);
  LOADLINE_RETURN_IF_ERROR(JoinGroups(items, alignment_bytes, out));
  FindGaps(items, out);
  LOADLINE_RETURN_IF_ERROR(LayFixed(items, out));
  return out;
}

}  // namespace loadline::planner
