#include "passes/fuse_gelu.h"

#include <gtest/gtest.h>

#include <functional>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using Form = std::function<ValueId(Builder&, ValueId)>;

constexpr float kRoot2 = 1.41421354f;
constexpr float kBeta = 0.797884583f;

std::string Fused(const Form& form) {
  Builder b;
  // x itself is a product, which the match must not include.
  const ValueId x =
      b.Op("Mul", {b.Input("in", {2, 3}), b.Parameter("w", {2, 3})});
  b.Output(b.Op("Relu", {form(b, x)}));
  EXPECT_TRUE(FuseGelu(b.graph).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
  return Describe(b.graph);
}

std::string Expected(const std::string& approximate) {
  return "%0 = Mul(in, w)\n%1 = Gelu(%0) {approximate=" + approximate +
         "}\n%2 = Relu(%1)\noutput %2\n";
}

ValueId OnePlus(Builder& b, ValueId v) { return b.Op("Add", {v, b.Scalar(1)}); }
ValueId Erf(Builder& b, ValueId x) {
  return b.Op("Erf", {b.Op("Div", {x, b.Scalar(kRoot2)})});
}

TEST(FuseGelu, ExactFormInEveryOrderOfFactors) {
  const Form forms[] = {
      // The exporter's: (x · (1 + erf(x / √2))) · 0.5
      [](Builder& b, ValueId x) {
        return b.Op("Mul",
                    {b.Op("Mul", {x, OnePlus(b, Erf(b, x))}), b.Scalar(0.5)});
      },
      // (0.5 · x) · (1 + erf(x · 0.7071))
      [](Builder& b, ValueId x) {
        const ValueId half = b.Op("Mul", {b.Scalar(0.5), x});
        const ValueId erf =
            b.Op("Erf", {b.Op("Mul", {x, b.Scalar(0.707106769f)})});
        return b.Op("Mul", {half, b.Op("Add", {b.Scalar(1), erf})});
      },
      // x · ((1 + erf(x / √2)) · 0.5)
      [](Builder& b, ValueId x) {
        return b.Op("Mul",
                    {x, b.Op("Mul", {OnePlus(b, Erf(b, x)), b.Scalar(0.5)})});
      },
      // (1 + erf(x / √2)) / 2 · x
      [](Builder& b, ValueId x) {
        return b.Op("Mul",
                    {b.Op("Div", {OnePlus(b, Erf(b, x)), b.Scalar(2)}), x});
      },
  };
  for (const Form& form : forms) EXPECT_EQ(Fused(form), Expected("none"));
}

TEST(FuseGelu, TanhFormInEveryWayToWriteTheCube) {
  const auto tail = [](Builder& b, ValueId x, ValueId inner) {
    return b.Op("Mul", {b.Op("Mul", {b.Scalar(0.5), x}),
                        OnePlus(b, b.Op("Tanh", {inner}))});
  };
  const Form forms[] = {
      // √(2/π) · (x + 0.044715 · x³), the cube as a power
      [&](Builder& b, ValueId x) {
        const ValueId cube = b.Op("Pow", {x, b.Scalar(3)});
        const ValueId sum =
            b.Op("Add", {x, b.Op("Mul", {b.Scalar(0.044715f), cube})});
        return tail(b, x, b.Op("Mul", {b.Scalar(kBeta), sum}));
      },
      // the cube as two products
      [&](Builder& b, ValueId x) {
        const ValueId cube = b.Op("Mul", {x, b.Op("Mul", {x, x})});
        const ValueId sum =
            b.Op("Add", {x, b.Op("Mul", {cube, b.Scalar(0.044715f)})});
        return tail(b, x, b.Op("Mul", {sum, b.Scalar(kBeta)}));
      },
      // √(2/π) · x · (1 + 0.044715 · x²)
      [&](Builder& b, ValueId x) {
        const ValueId square = b.Op("Mul", {x, x});
        const ValueId inner =
            OnePlus(b, b.Op("Mul", {b.Scalar(0.044715f), square}));
        return tail(b, x,
                    b.Op("Mul", {b.Op("Mul", {x, b.Scalar(kBeta)}), inner}));
      },
  };
  for (const Form& form : forms) EXPECT_EQ(Fused(form), Expected("tanh"));
}

TEST(FuseGelu, LeavesWhatIsNotGelu) {
  const Form forms[] = {
      // another scale
      [](Builder& b, ValueId x) {
        const ValueId erf = b.Op("Erf", {b.Op("Div", {x, b.Scalar(1.5)})});
        return b.Op("Mul", {b.Op("Mul", {x, OnePlus(b, erf)}), b.Scalar(0.5)});
      },
      // the factor is another value than the argument
      [](Builder& b, ValueId x) {
        const ValueId other = b.Op("Exp", {x});
        return b.Op("Mul", {b.Op("Mul", {other, OnePlus(b, Erf(b, x))}),
                            b.Scalar(0.5)});
      },
      // 1 - erf
      [](Builder& b, ValueId x) {
        const ValueId one_less = b.Op("Sub", {b.Scalar(1), Erf(b, x)});
        return b.Op("Mul", {b.Op("Mul", {x, one_less}), b.Scalar(0.5)});
      },
      // no half
      [](Builder& b, ValueId x) {
        return b.Op("Mul", {x, OnePlus(b, Erf(b, x))});
      },
      // tanh of the exact form's argument
      [](Builder& b, ValueId x) {
        const ValueId tanh = b.Op("Tanh", {b.Op("Div", {x, b.Scalar(kRoot2)})});
        return b.Op("Mul", {b.Op("Mul", {x, OnePlus(b, tanh)}), b.Scalar(0.5)});
      },
  };
  for (const Form& form : forms) {
    EXPECT_EQ(Fused(form).find("Gelu"), std::string::npos);
  }
}

TEST(FuseGelu, LeavesAChainThatOthersRead) {
  Builder b;
  const ValueId x = b.Input("x", {2});
  const ValueId erf = Erf(b, x);
  b.Output(b.Op("Mul", {b.Op("Mul", {x, OnePlus(b, erf)}), b.Scalar(0.5)}));
  b.Output(erf);
  const size_t nodes = b.graph.nodes.size();
  ASSERT_TRUE(FuseGelu(b.graph).ok());
  EXPECT_EQ(b.graph.nodes.size(), nodes);
}

}  // namespace
}  // namespace loadline::passes
