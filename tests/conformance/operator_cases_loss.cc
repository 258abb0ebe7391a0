// Cross entropy with a weight for each class: classes first, last and in
// between, few and many, with targets that are ignored or weigh nothing.
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {

using models::Attributes;
using models::Ints;

void AddWeightedLossCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints logits, target;
    int64_t axis;
  };
  for (const Shape& s : std::vector<Shape>{{{7, 13}, {7}, 1},
                                           {{13}, {}, 0},
                                           {{3, 5, 17}, {3, 17}, 1},
                                           {{5, 3, 37}, {3, 37}, 0},
                                           {{9, 1}, {9}, 1},
                                           {{33, 2500}, {33}, 1}}) {
    const std::string what = std::to_string(cases.size()) + " weighted";
    const Attributes attributes = {{"class_axis", s.axis}};
    const int64_t classes = s.logits[static_cast<size_t>(s.axis)];
    const InputSpec logits = F32(s.logits, -4, 4);
    const InputSpec target = I64(s.target, 0, static_cast<double>(classes - 1));
    const InputSpec lse = F32(s.target, 2, 5);
    const InputSpec weights = F32({classes}, 0.25, 2);
    for (const bool count : {false, true}) {
      const std::optional<InputSpec> divisor =
          count ? std::optional<InputSpec>(F32({}, 1, 40)) : std::nullopt;
      cases.push_back({"SoftmaxCrossEntropy",
                       what + (count ? " count" : ""),
                       {logits, target, divisor, weights},
                       attributes,
                       1e-5});
      cases.push_back({"SoftmaxCrossEntropyGrad",
                       what + (count ? " count" : ""),
                       {F32({}), logits, target, lse, divisor, weights},
                       attributes,
                       1e-5});
    }
  }
}

}  // namespace loadline::conformance
