// Gradient cases of pointwise, broadcasting, reducing and moving operators.
#include "models/ops/curves.h"
#include "tests/conformance/gradient_cases.h"

namespace loadline::executor {

using models::Ints;
using models::ValueId;

namespace {

// `a` and `b` of the given shapes, `b` in (low, 2).
GradientCase Binary(const std::string& op, Ints a, Ints b, float low = -2) {
  return {op + " " + std::to_string(a.size()) + "d and " +
              std::to_string(b.size()) + "d",
          [=](GradientGraph& builder) -> std::vector<ValueId> {
            const float low_a = op == "Pow" ? 0.5f : -2.0f;
            return {builder.Op(op, {builder.Parameter(a, low_a, 2),
                                    builder.Parameter(b, low, 2)})};
          }};
}

}  // namespace

std::vector<GradientCase> PointwiseGradientCases() {
  std::vector<GradientCase> cases = {
      UnaryCase("Relu"),
      UnaryCase("Sigmoid", -3, 3),
      UnaryCase("Tanh", -2, 2),
      UnaryCase("Exp"),
      UnaryCase("Log", 0.5, 2),
      UnaryCase("Sqrt", 0.5, 2),
      UnaryCase("Neg"),
      UnaryCase("Abs"),
      UnaryCase("Erf", -2, 2),
      UnaryCase("Reciprocal", 0.7, 2),
      UnaryCase("Gelu", -3, 3, {{"approximate", std::string("none")}}),
      UnaryCase("Gelu", -3, 3, {{"approximate", std::string("tanh")}}, " tanh"),
      UnaryCase("Cast", -1, 1, {{"to", std::string("f32")}}),
      Binary("Add", {2, 3, 4}, {2, 3, 4}),
      Binary("Add", {4, 1}, {2, 1, 3}),
      Binary("Sub", {2, 3}, {3}),
      Binary("Sub", {}, {2, 3}),
      Binary("Mul", {2, 3, 4}, {3, 1}),
      Binary("Mul", {1, 4}, {3, 4}),
      Binary("Div", {2, 3}, {2, 3}, 0.7f),
      Binary("Div", {3}, {2, 3}, 0.7f),
      Binary("Div", {2, 3}, {}, 0.7f),
      Binary("Max", {2, 3, 4}, {3, 1}),
      Binary("Min", {4}, {2, 3, 4}),
      Binary("Pow", {2, 3}, {3}),
      {"Fmod between its jumps",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Fmod", {b.Parameter({2, 3, 4}, 2.2f, 2.6f),
                               b.Parameter({3, 1}, 1.5f, 1.9f)})};
       }},
      {"Mul of a value with itself",
       [](GradientGraph& b) -> std::vector<ValueId> {
         const ValueId x = b.Parameter({3, 4});
         return {b.Op("Mul", {x, x})};
       }},
      {"Where broadcast",
       [](GradientGraph& b) -> std::vector<ValueId> {
         const ValueId condition =
             b.Op("Less", {b.Constant({2, 3, 4}), b.Constant({3, 1})});
         return {b.Op("Where", {condition, b.Parameter({3, 4}),
                                b.Parameter({2, 1, 1})})};
       }},
      {"Dropout",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Dropout", {b.Parameter({6, 7})},
                      {{"ratio", 0.4}, {"salt", int64_t{5}}})};
       }},
  };
  models::ForEachCurve(models::Curves(), [&cases](auto curve) {
    const models::CurveFacts& facts = decltype(curve)::kFacts;
    models::Attributes attributes;
    for (const models::CurveAttribute& a : facts.attributes) {
      if (!a.name.empty()) attributes.Set(a.name, a.fallback);
    }
    cases.push_back(UnaryCase(std::string(facts.name),
                              static_cast<float>(facts.low),
                              static_cast<float>(facts.high), attributes));
  });
  return cases;
}

std::vector<GradientCase> ShapeGradientCases() {
  const auto two_parts = [](GradientGraph& b) -> std::vector<ValueId> {
    const std::vector<ValueId> parts =
        b.Ops("Split", {b.Parameter({2, 7})},
              {{"axis", int64_t{1}}, {"sizes", Ints{3, 4}}});
    return {parts[0], parts[1]};
  };
  const auto one_part = [](GradientGraph& b) -> std::vector<ValueId> {
    return {b.Ops("Split", {b.Parameter({7, 2})},
                  {{"axis", int64_t{0}}, {"sizes", Ints{2, 3, 2}}})[1]};
  };
  return {
      UnaryCase("ReduceSum", -1, 1,
                {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}),
      UnaryCase("ReduceSum", -1, 1, {{"axes", Ints{1}}}, " keeps dimensions"),
      UnaryCase("ReduceSum", -1, 1, {}, " of all"),
      UnaryCase("ReduceMean", -1, 1,
                {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}),
      UnaryCase("ReduceMean", -1, 1, {{"axes", Ints{0, 1}}},
                " keeps dimensions"),
      UnaryCase("Reshape", -1, 1, {{"shape", Ints{2, 6}}}),
      UnaryCase("Transpose", -1, 1, {{"perm", Ints{1, 0}}}),
      {"Transpose 4d",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Transpose", {b.Parameter({2, 3, 4, 2})},
                      {{"perm", Ints{2, 0, 3, 1}}})};
       }},
      {"Concat",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Concat",
                      {b.Parameter({2, 1, 3}), b.Parameter({2, 2, 3}),
                       b.Parameter({2, 3, 3})},
                      {{"axis", int64_t{1}}})};
       }},
      {"Concat of a value with itself",
       [](GradientGraph& b) -> std::vector<ValueId> {
         const ValueId x = b.Parameter({2, 3});
         return {b.Op("Concat", {x, x}, {{"axis", int64_t{0}}})};
       }},
      {"Split", two_parts},
      {"Split with unread parts", one_part},
      {"Slice with steps",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Slice", {b.Parameter({5, 3, 7})},
                      {{"starts", Ints{1, 0}},
                       {"ends", Ints{4, 6}},
                       {"axes", Ints{0, 2}},
                       {"steps", Ints{1, 2}}})};
       }},
      {"SliceGrad with steps",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("SliceGrad", {b.Parameter({3, 3, 3})},
                      {{"starts", Ints{1, 0}},
                       {"ends", Ints{4, 6}},
                       {"axes", Ints{0, 2}},
                       {"steps", Ints{1, 2}},
                       {"shape", Ints{5, 3, 7}}})};
       }},
      {"Expand",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {
             b.Op("Expand", {b.Parameter({3, 1})}, {{"shape", Ints{2, 3, 4}}})};
       }},
      {"Gather rows with repeats",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Gather", {b.Parameter({5, 3}), b.Indices({2, 6}, 4)},
                      {{"axis", int64_t{0}}})};
       }},
      {"GatherGrad of rows with repeats",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("GatherGrad", {b.Parameter({6, 3}), b.Indices({6}, 4)},
                      {{"axis", int64_t{0}}, {"shape", Ints{5, 3}}})};
       }},
      {"Scatter of distinct rows",
       [](GradientGraph& b) -> std::vector<ValueId> {
         const int64_t rows[] = {4, 0, -3};
         return {b.Op("Scatter",
                      {b.Parameter({5, 3}),
                       b.graph.AddConstant("rows", models::Int64Tensor(rows)),
                       b.Parameter({3, 3})})};
       }},
      {"ScatterReduce to the largest",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {
             b.Op("ScatterReduce",
                  {b.Parameter({5, 3}), b.Indices({6}, 4), b.Parameter({6, 3})},
                  {{"reduction", std::string("max")}})};
       }},
      UnaryCase("ReduceMax", -1, 1, {{"axis", int64_t{1}}}),
      UnaryCase("ReduceMin", -1, 1, {{"axis", int64_t{0}}}),
      UnaryCase("ReduceMax", -1, 1,
                {{"axis", int64_t{1}}, {"first", int64_t{1}}}, " first"),
      UnaryCase("CumSum", -1, 1, {{"axis", int64_t{1}}}),
      UnaryCase("CumSum", -1, 1,
                {{"axis", int64_t{0}},
                 {"exclusive", int64_t{1}},
                 {"reverse", int64_t{1}}},
                " exclusive from the end"),
      {"Gather columns",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("Gather", {b.Parameter({2, 5, 3}), b.Indices({4}, 5)},
                      {{"axis", int64_t{1}}})};
       }},
  };
}

}  // namespace loadline::executor
