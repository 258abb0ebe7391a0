// Cases of reductions, of operators that move elements, and of matrix products.
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Attributes;
using models::Ints;

void AddWriteRowsCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints part, whole;
    int64_t start;
  };
  for (const Shape& s : std::vector<Shape>{{{2, 7}, {5, 7}, 0},
                                           {{2, 7}, {5, 7}, 14},
                                           {{3, 7}, {5, 7}, 14},
                                           {{4}, {4}, 0},
                                           {{0, 7}, {5, 7}, 7},
                                           {{100, 129}, {3, 100, 129}, 12900},
                                           {{1, 33}, {2, 3, 11}, 33}}) {
    const std::string what = std::to_string(cases.size());
    const Attributes attributes = {{"start", s.start}, {"shape", s.whole}};
    cases.push_back({"WriteRows", what, {F32(s.part)}, attributes, 0});
    cases.push_back({"WriteRows",
                     what + " into others",
                     {F32(s.part), F32(s.whole)},
                     attributes,
                     0});
    cases.push_back({"WriteRows",
                     what + " i64",
                     {I64(s.part, 0, 9), I64(s.whole, 0, 9)},
                     attributes,
                     0});
  }
}

void AddReduceCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints dims, axes;
  };
  const std::vector<Shape> shapes = {
      {{7, 13}, {1}},         {{7, 13}, {0}},
      {{7, 13}, {0, 1}},      {{2, 3, 5, 7}, {0, 2, 3}},
      {{2, 3, 5, 7}, {1, 3}}, {{2, 3, 5, 7}, {2}},
      {{1, 5}, {0}},          {{5}, {-1}},
      {{3, 700}, {0}},        {{300, 70}, {0}},
      {{131, 1031}, {0, 1}},  {{4096, 65}, {0}},
      {{64, 4096}, {0, 1}},   {{16, 4, 4096}, {0, 2}}};
  for (const Shape& s : shapes) {
    std::string what =
        models::TensorType{models::DType::kF32, s.dims}.ToString();
    for (int64_t axis : s.axes) what += " " + std::to_string(axis);
    for (int64_t keep : {0, 1}) {
      const Attributes attributes = {{"axes", s.axes}, {"keepdims", keep}};
      const std::string name = what + (keep != 0 ? " kept" : "");
      // Thousands of terms of both signs: tolerance relative to their size.
      cases.push_back({"ReduceSum", name, {F32(s.dims)}, attributes, 1e-4});
      cases.push_back({"ReduceMean", name, {F32(s.dims)}, attributes});
    }
  }
  cases.push_back({"ReduceSum", "all axes", {F32({3, 5})}, {}, 1e-5});
  cases.push_back({"ReduceMean", "all axes", {F32({3, 5})}, {}, 1e-5});
  cases.push_back({"ReduceSum", "a scalar", {F32({})}, {}, 0});
}

void AddTransposeCases(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<Ints, Ints>> shapes = {
      {{7, 13}, {1, 0}},
      {{2, 5, 3, 8}, {0, 2, 1, 3}},
      {{2, 5, 3, 8}, {0, 2, 3, 1}},
      {{2, 5, 3, 8}, {3, 1, 0, 2}},
      {{2, 5, 3, 8}, {0, 1, 2, 3}},
      {{1, 17}, {1, 0}},
      {{0, 3}, {1, 0}},
      {{5}, {0}},
      {{131, 257}, {1, 0}},
      {{3, 40, 50}, {2, 1, 0}},
      {{2, 64, 33}, {0, 2, 1}}};
  for (const auto& [dims, perm] : shapes) {
    std::string what;
    for (int64_t d : dims) what += std::to_string(d) + " ";
    for (int64_t d : perm) what += "," + std::to_string(d);
    cases.push_back({"Transpose", what, {F32(dims)}, {{"perm", perm}}, 0});
    cases.push_back(
        {"Transpose", what + " i64", {I64(dims, 0, 99)}, {{"perm", perm}}, 0});
    cases.push_back(
        {"Transpose", what + " bool", {Bool(dims)}, {{"perm", perm}}, 0});
  }
}

void AddMoveCases(std::vector<OperatorCase>& cases) {
  cases.push_back({"Concat",
                   "last",
                   {F32({3, 5}), F32({3, 1}), F32({3, 7})},
                   {{"axis", int64_t{1}}},
                   0});
  cases.push_back({"Concat",
                   "first",
                   {F32({2, 5}), F32({3, 5})},
                   {{"axis", int64_t{0}}},
                   0});
  cases.push_back({"Concat",
                   "one empty, i64",
                   {I64({2, 3, 5}, 0, 9), I64({2, 0, 5}, 0, 9)},
                   {{"axis", int64_t{1}}},
                   0});
  cases.push_back({"Split",
                   "last",
                   {F32({3, 13})},
                   {{"axis", int64_t{1}}, {"sizes", Ints{5, 1, 7}}},
                   0});
  cases.push_back({"Split",
                   "middle",
                   {F32({2, 6, 5})},
                   {{"axis", int64_t{1}}, {"sizes", Ints{2, 4}}},
                   0});
  cases.push_back({"Split",
                   "large",
                   {F32({64, 3072})},
                   {{"axis", int64_t{1}}, {"sizes", Ints{1024, 1024, 1024}}},
                   0});
  struct Cut {
    Ints dims, starts, ends, axes, steps;
  };
  for (const Cut& s :
       std::vector<Cut>{{{7, 13}, {2}, {9}, {1}, {1}},
                        {{7, 13}, {1, 0}, {7, 13}, {0, 1}, {2, 3}},
                        {{2, 3, 11}, {4}, {11}, {2}, {5}},
                        {{5, 4}, {2}, {3}, {0}, {1}},
                        {{5, 4}, {2}, {2}, {0}, {1}},
                        {{200, 300}, {10}, {290}, {1}, {1}}}) {
    Attributes attributes = {{"starts", s.starts},
                             {"ends", s.ends},
                             {"axes", s.axes},
                             {"steps", s.steps}};
    const std::string what = std::to_string(cases.size());
    cases.push_back({"Slice", what, {F32(s.dims)}, attributes, 0});
    cases.push_back(
        {"Slice", what + " i64", {I64(s.dims, 0, 9)}, attributes, 0});
    Ints small = s.dims;
    for (size_t i = 0; i < s.axes.size(); ++i) {
      small[s.axes[i]] =
          (s.ends[i] - s.starts[i] + s.steps[i] - 1) / s.steps[i];
    }
    attributes.Set("shape", s.dims);
    cases.push_back({"SliceGrad", what, {F32(small)}, attributes, 0});
  }
  for (const auto& [from, to] :
       std::vector<std::pair<Ints, Ints>>{{{1, 13}, {7, 13}},
                                          {{7, 1}, {7, 13}},
                                          {{}, {3, 5}},
                                          {{3, 1, 5}, {2, 3, 4, 5}},
                                          {{3, 1, 16}, {3, 4, 16}},
                                          {{1}, {40000}}}) {
    const std::string what = std::to_string(cases.size());
    cases.push_back({"Expand", what, {F32(from)}, {{"shape", to}}, 0});
    cases.push_back(
        {"Expand", what + " bool", {Bool(from)}, {{"shape", to}}, 0});
  }
}

void AddGatherCases(std::vector<OperatorCase>& cases) {
  struct Look {
    Ints data, indices;
    int64_t axis;
  };
  for (const Look& s : std::vector<Look>{{{11, 7}, {5}, 0},
                                         {{11, 7}, {2, 3}, 0},
                                         {{11, 7}, {}, 0},
                                         {{3, 5, 4}, {6}, 1},
                                         {{3, 5}, {2, 2}, -1},
                                         {{65, 128}, {4, 200}, 0},
                                         {{4, 3}, {0}, 0}}) {
    const int64_t axis = s.axis < 0 ? s.axis + s.data.size() : s.axis;
    const double last = static_cast<double>(s.data[axis] - 1);
    const Attributes attributes = {{"axis", s.axis}};
    const std::string what = std::to_string(cases.size());
    cases.push_back({"Gather",
                     what,
                     {F32(s.data), I64(s.indices, 0, last)},
                     attributes,
                     0});
    cases.push_back({"Gather",
                     what + " i32",
                     {I64(s.data, 0, 99), I32(s.indices, 0, last)},
                     attributes,
                     0});
    Ints y(s.data.begin(), s.data.begin() + axis);
    y.insert(y.end(), s.indices.begin(), s.indices.end());
    y.insert(y.end(), s.data.begin() + axis + 1, s.data.end());
    Attributes grad = {{"axis", axis}};
    grad.Set("shape", s.data);
    cases.push_back(
        {"GatherGrad", what, {F32(y), I64(s.indices, 0, last)}, grad, 1e-5});
  }
}

void AddScatterCases(std::vector<OperatorCase>& cases) {
  struct Written {
    Ints data;
    int64_t count;
  };
  for (const Written& w : std::vector<Written>{{{11, 7}, 1},
                                               {{11, 7}, 4},
                                               {{3, 5}, 40},
                                               {{9}, 5},
                                               {{4, 3}, 0},
                                               {{65, 128}, 800}}) {
    Ints updates = w.data;
    updates[0] = w.count;
    const double last = static_cast<double>(w.data[0] - 1);
    const std::string what = std::to_string(cases.size());
    // An update that a later one overwrites has no slope, but gets a gradient.
    cases.push_back({"Scatter",
                     what,
                     {F32(w.data), I64({w.count}, 0, last), F32(updates)},
                     {},
                     0,
                     /*smooth=*/w.count <= 1});
    for (const char* reduction : {"max", "min", "mul"}) {
      cases.push_back({"ScatterReduce",
                       what + " " + reduction,
                       {F32(w.data), I64({w.count}, 0, last), F32(updates)},
                       {{"reduction", std::string(reduction)}},
                       1e-5});
    }
    cases.push_back(
        {"Scatter",
         what + " i32",
         {I64(w.data, 0, 99), I32({w.count}, 0, last), I64(updates, 0, 99)},
         {},
         0});
  }
}

void AddLineCases(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<Ints, int64_t>> shapes = {
      {{5}, 0},        {{7, 13}, 1}, {{7, 13}, 0},
      {{2, 3, 5}, -2}, {{3, 1}, 1},  {{40, 60, 30}, 1}};
  for (const auto& [dims, axis] : shapes) {
    for (const bool integers : {false, true}) {
      const InputSpec x = integers ? I64(dims, -3, 3) : F32(dims);
      const std::string what = std::to_string(cases.size());
      for (const char* op : {"ReduceMax", "ReduceMin"}) {
        cases.push_back({op, what, {x}, {{"axis", axis}}, 0});
      }
      for (const int64_t flag : {0, 1}) {
        cases.push_back(
            {"CumSum",
             what + (flag != 0 ? " reverse" : " exclusive"),
             {x},
             {{"axis", axis}, {"exclusive", 1 - flag}, {"reverse", flag}},
             1e-5});
        const int64_t size = dims[axis < 0 ? axis + dims.size() : axis];
        cases.push_back({"TopK",
                         what + (flag != 0 ? " last" : " smallest"),
                         {x},
                         {{"axis", axis},
                          {"k", std::min<int64_t>(size, 4)},
                          {"largest", flag},
                          {"last", flag}},
                         0});
      }
    }
  }
}

void AddProductCases(std::vector<OperatorCase>& cases) {
  struct Product {
    Ints a, b;
    int64_t ta, tb;
  };
  for (const Product& s :
       std::vector<Product>{{{5, 7}, {7, 3}, 0, 0},
                            {{7, 5}, {7, 3}, 1, 0},
                            {{5, 7}, {3, 7}, 0, 1},
                            {{7, 5}, {3, 7}, 1, 1},
                            {{2, 3, 5, 7}, {2, 3, 7, 4}, 0, 0},
                            {{2, 3, 5, 7}, {2, 3, 4, 7}, 0, 1},
                            {{2, 3, 7, 5}, {2, 3, 7, 4}, 1, 0},
                            {{2, 5, 7}, {7, 4}, 0, 0},
                            {{2, 3, 5, 7}, {4, 7}, 0, 1},
                            {{2, 7, 5}, {7, 4}, 1, 0},
                            {{5, 7}, {2, 7, 4}, 0, 0},
                            {{2, 1, 5, 7}, {3, 7, 4}, 0, 0},
                            {{7}, {7, 4}, 0, 0},
                            {{5, 7}, {7}, 0, 0},
                            {{7}, {7}, 0, 0},
                            {{2, 5, 7}, {7}, 0, 0},
                            {{7}, {2, 7, 4}, 0, 0},
                            {{1, 1}, {1, 1}, 0, 0},
                            {{64, 96}, {96, 80}, 0, 0},
                            {{0, 7}, {7, 3}, 0, 0}}) {
    cases.push_back({"MatMul",
                     std::to_string(cases.size()),
                     {F32(s.a, -1, 1), F32(s.b, -1, 1)},
                     {{"trans_a", s.ta}, {"trans_b", s.tb}},
                     1e-5});
  }
  struct Affine {
    Ints a, b, c;
    int64_t ta, tb;
    double alpha, beta;
  };
  for (const Affine& s :
       std::vector<Affine>{{{5, 7}, {7, 3}, {3}, 0, 0, 1, 1},
                           {{5, 7}, {3, 7}, {3}, 0, 1, 1, 1},
                           {{7, 5}, {7, 3}, {1, 3}, 1, 0, 1, 1},
                           {{7, 5}, {3, 7}, {5, 1}, 1, 1, 1, 1},
                           {{5, 7}, {7, 3}, {5, 3}, 0, 0, 0.5, 2},
                           {{5, 7}, {7, 3}, {}, 0, 0, 1, 0.5},
                           {{1, 64}, {10, 64}, {10}, 0, 1, 1, 1},
                           {{5, 7}, {7, 1}, {1}, 0, 0, 1, 1}}) {
    const Attributes attributes = {{"alpha", s.alpha},
                                   {"beta", s.beta},
                                   {"transA", s.ta},
                                   {"transB", s.tb}};
    const std::string what = std::to_string(cases.size());
    cases.push_back({"Gemm",
                     what,
                     {F32(s.a, -1, 1), F32(s.b, -1, 1), F32(s.c)},
                     attributes,
                     1e-5});
    cases.push_back({"Gemm",
                     what + " without c",
                     {F32(s.a, -1, 1), F32(s.b, -1, 1)},
                     attributes,
                     1e-5});
  }
  for (const Product& s : std::vector<Product>{{{7, 5}, {7, 3}, 1, 0},
                                               {{64, 24}, {64, 16}, 1, 0},
                                               {{5, 7}, {7, 3}, 0, 0},
                                               {{7, 5}, {3, 7}, 1, 1},
                                               {{300, 1}, {300, 8}, 1, 0}}) {
    for (const char* dy : {"a", "b"}) {
      cases.push_back(
          {"GemmBiasGrad",
           std::to_string(cases.size()) + " " + dy,
           {F32(s.a, -1, 1), F32(s.b, -1, 1)},
           {{"transA", s.ta}, {"transB", s.tb}, {"dy", std::string(dy)}},
           1e-5});
    }
  }
  for (const Product& s : std::vector<Product>{{{5, 7}, {7, 16}, 0, 0},
                                               {{24, 9}, {32, 9}, 0, 1},
                                               {{7, 5}, {7, 3}, 1, 0}}) {
    for (const char* approximate : {"none", "tanh"}) {
      const int64_t rows = s.a[s.ta];
      const int64_t columns = s.b[1 - s.tb];
      for (bool adds : {false, true}) {
        OperatorCase sum = {"GemmSum",
                            std::to_string(cases.size()),
                            {F32(s.a, -1, 1), F32(s.b, -1, 1)},
                            {{"transA", s.ta}, {"transB", s.tb}},
                            1e-5};
        if (adds) sum.inputs.push_back(F32({rows, columns}, -3, 3));
        cases.push_back(sum);
      }
      cases.push_back(
          {"GemmGeluGrad",
           std::to_string(cases.size()) + " " + approximate,
           {F32(s.a, -1, 1), F32(s.b, -1, 1), F32({rows, columns}, -3, 3)},
           {{"transA", s.ta},
            {"transB", s.tb},
            {"approximate", std::string(approximate)}},
           1e-5});
    }
  }
}

}  // namespace

void AddShapeCases(std::vector<OperatorCase>& cases) {
  AddReduceCases(cases);
  AddWriteRowsCases(cases);
  AddTransposeCases(cases);
  AddMoveCases(cases);
  AddGatherCases(cases);
  AddScatterCases(cases);
  AddLineCases(cases);
  AddProductCases(cases);
}

}  // namespace loadline::conformance
