// The vectorized elementary functions compared with double precision, over
// their whole range, in units in the last place.
#include <cmath>
#include <limits>

#include "executor/cpu/vector_math.h"
#include "gtest/gtest.h"

namespace loadline::executor::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Largest error of f on an even grid over [low, high].
double WorstUlps(float (*f)(float), double (*exact)(double), float low,
                 float high) {
  constexpr int kPoints = 200'003;
  double worst = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kPoints;
    const double want = exact(x);
    const auto magnitude = static_cast<float>(std::fabs(want));
    const double ulp = std::nextafter(magnitude, kInfinity) - magnitude;
    worst = std::max(worst, std::fabs(f(x) - want) / ulp);
  }
  return worst;
}

double ExactSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(VectorMath, KeepsItsStatedErrors) {
  EXPECT_LE(WorstUlps(Exp, std::exp, -87, 88.5f), 1.5);
  EXPECT_LE(WorstUlps(Exp, std::exp, -103, -87), 1.5);
  EXPECT_LE(WorstUlps(Expm1OfNegative, std::expm1, -40, 0), 3);
  EXPECT_LE(WorstUlps(Expm1OfNegative, std::expm1, -0.01f, 0), 3);
  EXPECT_LE(WorstUlps(Log1pOfUnit, std::log1p, 0, 1), 3);
  EXPECT_LE(WorstUlps(Log1pOfUnit, std::log1p, 0, 1e-6f), 3);
  EXPECT_LE(WorstUlps(Tanh, std::tanh, -12, 12), 3);
  EXPECT_LE(WorstUlps(Tanh, std::tanh, -0.01f, 0.01f), 3);
  EXPECT_LE(WorstUlps(Sigmoid, ExactSigmoid, -80, 50), 3);
  EXPECT_LE(WorstUlps(Log, std::log, 1e-30f, 3), 1.5);
  EXPECT_LE(WorstUlps(Log, std::log, 1e-42f, 1e-37f), 1.5);
  EXPECT_LE(WorstUlps(Log, std::log, 1, 3e38f), 1.5);
  EXPECT_LE(WorstUlps(Erf, std::erf, -5, 5), 2);
  EXPECT_LE(WorstUlps(Erf, std::erf, -0.01f, 0.01f), 2);
}

TEST(VectorMath, GivesTheLimitsAtTheEnds) {
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Expm1OfNegative(-kInfinity), -1.0f);
  EXPECT_EQ(Expm1OfNegative(0.0f), 0.0f);
  EXPECT_EQ(Tanh(kInfinity), 1.0f);
  EXPECT_EQ(Tanh(-kInfinity), -1.0f);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(Log(0.0f), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_EQ(Erf(-kInfinity), -1.0f);
  EXPECT_EQ(Erf(0.0f), 0.0f);
}

TEST(VectorMath, PassesNanOn) {
  for (float (*f)(float) :
       {Exp, Tanh, Sigmoid, Log, Erf, Expm1OfNegative, Log1pOfUnit}) {
    EXPECT_TRUE(std::isnan(f(kNan)));
  }
}

}  // namespace
}  // namespace loadline::executor::cpu
