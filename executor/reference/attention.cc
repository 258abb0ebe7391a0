// References of attention, with the explicit matrix of probabilities, one query
// at a time.
#include <cmath>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

using models::Ints;

// One query of an attention: offsets of its row of q and of each key's rows of
// k and v, and the mask's summand for each score.
struct Query {
  const Call& c;
  const Array& q;
  const Array& k;
  const Array& v;
  int64_t row;       // among all rows of all heads
  int64_t position;  // in its head
  int64_t columns;

  bool interleaved() const { return c.attributes.Int("interleaved", 0) != 0; }
  // Offset of row `at` of this query's head, in a tensor shaped as q.
  int64_t Start(const Array& a, int64_t at) const {
    const Ints& dims = a.type.dims;
    const int64_t width = dims.back();
    if (!interleaved()) {
      return (row / q.type.dims[dims.size() - 2] * dims[dims.size() - 2] + at) *
             width;
    }
    const int64_t head = row / q.type.dims[1];
    return ((head / dims[2] * dims[1] + at) * dims[2] + head % dims[2]) * width;
  }
  double Dot(const Array& a, int64_t i, const Array& b, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < a.type.dims.back(); ++d) {
      sum += a.values[Start(a, i) + d] * b.values[Start(b, j) + d];
    }
    return sum;
  }
  bool Sees(int64_t column) const {
    return c.attributes.Int("causal", 0) == 0 || column <= position;
  }
  double Score(const Array* mask, const Ints& score_dims,
               int64_t column) const {
    double score = c.attributes.Float("scale", 1) * Dot(q, position, k, column);
    if (mask == nullptr) return score;
    Ints index(score_dims.size());
    int64_t rest = row * columns + column;
    for (size_t d = index.size(); d-- > 0;) {
      index[d] = rest % score_dims[d];
      rest /= score_dims[d];
    }
    return score + BroadcastAt(*mask, index);
  }
  // The factor by which dropout multiplies a probability.
  double Factor(int64_t column) const {
    const double ratio = c.attributes.Float("ratio", 0);
    return DropoutKeeps(c, ratio, row * columns + column) ? 1 / (1 - ratio) : 0;
  }
};

// Calls body with every query; `statistic` has one element per query.
template <typename Body>
void ForEachQuery(const Call& c, int first, const Array& statistic,
                  const Body& body) {
  const Array& q = c.in(first);
  const Array& k = c.in(first + 1);
  const size_t axis =
      c.attributes.Int("interleaved", 0) != 0 ? 1 : q.type.dims.size() - 2;
  Ints score_dims = statistic.type.dims;
  score_dims.push_back(k.type.dims[axis]);
  for (size_t row = 0; row < statistic.values.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    body(Query{c, q, k, c.in(first + 2), at, at % q.type.dims[axis],
               score_dims.back()},
         score_dims);
  }
}

void Attention(const Call& c) {
  const Array* mask = c.has(3) ? &c.in(3) : nullptr;
  ForEachQuery(c, 0, c.out(1), [&](const Query& query, const Ints& dims) {
    double sum = 0;
    for (int64_t t = 0; t < query.columns; ++t) {
      if (query.Sees(t)) sum += std::exp(query.Score(mask, dims, t));
    }
    c.out(1).values[query.row] = std::log(sum);
    const int64_t y = query.Start(c.out(0), query.position);
    for (int64_t t = 0; t < query.columns; ++t) {
      if (!query.Sees(t)) continue;
      const double p = std::exp(query.Score(mask, dims, t)) / sum;
      for (int64_t e = 0; e < query.v.type.dims.back(); ++e) {
        c.out(0).values[y + e] +=
            query.Factor(t) * p * query.v.values[query.Start(query.v, t) + e];
      }
    }
  });
}

void AttentionGrad(const Call& c) {
  const Array& dy = c.in(0);
  const Array* mask = c.has(6) ? &c.in(6) : nullptr;
  const double scale = c.attributes.Float("scale", 1);
  ForEachQuery(c, 1, c.in(5), [&](const Query& query, const Ints& dims) {
    const Array& q = query.q;
    const Array& k = query.k;
    const Array& v = query.v;
    const int64_t s = query.position;
    const double delta = query.Dot(dy, s, c.in(4), s);
    for (int64_t t = 0; t < query.columns; ++t) {
      if (!query.Sees(t)) continue;
      const double p =
          std::exp(query.Score(mask, dims, t) - c.in(5).values[query.row]);
      const double factor = query.Factor(t);
      const double ds = p * (factor * query.Dot(dy, s, v, t) - delta);
      for (int64_t d = 0; d < q.type.dims.back(); ++d) {
        c.out(0).values[query.Start(q, s) + d] +=
            scale * ds * k.values[query.Start(k, t) + d];
        c.out(1).values[query.Start(k, t) + d] +=
            scale * ds * q.values[query.Start(q, s) + d];
      }
      for (int64_t e = 0; e < v.type.dims.back(); ++e) {
        c.out(2).values[query.Start(v, t) + e] +=
            factor * p * dy.values[query.Start(dy, s) + e];
      }
    }
  });
}

}  // namespace

void AddAttentionReferences(ReferenceTable& t) {
  t["Attention"] = Attention;
  t["AttentionGrad"] = AttentionGrad;
}

}  // namespace loadline::reference
