// Which channels of some groups are removed, from a score of each channel.
#ifndef LOADLINE_PASSES_COMPRESS_CHOOSE_CHANNELS_H_
#define LOADLINE_PASSES_COMPRESS_CHOOSE_CHANNELS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace loadline::passes {

struct ChannelChoice {
  double sparsity = 0;  // share of the channels of all groups
  bool global = false;
  double max_sparsity_per_group = 1;
  int64_t round_to = 1;
};

// How many of `width` channels a group keeps at a sparsity: the nearest whole
// number to width * (1 - sparsity), up to the next multiple of `round_to` (at
// most `width`), at least one, and no less than the largest share allows.
int64_t KeptWidth(int64_t width, const ChannelChoice& choice);

// For each group its removed channels, rising. `scores[g][c]`: how much channel
// c matters. `removed[g][c]`: it is removed already, and stays so. Those with
// the lowest scores go first; equal ones by group, then by channel. Local: each
// group keeps KeptWidth. Global: channels of all groups are ranked together.
// With `round_to`, they go in blocks that leave multiples of it, in the order
// of the blocks' mean scores, until the nearest number to the share of all
// channels is reached. A group that cannot lose more passes its part to the
// others.
std::vector<std::vector<int64_t>> ChooseChannels(
    absl::Span<const std::vector<double>> scores,
    absl::Span<const std::vector<bool>> removed, const ChannelChoice& choice);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_CHOOSE_CHANNELS_H_
