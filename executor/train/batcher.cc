// Fisher-Yates with splitmix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014), keyed by seed and epoch. Numbers below
// a bound come from Lemire's multiplication with rejection (2019), so the order
// is unbiased and the same on every machine. Tested in
// tests/executor/train/data_test.cc.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/train/data.h"
#include "planner/base/check.h"
#include "planner/base/random.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Like planner::Random, but without the bias of its Below.
class Shuffler {
 public:
  explicit Shuffler(uint64_t state) : state_(state) {}

  uint64_t Next() {
    const uint64_t bits = planner::SplitMix64(state_);
    state_ += planner::kSplitMix64Step;
    return bits;
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
    int64_t micro_batches, bool always_ahead) {
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
      new Batcher(data, batch, seed, shuffle, micro_batches, always_ahead));
}

BatchRows::BatchRows(const DataSet& data, int64_t batch, uint64_t seed,
                     bool shuffle, int64_t micro_batches)
    : data_(&data),
      batch_(batch),
      seed_(seed),
      shuffle_(shuffle),
      order_(static_cast<size_t>(data.examples)) {
  for (const Column& column : data.columns) {
    const int64_t rows = column.rows(batch);
    const int64_t rows_of_part = column.every_step ? 0 : batch / micro_batches;
    buffers_.emplace_back(static_cast<size_t>(rows * column.row_bytes));
    for (int64_t part = 0; part < micro_batches; ++part) {
      pointers_.push_back(buffers_.back().data() +
                          part * rows_of_part * column.row_bytes);
    }
  }
}

void BatchRows::Permute(int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!shuffle_) return;
  // A hash of the pair, so that (1, 2) and (2, 1) differ.
  const uint64_t key =
      planner::SplitMix64(seed_) ^ static_cast<uint64_t>(epoch);
  Shuffler random(planner::SplitMix64(key));
  for (size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[random.Below(i + 1)]);
  }
}

absl::Span<const int64_t> BatchRows::Examples(int64_t step) {
  LOADLINE_CHECK(step >= 0);
  const int64_t steps_per_epoch = data_->examples / batch_;
  Permute(step / steps_per_epoch);
  return absl::MakeConstSpan(order_).subspan(
      static_cast<size_t>(step % steps_per_epoch * batch_),
      static_cast<size_t>(batch_));
}

absl::Status BatchRows::Read(int64_t step) {
  const absl::Span<const int64_t> examples = Examples(step);
  for (size_t c = 0; c < buffers_.size(); ++c) {
    const Column& column = data_->columns[c];
    std::byte* to = buffers_[c].data();
    if (column.every_step) {
      LOADLINE_RETURN_IF_ERROR(ReadRows(column, 0, 1, to));
      continue;
    }
    for (const int64_t example : examples) {
      LOADLINE_RETURN_IF_ERROR(ReadRows(column, example, 1, to));
      to += column.row_bytes;
    }
  }
  return absl::OkStatus();
}

// A thread with rows of its own. It has them while `step_` is set and `done_`
// is not; otherwise the batcher has them.
class Batcher::ReadAhead {
 public:
  explicit ReadAhead(BatchRows rows)
      : rows_(std::move(rows)), thread_([this] { Work(); }) {}

  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Whether `rows` now have the batch of `step`, which was read ahead.
  absl::StatusOr<bool> Take(int64_t step, BatchRows& rows) {
    std::unique_lock lock(mutex_);
    if (!step_.has_value()) return false;
    changed_.wait(lock, [this] { return done_; });
    const bool wanted = *step_ == step;
    step_.reset();
    done_ = false;
    if (!wanted) return false;
    LOADLINE_RETURN_IF_ERROR(status_);
    std::swap(rows_, rows);
    return true;
  }

  void Begin(int64_t step) {
    {
      const std::lock_guard lock(mutex_);
      step_ = step;
    }
    changed_.notify_all();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(
          lock, [this] { return ending_ || (step_.has_value() && !done_); });
      if (ending_) return;
      const int64_t step = *step_;
      lock.unlock();
      absl::Status status = rows_.Read(step);
      lock.lock();
      status_ = std::move(status);
      done_ = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int64_t> step_;
  bool done_ = false;
  bool ending_ = false;
  absl::Status status_;
  BatchRows rows_;
  std::thread thread_;  // last: it uses the others
};

Batcher::Batcher(const DataSet& data, int64_t batch, uint64_t seed,
                 bool shuffle, int64_t micro_batches, bool always_ahead)
    : data_(&data),
      batch_(batch),
      rows_(data, batch, seed, shuffle, micro_batches) {
  if (always_ahead ||
      std::any_of(data.columns.begin(), data.columns.end(),
                  [](const Column& c) { return c.stored.has_value(); })) {
    ahead_ = std::make_unique<ReadAhead>(
        BatchRows(data, batch, seed, shuffle, micro_batches));
  }
}

Batcher::~Batcher() = default;

absl::StatusOr<absl::Span<const std::byte* const>> Batcher::Batch(
    int64_t step) {
  bool read = false;
  if (ahead_ != nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(read, ahead_->Take(step, rows_));
  }
  if (!read) LOADLINE_RETURN_IF_ERROR(rows_.Read(step));
  if (ahead_ != nullptr) ahead_->Begin(step + 1);
  return rows_.pointers();
}

}  // namespace loadline::executor
