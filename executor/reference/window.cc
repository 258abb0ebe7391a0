// References of layers with a sliding window: convolution and pooling.
#include <functional>
#include <limits>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

using models::Ints;

// A window sliding over [N, C, H, W] or [N, C, L] images.
struct Window {
  Ints kernel, strides, dilations, pads;

  Window(const Call& c, const Ints& kernel_shape)
      : kernel(kernel_shape),
        strides(c.attributes.IntList("strides", Ints(kernel.size(), 1))),
        dilations(c.attributes.IntList("dilations", Ints(kernel.size(), 1))),
        pads(c.attributes.IntList("pads", Ints(2 * kernel.size(), 0))) {}

  // Image coordinates of kernel position k of output o; padding may make them
  // negative or too large.
  Ints At(const Ints& o, const Ints& k) const {
    Ints at(kernel.size());
    for (size_t d = 0; d < kernel.size(); ++d) {
      at[d] = o[d] * strides[d] - pads[d] + k[d] * dilations[d];
    }
    return at;
  }
};

bool Inside(const Ints& at, const Ints& size) {
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < 0 || at[d] >= size[d]) return false;
  }
  return true;
}

Ints Spatial(const Ints& dims) { return Ints(dims.begin() + 2, dims.end()); }

Ints Join(int64_t n, int64_t c, const Ints& spatial) {
  Ints index = {n, c};
  index.insert(index.end(), spatial.begin(), spatial.end());
  return index;
}

// Calls body(x position, w position, y position) for every multiplication of a
// convolution; gradients use the same loop with another target.
void ForProducts(const Call& c, const Ints& x, const Ints& w, const Ints& y,
                 const std::function<void(int64_t, int64_t, int64_t)>& body) {
  const Window window(c, Spatial(w));
  const int64_t group = c.attributes.Int("group", 1);
  const int64_t out_per_group = w[0] / group;
  ForEachIndex(y, [&](const Ints& o) {
    const int64_t first = o[1] / out_per_group * w[1];
    for (int64_t i = 0; i < w[1]; ++i) {
      ForEachIndex(window.kernel, [&](const Ints& k) {
        const Ints at = window.At(Spatial(o), k);
        if (!Inside(at, Spatial(x))) return;
        body(Position(x, Join(o[0], first + i, at)),
             Position(w, Join(o[1], i, k)), Position(y, o));
      });
    }
  });
}

void Conv(const Call& c) {
  const Ints& y = c.out().type.dims;
  ForProducts(c, c.in(0).type.dims, c.in(1).type.dims, y,
              [&](int64_t xi, int64_t wi, int64_t yi) {
                c.out().values[yi] += c.in(0).values[xi] * c.in(1).values[wi];
              });
  if (!c.has(2)) return;
  ForEachIndex(y, [&](const Ints& o) {
    c.out().values[Position(y, o)] += c.in(2).values[o[1]];
  });
}

void ConvInputGrad(const Call& c) {
  ForProducts(c, c.out().type.dims, c.in(1).type.dims, c.in(0).type.dims,
              [&](int64_t xi, int64_t wi, int64_t yi) {
                c.out().values[xi] += c.in(0).values[yi] * c.in(1).values[wi];
              });
}

void ConvWeightGrad(const Call& c) {
  ForProducts(c, c.in(1).type.dims, c.out().type.dims, c.in(0).type.dims,
              [&](int64_t xi, int64_t wi, int64_t yi) {
                c.out().values[wi] += c.in(0).values[yi] * c.in(1).values[xi];
              });
}

void MaxPool(const Call& c) {
  const Ints& x = c.in(0).type.dims;
  const Ints& y = c.out().type.dims;
  const Window window(c, c.attributes.IntList("kernel_shape"));
  ForEachIndex(y, [&](const Ints& o) {
    double best = -std::numeric_limits<double>::infinity();
    int64_t where = -1;
    ForEachIndex(window.kernel, [&](const Ints& k) {
      const Ints at = window.At(Spatial(o), k);
      if (!Inside(at, Spatial(x))) return;
      const double value = c.in(0).values[Position(x, Join(o[0], o[1], at))];
      if (value > best) {
        best = value;
        where = Position(Spatial(x), at);
      }
    });
    c.out(0).values[Position(y, o)] = best;
    c.out(1).values[Position(y, o)] = static_cast<double>(where);
  });
}

void MaxPoolGrad(const Call& c) {
  const Ints& y = c.in(0).type.dims;
  const Ints& x = c.out().type.dims;
  int64_t plane = 1;
  for (int64_t d : Spatial(x)) plane *= d;
  ForEachIndex(y, [&](const Ints& o) {
    const int64_t i = Position(y, o);
    const auto where = static_cast<int64_t>(c.in(1).values[i]);
    c.out().values[(o[0] * x[1] + o[1]) * plane + where] += c.in(0).values[i];
  });
}

// Calls body(x position, y position, divisor) for every term of an average
// pool.
void ForAverages(const Call& c, const Ints& x, const Ints& y,
                 const std::function<void(int64_t, int64_t, double)>& body) {
  const Window window(c, c.attributes.IntList("kernel_shape"));
  const bool padding = c.attributes.Int("count_include_pad", 0) != 0;
  const Ints size = Spatial(x);
  ForEachIndex(y, [&](const Ints& o) {
    std::vector<Ints> inside;
    int64_t padded = 0;
    ForEachIndex(window.kernel, [&](const Ints& k) {
      const Ints at = window.At(Spatial(o), k);
      if (Inside(at, size)) inside.push_back(at);
      bool counts = true;
      for (size_t d = 0; d < size.size(); ++d) {
        counts = counts && at[d] < size[d] + window.pads[size.size() + d];
      }
      padded += counts;
    });
    for (const Ints& at : inside) {
      body(Position(x, Join(o[0], o[1], at)), Position(y, o),
           static_cast<double>(padding ? padded
                                       : static_cast<int64_t>(inside.size())));
    }
  });
}

void AveragePool(const Call& c) {
  ForAverages(c, c.in(0).type.dims, c.out().type.dims,
              [&](int64_t x, int64_t y, double divisor) {
                c.out().values[y] += c.in(0).values[x] / divisor;
              });
}

void AveragePoolGrad(const Call& c) {
  ForAverages(c, c.out().type.dims, c.in(0).type.dims,
              [&](int64_t x, int64_t y, double divisor) {
                c.out().values[x] += c.in(0).values[y] / divisor;
              });
}

}  // namespace

void AddWindowReferences(ReferenceTable& t) {
  t["Conv"] = Conv;
  t["ConvInputGrad"] = ConvInputGrad;
  t["ConvWeightGrad"] = ConvWeightGrad;
  t["MaxPool"] = MaxPool;
  t["MaxPoolGrad"] = MaxPoolGrad;
  t["AveragePool"] = AveragePool;
  t["AveragePoolGrad"] = AveragePoolGrad;
}

}  // namespace loadline::reference
