// References of optimizers' updates, of clipping and of averaged weights.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "executor/reference/reference.h"
#include "executor/reference/state_blocks.h"

namespace loadline::reference {
namespace {

// An update's own learning rate and count are inputs i and i + 1.
double RateOf(const Call& c, int i) {
  return (c.has(i) ? c.in(i).values[0] : c.scalars.learning_rate) *
         c.attributes.Float("rate", 1);
}
double EarlierUpdates(const Call& c, int i) {
  return c.has(i) ? c.in(i + 1).values[0]
                  : static_cast<double>(c.scalars.step) - 1;
}
double FactorOf(const Call& c, int i) {
  return c.has(i) ? c.in(i).values[0] : 1;
}

// Elements that an update with the attribute `start` leaves as they are.
// Returns the first one that it changes.
size_t KeepOthers(const Call& c) {
  if (!c.attributes.Has("start")) return 0;
  c.out().values = c.in(0).values;
  return static_cast<size_t>(c.attributes.Int("start", 0));
}
// How many it changes: as many as its states have.
size_t Updated(const Call& c) {
  return c.attributes.Has("start") ? c.in(2).values.size()
                                   : c.out().values.size();
}

// As in torch.optim.SGD's documentation.
void Sgd(const Call& c) {
  const size_t start = KeepOthers(c);
  const double momentum = c.attributes.Float("momentum", 0);
  const double share =
      EarlierUpdates(c, 4) == 0 ? 1 : 1 - c.attributes.Float("dampening", 0);
  for (size_t i = 0; i < Updated(c); ++i) {
    const size_t at = start + i;
    double g = c.in(1).values[at] * FactorOf(c, 3) +
               c.attributes.Float("weight_decay", 0) * c.in(0).values[at];
    if (c.has(2)) {
      const double buffer = momentum * c.in(2).values[i] + share * g;
      c.out(1).values[i] = buffer;
      g = c.attributes.Int("nesterov", 0) != 0 ? g + momentum * buffer : buffer;
    }
    c.out(0).values[at] = c.in(0).values[at] - RateOf(c, 4) * g;
  }
}

// As in the documentation of torch.optim.AdamW, and of Adam, where the decay is
// part of the gradient; with epsilon_hat as ONNX defines its Adam.
void Adam(const Call& c, bool coupled) {
  const size_t start = KeepOthers(c);
  const double beta1 = c.attributes.Float("beta1", 0.9);
  const double beta2 = c.attributes.Float("beta2", 0.999);
  const double rate = RateOf(c, 5);
  const double decay = c.attributes.Float("weight_decay", 0.01);
  const double epsilon = c.attributes.Float("epsilon", 1e-8);
  const bool hat = c.attributes.Int("epsilon_hat", 0) != 0;
  const double t = EarlierUpdates(c, 5) + (c.has(5) ? 0 : 1);
  const double correct1 = t > 0 ? 1 - std::pow(beta1, t) : 1;
  const double correct2 = t > 0 ? 1 - std::pow(beta2, t) : 1;
  for (size_t i = 0; i < Updated(c); ++i) {
    const size_t at = start + i;
    const double g = c.in(1).values[at] * FactorOf(c, 4) +
                     (coupled ? decay * c.in(0).values[at] : 0);
    const double m = beta1 * c.in(2).values[i] + (1 - beta1) * g;
    const double v = beta2 * c.in(3).values[i] + (1 - beta2) * g * g;
    const double root = hat ? (std::sqrt(v) + epsilon) / std::sqrt(correct2)
                            : std::sqrt(v / correct2) + epsilon;
    const double p = c.in(0).values[at] * (coupled ? 1 : 1 - rate * decay);
    c.out(0).values[at] = (p - rate * (m / correct1) / root) *
                          (1 - c.attributes.Float("decay_after", 0));
    c.out(1).values[i] = m;
    c.out(2).values[i] = v;
  }
}

// As in torch.optim.Adagrad's documentation.
void Adagrad(const Call& c) {
  const size_t start = KeepOthers(c);
  const double rate =
      RateOf(c, 4) /
      (1 + EarlierUpdates(c, 4) * c.attributes.Float("rate_decay", 0));
  for (size_t i = 0; i < Updated(c); ++i) {
    const size_t at = start + i;
    const double p = c.in(0).values[at];
    const double g = c.in(1).values[at] * FactorOf(c, 3) +
                     c.attributes.Float("weight_decay", 0) * p;
    const double sum = c.in(2).values[i] + g * g;
    c.out(0).values[at] =
        p - rate * g / (std::sqrt(sum) + c.attributes.Float("epsilon", 0));
    c.out(1).values[i] = sum;
  }
}

// As in torch.optim.Adafactor's documentation, with squares of the gradient's
// norms as means: those of rows, of columns, or of single elements.
void Adafactor(const Call& c) {
  const Array &p = c.in(0), &g = c.in(1);
  const auto& dims = p.type.dims;
  const size_t rank = dims.size(), n = p.values.size();
  const auto states = static_cast<int>(c.outputs.size()) - 1;
  for (int s = 0; s < states; ++s) c.out(1 + s) = c.in(2 + s);
  if (n == 0) return;
  const auto columns = static_cast<size_t>(rank < 2 ? n : dims[rank - 1]);
  const auto rows = static_cast<size_t>(rank < 2 ? 1 : dims[rank - 2]);
  const auto gradient = [&](size_t i) { return g.values[i] * FactorOf(c, 4); };
  const auto average = [&](double& state, double mean) {
    state += std::pow(c.scalars.step, c.attributes.Float("beta2_decay", 0)) *
             (mean - state);
  };
  // The state that element i belongs to.
  const auto row_of = [&](size_t i) { return rank < 2 ? i : i / columns; };
  const auto column_of = [&](size_t i) {
    return i / (rows * columns) * columns + i % columns;
  };
  std::vector<double> row_mean(c.out(1).values.size());
  std::vector<double> column_mean(n / rows);
  for (size_t i = 0; i < n; ++i) {
    const double square = gradient(i) * gradient(i);
    row_mean[row_of(i)] += square / (rank < 2 ? 1.0 : double(columns));
    column_mean[column_of(i)] += square / double(rows);
  }
  for (size_t r = 0; r < row_mean.size(); ++r) {
    average(c.out(1).values[r], row_mean[r]);
  }
  if (rank >= 2) {
    for (size_t i = 0; i < column_mean.size(); ++i) {
      average(c.out(2).values[i], column_mean[i]);
    }
  }
  const double epsilon1 = c.attributes.Float("epsilon1", 0);
  std::vector<double> update(n);
  double update_squares = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) {
    double estimate = c.out(1).values[row_of(i)];
    if (rank >= 2) {
      const size_t m = i / (rows * columns);
      double mean = 0;
      for (size_t r = 0; r < rows; ++r) {
        mean += c.out(1).values[m * rows + r] / double(rows);
      }
      estimate *= c.out(2).values[column_of(i)] / std::max(mean, epsilon1);
    }
    update[i] =
        gradient(i) / std::sqrt(std::max(estimate, epsilon1 * epsilon1));
    update_squares += update[i] * update[i];
    squares += p.values[i] * p.values[i];
  }
  const double rate = RateOf(c, 5);
  const double rho = std::min(rate, 1 / std::sqrt(double(c.scalars.step)));
  const double alpha = std::max(c.attributes.Float("epsilon2", 0),
                                std::sqrt(squares / double(n))) *
                       rho;
  const double denominator =
      std::max(1.0, std::sqrt(update_squares / double(n)) /
                        c.attributes.Float("threshold", 1));
  for (size_t i = 0; i < n; ++i) {
    c.out(0).values[i] =
        p.values[i] * (1 - rate * c.attributes.Float("weight_decay", 0)) -
        alpha / denominator * update[i];
  }
}

// As in algorithm 2 of the paper.
void Lion(const Call& c) {
  const size_t start = KeepOthers(c);
  const double beta1 = c.attributes.Float("beta1", 0.9);
  const double beta2 = c.attributes.Float("beta2", 0.99);
  const double decay = c.attributes.Float("weight_decay", 0);
  for (size_t i = 0; i < Updated(c); ++i) {
    const size_t at = start + i;
    const double g = c.in(1).values[at] * FactorOf(c, 3);
    const double p = c.in(0).values[at], m = c.in(2).values[i];
    const double update = beta1 * m + (1 - beta1) * g;
    const double sign = (update > 0) - (update < 0);
    c.out(0).values[at] = p - RateOf(c, 4) * (sign + decay * p);
    c.out(1).values[i] = beta2 * m + (1 - beta2) * g;
  }
}

void AverageUpdate(const Call& c) {
  const double decay = c.attributes.Float("decay", 0);
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    c.out().values[i] =
        decay * c.in(0).values[i] + (1 - decay) * c.in(1).values[i];
  }
}

void SumSquares(const Call& c) {
  for (double x : c.in(0).values) c.out().values[0] += x * x;
}

void ClipFactor(const Call& c) {
  double sum = 0;
  for (double x : c.in(0).values) sum += x;
  c.out().values[0] = std::min(
      1.0, c.attributes.Float("max_norm", 1) / (std::sqrt(sum) + 1e-6));
}

}  // namespace

void AddUpdateReferences(ReferenceTable& t) {
  t["Sgd"] = WithStateBlocks(Sgd, {true});
  t["AdamW"] =
      WithStateBlocks([](const Call& c) { Adam(c, false); }, {true, false});
  t["Adam"] =
      WithStateBlocks([](const Call& c) { Adam(c, true); }, {true, false});
  t["Lion"] = WithStateBlocks(Lion, {true});
  t["Adagrad"] = Adagrad;
  t["Adafactor"] = Adafactor;
  t["AverageUpdate"] = AverageUpdate;
  t["SumSquares"] = SumSquares;
  t["ClipFactor"] = ClipFactor;
}

}  // namespace loadline::reference
