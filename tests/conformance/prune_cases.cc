// The models of pruned_model_test.cc.
#include "tests/conformance/prune_cases.h"

#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::conformance {
namespace {

std::vector<PruneCase> Convolutions() {
  return {
      {"ResidualAdd",
       "g (float[2,3,6,6] x, float[$C,3,3,3] w1, float[$C] b1,"
       "   float[$C,$C,3,3] w2, float[5,$C,3,3] w3) => (float[2,5,6,6] y) {"
       " a = Conv<pads=[1,1,1,1]>(x, w1, b1)"
       " r = Relu(a)"
       " c = Conv<pads=[1,1,1,1]>(r, w2)"
       " s = Add(c, r)"
       " y = Conv<pads=[1,1,1,1]>(s, w3) }",
       {{"C", {8, 4}}},
       {8}},
      {"ConcatOfOneTensorTwice",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[5,$D,1,1] w2)"
       "  => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " c = Concat<axis=1>(a, a)"
       " y = Conv(c, w2) }",
       {{"C", {8, 4}}, {"D", {16, 8}}},
       {8}},
      {"DenseBlock",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$D,$C,3,3] w2,"
       "   float[$D,$E,3,3] w3, float[5,$F,1,1] w4) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = Conv<pads=[1,1,1,1]>(a, w2)"
       " ab = Concat<axis=1>(a, b)"
       " c = Conv<pads=[1,1,1,1]>(ab, w3)"
       " abc = Concat<axis=1>(ab, c)"
       " r = Relu(abc)"
       " y = Conv(r, w4) }",
       {{"C", {8, 4}}, {"D", {4, 2}}, {"E", {12, 6}}, {"F", {16, 8}}},
       {8, 4, 4}},
      {"SplitAndGate",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[$D] b1,"
       "   float[5,$C,1,1] w2) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1, b1)"
       " p, q = Split<axis=1, num_outputs=2>(a)"
       " r = Relu(q)"
       " m = Mul(p, r)"
       " y = Conv(m, w2) }",
       {{"C", {8, 4}}, {"D", {16, 8}}},
       {8}},
      {"SplitIntoTwoGroups",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[5,$C,1,1] w2,"
       "   float[5,$E,1,1] w3) => (float[2,5,4,4] y) <int64[2] s = {$C,$E}> {"
       " a = Conv(x, w1)"
       " p, q = Split<axis=1>(a, s)"
       " u = Conv(p, w2)"
       " v = Conv(q, w3)"
       " y = Add(u, v) }",
       {{"C", {4, 2}}, {"D", {12, 6}}, {"E", {8, 4}}},
       {4, 8}},
      {"SliceOfChannels",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[5,$C,1,1] w2,"
       "   float[5,$E,1,1] w3) => (float[2,5,4,4] y)"
       " <int64[1] zero = {0}, int64[1] mid = {$C}, int64[1] end = {$D},"
       "  int64[1] axis = {1}> {"
       " a = Conv(x, w1)"
       " p = Slice(a, zero, mid, axis)"
       " q = Slice(a, mid, end, axis)"
       " u = Conv(p, w2)"
       " v = Conv(q, w3)"
       " y = Add(u, v) }",
       {{"C", {4, 2}}, {"D", {12, 6}}, {"E", {8, 4}}},
       {4, 8}},
      {"FlattenToGemm",
       "g (float[2,3,4,4] x, float[$C,3,2,2] w1, float[$K,6] w2, float[6] b2)"
       "  => (float[2,6] y) {"
       " a = Conv<strides=[2,2]>(x, w1)"
       " r = Relu(a)"
       " f = Flatten(r)"
       " y = Gemm(f, w2, b2) }",
       {{"C", {8, 4}}, {"K", {32, 16}}},
       {8}},
      {"DepthwiseConvolution",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C,1,3,3] w2,"
       "   float[$C] b2, float[5,$C,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " r = Relu(a)"
       " d = Conv<pads=[1,1,1,1], group=$C>(r, w2, b2)"
       " y = Conv(d, w3) }",
       {{"C", {8, 4}}},
       {8}},
      {"DepthwiseWithMultiplier",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$D,1,3,3] w2,"
       "   float[5,$D,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " d = Conv<pads=[1,1,1,1], group=$C>(a, w2)"
       " y = Conv(d, w3) }",
       {{"C", {8, 4}}, {"D", {16, 8}}},
       {8}},
      {"WholeConvolutionGroups",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[$D,2,3,3] w2,"
       "   float[5,$D,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " d = Conv<pads=[1,1,1,1], group=$C>(a, w2)"
       " y = Conv(d, w3) }",
       {{"C", {8, 4}}, {"D", {16, 8}}},
       {8}},
      {"PositionsInConvolutionGroups",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[$E,$C,3,3] w2,"
       "   float[5,$E,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " d = Conv<pads=[1,1,1,1], group=2>(a, w2)"
       " y = Conv(d, w3) }",
       {{"C", {8, 4}}, {"D", {16, 8}}, {"E", {12, 6}}},
       {8, 6}},
      {"TransposedConvolution",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C,$D,2,2] w2,"
       "   float[$D] b2, float[5,$D,1,1] w3) => (float[2,5,8,8] y) {"
       " a = Conv(x, w1)"
       " t = ConvTranspose<strides=[2,2]>(a, w2, b2)"
       " y = Conv(t, w3) }",
       {{"C", {8, 4}}, {"D", {6, 3}}},
       {8, 6}},
      {"TransposedDepthwiseConvolution",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C,1,2,2] w2,"
       "   float[5,$C,1,1] w3) => (float[2,5,8,8] y) {"
       " a = Conv(x, w1)"
       " t = ConvTranspose<strides=[2,2], group=$C>(a, w2)"
       " y = Conv(t, w3) }",
       {{"C", {8, 4}}},
       {8}},
      {"SqueezeAndExcite",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$R,$C,1,1] w2,"
       "   float[$R] b2, float[$C,$R,1,1] w3, float[$C] b3,"
       "   float[5,$C,1,1] w4) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " p = GlobalAveragePool(a)"
       " s = Conv(p, w2, b2)"
       " r = Relu(s)"
       " e = Conv(r, w3, b3)"
       " h = HardSigmoid<alpha=0.25, beta=0.5>(e)"
       " m = Mul(a, h)"
       " y = Conv(m, w4) }",
       {{"C", {8, 4}}, {"R", {4, 2}}},
       {8, 4}},
      {"SharedInitializer",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C,$C,3,3] w2,"
       "   float[5,$C,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = Conv<pads=[1,1,1,1]>(a, w2)"
       " c = Conv<pads=[1,1,1,1]>(b, w2)"
       " y = Conv(c, w3) }",
       {{"C", {8, 4}}},
       {8}},
  };
}

std::vector<PruneCase> Rearrangements() {
  return {
      {"DepthToSpace",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[5,$C,1,1] w2)"
       "  => (float[2,5,8,8] y) {"
       " a = Conv(x, w1)"
       " s = DepthToSpace<blocksize=2>(a)"
       " y = Conv(s, w2) }",
       {{"C", {8, 4}}, {"D", {32, 16}}},
       {8}},
      {"PixelShuffle",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[5,$C,1,1] w2)"
       "  => (float[2,5,8,8] y) {"
       " a = Conv(x, w1)"
       " s = DepthToSpace<blocksize=2, mode=\"CRD\">(a)"
       " y = Conv(s, w2) }",
       {{"C", {8, 4}}, {"D", {32, 16}}},
       {8}},
      {"SpaceToDepth",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[5,$D,1,1] w2)"
       "  => (float[2,5,2,2] y) {"
       " a = Conv(x, w1)"
       " s = SpaceToDepth<blocksize=2>(a)"
       " y = Conv(s, w2) }",
       {{"C", {8, 4}}, {"D", {32, 16}}},
       {8}},
      {"ChannelShuffle",
       "g (float[2,3,4,4] x, float[$D,3,1,1] w1, float[$D,$C,1,1] w2,"
       "   float[5,$D,1,1] w3) => (float[2,5,4,4] y)"
       " <int64[5] split = {2,2,$C,4,4}, int64[4] joined = {2,$D,4,4}> {"
       " a = Conv(x, w1)"
       " b = Conv<group=2>(a, w2)"
       " c = Reshape(b, split)"
       " d = Transpose<perm=[0,2,1,3,4]>(c)"
       " e = Reshape(d, joined)"
       " y = Conv(e, w3) }",
       {{"C", {8, 4}}, {"D", {16, 8}}},
       {8, 8}},
      {"AttentionHeads",
       "g (float[2,4,6] x, float[6,$E] wq, float[6,$E] wk, float[6,$E] wv,"
       "   float[$E] bv, float[$E,5] wo) => (float[2,4,5] y)"
       " <int64[4] heads = {2,4,$H,3}, int64[3] joined = {2,4,$E}> {"
       " q0 = MatMul(x, wq)"
       " k0 = MatMul(x, wk)"
       " v0 = MatMul(x, wv)"
       " v1 = Add(v0, bv)"
       " q1 = Reshape(q0, heads)"
       " k1 = Reshape(k0, heads)"
       " v2 = Reshape(v1, heads)"
       " q = Transpose<perm=[0,2,1,3]>(q1)"
       " k = Transpose<perm=[0,2,3,1]>(k1)"
       " v = Transpose<perm=[0,2,1,3]>(v2)"
       " s = MatMul(q, k)"
       " p = Softmax<axis=-1>(s)"
       " o = MatMul(p, v)"
       " t = Transpose<perm=[0,2,1,3]>(o)"
       " u = Reshape(t, joined)"
       " y = MatMul(u, wo) }",
       {{"H", {8, 4}}, {"E", {24, 12}}},
       {8}},
      {"Lstm",
       "g (float[3,2,6] x, float[1,$F,6] w, float[1,$F,$H] r,"
       "   float[1,$B] b, float[$H,5] w2) => (float[3,2,5] y)"
       " <int64[1] one = {1}> {"
       " h, last, cell = LSTM<hidden_size=$H>(x, w, r, b)"
       " s = Squeeze(h, one)"
       " y = MatMul(s, w2) }",
       {{"H", {8, 4}}, {"F", {32, 16}}, {"B", {64, 32}}},
       {8}},
      {"Gru",
       "g (float[3,2,6] x, float[1,$F,6] w, float[1,$F,$H] r,"
       "   float[1,$B] b, float[$H,5] w2) => (float[3,2,5] y)"
       " <int64[1] one = {1}> {"
       " h, last = GRU<hidden_size=$H>(x, w, r, b)"
       " s = Squeeze(h, one)"
       " y = MatMul(s, w2) }",
       {{"H", {8, 4}}, {"F", {24, 12}}, {"B", {48, 24}}},
       {8}},
      // torch.nn.MultiheadAttention: one projection, and the batch joined with
      // the heads.
      {"PackedAttentionHeads",
       "g (float[4,2,6] x, float[6,$F] w, float[$F] b, float[$E,5] wo)"
       "  => (float[4,2,5] y)"
       " <int64[5] parts = {4,2,3,$H,3}, int64[3] heads = {4,$B,3},"
       "  int64[3] joined = {4,2,$E}, int64[0] none = {},"
       "  int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}> {"
       " a0 = MatMul(x, w)"
       " a = Add(a0, b)"
       " r = Reshape(a, parts)"
       " t = Transpose<perm=[2,0,1,3,4]>(r)"
       " q0 = Gather<axis=0>(t, i0)"
       " k0 = Gather<axis=0>(t, i1)"
       " v0 = Gather<axis=0>(t, i2)"
       " q1 = Reshape(q0, heads)"
       " k1 = Reshape(k0, heads)"
       " v1 = Reshape(v0, heads)"
       " q = Transpose<perm=[1,0,2]>(q1)"
       " k = Transpose<perm=[1,2,0]>(k1)"
       " v = Transpose<perm=[1,0,2]>(v1)"
       " s = MatMul(q, k)"
       " p = Softmax<axis=-1>(s)"
       " o = MatMul(p, v)"
       " u = Transpose<perm=[1,0,2]>(o)"
       " z = Reshape(u, joined)"
       " y = MatMul(z, wo) }",
       {{"H", {8, 4}}, {"E", {24, 12}}, {"F", {72, 36}}, {"B", {16, 8}}},
       {8}},
      {"GroupedQueries",
       "g (float[2,4,6] x, float[6,$E] wq, float[6,$K] wk, float[6,$K] wv,"
       "   float[$E,5] wo) => (float[2,4,5] y)"
       " <int64[4] qheads = {2,4,$H,3}, int64[4] kheads = {2,4,$G,3},"
       "  int64[1] two = {2}, int64[5] repeat = {2,$G,2,4,3},"
       "  int64[4] repeated = {2,$H,4,3}, int64[3] joined = {2,4,$E}> {"
       " q0 = MatMul(x, wq)"
       " k0 = MatMul(x, wk)"
       " v0 = MatMul(x, wv)"
       " q1 = Reshape(q0, qheads)"
       " k1 = Reshape(k0, kheads)"
       " v1 = Reshape(v0, kheads)"
       " q = Transpose<perm=[0,2,1,3]>(q1)"
       " k2 = Transpose<perm=[0,2,1,3]>(k1)"
       " v2 = Transpose<perm=[0,2,1,3]>(v1)"
       " k3 = Unsqueeze(k2, two)"
       " v3 = Unsqueeze(v2, two)"
       " k4 = Expand(k3, repeat)"
       " v4 = Expand(v3, repeat)"
       " k5 = Reshape(k4, repeated)"
       " v = Reshape(v4, repeated)"
       " k = Transpose<perm=[0,1,3,2]>(k5)"
       " s = MatMul(q, k)"
       " p = Softmax<axis=-1>(s)"
       " o = MatMul(p, v)"
       " t = Transpose<perm=[0,2,1,3]>(o)"
       " u = Reshape(t, joined)"
       " y = MatMul(u, wo) }",
       {{"G", {4, 2}}, {"H", {8, 4}}, {"E", {24, 12}}, {"K", {12, 6}}},
       {4}},
  };
}

std::vector<PruneCase> Normalizations() {
  return {
      {"BatchNormalization",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C] scale,"
       "   float[$C] shift, float[$C] mean, float[$C] var,"
       "   float[5,$C,1,1] w2) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = BatchNormalization(a, scale, shift, mean, var)"
       " r = Relu(b)"
       " y = Conv(r, w2) }",
       {{"C", {8, 4}}},
       {8}},
      {"LayerNormalization",
       "g (float[2,4,6] x, float[6,$C] w1, float[$C] scale, float[$C] shift,"
       "   float[$C,5] w2) => (float[2,4,5] y) {"
       " a = MatMul(x, w1)"
       " b = LayerNormalization(a, scale, shift)"
       " y = MatMul(b, w2) }",
       {{"C", {8, 4}}},
       {8},
       true},
      {"GroupNormalization",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C] scale,"
       "   float[$C] shift, float[5,$C,1,1] w2) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = GroupNormalization<num_groups=$G>(a, scale, shift)"
       " y = Conv(b, w2) }",
       {{"C", {12, 6}}, {"G", {4, 2}}},
       {4}},
      // Their constants, ones and zeros, are shared by the import.
      {"TwoGroupNormalizations",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C] scale,"
       "   float[$C] shift, float[$C,$C,1,1] w2, float[$C] scale2,"
       "   float[$C] shift2, float[5,$C,1,1] w3) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = GroupNormalization<num_groups=$G>(a, scale, shift)"
       " c = Conv(b, w2)"
       " d = GroupNormalization<num_groups=$G>(c, scale2, shift2)"
       " y = Conv(d, w3) }",
       {{"C", {12, 6}}, {"G", {4, 2}}},
       {4, 4}},
      {"InstanceNormalization",
       "g (float[2,3,4,4] x, float[$C,3,1,1] w1, float[$C] scale,"
       "   float[$C] shift, float[5,$C,1,1] w2) => (float[2,5,4,4] y) {"
       " a = Conv(x, w1)"
       " b = InstanceNormalization(a, scale, shift)"
       " y = Conv(b, w2) }",
       {{"C", {8, 4}}},
       {8}},
      {"PositionalParameter",
       "g (float[2,4,6] x, float[6,$C] w1, float[1,4,$C] positions,"
       "   float[$C,5] w2) => (float[2,4,5] y) {"
       " a = MatMul(x, w1)"
       " b = Add(a, positions)"
       " y = MatMul(b, w2) }",
       {{"C", {8, 4}}},
       {8},
       false,
       {"positions"}},
      {"EmbeddingAndTiedHead",
       "g (int64[2,4] x, float[9,$C] table, float[7,$C] positions,"
       "   float[$C,$F] w1, float[$F,$C] w2) => (float[2,4,9] y)"
       " <int64[4] steps = {0,1,2,3}> {"
       " e = Gather(table, x)"
       " p = Gather(positions, steps)"
       " a = Add(e, p)"
       " h = MatMul(a, w1)"
       " r = Relu(h)"
       " f = MatMul(r, w2)"
       " s = Add(a, f)"
       " t = Transpose<perm=[1,0]>(table)"
       " y = MatMul(s, t) }",
       {{"C", {8, 4}}, {"F", {12, 6}}},
       {8, 12}},
      {"ClassTokenAndMixer",
       "g (float[2,4,6] x, float[6,$C] w1, float[1,1,$C] token,"
       "   float[5,$T] w2, float[$T,5] w3, float[$C,3] w4)"
       "  => (float[2,5,3] y) <int64[3] batch = {2,1,1}> {"
       " a = MatMul(x, w1)"
       " t = Expand(token, batch)"
       " c = Concat<axis=1>(t, a)"
       " d = Transpose<perm=[0,2,1]>(c)"
       " h = MatMul(d, w2)"
       " r = Relu(h)"
       " f = MatMul(r, w3)"
       " g = Transpose<perm=[0,2,1]>(f)"
       " s = Add(c, g)"
       " y = MatMul(s, w4) }",
       {{"C", {8, 4}}, {"T", {4, 2}}},
       {8, 4}},
  };
}

std::string Substituted(const PruneCase& c, Width width) {
  std::string body = c.body;
  for (const auto& [name, sizes] : c.sizes) {
    body = absl::StrReplaceAll(
        body,
        {{absl::StrCat("$", name),
          absl::StrCat(width == Width::kWide ? sizes.first : sizes.second)}});
  }
  return body;
}

}  // namespace

const std::vector<PruneCase>& PruneCases() {
  static const auto* const cases = [] {
    auto* all = new std::vector<PruneCase>(Convolutions());
    for (const auto& more : {Rearrangements(), Normalizations()}) {
      all->insert(all->end(), more.begin(), more.end());
    }
    return all;
  }();
  return *cases;
}

onnx::ModelProto PruneModel(const PruneCase& c, Width width) {
  onnx::ModelProto model = models::ModelFromText(Substituted(c, width), 22);
  std::mt19937 random(1);
  std::uniform_int_distribution<int> number(-2, 2);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size();) {
    const onnx::ValueInfoProto& input = graph.input(i);
    if (input.name()[0] == 'x') {
      ++i;
      continue;
    }
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(input.name());
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      tensor.add_dims(dim.dim_value());
      elements *= dim.dim_value();
    }
    const bool positive = absl::EndsWith(input.name(), "var");
    for (int64_t e = 0; e < elements; ++e) {
      tensor.add_float_data(
          static_cast<float>(positive ? 1 + e % 3 : number(random)));
    }
    graph.mutable_input()->DeleteSubrange(i, 1);
  }
  return model;
}

}  // namespace loadline::conformance
