// References of what draws random numbers.
#include <cmath>
#include <cstdint>
#include <vector>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

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

void AddRandomReferences(ReferenceTable& t) {
  t["Dropout"] = Dropout;
  t["RandomUniform"] = RandomUniform;
}

}  // namespace loadline::reference
