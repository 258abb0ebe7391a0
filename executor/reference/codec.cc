// Codecs by their definition: numbers as their bytes, one element at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

constexpr size_t kGroup = 256;

void PutBits(Array& bytes, size_t at_bit, unsigned value, int bits) {
  for (int b = 0; b < bits; ++b) {
    const size_t bit = at_bit + static_cast<size_t>(b);
    if ((value >> b & 1u) != 0) {
      bytes.values[bit / 8] += static_cast<double>(1 << (bit % 8));
    }
  }
}

unsigned GetBits(const Array& bytes, size_t at_bit, int bits) {
  unsigned value = 0;
  for (int b = 0; b < bits; ++b) {
    const size_t bit = at_bit + static_cast<size_t>(b);
    value |= (static_cast<unsigned>(bytes.values[bit / 8]) >> (bit % 8) & 1u)
             << b;
  }
  return value;
}

int BitsOf(const std::string& codec) {
  if (codec == "bits" || codec == "positive") return 1;
  return codec.back() == '8' ? 8 : codec.back() == '6' ? 16 : 32;
}

void PutFloat(Array& bytes, size_t at, float value) {
  unsigned word = 0;
  std::memcpy(&word, &value, sizeof(word));
  PutBits(bytes, 8 * at, word, 32);
}

// The number in [0, 1) of an element.
float Uniform(const Call& c, size_t e) {
  const unsigned word = Philox(
      {static_cast<uint32_t>(e / 4), 0, static_cast<uint32_t>(c.scalars.step),
       static_cast<uint32_t>(c.attributes.Int("salt", 0))},
      c.scalars.seed)[e % 4];
  return static_cast<float>(std::floor(std::ldexp(word, -8)) * 0x1p-24);
}

void EncodeGroups(const Call& c, int bits, bool stochastic) {
  const std::vector<double>& x = c.in(0).values;
  const size_t groups = (x.size() + kGroup - 1) / kGroup;
  const float top = static_cast<float>((1 << bits) - 1);
  for (size_t g = 0; g < groups; ++g) {
    const size_t end = std::min(x.size(), (g + 1) * kGroup);
    const auto [least, most] =
        std::minmax_element(x.begin() + g * kGroup, x.begin() + end);
    const auto low = static_cast<float>(*least);
    const float step = (static_cast<float>(*most) - low) / top;
    PutFloat(c.out(), 8 * g, low);
    PutFloat(c.out(), 8 * g + 4, step);
    if (step == 0) continue;
    const float inverse = 1.0f / step;
    for (size_t e = g * kGroup; e < end; ++e) {
      // Two roundings: of the difference, and of the sum with the product.
      const float difference = static_cast<float>(x[e]) - low;
      const float level =
          std::fma(difference, inverse, stochastic ? Uniform(c, e) : 0.5f);
      PutBits(c.out(), 64 * groups + e * static_cast<size_t>(bits),
              static_cast<unsigned>(std::min(level, top)), bits);
    }
  }
}

void Encode(const Call& c) {
  const std::string codec = c.attributes.String("codec", "");
  if (codec.rfind("group", 0) == 0) {
    EncodeGroups(c, codec[5] - '0', codec.find("nearest") == codec.npos);
    return;
  }
  const int bits = BitsOf(codec);
  for (size_t e = 0; e < c.in(0).values.size(); ++e) {
    const double x = c.in(0).values[e];
    unsigned stored = 0;
    if (codec == "positive") {
      stored = x > 0 ? 1 : 0;
    } else if (codec == "bf16") {
      const auto narrow = static_cast<float>(x);
      std::memcpy(&stored, &narrow, sizeof(stored));
      stored >>= 16;
    } else {
      stored = static_cast<unsigned>(static_cast<int64_t>(x));
    }
    PutBits(c.out(), e * static_cast<size_t>(bits), stored, bits);
  }
}

void Decode(const Call& c) {
  const std::string codec = c.attributes.String("codec", "");
  const int bits = BitsOf(codec);
  for (size_t e = 0; e < c.out().values.size(); ++e) {
    auto value = static_cast<double>(
        GetBits(c.in(0), e * static_cast<size_t>(bits), bits));
    const double range = std::ldexp(1.0, bits);
    if (codec[0] == 'i' && value >= range / 2) value -= range;
    c.out().values[e] = value;
  }
}

void ReluMaskGrad(const Call& c) {
  for (size_t e = 0; e < c.out().values.size(); ++e) {
    c.out().values[e] = GetBits(c.in(1), e, 1) != 0 ? c.in(0).values[e] : 0;
  }
}

}  // namespace

void AddCodecReferences(ReferenceTable& t) {
  t["Encode"] = Encode;
  t["Decode"] = Decode;
  t["ReluMaskGrad"] = ReluMaskGrad;
}

}  // namespace loadline::reference
