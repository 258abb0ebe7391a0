// Philox compared with the known answers that its authors publish with
// Random123.
#include <array>

#include "executor/device/philox.h"
#include "gtest/gtest.h"

namespace loadline::executor::cpu {
namespace {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, uint32_t key0,
                               uint32_t key1) {
  PhiloxBatch batch{};
  // The last of the batch, so that a wrong lane order shows.
  constexpr int kLane = kPhiloxBatch - 1;
  for (int w = 0; w < 4; ++w) batch.words[w][kLane] = counter[w];
  PhiloxRounds(batch, key0, key1);
  return {batch.words[0][kLane], batch.words[1][kLane], batch.words[2][kLane],
          batch.words[3][kLane]};
}

TEST(PhiloxRounds, GivesThePublishedAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, 0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff,
                   0xffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822,
                   0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace loadline::executor::cpu
