// Fake quantization and ranges, from operators.md.
#include <algorithm>
#include <cmath>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

struct Grid {
  double least, most;
};

Grid GridOf(const Call& c) {
  const double codes = std::pow(2.0, c.attributes.Int("bits", 8));
  if (c.attributes.Int("signed", 0) == 0) return {0, codes - 1};
  const double missing = c.attributes.Int("symmetric", 0) != 0 ? 1 : 0;
  return {-codes / 2 + missing, codes / 2 - 1};
}

// The channel that position i of x belongs to.
int64_t ChannelAt(const Call& c, const models::TensorType& x, int64_t i) {
  if (!c.attributes.Has("axis")) return 0;
  const auto axis = static_cast<size_t>(c.attributes.Int("axis", 0));
  int64_t inner = 1;
  for (size_t d = axis + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
  return i / inner % x.dims[axis];
}

// What the operators on x, scale and zero point at inputs `first`... need at i.
struct Element {
  double x, scale, zero_point, quotient, code;
};
Element ElementAt(const Call& c, int first, int64_t i) {
  const int64_t channel = ChannelAt(c, c.in(first).type, i);
  Element e = {};
  e.x = c.in(first).values[i];
  e.scale = c.in(first + 1).values[channel];
  e.zero_point = c.in(first + 2).values[channel];
  // The quotient is an f32 number by definition: a tie is a tie of that.
  e.quotient = static_cast<float>(e.x / e.scale);
  const double down = std::floor(e.quotient);
  const double rest = e.quotient - down;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(down, 2.0) != 0);
  e.code = down + (up ? 1 : 0) + e.zero_point;
  return e;
}

void FakeQuantize(const Call& c) {
  const Grid grid = GridOf(c);
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    const Element e = ElementAt(c, 0, static_cast<int64_t>(i));
    const double code = std::clamp(e.code, grid.least, grid.most);
    c.out().values[i] = e.scale > 0 ? (code - e.zero_point) * e.scale : 0;
  }
}

void FakeQuantizeGrad(const Call& c) {
  const Grid grid = GridOf(c);
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    const Element e = ElementAt(c, 1, static_cast<int64_t>(i));
    const bool inside = e.code >= grid.least && e.code <= grid.most;
    c.out().values[i] = inside && e.scale > 0 ? c.in(0).values[i] : 0;
  }
}

void FakeQuantizeScaleGrad(const Call& c) {
  const Grid grid = GridOf(c);
  for (size_t i = 0; i < c.in(0).values.size(); ++i) {
    const Element e = ElementAt(c, 1, static_cast<int64_t>(i));
    if (e.scale <= 0) continue;
    double slope = e.code - e.zero_point - e.quotient;
    if (e.code < grid.least) slope = grid.least - e.zero_point;
    if (e.code > grid.most) slope = grid.most - e.zero_point;
    c.out().values[ChannelAt(c, c.in(1).type, static_cast<int64_t>(i))] +=
        slope * c.in(0).values[i] * c.attributes.Float("factor", 1);
  }
}

void ValueRange(const Call& c) {
  for (size_t i = 0; i < c.in(0).values.size(); ++i) {
    const int64_t channel = ChannelAt(c, c.in(0).type, static_cast<int64_t>(i));
    double& low = c.out(0).values[channel];
    double& high = c.out(1).values[channel];
    low = std::min(low, c.in(0).values[i]);
    high = std::max(high, c.in(0).values[i]);
  }
}

void RangeUpdate(const Call& c) {
  const double m = c.attributes.Float("momentum", 0);
  const bool average = c.attributes.Int("average", 0) != 0;
  for (size_t i = 0; i < c.out(0).values.size(); ++i) {
    const double low = c.in(0).values[i], high = c.in(1).values[i];
    const double now_low = c.in(2).values[i], now_high = c.in(3).values[i];
    if (low == 0 && high == 0) {
      c.out(0).values[i] = now_low;
      c.out(1).values[i] = now_high;
    } else {
      c.out(0).values[i] =
          average ? m * low + (1 - m) * now_low : std::min(low, now_low);
      c.out(1).values[i] =
          average ? m * high + (1 - m) * now_high : std::max(high, now_high);
    }
  }
}

void QuantizationGrid(const Call& c) {
  const Grid grid = GridOf(c);
  for (size_t i = 0; i < c.out(0).values.size(); ++i) {
    const double low = c.in(0).values[i], high = c.in(1).values[i];
    double& scale = c.out(0).values[i];
    double& zero_point = c.out(1).values[i];
    if (c.attributes.Int("symmetric", 0) != 0) {
      scale = std::max(-low, high) / grid.most;
      if (scale <= 0) scale = 1;
      zero_point = 0;
      continue;
    }
    scale = (high - low) / (grid.most - grid.least);
    if (scale <= 0) scale = 1;
    zero_point = std::clamp(grid.least - std::nearbyint(low / scale),
                            grid.least, grid.most);
  }
}

}  // namespace

void AddQuantizeReferences(ReferenceTable& t) {
  t["FakeQuantize"] = FakeQuantize;
  t["FakeQuantizeGrad"] = FakeQuantizeGrad;
  t["FakeQuantizeScaleGrad"] = FakeQuantizeScaleGrad;
  t["ValueRange"] = ValueRange;
  t["RangeUpdate"] = RangeUpdate;
  t["QuantizationGrid"] = QuantizationGrid;
}

}  // namespace loadline::reference
