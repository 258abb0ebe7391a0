// References of layers without a sliding window: normalization, softmax,
// dropout, losses, optimizers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/reference/reference.h"
#include "executor/reference/state_blocks.h"

namespace loadline::reference {
namespace {

using models::Ints;

// Positions of the elements of each channel.
std::vector<std::vector<int64_t>> Channels(const Ints& dims) {
  std::vector<std::vector<int64_t>> channels(dims[1]);
  ForEachIndex(dims, [&](const Ints& index) {
    channels[index[1]].push_back(Position(dims, index));
  });
  return channels;
}

// Positions of the elements of each row, which is all dimensions from `axis`
// on.
std::vector<std::vector<int64_t>> Rows(const Call& c, const Ints& dims) {
  int64_t axis = c.attributes.Int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  int64_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= dims[d];
  int64_t total = 1;
  for (int64_t d : dims) total *= d;
  std::vector<std::vector<int64_t>> made(rows);
  for (int64_t i = 0; i < total; ++i) made[i / (total / rows)].push_back(i);
  return made;
}

// Mean and 1 / sqrt(variance + epsilon) of the elements at `at`.
void Statistics(const Array& x, const std::vector<int64_t>& at, double epsilon,
                double& mean, double& rstd) {
  mean = 0;
  for (int64_t i : at) mean += x.values[i] / static_cast<double>(at.size());
  double variance = 0;
  for (int64_t i : at) {
    variance += (x.values[i] - mean) * (x.values[i] - mean) /
                static_cast<double>(at.size());
  }
  rstd = 1 / std::sqrt(variance + epsilon);
}

void BatchNormTraining(const Call& c) {
  const auto channels = Channels(c.in(0).type.dims);
  for (size_t k = 0; k < channels.size(); ++k) {
    double mean = 0;
    double rstd = 0;
    Statistics(c.in(0), channels[k], c.attributes.Float("epsilon", 1e-5), mean,
               rstd);
    for (int64_t i : channels[k]) {
      c.out().values[i] =
          (c.in(0).values[i] - mean) * rstd * c.in(1).values[k] +
          c.in(2).values[k];
    }
    c.out(1).values[k] = mean;
    c.out(2).values[k] = rstd;
  }
}

void BatchNormalization(const Call& c) {
  const auto channels = Channels(c.in(0).type.dims);
  for (size_t k = 0; k < channels.size(); ++k) {
    const double rstd =
        1 / std::sqrt(c.in(4).values[k] + c.attributes.Float("epsilon", 1e-5));
    for (int64_t i : channels[k]) {
      c.out().values[i] =
          (c.in(0).values[i] - c.in(3).values[k]) * rstd * c.in(1).values[k] +
          c.in(2).values[k];
    }
  }
}

void BatchNormGrad(const Call& c) {
  const Array& dy = c.in(0);
  const Array& x = c.in(1);
  const auto channels = Channels(x.type.dims);
  for (size_t k = 0; k < channels.size(); ++k) {
    const double mean = c.in(3).values[k];
    const double rstd = c.in(4).values[k];
    const auto count = static_cast<double>(channels[k].size());
    double dscale = 0;
    double dbias = 0;
    for (int64_t i : channels[k]) {
      dscale += dy.values[i] * (x.values[i] - mean) * rstd;
      dbias += dy.values[i];
    }
    for (int64_t i : channels[k]) {
      const double xhat = (x.values[i] - mean) * rstd;
      c.out().values[i] =
          c.in(2).values[k] * rstd *
          (dy.values[i] - dbias / count - xhat * dscale / count);
    }
    c.out(1).values[k] = dscale;
    c.out(2).values[k] = dbias;
  }
}

void RunningStatsUpdate(const Call& c) {
  const double keep = c.attributes.Float("momentum", 0.9);
  const auto count = static_cast<double>(c.attributes.Int("count", 1));
  for (size_t k = 0; k < c.out().values.size(); ++k) {
    double mean = c.in(0).values[k];
    double variance = c.in(1).values[k];
    for (int i = 2; c.has(i); i += 2) {
      const double rstd = c.in(i + 1).values[k];
      const double biased =
          1 / (rstd * rstd) - c.attributes.Float("epsilon", 1e-5);
      mean = keep * mean + (1 - keep) * c.in(i).values[k];
      variance = keep * variance + (1 - keep) * biased * count / (count - 1);
    }
    c.out(0).values[k] = mean;
    c.out(1).values[k] = variance;
  }
}

void LayerNormalization(const Call& c) {
  const auto rows = Rows(c, c.in(0).type.dims);
  for (size_t r = 0; r < rows.size(); ++r) {
    double mean = 0;
    double rstd = 0;
    Statistics(c.in(0), rows[r], c.attributes.Float("epsilon", 1e-5), mean,
               rstd);
    for (size_t j = 0; j < rows[r].size(); ++j) {
      const int64_t i = rows[r][j];
      c.out().values[i] =
          (c.in(0).values[i] - mean) * rstd * c.in(1).values[j] +
          (c.has(2) ? c.in(2).values[j] : 0.0);
    }
    c.out(1).values[r] = mean;
    c.out(2).values[r] = rstd;
  }
}

void LayerNormGrad(const Call& c) {
  const auto rows = Rows(c, c.in(1).type.dims);
  for (size_t r = 0; r < rows.size(); ++r) {
    const double mean = c.in(3).values[r];
    const double rstd = c.in(4).values[r];
    const auto size = static_cast<double>(rows[r].size());
    double mean_g = 0;
    double mean_gx = 0;
    for (size_t j = 0; j < rows[r].size(); ++j) {
      const int64_t i = rows[r][j];
      const double xhat = (c.in(1).values[i] - mean) * rstd;
      const double g = c.in(0).values[i] * c.in(2).values[j];
      mean_g += g / size;
      mean_gx += g * xhat / size;
      c.out(1).values[j] += c.in(0).values[i] * xhat;
      c.out(2).values[j] += c.in(0).values[i];
    }
    for (size_t j = 0; j < rows[r].size(); ++j) {
      const int64_t i = rows[r][j];
      const double xhat = (c.in(1).values[i] - mean) * rstd;
      c.out().values[i] = rstd * (c.in(0).values[i] * c.in(2).values[j] -
                                  mean_g - xhat * mean_gx);
    }
  }
}

// Positions of the elements of every line along an axis.
std::vector<std::vector<int64_t>> Lines(const Ints& dims, int64_t axis) {
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  Ints others = dims;
  others[axis] = 1;
  std::vector<std::vector<int64_t>> lines;
  ForEachIndex(others, [&](const Ints& index) {
    std::vector<int64_t> line;
    Ints at = index;
    for (at[axis] = 0; at[axis] < dims[axis]; ++at[axis]) {
      line.push_back(Position(dims, at));
    }
    lines.push_back(line);
  });
  return lines;
}

double LogSumExp(const Array& x, const std::vector<int64_t>& line) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i : line) largest = std::max(largest, x.values[i]);
  double sum = 0;
  for (int64_t i : line) sum += std::exp(x.values[i] - largest);
  return largest + std::log(sum);
}

void Softmax(const Call& c, bool log) {
  for (const auto& line :
       Lines(c.in(0).type.dims, c.attributes.Int("axis", -1))) {
    const double lse = LogSumExp(c.in(0), line);
    for (int64_t i : line) {
      const double value = c.in(0).values[i] - lse;
      c.out().values[i] = log ? value : std::exp(value);
    }
  }
}

void SoftmaxGrad(const Call& c, bool log) {
  const Array& dy = c.in(0);
  const Array& y = c.in(1);
  for (const auto& line : Lines(y.type.dims, c.attributes.Int("axis", -1))) {
    double sum = 0;
    for (int64_t i : line)
      sum += log ? dy.values[i] : dy.values[i] * y.values[i];
    for (int64_t i : line) {
      c.out().values[i] = log ? dy.values[i] - std::exp(y.values[i]) * sum
                              : y.values[i] * (dy.values[i] - sum);
    }
  }
}

void Dropout(const Call& c) {
  const double ratio = c.attributes.Float("ratio", 0.5);
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    c.out().values[i] =
        DropoutKeeps(c, ratio, i) ? c.in(0).values[i] / (1 - ratio) : 0.0;
  }
}

uint32_t RandomWord(const Call& c, int64_t element) {
  const int64_t i = element + c.attributes.Int("offset", 0);
  return Philox(
      {static_cast<uint32_t>(i / 4), 0, static_cast<uint32_t>(c.scalars.step),
       static_cast<uint32_t>(c.attributes.Int("salt", 0))},
      c.scalars.seed)[i % 4];
}

void RandomUniform(const Call& c) {
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    c.out().values[i] = c.in(0).values[0] *
                        std::floor(std::ldexp(RandomWord(c, i), -8)) * 0x1p-24;
  }
}

constexpr double kIgnored = -100;  // torch's ignore_index

void CrossEntropy(const Call& c) {
  const auto lines =
      Lines(c.in(0).type.dims, c.attributes.Int("class_axis", -1));
  double sum = 0, counted = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const double lse = LogSumExp(c.in(0), lines[i]);
    c.out(1).values[i] = lse;
    if (c.in(1).values[i] == kIgnored) continue;
    const auto target = static_cast<size_t>(c.in(1).values[i]);
    const double weight = c.has(3) ? c.in(3).values[target] : 1;
    sum += weight * (lse - c.in(0).values[lines[i][target]]);
    counted += weight;
  }
  c.out(0).values[0] = sum / (c.has(2) ? c.in(2).values[0] : counted);
}

void CrossEntropyRows(const Call& c) {
  const auto lines =
      Lines(c.in(0).type.dims, c.attributes.Int("class_axis", -1));
  for (size_t i = 0; i < lines.size(); ++i) {
    c.out(0).values[i] = LogSumExp(c.in(0), lines[i]);
    if (c.in(1).values[i] == kIgnored) continue;
    const auto target = static_cast<size_t>(c.in(1).values[i]);
    c.out(1).values[i] = c.in(0).values[lines[i][target]];
  }
}

void CrossEntropyMean(const Call& c) {
  double sum = 0, counted = 0;
  for (size_t i = 0; i < c.in(2).values.size(); ++i) {
    if (c.in(2).values[i] == kIgnored) continue;
    sum += c.in(0).values[i] - c.in(1).values[i];
    ++counted;
  }
  c.out(0).values[0] = sum / (c.has(3) ? c.in(3).values[0] : counted);
}

void CrossEntropyGrad(const Call& c) {
  const Array& logits = c.in(1);
  const auto lines =
      Lines(logits.type.dims, c.attributes.Int("class_axis", -1));
  const auto weight_of = [&c](double target) {
    if (target == kIgnored) return 0.0;
    return c.has(5) ? c.in(5).values[static_cast<size_t>(target)] : 1.0;
  };
  double counted = 0;
  for (const double target : c.in(2).values) counted += weight_of(target);
  if (c.has(4)) counted = c.in(4).values[0];
  for (size_t i = 0; i < lines.size(); ++i) {
    if (c.in(2).values[i] == kIgnored) {
      for (const int64_t at : lines[i]) c.out().values[at] = 0;
      continue;
    }
    const auto target = static_cast<size_t>(c.in(2).values[i]);
    const double scale =
        c.in(0).values[0] * weight_of(c.in(2).values[i]) / counted;
    for (size_t k = 0; k < lines[i].size(); ++k) {
      const int64_t at = lines[i][k];
      c.out().values[at] =
          scale * (std::exp(logits.values[at] - c.in(3).values[i]) -
                   (k == target ? 1.0 : 0.0));
    }
  }
}

void CountTargets(const Call& c) {
  const bool weighted = c.inputs.back()->type.dtype == models::DType::kF32;
  for (size_t i = 0; i + (weighted ? 1 : 0) < c.inputs.size(); ++i) {
    for (const double t : c.inputs[i]->values) {
      if (t == kIgnored) continue;
      c.out().values[0] +=
          weighted ? c.inputs.back()->values.at(static_cast<size_t>(t)) : 1;
    }
  }
}

void CountCorrect(const Call& c) {
  const auto lines =
      Lines(c.in(0).type.dims, c.attributes.Int("class_axis", -1));
  for (size_t i = 0; i < lines.size(); ++i) {
    size_t best = 0;
    for (size_t k = 0; k < lines[i].size(); ++k) {
      if (c.in(0).values[lines[i][k]] > c.in(0).values[lines[i][best]]) {
        best = k;
      }
    }
    c.out().values[0] += static_cast<double>(best) == c.in(1).values[i];
  }
}

void Mse(const Call& c) {
  const auto n = static_cast<double>(c.in(0).values.size());
  for (size_t i = 0; i < c.in(0).values.size(); ++i) {
    const double d = c.in(0).values[i] - c.in(1).values[i];
    c.out().values[0] += d * d / n;
  }
}

void MseGrad(const Call& c) {
  const auto n = static_cast<double>(c.in(1).values.size());
  for (size_t i = 0; i < c.in(1).values.size(); ++i) {
    c.out().values[i] =
        c.in(0).values[0] * 2 / n * (c.in(1).values[i] - c.in(2).values[i]);
  }
}

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

// Philox 4x32-10, one counter at a time.
std::vector<uint32_t> Philox(std::vector<uint32_t> counter, uint64_t seed) {
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

bool DropoutKeeps(const Call& c, double ratio, int64_t i) {
  return RandomWord(c, i) / 4294967296.0 >= ratio;
}

void AddNetworkReferences(ReferenceTable& t) {
  t["BatchNormalization"] = BatchNormalization;
  t["BatchNormTraining"] = BatchNormTraining;
  t["BatchNormGrad"] = BatchNormGrad;
  t["RunningStatsUpdate"] = RunningStatsUpdate;
  t["LayerNormalization"] = LayerNormalization;
  t["LayerNormGrad"] = LayerNormGrad;
  t["Softmax"] = [](const Call& c) { Softmax(c, false); };
  t["LogSoftmax"] = [](const Call& c) { Softmax(c, true); };
  t["SoftmaxGrad"] = [](const Call& c) { SoftmaxGrad(c, false); };
  t["LogSoftmaxGrad"] = [](const Call& c) { SoftmaxGrad(c, true); };
  t["Dropout"] = Dropout;
  t["RandomUniform"] = RandomUniform;
  t["SoftmaxCrossEntropy"] = CrossEntropy;
  t["SoftmaxCrossEntropyGrad"] = CrossEntropyGrad;
  t["CrossEntropyRows"] = CrossEntropyRows;
  t["CrossEntropyMean"] = CrossEntropyMean;
  t["CountCorrect"] = CountCorrect;
  t["CountTargets"] = CountTargets;
  t["MseLoss"] = Mse;
  t["MseLossGrad"] = MseGrad;
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
