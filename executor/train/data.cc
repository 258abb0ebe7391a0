// Converts arrays into columns of the graph's types with a common number of
// rows. Tested in tests/executor/train/data_test.cc.
#include "executor/train/data.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/train/check_indices.h"
#include "models/micro_batches.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using models::DType;

// On the stack, and read with one system call.
constexpr int64_t kPieceBytes = 16 << 10;

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return models::TensorType{dtype, shape}.ToString();
}

// One array of the data: in memory, or still in its file.
struct Source {
  FileElement element;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
  std::shared_ptr<ArrayFile> file;
};

Source SourceOf(NpyArray array) {
  return {
      {array.dtype}, std::move(array.shape), std::move(array.data), nullptr};
}

Source SourceOf(std::unique_ptr<ArrayFile> file) {
  const NpyHeader& header = file->header();
  return {header, header.shape, {}, std::move(file)};
}

absl::Status DoesNotFit(absl::string_view name, DType wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("array '", name, "': a number does not fit ",
                   std::string(models::DTypeName(wanted))));
}

// Reads the whole file once, where a step might find such a number.
absl::Status CheckFits(const Column& column, const models::Value& input,
                       int64_t examples) {
  if (!column.stored.has_value() || input.type.dtype != DType::kI32 ||
      column.stored->from_bytes < column.stored->to_bytes) {
    return absl::OkStatus();
  }
  std::vector<std::byte> row(static_cast<size_t>(column.row_bytes));
  for (int64_t i = 0; i < column.rows(examples); ++i) {
    LOADLINE_RETURN_IF_ERROR(ReadRows(column, i, 1, row.data()));
  }
  return absl::OkStatus();
}

// `batch`: the length of the first input's first axis.
absl::StatusOr<Column> MakeColumn(Source source, const models::Value& input,
                                  int64_t batch, int64_t examples) {
  std::vector<int64_t> expected = input.type.dims;
  if (expected.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' is a scalar; data needs a batch axis"));
  }
  const DType wanted = input.type.dtype;
  const bool every_step = expected[0] != batch;
  if (every_step && source.shape != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' is ", input.type.ToString(),
        ": its first axis is not the batch, which is ", batch,
        ", so an array with one row for each example does not fit it; found ",
        TypeText(source.element.dtype, source.shape),
        ". Export the model with the batch as this input's first axis, or give "
        "an array of the input's own shape, which every step gets"));
  }
  if (!every_step) expected[0] = examples;
  if (source.shape != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", input.name, "': expected ", TypeText(wanted, expected),
        " (first axis: examples), found ",
        TypeText(source.element.dtype, source.shape)));
  }
  const ElementConversion convert = FindConversion(source.element, wanted);
  if (convert == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("array '", input.name, "': expected ",
                     std::string(models::DTypeName(wanted)), ", found ",
                     std::string(models::DTypeName(source.element.dtype)),
                     "; convert it with astype before saving"));
  }
  Column column;
  column.name = input.name;
  column.every_step = every_step;
  column.holds_booleans =
      source.element.narrow_bytes == 0 && source.element.dtype == DType::kBool;
  column.row_bytes = every_step
                         ? input.type.bytes()
                         : input.type.bytes() / std::max<int64_t>(batch, 1);
  const int64_t to_bytes = models::DTypeBytes(wanted);
  if (source.file != nullptr) {
    column.stored = StoredRows{std::move(source.file), convert,
                               source.element.bytes(), to_bytes};
    LOADLINE_RETURN_IF_ERROR(CheckFits(column, input, examples));
  } else if (source.element.dtype == wanted) {
    column.data = std::move(source.data);
  } else {
    const size_t count =
        source.data.size() / static_cast<size_t>(source.element.bytes());
    column.data.resize(count * static_cast<size_t>(to_bytes));
    if (!convert(source.data.data(), count, column.data.data())) {
      return DoesNotFit(input.name, wanted);
    }
  }
  return column;
}

absl::StatusOr<DataSet> FromSources(std::vector<Source> sources,
                                    const models::Graph& graph) {
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  const size_t inputs = graph.inputs.size() / parts;
  if (sources.size() != inputs || sources.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a graph of ", inputs,
                                                   " inputs was given ",
                                                   sources.size(), " arrays"));
  }
  if (sources[0].shape.empty() || sources[0].shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", graph.value(graph.inputs[0]).name, "' holds no examples"));
  }
  const models::Value& first = graph.value(graph.inputs[0]);
  const int64_t batch = first.type.dims.empty() ? 0 : first.type.dims[0];
  DataSet data;
  data.examples = sources[0].shape[0];
  for (size_t i = 0; i < sources.size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(
        Column column,
        MakeColumn(std::move(sources[i]), graph.value(graph.inputs[i * parts]),
                   batch, data.examples));
    data.columns.push_back(std::move(column));
  }
  LOADLINE_RETURN_IF_ERROR(CheckIndices(data, graph));
  return data;
}

absl::StatusOr<std::vector<Source>> OpenSources(
    const std::string& path, const std::vector<std::string>& names,
    const LoadDataOptions& options) {
  std::vector<std::unique_ptr<ArrayFile>> files;
  int64_t stored_bytes = 0;
  for (const std::string& name : names) {
    LOADLINE_ASSIGN_OR_RETURN(auto file, OpenArray(path, name));
    if (file != nullptr) stored_bytes += file->header().data_bytes;
    files.push_back(std::move(file));
  }
  const bool stay = stored_bytes > options.most_bytes_in_memory;
  std::vector<Source> sources;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i] != nullptr && stay) {
      sources.push_back(SourceOf(std::move(files[i])));
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(NpyArray array, ReadArray(path, names[i]));
    sources.push_back(SourceOf(std::move(array)));
  }
  return sources;
}

}  // namespace

absl::Status ReadRows(const Column& column, int64_t first, int64_t count,
                      std::byte* to) {
  if (column.row_bytes == 0) return absl::OkStatus();
  if (!column.stored.has_value()) {
    std::memcpy(to, column.data.data() + first * column.row_bytes,
                static_cast<size_t>(count * column.row_bytes));
    return absl::OkStatus();
  }
  const StoredRows& stored = *column.stored;
  const int64_t row_elements = column.row_bytes / stored.to_bytes;
  int64_t at = first * row_elements;
  const int64_t end = (first + count) * row_elements;
  std::array<std::byte, kPieceBytes> piece;
  while (at < end) {
    const int64_t elements =
        std::min<int64_t>(end - at, kPieceBytes / stored.from_bytes);
    const auto bytes = static_cast<size_t>(elements * stored.from_bytes);
    LOADLINE_RETURN_IF_ERROR(stored.file->Read(
        at * stored.from_bytes, absl::MakeSpan(piece).first(bytes)));
    if (!stored.convert(piece.data(), static_cast<size_t>(elements), to)) {
      return absl::InvalidArgumentError(
          absl::StrCat("array '", column.name, "': a number does not fit i32"));
    }
    at += elements;
    to += elements * stored.to_bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<DataSet> MakeDataSet(std::vector<NpyArray> arrays,
                                    const models::Graph& graph) {
  std::vector<Source> sources;
  for (NpyArray& array : arrays) sources.push_back(SourceOf(std::move(array)));
  return FromSources(std::move(sources), graph);
}

absl::Status CheckBytes(const DataSet& data, const models::Graph& graph) {
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  if (data.columns.empty() ||
      data.columns.size() != graph.inputs.size() / parts) {
    return absl::InvalidArgumentError("the data does not fit the graph");
  }
  const int64_t rows = BatchOf(graph).value_or(0) / static_cast<int64_t>(parts);
  for (size_t c = 0; c < data.columns.size(); ++c) {
    const Column& column = data.columns[c];
    const models::Value& input = graph.value(graph.inputs[c * parts]);
    const int64_t bytes = column.row_bytes * column.rows(rows);
    if (bytes == input.type.bytes()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' is ", input.type.ToString(), ", which has ",
        input.type.bytes(), " bytes, and the data has ", bytes,
        " for a step of ", rows, " examples"));
  }
  return absl::OkStatus();
}

std::optional<int64_t> BatchOf(const models::Graph& graph) {
  if (graph.inputs.empty()) return std::nullopt;
  const models::TensorType& type = graph.value(graph.inputs[0]).type;
  if (type.dims.empty()) return std::nullopt;
  return type.dims[0] * models::MicroBatchesOf(graph);
}

absl::StatusOr<DataSet> LoadData(const std::string& path,
                                 const models::Graph& graph,
                                 const LoadDataOptions& options) {
  std::vector<std::string> names;
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  for (size_t i = 0; i < graph.inputs.size(); i += parts) {
    names.push_back(graph.value(graph.inputs[i]).name);
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<Source> sources,
                            OpenSources(path, names, options));
  absl::StatusOr<DataSet> data = FromSources(std::move(sources), graph);
  if (!data.ok()) {
    return absl::Status(
        data.status().code(),
        absl::StrCat(path, ": ", std::string(data.status().message())));
  }
  return data;
}

}  // namespace loadline::executor
