// Cases of fake quantization.
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {

using models::Attributes;
using models::Ints;

void AddQuantizeCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints x;
    int64_t axis;  // -1: one channel
  };
  struct Grid {
    int64_t bits, is_signed, symmetric;
  };
  for (const Shape& s : std::vector<Shape>{{{7, 13}, -1},
                                           {{}, -1},
                                           {{3, 127, 131}, -1},
                                           {{8, 3, 3, 3}, 0},
                                           {{65, 33}, 1},
                                           {{4, 5, 6, 7}, 1},
                                           {{2, 70000}, 0},
                                           {{0, 4}, -1},
                                           {{1, 1}, 0}}) {
    for (const Grid& g : std::vector<Grid>{
             {8, 1, 1}, {8, 0, 0}, {4, 1, 0}, {2, 1, 1}, {1, 0, 0}}) {
      const std::string what = std::to_string(cases.size());
      Attributes attributes = {{"bits", g.bits},
                               {"signed", g.is_signed},
                               {"symmetric", g.symmetric}};
      if (s.axis >= 0) attributes.Set("axis", s.axis);
      Ints channels;
      if (s.axis >= 0) channels = {s.x[static_cast<size_t>(s.axis)]};
      const InputSpec scale = F32(channels, 0.01, 0.4);
      const InputSpec zero = F32(channels, 0, g.symmetric != 0 ? 0 : 3);
      cases.push_back({"FakeQuantize",
                       what,
                       {F32(s.x), scale, zero},
                       attributes,
                       2e-6,
                       false});
      cases.push_back({"FakeQuantizeGrad",
                       what,
                       {F32(s.x), F32(s.x), scale, zero},
                       attributes});
      Attributes with_factor = attributes;
      with_factor.Set("factor", 0.25);
      cases.push_back({"FakeQuantizeScaleGrad",
                       what,
                       {F32(s.x), F32(s.x), scale, zero},
                       with_factor,
                       1e-4});
      // A scale that is not above zero.
      cases.push_back({"FakeQuantize",
                       what + " without a scale",
                       {F32(s.x), F32(channels, -0.1, 0), zero},
                       attributes,
                       2e-6,
                       false});
      Attributes grid = attributes;
      grid.Erase("axis");
      cases.push_back({"QuantizationGrid",
                       what,
                       {F32(channels, -3, 0), F32(channels, 0, 2)},
                       grid});
      cases.push_back({"QuantizationGrid",
                       what + " of nothing",
                       {F32(channels, 0, 0), F32(channels, 0, 0)},
                       grid});
    }
    const std::string what = std::to_string(cases.size());
    Attributes axis;
    Ints channels;
    if (s.axis >= 0) {
      axis.Set("axis", s.axis);
      channels = {s.x[static_cast<size_t>(s.axis)]};
    }
    cases.push_back({"ValueRange", what, {F32(s.x)}, axis, 0});
    cases.push_back(
        {"ValueRange", what + " above 0", {F32(s.x, 1, 2)}, axis, 0});
    for (int64_t average : {0, 1}) {
      for (double low : {-3.0, 0.0}) {
        cases.push_back({"RangeUpdate",
                         what + (average != 0 ? " average" : " union") +
                             (low < 0 ? "" : " of nothing"),
                         {F32(channels, low, 0), F32(channels, 0, -low),
                          F32(channels, -3, 0), F32(channels, 0, 3)},
                         {{"momentum", 0.9}, {"average", average}}});
      }
    }
  }
}

}  // namespace loadline::conformance
