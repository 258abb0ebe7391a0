// ONNX operators that the importer builds from others, run with the CPU's
// kernels: small models as text, and the results of onnx.reference (of PyTorch
// for groups, GridSample, Col2Im and normalizations) for the inputs 1, 2, 3,
// ...
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/interpreter.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::executor {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

struct Case {
  const char* name;
  const char* body;
  std::vector<float> expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case>& Cases() {
  static const auto* const kCases = new std::vector<Case>{
      {"ResizeLinear",
       "g (float[1,1,2,3] x) => (float[a,b,c,d] y) {"
       " r = Constant<value_floats=[1.0,1.0,2.0,2.0]>()"
       " y = Resize<mode=\"linear\">(x,,r) }",
       {1,    1.25, 1.75, 2.25, 2.75, 3,    1.75, 2,    2.5,  3,    3.5,  3.75,
        3.25, 3.5,  4,    4.5,  5,    5.25, 4,    4.25, 4.75, 5.25, 5.75, 6}},
      {"ResizeLinearAlignsCorners",
       "g (float[1,1,2,3] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,3,5]>()"
       " y = Resize<mode=\"linear\","
       " coordinate_transformation_mode=\"align_corners\">(x,,,s) }",
       {1, 1.5, 2, 2.5, 3, 2.5, 3, 3.5, 4, 4.5, 4, 4.5, 5, 5.5, 6}},
      {"ResizeLinearSymmetric",
       "g (float[1,1,2,3] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,2,5]>()"
       " y = Resize<mode=\"linear\","
       " coordinate_transformation_mode=\"half_pixel_symmetric\">(x,,,s) }",
       {1, 1.4f, 2, 2.6f, 3, 4, 4.4f, 5, 5.6f, 6}},
      {"ResizeLinearToOneRow",
       "g (float[1,1,4,6] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,1,3]>()"
       " y = Resize<mode=\"linear\","
       " coordinate_transformation_mode=\"pytorch_half_pixel\">(x,,,s) }",
       {1.5, 3.5, 5.5}},
      {"ResizeCubic",
       "g (float[1,1,2,4] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,2,7]>()"
       " y = Resize<mode=\"cubic\">(x,,,s) }",
       {0.9007837f, 1.279245f, 1.896592f, 2.5f, 3.103407f, 3.720754f, 4.099216f,
        4.900784f, 5.279243f, 5.896591f, 6.5f, 7.103406f, 7.720752f,
        8.099216f}},
      {"ResizeCubicExcludesOutside",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,5,4]>()"
       " y = Resize<mode=\"cubic\", exclude_outside=1,"
       " cubic_coeff_a=-0.5>(x,,,s) }",
       {0.6981125f, 1.698113f, 2.698112f, 3.698112f, 2.22388f,
        3.22388f,   4.22388f,  5.22388f,  5,         6,
        7,          8,         7.77612f,  8.77612f,  9.77612f,
        10.77612f,  9.301888f, 10.30189f, 11.30189f, 12.30189f}},
      {"ResizeLinearOfVolumes",
       "g (float[1,1,2,1,2] x) => (float[a,b,c,d,e] y) {"
       " r = Constant<value_floats=[1.0,1.0,2.0,1.0,1.0]>()"
       " y = Resize<mode=\"linear\">(x,,r) }",
       {1, 2, 1.5, 2.5, 2.5, 3.5, 3, 4}},
      {"DftAlongAnOuterAxis",
       "g (float[1,2,3,1] x) => (float[a,b,c,d] y) {"
       " a = Constant<value_int=1>() y = DFT(x,,a) }",
       {5, 0, 7, 0, 9, 0, -3, 0, -3, 0, -3, 0}},
      {"DftInverseOfTheFirstThree",
       "g (float[2,4,2] x) => (float[a,b,c] y) {"
       " n = Constant<value_int=3>() y = DFT<inverse=1>(x,n) }",
       {3, 4, -0.4226497f, -1.57735f, -1.57735f, -0.4226497f, 11, 12,
        -0.4226497f, -1.57735f, -1.57735f, -0.4226497f}},
      {"DftOneSidedOfMore",
       "g (float[1,4,1] x) => (float[a,b,c] y) {"
       " n = Constant<value_int=5>() y = DFT<onesided=1>(x,n) }",
       {10, 0, -4.045085f, -1.314328f, 1.545085f, -2.126627f}},
      {"DftInverseOfHalf",
       "g (float[1,3,2] x) => (float[a,b,c] y) {"
       " y = DFT<inverse=1, onesided=1>(x) }",
       {3, -3, 0, 1}},
      {"StftWithWindow",
       "g (float[1,6,1] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_int=2>()"
       " w = Constant<value_floats=[0.5,1.0,0.5,0.25]>() y = STFT(x,s,w) }",
       {5, 0, -1, -1, -1, 0, 9.5, 0, -1, -2.5, -1.5, 0}},
      {"ResizeNearestRepeats",
       "g (float[1,1,2,2] x) => (float[a,b,c,d] y) {"
       " r = Constant<value_floats=[1.0,1.0,2.0,3.0]>()"
       " y = Resize<nearest_mode=\"floor\","
       " coordinate_transformation_mode=\"asymmetric\">(x,,r) }",
       {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2,
        3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}},
      {"ResizeNearestToFiveThirds",
       "g (float[1,2,3,2] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,2,5,2]>()"
       " y = Resize<nearest_mode=\"floor\","
       " coordinate_transformation_mode=\"asymmetric\">(x,,,s) }",
       {1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 7, 8, 9, 10, 9, 10, 11, 12}},
      {"ResizeNearestPrefersCeil",
       "g (float[1,1,1,3] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[1,1,1,7]>()"
       " y = Resize<nearest_mode=\"round_prefer_ceil\">(x,,,s) }",
       {1, 1, 2, 2, 2, 3, 3}},
      {"PadZeros",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[0,2,1,0]>() y = Pad(x, p) }",
       {0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0}},
      {"PadValue",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[1,0,0,1]>()"
       " v = Constant<value_float=7.5>() y = Pad(x, p, v) }",
       {7.5, 7.5, 7.5, 7.5, 1, 2, 3, 7.5, 4, 5, 6, 7.5}},
      {"PadNegative",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[0,-1,1,2]>() y = Pad(x, p) }",
       {2, 3, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0}},
      {"PadIntegers",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[1,0,0,1]>() i = Cast<to=7>(x)"
       " v = Constant<value_int=-100>() j = Pad(i, p, v) y = Cast<to=1>(j) }",
       {-100, -100, -100, -100, 1, 2, 3, -100, 4, 5, 6, -100}},
      {"PadNamedAxes",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[1,0]>() a = Constant<value_ints=[-1]>()"
       " y = Pad(x, p,, a) }",
       {0, 1, 2, 3, 0, 4, 5, 6}},
      {"PadReflect",
       "g (float[2,4] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[1,2,0,1]>()"
       " y = Pad<mode=\"reflect\">(x, p) }",
       {7, 6, 5, 6, 7, 8, 7, 3, 2, 1, 2, 3, 4, 3, 7, 6, 5, 6, 7, 8, 7}},
      {"PadEdge",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[1,2,0,1]>()"
       " y = Pad<mode=\"edge\">(x, p) }",
       {1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6}},
      {"PadWrap",
       "g (float[2,3] x) => (float[a,b] y) {"
       " p = Constant<value_ints=[0,2,0,1]>()"
       " y = Pad<mode=\"wrap\">(x, p) }",
       {2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4}},
      {"ConvTransposeWithStridesAndBias",
       "g (float[1,1,2,2] x, float[1,2,2,2] w, float[2] b)"
       " => (float[a,b,c,d] y) {"
       " y = ConvTranspose<strides=[2,2], output_padding=[1,0]>(x, w, b) }",
       {2,  3,  3,  5,  4,  5,  7,  9,  4,  7,  5, 9,  10, 13,
        13, 17, 1,  1,  1,  1,  7,  8,  12, 14, 9, 10, 16, 18,
        17, 20, 22, 26, 23, 26, 30, 34, 2,  2,  2, 2}},
      {"ConvTransposeWithPadsAndDilations",
       "g (float[1,2,3] x, float[2,1,2] w) => (float[a,b,c] y) {"
       " y = ConvTranspose<strides=[2], pads=[1,0], dilations=[2]>(x, w) }",
       {0, 35, 0, 45, 0, 30}},
      {"ConvTransposeToAShape",
       "g (float[1,2,2] x, float[2,1,3] w) => (float[a,b,c] y) {"
       " y = ConvTranspose<strides=[2], output_shape=[4]>(x, w) }",
       {17, 39, 24, 30}},
      {"ConvTransposeInGroups",
       "g (float[1,4,2] x, float[4,1,2] w) => (float[a,b,c] y) {"
       " y = ConvTranspose<group=2>(x, w) }",
       {10, 28, 20, 74, 172, 100}},
      // Values of ONNX Runtime: onnx.reference ignores `clip`. The state of the
      // cell is beyond it.
      {"LstmClipsTheGatesAndNotTheCell",
       "g (float[2,1,2] x) => (float[a,b,c,d] y) <float[1,8,2] w ="
       " {0.5,-0.4,0.3,0.2,-0.6,0.1,0.7,-0.3,0.4,0.6,-0.5,0.2,0.9,0.8,0.3,-0.7}"
       ","
       " float[1,8,2] r ="
       " {0.1,0.2,-0.3,0.4,0.5,-0.6,0.2,0.1,-0.4,0.3,0.6,0.5,-0.2,0.7,0.4,-0.1}"
       ","
       " float[1,1,2] h = {0.5,-0.25}, float[1,1,2] c = {2.0,-3.0},"
       " float[1,6] p = {0.3,-0.2,0.1,0.4,-0.5,0.2}> {"
       " y, n, z = LSTM<hidden_size=2, clip=0.5>(x, w, r, , , h, c, p) }",
       {0.47719905f, -0.35850376f, 0.30921862f, -0.42150766f}},
      {"ModOfReals",
       "g (float[2,3] x) => (float[a,b] y) <float[3] b = {1.5, -2.0, 0.75}> {"
       " c = Constant<value_float=3.6>() a = Sub(x, c) y = Mod(a, b) }",
       {0.4f, -1.6f, 0.15f, 0.4f, -0.6f, 0.15f}},
      {"ModOfRealsInC",
       "g (float[2,3] x) => (float[a,b] y) <float[3] b = {1.5, -2.0, 0.75}> {"
       " c = Constant<value_float=3.6>() a = Sub(x, c) y = Mod<fmod=1>(a, b) }",
       {-1.1f, -1.6f, -0.6f, 0.4f, 1.4f, 0.15f}},
      {"ReduceSumOfIntegers",
       "g (float[2,3,2] x) => (float[a,b] y) {"
       " i = Cast<to=7>(x) a = Constant<value_ints=[0,2]>()"
       " s = ReduceSum<keepdims=0>(i, a) z = Constant<value_ints=[0]>()"
       " t = Unsqueeze(s, z) y = Cast<to=1>(t) }",
       {18, 26, 34}},
      {"ReduceProdOfIntegers",
       "g (float[2,3] x) => (float[a] y) {"
       " i = Cast<to=6>(x) a = Constant<value_ints=[1]>()"
       " s = ReduceProd<keepdims=0>(i, a) y = Cast<to=1>(s) }",
       {6, 120}},
      {"AbsOfIntegers",
       "g (float[2,2] x) => (float[a,b] y) {"
       " c = Constant<value_ints=[3,1]>() i = Cast<to=7>(x) d = Sub(i, c)"
       " n = Neg(d) m = Abs(d) s = Add(n, m) y = Cast<to=1>(s) }",
       {4, 0, 0, 0}},
      {"EqualBooleans",
       "g (float[2,2] x) => (float[a,b] y) {"
       " two = Constant<value_float=2.0>() five = Constant<value_float=5.0>()"
       " p = Greater(x, two) q = Less(x, five) e = Equal(p, q)"
       " y = Cast<to=1>(e) }",
       {0, 0, 1, 1}},
      {"CastThroughDouble",
       "g (float[3] x) => (float[a] y) {"
       " d = Cast<to=11>(x) e = Mul(d, d) y = Cast<to=1>(e) }",
       {1, 4, 9}},
      {"Col2Im",
       "g (float[1,8,3] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[2,4]>() k = Constant<value_ints=[2,2]>()"
       " y = Col2Im(x, s, k) }",
       {1, 6, 8, 6, 7, 18, 20, 12, 13, 30, 32, 18, 19, 42, 44, 24}},
      {"Col2ImWithAttributes",
       "g (float[2,4,4] x) => (float[a,b,c,d] y) {"
       " s = Constant<value_ints=[3,5]>() k = Constant<value_ints=[2,2]>()"
       " y = Col2Im<dilations=[1,2], pads=[0,1,0,1], strides=[1,3]>(x, s, k) }",
       {0, 5,  2,  0, 6,  0, 20, 14, 0, 22, 0, 15, 12, 0, 16,
        0, 21, 18, 0, 22, 0, 52, 46, 0, 54, 0, 31, 28, 0, 32}},
      {"BatchNormalizationWithoutStatistics",
       "g (float[2,2,3] x) => (float[a,b,c] y)"
       " <float[2] s = {1.0, 2.0}, float[2] t = {0.5, -1.0}> {"
       " q = Mul(x, x) f = Constant<value_ints=[0,2]>()"
       " m = ReduceMean<keepdims=0>(q, f) v = ReduceMean<keepdims=0>(x, f)"
       " y, n, w = BatchNormalization<training_mode=1>(q, s, t, m, v) }",
       {-0.5695168f, -0.4742134f, -0.3153743f, -3.307180f, -2.947099f,
        -2.507002f, 0.9553388f, 1.431856f, 1.971909f, 0.05356748f, 0.8937542f,
        1.813959f}},
      {"BatchNormalizationByComputedStatistics",
       "g (float[2,2,3] x) => (float[a,b,c] y)"
       " <float[2] s = {1.0, 2.0}, float[2] t = {0.5, -1.0}> {"
       " q = Mul(x, x) f = Constant<value_ints=[0,2]>()"
       " m = ReduceMean<keepdims=0>(q, f) k = ReduceMean(q, f) a = Sub(q, k)"
       " b = Mul(a, a) v = ReduceMean<keepdims=0>(b, f)"
       " y = BatchNormalization(q, s, t, m, v) }",
       {-0.5695168f, -0.4742134f, -0.3153743f, -3.307180f, -2.947099f,
        -2.507002f, 0.9553388f, 1.431856f, 1.971909f, 0.05356748f, 0.8937542f,
        1.813959f}},
      {"GridSampleLinearReflection",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"linear\", padding_mode=\"reflection\","
       " align_corners=0>(x, p) }",
       {6.8f, 10.7f, 9.4f, 9}},
      {"GridSampleLinearReflectionAligned",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"linear\", padding_mode=\"reflection\","
       " align_corners=1>(x, p) }",
       {6.35f, 9.85f, 8.875f, 9}},
      {"GridSampleNearestReflectionAligned",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"nearest\", padding_mode=\"reflection\","
       " align_corners=1>(x, p) }",
       {5, 11, 10, 9}},
      {"GridSampleLinearBorderAligned",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"linear\", padding_mode=\"border\","
       " align_corners=1>(x, p) }",
       {6.35f, 10.65f, 4, 9}},
      {"GridSampleCubicZeros",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"cubic\", padding_mode=\"zeros\","
       " align_corners=0>(x, p) }",
       {5.601971f, 1.971807f, 0, 2.390625f}},
      {"GridSampleCubicBorderAligned",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"cubic\", padding_mode=\"border\","
       " align_corners=1>(x, p) }",
       {6.670345f, 10.99988f, 4, 9}},
      {"GridSampleCubicReflection",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"cubic\", padding_mode=\"reflection\","
       " align_corners=0>(x, p) }",
       {7.026129f, 11.138f, 9.795999f, 9.5625f}},
      {"GridSampleCubicReflectionAligned",
       "g (float[1,1,3,4] x) => (float[a,b,c,d] y) <float[1,1,4,2] p ="
       " {-0.9, 0.3, 0.1, 1.2, 2.55, -3.2, -1.0, 1.0}> {"
       " y = GridSample<mode=\"cubic\", padding_mode=\"reflection\","
       " align_corners=1>(x, p) }",
       {6.778063f, 10.39188f, 9.305667f, 9}},
      {"GridSampleOfAVolume",
       "g (float[1,1,2,3,2] x) => (float[a,b,c,d,e] y)"
       " <float[1,1,1,2,3] p = {-0.9, 0.3, 0.1, 1.2, 0.55, -0.2}> {"
       " y = GridSample<padding_mode=\"border\", align_corners=1>(x, p) }",
       {6.95f, 7.5}},
      {"LoopGathersWhatItsStepsMake",
       "g (float[3] x) => (float[a,b] y) {"
       " m = Constant<value_int=3>()"
       " v, y = Loop(m, , x) <body = g (int64 i, bool c, float[3] p)"
       " => (bool d, float[3] q, float[3] r) {"
       " d = Identity(c) f = Cast<to=1>(i) q = Mul(p, x) r = Add(p, f) }> }",
       {1, 2, 3, 2, 5, 10, 3, 10, 29}},
      {"ScanAlongAnotherAxisBackwards",
       "g (float[2,3] x) => (float[a,b] y) {"
       " h = Constant<value_floats=[0.0,1.0]>()"
       " v, y = Scan<num_scan_inputs=1, scan_input_axes=[1],"
       " scan_input_directions=[1], scan_output_axes=[-1],"
       " scan_output_directions=[1], body = g (float[2] p, float[2] q)"
       " => (float[2] r, float[2] s) { r = Add(p, q) s = Mul(p, q) }>(h, x) }",
       {5, 6, 0, 48, 35, 6}},
      {"ScanWithoutWhatItGathers",
       "g (float[2,3] x) => (float[a] y) {"
       " h = Constant<value_floats=[0.0,1.0,2.0]>()"
       " y = Scan<num_scan_inputs=1, body = g (float[3] p, float[3] q)"
       " => (float[3] r) { r = Add(p, q) }>(h, x) }",
       {5, 8, 11}},
      {"LoopOverASequence",
       "g (float[2,3] x) => (float[a,b] y) {"
       " s = SequenceEmpty() j = Constant<value_int=0>()"
       " n = Constant<value_int=2>() t = Less(j, n)"
       " k, q = Loop(, t, j, s) <body = g (int64 i, bool c, int64 l,"
       " seq(float[1,3]) p) => (bool d, int64 e, seq(float[1,3]) r) {"
       " one = Constant<value_ints=[1]>() u = Constant<value_int=1>()"
       " e = Add(l, u) d = Less(e, n)"
       " a = Reshape(l, one) b = Reshape(e, one) w = Slice(x, a, b)"
       " z = Mul(w, w) r = SequenceInsert(p, z) }>"
       " y = ConcatFromSequence<axis=0>(q) }",
       {1, 4, 9, 16, 25, 36}},
      {"InstanceNormalization",
       "g (float[2,2,3] x) => (float[a,b,c] y)"
       " <float[2] s = {1.0, 2.0}, float[2] t = {0.5, -1.0}> {"
       " q = Mul(x, x) y = InstanceNormalization(q, s, t) }",
       {-0.61116725f, 0.29796964f, 1.8131979f, -3.3639033f, -1.1630278f,
        1.526931f, -0.6984492f, 0.44900227f, 1.7494472f, -3.4115453f,
        -1.0742007f, 1.4857481f}},
  };
  return *kCases;
}

class ImportedOperator : public testing::TestWithParam<Case> {};

TEST_P(ImportedOperator, ComputesWhatOnnxSays) {
  const auto imported = models::ImportText(GetParam().body);
  ASSERT_TRUE(imported.ok()) << imported.status();
  auto run = Interpreter::Make(imported->graph);
  ASSERT_TRUE(run.ok()) << run.status();
  for (size_t v = 0; v < imported->graph.values.size(); ++v) {
    if (imported->graph.values[v].kind != models::ValueKind::kInput) continue;
    const absl::Span<float> x =
        (*run)->Contents<float>(models::ValueId{static_cast<int32_t>(v)});
    std::iota(x.begin(), x.end(), 1.0f);
  }
  ASSERT_TRUE((*run)->Run({.learning_rate = 0, .step = 0, .seed = 0}).ok());
  const models::ValueId y = imported->graph.outputs[0];
  EXPECT_THAT((*run)->Contents<float>(y),
              Pointwise(FloatNear(2e-5f), GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(Onnx, ImportedOperator, testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// Column 2 does not exist; the flat position of [0, 2] is that of [1, 0].
TEST(GatherElements, FailsTheStepOnAnIndexThatLeavesItsAxis) {
  const auto imported = models::ImportText(
      "g (float[2,2] x, int64[2,1] i) => (float[a,b] y) {"
      " y = GatherElements<axis=1>(x, i) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  auto run = Interpreter::Make(imported->graph);
  ASSERT_TRUE(run.ok()) << run.status();
  const absl::Span<int64_t> indices =
      (*run)->Contents<int64_t>(imported->value_of.at("i"));
  const StepScalars scalars = {.learning_rate = 0, .step = 0, .seed = 0};
  indices[0] = -2;
  indices[1] = 1;
  EXPECT_TRUE((*run)->Run(scalars).ok());
  for (const int64_t outside : {2, -3}) {
    indices[0] = outside;
    EXPECT_EQ((*run)->Run(scalars).code(), absl::StatusCode::kOutOfRange);
  }
}

// The contents of the model's output in one step.
std::vector<float> Drawn(const std::string& text, int64_t step) {
  const auto imported = models::ImportText(text);
  EXPECT_TRUE(imported.ok()) << imported.status();
  auto run = Interpreter::Make(imported->graph);
  EXPECT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE((*run)->Run({.learning_rate = 0, .step = step, .seed = 5}).ok());
  const absl::Span<float> y =
      (*run)->Contents<float>(imported->graph.outputs[0]);
  return {y.begin(), y.end()};
}

double MeanOf(const std::vector<float>& numbers, int power) {
  double sum = 0;
  for (float x : numbers) sum += std::pow(x, power);
  return sum / static_cast<double>(numbers.size());
}

// Limits of five standard deviations of the mean of 40000 numbers.
TEST(RandomNumbers, HaveTheirDistributions) {
  const std::string head = "g (float[200,200] x) => (float[a,b] y) { ";
  const auto uniform =
      Drawn(head + "y = RandomUniformLike<low=-1.0, high=3.0>(x) }", 0);
  EXPECT_NEAR(MeanOf(uniform, 1), 1, 0.03);
  EXPECT_NEAR(MeanOf(uniform, 2), 1 + 16.0 / 12, 0.05);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -1);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 3);
  const auto normal =
      Drawn(head + "y = RandomNormalLike<mean=2.0, scale=0.5>(x) }", 0);
  EXPECT_NEAR(MeanOf(normal, 1), 2, 0.0125);
  EXPECT_NEAR(MeanOf(normal, 2), 4.25, 0.06);
  EXPECT_NEAR(MeanOf(normal, 3), 9.5, 0.25);  // as skew would change
  const auto hits = Drawn(
      "g (float[1] x) => (float[a,b] y) { s = Constant<value_ints=[200,200]>()"
      " p = ConstantOfShape<value=float[1] {0.3}>(s) y = Bernoulli(p) }",
      0);
  EXPECT_NEAR(MeanOf(hits, 1), 0.3, 0.012);
  EXPECT_EQ(MeanOf(hits, 1), MeanOf(hits, 2));  // 0 and 1 only
}

TEST(RandomNumbers, DependOnTheStepAndTheNode) {
  const std::string text =
      "g (float[64] x) => (float[a] y) { u = RandomUniformLike(x)"
      " v = RandomUniformLike(x) y = Sub(u, v) }";
  EXPECT_EQ(Drawn(text, 1), Drawn(text, 1));
  EXPECT_NE(Drawn(text, 1), Drawn(text, 2));
  EXPECT_NE(MeanOf(Drawn(text, 1), 2), 0);
}

}  // namespace
}  // namespace loadline::executor
