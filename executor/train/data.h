// Training data: one array per graph input, whose first axis is the examples.
#ifndef LOADLINE_EXECUTOR_TRAIN_DATA_H_
#define LOADLINE_EXECUTOR_TRAIN_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/files/array_file.h"
#include "executor/files/convert_elements.h"
#include "executor/files/npy.h"
#include "models/graph.h"

namespace loadline::executor {

// The rows of a column that stay in their file.
struct StoredRows {
  std::shared_ptr<ArrayFile> file;
  ElementConversion convert = nullptr;
  int64_t from_bytes = 0;  // of an element in the file
  int64_t to_bytes = 0;    // of an element of the input
};

struct Column {
  std::string name;
  int64_t row_bytes = 0;        // of one example
  std::vector<std::byte> data;  // examples x row_bytes; empty where `stored`
  std::optional<StoredRows> stored = std::nullopt;
  // One row, all of the input, that every step gets: a mask, positions.
  bool every_step = false;
  bool holds_booleans = false;  // before the conversion

  // How many rows stand for so many examples.
  int64_t rows(int64_t examples) const { return every_step ? 1 : examples; }
};

// Copies rows [first, first + count) to `to`. Allocates nothing. Unavailable:
// the file cannot be read any more. One thread at a time.
absl::Status ReadRows(const Column& column, int64_t first, int64_t count,
                      std::byte* to);

// In the order of the graph's inputs; in a step in micro-batches, one column
// for all parts of an input.
struct DataSet {
  int64_t examples = 0;
  std::vector<Column> columns;
};

struct LoadDataOptions {
  // Larger data stays in its file, and each batch is read when it is needed.
  // Enough for the data sets that people try things on.
  int64_t most_bytes_in_memory = int64_t{1} << 30;
};

// Reads one array per input of `graph` (models/micro_batches.h), by name, from
// an .npz archive or from NAME.npy in a folder, and ignores others. Compressed
// arrays are always read into memory. An array has the input's shape with
// the first axis, the batch, replaced by the number of examples, which all
// arrays share. An input whose first axis is not as long as the batch has no
// examples: its array has the input's own shape, and every step gets it.
// Lossless conversions are made: f16 to f32; i32, i8, u8 and bool
// to a wider integer; i64 to i32 where every number fits. f64 is rounded to
// f32, since NumPy's default is f64. Anything else is InvalidArgument and names
// the array, the expected type, the type found and what to do; so is a label or
// an index that the graph cannot take (executor/train/check_indices.h).
absl::StatusOr<DataSet> LoadData(const std::string& path,
                                 const models::Graph& graph,
                                 const LoadDataOptions& options = {});

// The same from arrays in memory, one per input.
absl::StatusOr<DataSet> MakeDataSet(std::vector<NpyArray> arrays,
                                    const models::Graph& graph);

// InvalidArgument: a step of `graph` reads another number of bytes of a column
// than the column has for one step, such as of data for another batch.
absl::Status CheckBytes(const DataSet& data, const models::Graph& graph);

// Examples per step: the first dimension of the graph's first input, times the
// number of micro-batches. None where that is a scalar or absent.
std::optional<int64_t> BatchOf(const models::Graph& graph);

// The order of examples, and the rows of one batch.
class BatchRows {
 public:
  BatchRows(const DataSet& data, int64_t batch, uint64_t seed, bool shuffle,
            int64_t micro_batches);

  absl::Span<const int64_t> Examples(int64_t step);
  absl::Status Read(int64_t step);
  absl::Span<const std::byte* const> pointers() const { return pointers_; }

 private:
  void Permute(int64_t epoch);

  const DataSet* data_;
  int64_t batch_;
  uint64_t seed_;
  bool shuffle_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<const std::byte*> pointers_;
};

// Cuts a data set into batches. The batch of a step depends only on the step's
// number, so a resumed run gets the same batches. An epoch is examples/batch
// steps; the remaining examples are left out of that epoch. Shuffled: each
// epoch has its own permutation, from the seed and the epoch's number, the same
// on every machine. Not shuffled: every epoch takes the examples in order.
class Batcher {
 public:
  // `data` must outlive the batcher. `micro_batches` divides the batch.
  // `always_ahead`: read the next batch ahead also where all rows are in
  // memory, which takes a processor from a step that computes on all.
  // InvalidArgument: less than one batch of examples.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(
      const DataSet& data, int64_t batch, uint64_t seed, bool shuffle,
      int64_t micro_batches = 1, bool always_ahead = false);

  // Pointers to each column's rows in the batch of a step, counted from 0, and
  // in each of its micro-batches. Valid until the next call. Allocates nothing.
  // Where rows are stored, or always, a thread reads those of the next step
  // meanwhile.
  // Errors: those of ReadRows.
  absl::StatusOr<absl::Span<const std::byte* const>> Batch(int64_t step);

  // The examples of that batch, in order.
  absl::Span<const int64_t> Examples(int64_t step) {
    return rows_.Examples(step);
  }

  int64_t steps_per_epoch() const { return data_->examples / batch_; }
  int64_t batch() const { return batch_; }

  ~Batcher();

 private:
  class ReadAhead;

  Batcher(const DataSet& data, int64_t batch, uint64_t seed, bool shuffle,
          int64_t micro_batches, bool always_ahead);

  const DataSet* data_;
  const int64_t batch_;
  BatchRows rows_;
  std::unique_ptr<ReadAhead> ahead_;  // may be null: reads when asked
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_DATA_H_
