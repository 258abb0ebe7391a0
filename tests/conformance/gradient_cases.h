// Cases of the gradient test: one operator, or a few together, over parameters
// that are differentiated. gradient_test.cc checks each against finite
// differences.
#ifndef LOADLINE_TESTS_CONFORMANCE_GRADIENT_CASES_H_
#define LOADLINE_TESTS_CONFORMANCE_GRADIENT_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::executor {

// Builds a graph whose parameters and constants hold seeded contents: distinct
// numbers, evenly spaced and shuffled.
class GradientGraph {
 public:
  explicit GradientGraph(uint64_t seed) : random_(seed) {}

  // An f32 tensor with contents in (low, high); every parameter is
  // differentiated.
  models::ValueId Parameter(models::Ints dims, float low = -1, float high = 1);
  models::ValueId Constant(models::Ints dims, float low = -1, float high = 1);
  // An i64 constant of numbers in [0, limit), repeats likely.
  models::ValueId Indices(models::Ints dims, int64_t limit);
  // Adds a node and returns all of its outputs, or its first. An operator that
  // refuses its inputs fails the test; the ids returned then are not usable.
  std::vector<models::ValueId> Ops(absl::string_view op,
                                   std::vector<models::ValueId> inputs,
                                   models::Attributes attributes = {});
  models::ValueId Op(absl::string_view op, std::vector<models::ValueId> inputs,
                     models::Attributes attributes = {});

  // An f32 tensor with contents in (low, high).
  models::Tensor Numbers(models::Ints dims, float low, float high);

  models::Graph graph;

 private:
  std::mt19937_64 random_;
};

struct GradientCase {
  std::string name;  // operator, then what is special about the case
  // Builds the graph; returns the outputs that are differentiated.
  std::function<std::vector<models::ValueId>(GradientGraph&)> build;
};
void PrintTo(const GradientCase& c, std::ostream* out);

// One operator with one input f32[3,4] in (low, high).
GradientCase UnaryCase(const std::string& op, float low = -1, float high = 1,
                       models::Attributes attributes = {},
                       const std::string& special = "");

// By family of operators.
std::vector<GradientCase> PointwiseGradientCases();
std::vector<GradientCase> ShapeGradientCases();
std::vector<GradientCase> ProductGradientCases();
std::vector<GradientCase> NormalizationAndPoolingGradientCases();
std::vector<GradientCase> QuantizeGradientCases();
// Several operators together: attention, a residual block, a tied embedding.
std::vector<GradientCase> CompositionGradientCases();
// ONNX operators that the importer builds from others.
std::vector<GradientCase> ImportedGradientCases();
// All of these.
std::vector<GradientCase> AllGradientCases();

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_CONFORMANCE_GRADIENT_CASES_H_
