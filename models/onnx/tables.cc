// Evenly spaced sines satisfy x[t+1] + x[t-1] = 2 cos(w) x[t]; randomly drawn
// weights never do so for a whole column. Tested in
// tests/models/onnx_tables_test.cc.
#include "models/onnx/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace loadline::models::onnx_internal {
namespace {

// Added to a logit, this removes it from a softmax.
constexpr float kMasking = -1e4f;
constexpr int64_t kLeastRows = 4;
// For sines in f32 of possibly large angles.
constexpr double kTolerance = 2e-3;

// One column of [rows, stride] at `x`.
struct Column {
  const float* x;
  int64_t rows;
  int64_t stride;
  double at(int64_t row) const { return x[row * stride]; }
};

// 2 cos(w), from the row with the largest element, which is least affected by
// rounding.
double Turn(const Column& column) {
  int64_t largest = 1;
  for (int64_t row = 1; row + 1 < column.rows; ++row) {
    if (std::abs(column.at(row)) > std::abs(column.at(largest))) largest = row;
  }
  const double x = column.at(largest);
  return x == 0 ? 2 : (column.at(largest + 1) + column.at(largest - 1)) / x;
}

bool IsSine(const Column& column, double turn) {
  if (std::abs(turn) > 2 + kTolerance) return false;
  for (int64_t row = 0; row < column.rows; ++row) {
    if (!(std::abs(column.at(row)) <= 1 + kTolerance)) return false;
    if (row == 0 || row + 1 == column.rows) continue;
    const double next = turn * column.at(row) - column.at(row - 1);
    if (!(std::abs(next - column.at(row + 1)) <= kTolerance)) return false;
  }
  return true;
}

enum class Shape { kOther, kFlat, kTurns };

// Whether the column is a sine of amplitude 1, which excludes weights that are
// almost zero; or almost constant.
Shape ShapeOf(const Column& column) {
  const double turn = Turn(column);
  if (!IsSine(column, turn)) return Shape::kOther;
  double least = column.at(0), most = column.at(0);
  for (int64_t row = 1; row < column.rows; ++row) {
    least = std::min(least, column.at(row));
    most = std::max(most, column.at(row));
  }
  return turn < 1.9 && most - least > 0.5 ? Shape::kTurns : Shape::kFlat;
}

// Whether every column depends on the position in the line, or on the line, of
// a grid with lines of `width` rows, and is a sine of it.
bool IsGridTable(const float* x, int64_t rows, int64_t columns, int64_t width) {
  bool turns = false;
  for (int64_t c = 0; c < columns; ++c) {
    const Column all = {x + c, rows, columns};
    bool in_line = true, of_line = true;
    for (int64_t row = 0; row < rows && (in_line || of_line); ++row) {
      in_line = in_line && all.at(row) == all.at(row % width);
      of_line = of_line && all.at(row) == all.at(row / width * width);
    }
    if (!in_line && !of_line) return false;
    const Shape shape = in_line
                            ? ShapeOf({x + c, width, columns})
                            : ShapeOf({x + c, rows / width, columns * width});
    if (shape == Shape::kOther) return false;
    turns = turns || shape == Shape::kTurns;
  }
  return turns;
}

// The same of a grid of any width, also behind a row of zeros for a class.
bool IsAnyGridTable(const float* x, int64_t rows, int64_t columns) {
  if (std::all_of(x, x + columns, [](float v) { return v == 0; })) {
    x += columns;
    --rows;
  }
  for (int64_t width = kLeastRows; width * kLeastRows <= rows; ++width) {
    if (rows % width == 0 && IsGridTable(x, rows, columns, width)) return true;
  }
  return false;
}

bool IsLineTable(const float* x, int64_t tables, int64_t rows,
                 int64_t columns) {
  bool turns = false;
  for (int64_t c = 0; c < tables * columns; ++c) {
    const Shape shape = ShapeOf(
        {x + c / columns * rows * columns + c % columns, rows, columns});
    if (shape == Shape::kOther) return false;
    turns = turns || shape == Shape::kTurns;
  }
  return turns;
}

}  // namespace

bool IsMask(const Tensor& tensor) {
  bool masks = false;
  for (float v : tensor.as<float>()) {
    if (!std::isfinite(v)) return true;
    if (v != 0 && v > kMasking) return false;
    masks = masks || v != 0;
  }
  return masks;
}

bool IsSineTable(const Tensor& tensor) {
  std::vector<int64_t> dims = tensor.type.dims;
  dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
  if (dims.size() < 2 || tensor.type.elements() == 0) return false;
  const int64_t rows = dims[dims.size() - 2];
  const int64_t columns = dims.back();
  if (rows < kLeastRows) return false;
  const int64_t tables = tensor.type.elements() / (rows * columns);
  const float* x = tensor.as<float>().data();
  return IsLineTable(x, tables, rows, columns) ||
         (tables == 1 && IsAnyGridTable(x, rows, columns));
}

bool IsFrequencies(const Tensor& tensor) {
  const auto x = tensor.as<float>();
  if (static_cast<int64_t>(x.size()) < kLeastRows || x[0] != 1) return false;
  const double ratio = x[1];
  if (!(ratio > 0 && ratio < 1)) return false;
  for (size_t i = 1; i < x.size(); ++i) {
    const double expected = std::pow(ratio, static_cast<double>(i));
    if (!(std::abs(x[i] - expected) <= kTolerance * expected)) return false;
  }
  return true;
}

}  // namespace loadline::models::onnx_internal
