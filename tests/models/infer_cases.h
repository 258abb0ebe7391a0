// Tables of what shape inference accepts and refuses, by operator.
#ifndef LOADLINE_TESTS_MODELS_INFER_CASES_H_
#define LOADLINE_TESTS_MODELS_INFER_CASES_H_

#include <vector>

#include "models/graph.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {

// A node that inference accepts, with the types of its outputs.
struct Accepted {
  const char* op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
};

// A node that inference refuses, with a part of the error's message.
struct Refused {
  const char* op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  const char* message;
};

// At least one of every operator.
std::vector<Accepted> AcceptedCases();
std::vector<Refused> RefusedCases();

// An optimizer state in 8 bits.
inline TensorType Blocks(int64_t blocks) { return {DType::kU8, {blocks, 260}}; }

// Attributes that many cases share: windows, a slice of [4,9], an optimizer.
inline const Attributes kPool2{{"kernel_shape", Ints{2, 2}},
                               {"strides", Ints{2, 2}}};
inline const Attributes kSame3{{"kernel_shape", Ints{3, 3}},
                               {"pads", Ints{1, 1, 1, 1}}};
inline const Attributes kSlice{{"starts", Ints{1, 0}},
                               {"ends", Ints{8, 3}},
                               {"axes", Ints{1, 0}},
                               {"steps", Ints{3, 1}}};
inline const Attributes kAdafactor{{"beta2_decay", -0.8},
                                   {"epsilon1", 1e-7},
                                   {"epsilon2", 1e-3},
                                   {"threshold", 1.0},
                                   {"weight_decay", 0.0}};
inline const Attributes kAdam{{"beta1", 0.9},
                              {"beta2", 0.999},
                              {"epsilon", 1e-8},
                              {"weight_decay", 0.01}};
// `attributes` with one attribute added or replaced.
inline Attributes With(Attributes attributes, const char* name,
                       Attribute value) {
  attributes.Set(name, std::move(value));
  return attributes;
}

}  // namespace loadline::models

#endif  // LOADLINE_TESTS_MODELS_INFER_CASES_H_
