// References of softmax, and of losses and the counts that go with them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

using models::Ints;

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

}  // namespace

void AddLossReferences(ReferenceTable& t) {
  t["Softmax"] = [](const Call& c) { Softmax(c, false); };
  t["LogSoftmax"] = [](const Call& c) { Softmax(c, true); };
  t["SoftmaxGrad"] = [](const Call& c) { SoftmaxGrad(c, false); };
  t["LogSoftmaxGrad"] = [](const Call& c) { SoftmaxGrad(c, true); };
  t["SoftmaxCrossEntropy"] = CrossEntropy;
  t["SoftmaxCrossEntropyGrad"] = CrossEntropyGrad;
  t["CrossEntropyRows"] = CrossEntropyRows;
  t["CrossEntropyMean"] = CrossEntropyMean;
  t["CountCorrect"] = CountCorrect;
  t["CountTargets"] = CountTargets;
  t["MseLoss"] = Mse;
  t["MseLossGrad"] = MseGrad;
}

}  // namespace loadline::reference
