// Sorted lists and searches through all of them, where kernels compute codes.
#include "executor/reference/state_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loadline::reference {
namespace {

constexpr size_t kBlock = 256, kBlockBytes = 260;

bool IsBlocks(const models::TensorType& type) {
  return type.dtype == models::DType::kU8;
}

Array Decoded(const Array& blocks, size_t count, bool has_sign) {
  const std::vector<double> numbers = StateNumbers(has_sign);
  const auto dims = {static_cast<int64_t>(count)};
  Array state = {{models::DType::kF32, dims}, std::vector<double>(count)};
  for (size_t i = 0; i < count; ++i) {
    const size_t block = i / kBlock * kBlockBytes;
    uint32_t word = 0;
    for (size_t b = 0; b < 4; ++b) {
      word |= static_cast<uint32_t>(blocks.values[block + b]) << (8 * b);
    }
    float scale;
    std::memcpy(&scale, &word, sizeof(scale));
    const double code = blocks.values[block + 4 + i % kBlock];
    state.values[i] = numbers[static_cast<size_t>(code)] * double{scale};
  }
  return state;
}

void Encode(const Array& state, bool has_sign, Array& blocks) {
  const std::vector<double> numbers = StateNumbers(has_sign);
  const size_t count = state.values.size();
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t end = std::min(count, first + kBlock);
    double most = 0;
    for (size_t i = first; i < end; ++i) {
      most = std::max(most, std::fabs(state.values[i]));
    }
    const auto scale = static_cast<float>(most);
    uint32_t word;
    std::memcpy(&word, &scale, sizeof(word));
    const size_t block = first / kBlock * kBlockBytes;
    for (size_t b = 0; b < 4; ++b) {
      blocks.values[block + b] = word >> (8 * b) & 255u;
    }
    for (size_t i = first; i < end; ++i) {
      blocks.values[block + 4 + i - first] =
          most == 0 ? 0 : NearestStateCode(numbers, state.values[i] / most);
    }
  }
}

}  // namespace

std::vector<double> StateNumbers(bool has_sign) {
  std::vector<double> positive;
  for (int z = 0; z < 7; ++z) {
    const int parts = 1 << ((has_sign ? 6 : 7) - z);
    for (int k = 0; k < parts; ++k) {
      const double low = 0.1 + 0.9 * k / parts;
      const double high = 0.1 + 0.9 * (k + 1) / parts;
      positive.push_back(std::pow(10, -z) * (low + high) / 2);
    }
  }
  std::sort(positive.begin(), positive.end());
  std::vector<double> numbers = {0};
  numbers.insert(numbers.end(), positive.begin(), positive.end());
  numbers.push_back(1);
  if (!has_sign) return numbers;
  for (double number : positive) numbers.push_back(-number);
  return numbers;
}

int NearestStateCode(const std::vector<double>& numbers, double x) {
  const bool has_sign = numbers.back() < 0;
  size_t nearest = !has_sign && x > 0 ? 1 : 0;
  for (size_t code = nearest; code < numbers.size(); ++code) {
    if (std::fabs(x - numbers[code]) < std::fabs(x - numbers[nearest])) {
      nearest = code;
    }
  }
  return static_cast<int>(nearest);
}

ReferenceFunction WithStateBlocks(const ReferenceFunction& update,
                                  const std::vector<bool>& has_sign) {
  return [update, has_sign](const Call& c) {
    if (!c.has(2) || !IsBlocks(c.in(2).type)) return update(c);
    const size_t rest = c.in(0).values.size() -
                        static_cast<size_t>(c.attributes.Int("start", 0));
    const size_t blocks = c.in(2).values.size() / kBlockBytes;
    std::vector<Array> states;
    for (size_t s = 0; s < has_sign.size(); ++s) {
      states.push_back(Decoded(c.in(static_cast<int>(2 + s)),
                               std::min(rest, blocks * kBlock), has_sign[s]));
    }
    std::vector<const Array*> inputs = c.inputs;
    std::vector<Array> outputs = {c.out(0)};
    for (size_t s = 0; s < states.size(); ++s) {
      inputs[2 + s] = &states[s];
      outputs.push_back(states[s]);
    }
    update(Call{c.attributes, inputs, outputs, c.scalars});
    c.out(0) = outputs[0];
    for (size_t s = 0; s < states.size(); ++s) {
      Encode(outputs[1 + s], has_sign[s], c.out(static_cast<int>(1 + s)));
    }
  };
}

}  // namespace loadline::reference
