// References of batch and layer normalization.
#include <cmath>
#include <cstdint>
#include <vector>

#include "executor/reference/reference.h"

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

}  // namespace

void AddNormalizationReferences(ReferenceTable& t) {
  t["BatchNormalization"] = BatchNormalization;
  t["BatchNormTraining"] = BatchNormTraining;
  t["BatchNormGrad"] = BatchNormGrad;
  t["RunningStatsUpdate"] = RunningStatsUpdate;
  t["LayerNormalization"] = LayerNormalization;
  t["LayerNormGrad"] = LayerNormGrad;
}

}  // namespace loadline::reference
