// Folding, compared with results worked out by hand. Each test imports a model
// of constants whose output is the folded constant.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/shape_math.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// The result of `nodes` on constants, as the model's output y.
Tensor Folded(const std::string& nodes, const std::string& type = "int64") {
  const auto imported =
      ImportText("g (float[1] unused) => (" + type + "[n] y) {" + nodes + "}");
  EXPECT_TRUE(imported.ok()) << nodes << "\n" << imported.status();
  if (!imported.ok()) return Int64Tensor({});
  EXPECT_TRUE(imported->graph.nodes.empty()) << nodes;
  return *imported->graph.value(imported->graph.outputs[0]).initial;
}

std::vector<int64_t> Ints64(const std::string& nodes) {
  const Tensor tensor = Folded(nodes);
  EXPECT_EQ(tensor.type.dtype, DType::kI64);
  const auto values = tensor.as<int64_t>();
  return {values.begin(), values.end()};
}

constexpr char kA[] = "a = Constant<value_ints=[7,-7,9]>() ";
constexpr char kB[] = "b = Constant<value_ints=[2,2,-4]>() ";

TEST(Fold, IntegerArithmeticIsThatOfC) {
  const std::string ab = std::string(kA) + kB;
  EXPECT_THAT(Ints64(ab + "y = Add(a, b)"), ElementsAre(9, -5, 5));
  EXPECT_THAT(Ints64(ab + "y = Div(a, b)"), ElementsAre(3, -3, -2));
  EXPECT_THAT(Ints64(ab + "y = Mod(a, b)"), ElementsAre(1, 1, -3));
  EXPECT_THAT(Ints64(ab + "y = Mod<fmod=1>(a, b)"), ElementsAre(1, -1, 1));
  EXPECT_THAT(Ints64(ab + "y = Max(a, b)"), ElementsAre(7, 2, 9));
  EXPECT_THAT(Ints64(ab + "c = Less(a, b) y = Where(c, a, b)"),
              ElementsAre(2, -7, -4));
  EXPECT_THAT(Ints64(ab + "y = ReduceProd<keepdims=0>(a)"), ElementsAre(-441));
  EXPECT_THAT(Ints64(ab + "y = Neg(a)"), ElementsAre(-7, 7, -9));
}

TEST(Fold, ExtremesDoNotTrap) {
  const std::string low =
      "a = Constant<value_ints=[-9223372036854775808]>()"
      " b = Constant<value_ints=[-1]>() ";
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Ints64(low + "y = Div(a, b)"), ElementsAre(kMin));
  EXPECT_THAT(Ints64(low + "y = Mod(a, b)"), ElementsAre(0));
  EXPECT_THAT(Ints64(low + "y = Abs(a)"), ElementsAre(kMin));
  EXPECT_THAT(Ints64(low + "y = Mul(a, b)"), ElementsAre(kMin));
  EXPECT_THAT(Ints64("a = Constant<value_floats=[1.0e30, -1.0e30]>()"
                     " y = Cast<to=7>(a)"),
              ElementsAre(std::numeric_limits<int64_t>::max(), kMin));
}

TEST(Fold, MovesElements) {
  const std::string m =
      "r = Constant<value_ints=[0,1,2,3,4,5]>()"
      " s = Constant<value_ints=[2,3]>() m = Reshape(r, s) ";
  EXPECT_THAT(Ints64(m + "y = Transpose(m)"), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[-1,0]>()"
                         " y = Gather<axis=1>(m, i)"),
              ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[-1,0]>()"
                         " j = Constant<value_ints=[1,2]>()"
                         " k = Reshape(i, j) y = GatherElements(m, k)"),
              ElementsAre(3, 1));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[2,2,0,-3]>()"
                         " j = Constant<value_ints=[2,2]>()"
                         " k = Reshape(i, j)"
                         " y = GatherElements<axis=1>(m, k)"),
              ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[1,-1,0,2]>()"
                         " j = Constant<value_ints=[2,2]>()"
                         " k = Reshape(i, j) y = GatherND(m, k)"),
              ElementsAre(5, 2));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[1,0]>()"
                         " j = Constant<value_ints=[2,1]>()"
                         " k = Reshape(i, j) y = GatherND(m, k)"),
              ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(Ints64(m + "i = Constant<value_ints=[1,0]>()"
                         " j = Constant<value_ints=[2,1]>()"
                         " k = Reshape(i, j) y = GatherND<batch_dims=1>(m, k)"),
              ElementsAre(1, 3));
  EXPECT_THAT(Ints64(m + "y = Concat<axis=1>(m, m)"),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(Ints64(m + "b = Constant<value_ints=[-1]>()"
                         " e = Constant<value_ints=[-9]>()"
                         " x = Constant<value_ints=[1]>()"
                         " y = Slice(m, b, e, x, b)"),
              ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(Ints64(m + "p = Constant<value_ints=[1,2]>() y = Tile(m, p)"),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(Ints64(m + "y = Trilu<upper=0>(m)"),
              ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(Ints64(m + "y = Shape<start=-1>(m)"), ElementsAre(3));
  EXPECT_THAT(Ints64(m + "y = Size(m)"), ElementsAre(6));
  EXPECT_THAT(Ints64(m + "z, y = Split<axis=1, num_outputs=2>(m)"),
              ElementsAre(2, 5));
  EXPECT_THAT(Ints64("a = Constant<value_int=9>() b = Constant<value_int=0>()"
                     " d = Constant<value_int=-4>() y = Range(a, b, d)"),
              ElementsAre(9, 5, 1));
}

TEST(Fold, WritesAtPositions) {
  const std::string m =
      "r = Constant<value_ints=[0,1,2,3,4,5]>()"
      " s = Constant<value_ints=[2,3]>() m = Reshape(r, s)"
      " one = Constant<value_ints=[3,1]>() two = Constant<value_ints=[2,2]>() ";
  // Rows: the last of two updates of one row stays.
  EXPECT_THAT(Ints64(m + "p = Constant<value_ints=[-1,0,-1]>()"
                         " i = Reshape(p, one)"
                         " q = Constant<value_ints=[9,9,9,7,7,7,8,8,8]>()"
                         " t = Constant<value_ints=[3,3]>() u = Reshape(q, t)"
                         " y = ScatterND(m, i, u)"),
              ElementsAre(7, 7, 7, 8, 8, 8));
  EXPECT_THAT(Ints64(m + "p = Constant<value_ints=[0,2,1,0]>()"
                         " i = Reshape(p, two) u = Constant<value_ints=[6,7]>()"
                         " y = ScatterND(m, i, u)"),
              ElementsAre(0, 1, 6, 7, 4, 5));
  // One element of each row, and two of the first column.
  EXPECT_THAT(Ints64(m + "p = Constant<value_ints=[2,-3]>()"
                         " t = Constant<value_ints=[2,1]>() i = Reshape(p, t)"
                         " q = Constant<value_ints=[6,7]>() u = Reshape(q, t)"
                         " y = ScatterElements<axis=-1>(m, i, u)"),
              ElementsAre(0, 1, 6, 7, 4, 5));
  EXPECT_THAT(Ints64(m + "p = Constant<value_ints=[1,1]>()"
                         " t = Constant<value_ints=[2,1]>() i = Reshape(p, t)"
                         " q = Constant<value_ints=[6,7]>() u = Reshape(q, t)"
                         " y = ScatterElements(m, i, u)"),
              ElementsAre(0, 1, 2, 7, 4, 5));
}

// PyTorch Geometric counts the edges of a node so.
TEST(Fold, AddsIntegersWhereTheyAreScattered) {
  const std::string zeros = "z = Constant<value_ints=[0,10,0]>() ";
  EXPECT_THAT(
      Ints64(zeros + "i = Constant<value_ints=[2,0,2,-1]>()"
                     " u = Constant<value_ints=[1,2,3,4]>()"
                     " y = ScatterElements<reduction=\"add\">(z, i, u)"),
      ElementsAre(2, 10, 8));
  EXPECT_THAT(Ints64(zeros + "p = Constant<value_ints=[1,1,0]>()"
                             " t = Constant<value_ints=[3,1]>()"
                             " i = Reshape(p, t)"
                             " u = Constant<value_ints=[5,6,7]>()"
                             " y = ScatterND<reduction=\"add\">(z, i, u)"),
              ElementsAre(7, 21, 0));
}

// The older exporter writes the repeats of repeat_interleave with OneHot.
TEST(Fold, MarksClasses) {
  const std::string values =
      "v = Constant<value_ints=[1,5]>() d = Constant<value_int=3>() ";
  EXPECT_THAT(Ints64(values + "i = Constant<value_ints=[1]>()"
                              " h = OneHot(i, d, v) s = Constant<value_ints="
                              "[-1]>() y = Reshape(h, s)"),
              ElementsAre(1, 5, 1));
  EXPECT_THAT(Ints64(values + "i = Constant<value_ints=[0,-1,3,-4]>()"
                              " y = OneHot<axis=0>(i, d, v)"),
              ElementsAre(5, 1, 1, 1, 1, 1, 1, 1, 1, 5, 1, 1));
  EXPECT_THAT(Ints64(values + "i = Constant<value_ints=[0,2]>()"
                              " y = OneHot(i, d, v)"),
              ElementsAre(5, 1, 1, 1, 1, 5));
}

// The older exporter writes positions of an assignment to slices with NonZero.
TEST(Fold, FindsWhatIsNotZero) {
  EXPECT_THAT(Ints64("a = Constant<value_ints=[0,3,0,-1,2,0]>()"
                     " s = Constant<value_ints=[2,3]>() m = Reshape(a, s)"
                     " z = NonZero(m) f = Constant<value_ints=[-1]>()"
                     " y = Reshape(z, f)"),
              ElementsAre(0, 1, 1, 1, 0, 1));
  EXPECT_THAT(Ints64("a = Constant<value_floats=[0.0,0.5]>() z = NonZero(a)"
                     " f = Constant<value_ints=[-1]>() y = Reshape(z, f)"),
              ElementsAre(1));
  EXPECT_THAT(Ints64("a = Constant<value_ints=[0,0]>() z = NonZero(a)"
                     " y = Shape(z)"),
              ElementsAre(1, 0));
  EXPECT_THAT(Ints64("a = Constant<value_int=5>() z = NonZero(a) y = Shape(z)"),
              ElementsAre(0, 1));
}

TEST(Fold, SumsUpAlongAnAxis) {
  const std::string m =
      "r = Constant<value_ints=[0,1,2,3,4,5]>()"
      " s = Constant<value_ints=[2,3]>() m = Reshape(r, s)"
      " a = Constant<value_int=-1>() z = Constant<value_int=0>() ";
  EXPECT_THAT(Ints64(m + "y = CumSum(m, a)"), ElementsAre(0, 1, 3, 3, 7, 12));
  EXPECT_THAT(Ints64(m + "y = CumSum(m, z)"), ElementsAre(0, 1, 2, 3, 5, 7));
  EXPECT_THAT(Ints64(m + "y = CumSum<reverse=1, exclusive=1>(m, a)"),
              ElementsAre(3, 2, 0, 9, 5, 0));
}

TEST(Fold, FloatsRoundLikeFloats) {
  const Tensor scale = Folded(
      "n = Constant<value_ints=[24]>() f = Cast<to=1>(n) r = Sqrt(f)"
      " one = Constant<value_float=1.0>() d = Div(one, r) y = Sqrt(d)",
      "float");
  EXPECT_THAT(scale.as<float>(),
              ElementsAre(std::sqrt(1.0f / std::sqrt(24.0f))));
}

TEST(Fold, ConstantsBeyondTheLimitAreRefused) {
  ImportOptions options;
  options.max_folded_bytes = 1 << 16;
  for (const char* nodes :
       {"s = Constant<value_ints=[100000,100000]>() y = ConstantOfShape<value "
        "= int64[1] {7}>(s)",
        "a = Constant<value_int=0>() b = Constant<value_int=1000000000000>()"
        " d = Constant<value_int=1>() y = Range(a, b, d)"}) {
    const auto imported = ImportText(
        std::string("g (float[1] x) => (int64[n] y) {") + nodes + "}", options);
    EXPECT_TRUE(absl::IsResourceExhausted(imported.status()))
        << imported.status();
  }
}

TEST(ResolveSlice, EqualsCountingInPython) {
  // Every start, end and step on axes of 0 to 4 elements, compared with a loop.
  for (int64_t d = 0; d <= 4; ++d) {
    for (int64_t start = -6; start <= 6; ++start) {
      for (int64_t end = -6; end <= 6; ++end) {
        for (int64_t step : {-3, -1, 1, 2}) {
          auto wrap = [d](int64_t v) { return v < 0 ? v + d : v; };
          const int64_t low = step > 0 ? 0 : -1;
          const int64_t high = step > 0 ? d : d - 1;
          const int64_t b = std::min(std::max(wrap(start), low), high);
          const int64_t e = std::min(std::max(wrap(end), low), high);
          std::vector<int64_t> expected, got;
          for (int64_t i = b; step > 0 ? i < e : i > e; i += step) {
            expected.push_back(i);
          }
          const auto spec =
              onnx_internal::ResolveSlice({d}, {{start}, {end}, {0}, {step}});
          ASSERT_TRUE(spec.ok()) << spec.status();
          const int64_t n =
              onnx_internal::SliceLength(spec->starts[0], spec->ends[0], step);
          for (int64_t i = 0; i < n; ++i) {
            got.push_back(spec->starts[0] + i * step);
          }
          EXPECT_THAT(got, ElementsAreArray(expected))
              << d << " " << start << " " << end << " " << step;
        }
      }
    }
  }
}

TEST(ResolveReshape, RefusesWhatDoesNotFit) {
  using onnx_internal::ResolveReshape;
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const Ints& target :
       {Ints{-1, -1}, Ints{7}, Ints{-2, 3}, Ints{kHuge, kHuge}, Ints{-1, 0, 4},
        Ints{1, 1, 1, 0}}) {
    EXPECT_FALSE(ResolveReshape({2, 3}, target, false).ok());
  }
  EXPECT_EQ(*ResolveReshape({2, 3}, {0, -1}, false), (Ints{2, 3}));
  EXPECT_EQ(*ResolveReshape({0, 3}, {3, 0}, true), (Ints{3, 0}));
}

}  // namespace
}  // namespace loadline::models
