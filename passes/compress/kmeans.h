// k-means of numbers: the codebook of a weight.
#ifndef LOADLINE_PASSES_COMPRESS_KMEANS_H_
#define LOADLINE_PASSES_COMPRESS_KMEANS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace loadline::passes {

struct Codebook {
  std::vector<float> entries;  // ascending
  std::vector<int32_t> codes;  // by number: its nearest entry, the lower of two
};

// Lloyd's iterations to their end, from entries that divide the range evenly
// and from ones that divide the numbers evenly (S. Han, H. Mao, W. Dally, "Deep
// compression", 2016, section 3.2); the better of the two. Deterministic. An
// entry that is nearest to no number stays where it is. Requires finite
// numbers, at least one, and 1 <= count.
Codebook KMeans(absl::Span<const float> numbers, int64_t count);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_KMEANS_H_
