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
constexpr double kTableTolerance = 2e-3;

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
  if (std::abs(turn) > 2 + kTableTolerance) return false;
  for (int64_t row = 0; row < column.rows; ++row) {
    if (!(std::abs(column.at(row)) <= 1 + kTableTolerance)) return false;
    if (row == 0 || row + 1 == column.rows) continue;
    const double next = turn * column.at(row) - column.at(row - 1);
    if (!(std::abs(next - column.at(row + 1)) <= kTableTolerance)) return false;
  }
  return true;
}

enum class ColumnShape { kOther, kFlat, kTurns };

// Whether the column is a sine of amplitude 1, which excludes weights that are
// almost zero; or almost constant.
ColumnShape ColumnShapeOf(const Column& column) {
  const double turn = Turn(column);
  if (!IsSine(column, turn)) return ColumnShape::kOther;
  double least = column.at(0), most = column.at(0);
  for (int64_t row = 1; row < column.rows; ++row) {
    least = std::min(least, column.at(row));
    most = std::max(most, column.at(row));
  }
  return turn < 1.9 && most - least > 0.5 ? ColumnShape::kTurns
                                          : ColumnShape::kFlat;
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
    const ColumnShape shape =
        in_line ? ColumnShapeOf({x + c, width, columns})
                : ColumnShapeOf({x + c, rows / width, columns * width});
    if (shape == ColumnShape::kOther) return false;
    turns = turns || shape == ColumnShape::kTurns;
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

// A random line of as many numbers is sorted once in a thousand times.
constexpr int64_t kLeastSorted = 7;

bool IsSorted(const Column& column) {
  bool rises = true, falls = true;
  for (int64_t row = 1; row < column.rows && (rises || falls); ++row) {
    rises = rises && column.at(row) >= column.at(row - 1);
    falls = falls && column.at(row) <= column.at(row - 1);
  }
  return rises || falls;
}

// Along one axis all lines are sorted, and there are enough numbers.
bool IsSortedAlong(const Tensor& tensor, size_t axis) {
  const std::vector<int64_t>& dims = tensor.type.dims;
  const int64_t rows = dims[axis];
  int64_t stride = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) stride *= dims[i];
  const int64_t lines = tensor.type.elements() / rows;
  if (rows < 3 || rows + 2 * (lines - 1) < kLeastSorted) return false;
  const float* x = tensor.as<float>().data();
  for (int64_t line = 0; line < lines; ++line) {
    const float* first = x + line / stride * rows * stride + line % stride;
    if (!IsSorted({first, rows, stride})) return false;
  }
  return true;
}

bool IsSorted(const Tensor& tensor) {
  for (size_t axis = 0; axis < tensor.type.dims.size(); ++axis) {
    if (IsSortedAlong(tensor, axis)) return true;
  }
  return false;
}

// Of at least three rows, and no identity.
bool IsSymmetric(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.type.dims;
  if (dims.size() != 2 || dims[0] != dims[1] || dims[0] < 3) return false;
  const int64_t n = dims[0];
  const float* x = tensor.as<float>().data();
  bool diagonal = true;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < row; ++column) {
      if (x[row * n + column] != x[column * n + row]) return false;
      diagonal = diagonal && x[row * n + column] == 0;
    }
  }
  return !diagonal;
}

// The same from its end, such as the taps of a smoothing filter or a window.
bool IsPalindrome(const Tensor& tensor) {
  const auto x = tensor.as<float>();
  return x.size() > 2 && std::equal(x.begin(), x.end(), x.rbegin());
}

bool IsIdentity(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.type.dims;
  if (dims.size() != 2) return false;
  const auto x = tensor.as<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const auto column = static_cast<int64_t>(i) % dims[1];
    const auto row = static_cast<int64_t>(i) / dims[1];
    if (x[i] != (row == column ? 1.0f : 0.0f)) return false;
  }
  return true;
}

// Evenly spaced, or each a constant multiple of the one before.
bool IsSequence(const Tensor& tensor) {
  constexpr double kRounding = 1e-5;
  const auto x = tensor.as<float>();
  if (x.size() < 3) return false;
  const double step = static_cast<double>(x[1]) - x[0];
  const double ratio = static_cast<double>(x[1]) / x[0];
  bool even = true, geometric = true;
  for (size_t i = 2; i < x.size(); ++i) {
    const double last = x[i - 1], size = std::abs(x[i]);
    even = even && std::abs(last + step - x[i]) <= kRounding * size;
    geometric = geometric && std::abs(last * ratio - x[i]) <= kRounding * size;
  }
  return even || geometric;
}

bool HasEqualFilters(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.type.dims;
  if (dims.size() < 3 || dims[0] < 2) return false;
  const auto x = tensor.as<float>();
  const size_t size = x.size() / static_cast<size_t>(dims[0]);
  return size > 1 &&
         std::equal(x.begin() + static_cast<long>(size), x.end(), x.begin());
}

bool IsLineTable(const float* x, int64_t tables, int64_t rows,
                 int64_t columns) {
  bool turns = false;
  for (int64_t c = 0; c < tables * columns; ++c) {
    const ColumnShape shape = ColumnShapeOf(
        {x + c / columns * rows * columns + c % columns, rows, columns});
    if (shape == ColumnShape::kOther) return false;
    turns = turns || shape == ColumnShape::kTurns;
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

bool IsRegular(const Tensor& tensor) {
  const auto x = tensor.as<float>();
  if (x.size() < 2 ||
      std::all_of(x.begin(), x.end(), [&](float v) { return v == x[0]; }) ||
      IsIdentity(tensor)) {
    return false;
  }
  const auto zeros = std::count(x.begin(), x.end(), 0.0f);
  return std::all_of(x.begin(), x.end(),
                     [](float v) { return v == std::round(v); }) ||
         2 * zeros >= std::ssize(x) || IsSymmetric(tensor) ||
         IsPalindrome(tensor) || IsSorted(tensor) || IsSequence(tensor) ||
         HasEqualFilters(tensor);
}

bool IsFrequencies(const Tensor& tensor) {
  const auto x = tensor.as<float>();
  if (static_cast<int64_t>(x.size()) < kLeastRows || x[0] != 1) return false;
  const double ratio = x[1];
  if (!(ratio > 0 && ratio < 1)) return false;
  for (size_t i = 1; i < x.size(); ++i) {
    const double expected = std::pow(ratio, static_cast<double>(i));
    if (!(std::abs(x[i] - expected) <= kTableTolerance * expected))
      return false;
  }
  return true;
}

}  // namespace loadline::models::onnx_internal
