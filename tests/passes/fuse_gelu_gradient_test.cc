#include "passes/fuse_gelu_gradient.h"

#include <gtest/gtest.h>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::DType;
using models::Ints;
using models::ValueId;

constexpr DType kBF16 = DType::kBF16;
const Attributes kTanh = {{"approximate", std::string("tanh")}};

TEST(FuseGeluGradient, TheProductTakesTheSlope) {
  Builder b;
  const ValueId dy = b.Input("dy", {6, 8}, kBF16);
  const ValueId w = b.Input("w", {16, 8}, kBF16);
  const ValueId x = b.Input("x", {6, 16}, kBF16);
  const ValueId m = b.Op("MatMul", {dy, w}, {{"trans_b", int64_t{1}}});
  b.Output(b.Op("GeluGrad", {m, x}, kTanh));
  ExpectBecomes(FuseGeluGradient, b.graph,
                "%0 = GemmGeluGrad(dy, w, x) "
                "{approximate=tanh, transA=0, transB=1}\n"
                "output %0\n");
}

TEST(FuseGeluGradient, SeesThroughAView) {
  Builder b;
  const ValueId dy = b.Input("dy", {6, 8}, kBF16);
  const ValueId w = b.Input("w", {8, 16}, kBF16);
  const ValueId x = b.Input("x", {2, 3, 16}, kBF16);
  const ValueId m =
      b.Op("Reshape", {b.Op("Gemm", {dy, w})}, {{"shape", Ints{2, 3, 16}}});
  b.Output(b.Op("Neg", {b.Op("GeluGrad", {m, x}, kTanh)}));
  ExpectBecomes(FuseGeluGradient, b.graph,
                "%0 = Reshape(x) {shape=[6,16]}\n"
                "%1 = GemmGeluGrad(dy, w, %0) "
                "{approximate=tanh, transA=0, transB=0}\n"
                "%2 = Reshape(%1) {shape=[2,3,16]}\n"
                "%3 = Neg(%2)\n"
                "output %3\n");
}

TEST(FuseGeluGradient, LeavesAloneOtherFormsTypesAndReaders) {
  struct Form {
    const char* what;
    DType dtype;
    Attributes gelu;
    bool read_twice;
  };
  for (const Form& form : std::vector<Form>{
           {"the exact form", kBF16, {}, false},
           {"f32", DType::kF32, kTanh, false},
           {"a product that is read twice", kBF16, kTanh, true}}) {
    SCOPED_TRACE(form.what);
    Builder b;
    const ValueId dy = b.Input("dy", {6, 8}, form.dtype);
    const ValueId w = b.Input("w", {8, 16}, form.dtype);
    const ValueId x = b.Input("x", {6, 16}, form.dtype);
    const ValueId m = b.Op("Gemm", {dy, w});
    b.Output(b.Op("GeluGrad", {m, x}, form.gelu));
    if (form.read_twice) b.Output(m);
    ExpectUntouched(FuseGeluGradient, b.graph);
  }
}

}  // namespace
}  // namespace loadline::passes
