#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/export.h"
#include "models/onnx/widen_floats.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::HasSubstr;

Tensor Halves(const std::vector<uint16_t>& bits) {
  return MakeTensor({DType::kF16, {static_cast<int64_t>(bits.size())}},
                    bits.data());
}

// Every f16 is an f32; NaNs stay NaNs.
TEST(WidenFloats, KeepsEveryHalf) {
  std::vector<uint16_t> bits;
  for (int i = 0; i < 65536; ++i) bits.push_back(static_cast<uint16_t>(i));
  const Tensor wide = AsF32(Halves(bits));
  const auto values = wide.as<float>();
  EXPECT_EQ(values[0x3c00], 1.0f);
  EXPECT_EQ(values[0xc000], -2.0f);
  EXPECT_EQ(values[0x7bff], 65504.0f);
  EXPECT_EQ(values[0x0001], 0x1p-24f);
  EXPECT_EQ(values[0x03ff], 1023 * 0x1p-24f);
  EXPECT_TRUE(std::isinf(values[0xfc00]));
  const auto back = FromF32(wide, DType::kF16);
  ASSERT_TRUE(back.ok()) << back.status();
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(values[i])) continue;
    ASSERT_EQ(back->as<uint16_t>()[i], bits[i]) << i;
  }
}

TEST(WidenFloats, RoundsToTheNearestEven) {
  const std::vector<float> values = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 0x1p-25f,
                                     0x1.8p-24f,   2047.9f / 2048.f, -0.0f};
  const Tensor f32 = MakeTensor({DType::kF32, {6}}, values.data());
  const auto half = FromF32(f32, DType::kF16);
  ASSERT_TRUE(half.ok());
  EXPECT_THAT(half->as<uint16_t>(),
              ::testing::ElementsAre(0x3c00, 0x3c02, 0, 2, 0x3c00, 0x8000));
  const auto bf16 = FromF32(f32, DType::kBF16);
  ASSERT_TRUE(bf16.ok());
  EXPECT_EQ(bf16->as<uint16_t>()[0], 0x3f80);
  const float large = 65520;
  EXPECT_THAT(FromF32(MakeTensor({DType::kF32, {1}}, &large), DType::kF16)
                  .status()
                  .ToString(),
              HasSubstr("65504"));
}

// A linear layer in f16 with casts, as exporters write it.
onnx::ModelProto HalfModel() {
  onnx::ModelProto model = ModelFromText(
      "g (float16[2,3] x) => (float16[2,2] y) {"
      " h = MatMul(x, w)"
      " f = Cast<to=1>(h)"
      " s = Softmax(f)"
      " y = Cast<to=10>(s) }");
  onnx::TensorProto* w = model.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT16);
  w->add_dims(3);
  w->add_dims(2);
  for (int bits : {0x3c00, 0x4000, 0x3800, 0xbc00, 0x0000, 0x3c01}) {
    w->add_int32_data(bits);
  }
  return model;
}

TEST(WidenFloats, ImportsAModelInHalfAsF32) {
  const auto imported = ImportOnnxBytes(Bytes(HalfModel()), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  for (const Value& value : graph.values) {
    EXPECT_EQ(value.type.dtype, DType::kF32) << value.name;
  }
  EXPECT_EQ(Ops(graph), (std::vector<std::string>{"MatMul", "Softmax"}));
  EXPECT_THAT(graph.value(*graph.Find("w")).initial->as<float>(),
              ::testing::ElementsAre(1, 2, 0.5, -1, 0, 1 + 0x1p-10f));
  ASSERT_FALSE(imported->warnings.empty());
  EXPECT_THAT(imported->warnings[0], HasSubstr("the model is in f16"));
}

TEST(WidenFloats, WritesWeightsBackInTheFilesType) {
  const std::string folder = TempFolder();
  WriteFile(folder + "/half.onnx", Bytes(HalfModel()));
  const std::vector<float> w = {1 + 0x1p-11f, 2, 3, 4, 5, 6};
  const auto status =
      ExportTrained(folder + "/half.onnx",
                    {{"w", MakeTensor({DType::kF32, {3, 2}}, w.data())}},
                    folder + "/out.onnx");
  ASSERT_TRUE(status.ok()) << status;
  const auto again = ImportOnnx(folder + "/out.onnx", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->graph.value(*again->graph.Find("w")).initial->as<float>(),
              ::testing::ElementsAre(1, 2, 3, 4, 5, 6));
  std::filesystem::remove_all(folder);
}

TEST(WidenFloats, LeavesDoublesOfShapesAlone) {
  EXPECT_TRUE(TypesToWiden(ModelFromText("g (float[2] x) => (float[2] y) {"
                                         " s = Shape(x) d = Cast<to=11>(s)"
                                         " f = Cast<to=1>(d) y = Mul(x, f) }"))
                  .empty());
  EXPECT_EQ(TypesToWiden(ModelFromText("g (float[2] x) => (float[2] y) {"
                                       " d = Cast<to=11>(x)"
                                       " y = Cast<to=1>(d) }")),
            std::set<DType>{DType::kF64});
  // As torch.isinf of a parameter is exported.
  EXPECT_EQ(TypesToWiden(ModelFromText("g (float[2] x) => (float[2] y)"
                                       " <float[2] w = {1, 2}> {"
                                       " e = Exp(w) d = Cast<to=11>(e)"
                                       " i = IsInf(d) z = Where(i, x, e)"
                                       " y = Mul(x, z) }")),
            std::set<DType>{DType::kF64});
  EXPECT_EQ(
      TypesToWiden(ModelFromText("g (double[2] x) => (double[2] y)"
                                 " <double[2] w = {1, 2}> { y = Mul(x, w) }")),
      std::set<DType>{DType::kF64});
}

// As a model that casts what it is given is exported.
TEST(WidenFloats, TakesInputsOfOtherFloatsAsF32) {
  for (const char* type : {"double", "float16"}) {
    const auto imported =
        ImportText(absl::StrCat("g (", type,
                                "[2] x) => (float[2] y) <float[2] w = {1, 2}> {"
                                " f = Cast<to=1>(x) y = Mul(f, w) }"));
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(Ops(imported->graph), std::vector<std::string>{"Mul"});
    EXPECT_EQ(imported->graph.value(imported->graph.inputs[0]).type.dtype,
              DType::kF32);
  }
}

// Under torch.autocast weights stay in f32, and nodes cast what they read.
TEST(WidenFloats, ComputesInF32WhereAModelCastsToBf16) {
  const char* weights = " <float[2,2] w = {1,2,3,4}> {";
  const auto whole = ImportText(
      absl::StrCat("g (float[2,2] x) => (float[2,2] y)", weights,
                   " xh = Cast<to=16>(x) wh = Cast<to=16>(w) h = MatMul(xh, wh)"
                   " y = Cast<to=1>(h) }"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(Ops(whole->graph), std::vector<std::string>{"MatMul"});
  ASSERT_FALSE(whole->warnings.empty());
  EXPECT_THAT(whole->warnings[0], HasSubstr("the model is in bf16"));
  const auto rounds =
      ImportText(absl::StrCat("g (float[2,2] x) => (float[2,2] y)", weights,
                              " xh = Cast<to=16>(x) xr = Cast<to=1>(xh)"
                              " y = MatMul(xr, w) }"));
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  EXPECT_EQ(Ops(rounds->graph),
            (std::vector<std::string>{"Cast", "Cast", "MatMul"}));
}

// Converters to f16 cast the weights of the operators that stay in f32.
TEST(WidenFloats, TrainsABatchNormalizationWhoseWeightsAreCast) {
  for (const char* type : {"float16", "bfloat16", "double"}) {
    onnx::ModelProto model = ModelFromText(
        "g (float[2,2,3] x) => (float[2,2,3] y) {"
        " s = Cast<to=1>(scale) b = Cast<to=1>(bias)"
        " m16 = Identity(mean) m = Cast<to=1>(m16)"
        " v = Cast<to=1>(var)"
        " y = BatchNormalization(x, s, b, m, v) }");
    for (const char* name : {"scale", "bias", "mean", "var"}) {
      onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
      tensor->set_name(name);
      tensor->add_dims(2);
      if (std::string(type) == "double") {
        tensor->set_data_type(onnx::TensorProto::DOUBLE);
        tensor->add_double_data(1);
        tensor->add_double_data(2);
        continue;
      }
      const bool half = std::string(type) == "float16";
      tensor->set_data_type(half ? onnx::TensorProto::FLOAT16
                                 : onnx::TensorProto::BFLOAT16);
      tensor->add_int32_data(half ? 0x3c00 : 0x3f80);
      tensor->add_int32_data(half ? 0x4000 : 0x4000);
    }
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(Names(imported->graph, ValueKind::kParameter),
              (std::vector<std::string>{"scale", "bias"}))
        << type;
    EXPECT_EQ(Names(imported->graph, ValueKind::kState),
              (std::vector<std::string>{"mean", "var"}))
        << type;
    EXPECT_EQ(imported->forms.batch_norms_restored, 1) << type;
  }
}

}  // namespace
}  // namespace loadline::models::onnx_internal
