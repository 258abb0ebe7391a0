// Fisher-Yates with splitmix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014), keyed by seed and epoch. Numbers below
// a bound come from Lemire's multiplication with rejection (2019), so the order
// is unbiased and the same on every machine. Tested in
// tests/executor/train/data_test.cc.
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "executor/train/data.h"
#include "planner/base/check.h"

namespace loadline::executor {
namespace {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  uint64_t Below(uint64_t bound) {
    using U128 = unsigned __int128;
    U128 product = static_cast<U128>(Next()) * bound;
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<U128>(Next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(
    const DataSet& data, int64_t batch, uint64_t seed, bool shuffle,
    int64_t micro_batches) {
  LOADLINE_CHECK(micro_batches >= 1 && batch % micro_batches == 0);
  if (batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch, " examples"));
  }
  if (data.examples < batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data holds ", data.examples,
                     " examples, less than one batch of ", batch));
  }
  return std::unique_ptr<Batcher>(
      new Batcher(data, batch, seed, shuffle, micro_batches));
}

Batcher::Batcher(const DataSet& data, int64_t batch, uint64_t seed,
                 bool shuffle, int64_t micro_batches)
    : data_(&data),
      batch_(batch),
      seed_(seed),
      shuffle_(shuffle),
      order_(static_cast<size_t>(data.examples)) {
  for (const Column& column : data.columns) {
    buffers_.emplace_back(static_cast<size_t>(batch * column.row_bytes));
    for (int64_t part = 0; part < micro_batches; ++part) {
      pointers_.push_back(buffers_.back().data() +
                          part * (batch / micro_batches) * column.row_bytes);
    }
  }
}

void Batcher::Permute(int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!shuffle_) return;
  // A hash of the pair, so that (1, 2) and (2, 1) differ.
  const uint64_t key = SplitMix64(seed_).Next() ^ static_cast<uint64_t>(epoch);
  SplitMix64 random(SplitMix64(key).Next());
  for (size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[random.Below(i + 1)]);
  }
}

absl::Span<const int64_t> Batcher::Examples(int64_t step) {
  LOADLINE_CHECK(step >= 0);
  Permute(step / steps_per_epoch());
  return absl::MakeConstSpan(order_).subspan(
      static_cast<size_t>(step % steps_per_epoch() * batch_),
      static_cast<size_t>(batch_));
}

absl::Span<const std::byte* const> Batcher::Batch(int64_t step) {
  const absl::Span<const int64_t> examples = Examples(step);
  for (size_t c = 0; c < buffers_.size(); ++c) {
    const Column& column = data_->columns[c];
    const auto bytes = static_cast<size_t>(column.row_bytes);
    for (size_t i = 0; bytes > 0 && i < examples.size(); ++i) {
      std::memcpy(buffers_[c].data() + i * bytes,
                  column.data.data() + examples[i] * column.row_bytes, bytes);
    }
  }
  return pointers_;
}

}  // namespace loadline::executor
