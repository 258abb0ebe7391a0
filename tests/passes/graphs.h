// Small graphs for the tests of passes: built with one line per node, and
// printed as text in which only named values have names.
#ifndef LOADLINE_TESTS_PASSES_GRAPHS_H_
#define LOADLINE_TESTS_PASSES_GRAPHS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

// Adds nodes; fails the test if an operator refuses its inputs.
class Builder {
 public:
  models::ValueId Input(absl::string_view name, std::vector<int64_t> dims,
                        models::DType dtype = models::DType::kF32);
  // Contents: 0, 1, 2, ... over the elements, times 0.01.
  models::ValueId Parameter(absl::string_view name, std::vector<int64_t> dims);
  models::ValueId State(absl::string_view name, std::vector<int64_t> dims);
  models::ValueId Scalar(float value);
  // Returns the first output.
  models::ValueId Op(absl::string_view op, std::vector<models::ValueId> inputs,
                     models::Attributes attributes = {});
  std::vector<models::ValueId> Ops(absl::string_view op,
                                   std::vector<models::ValueId> inputs,
                                   models::Attributes attributes = {});
  void Output(models::ValueId id) { graph.outputs.push_back(id); }

  models::Graph graph;

 private:
  int constants_ = 0;
};

// One line per node, output and update. Values made by nodes are %0, %1, ...
// in order; one-element f32 constants are their number.
//
//   %0 = MatMul(x, w) {trans_b=1}
//   %1 = Add(%0, 1)
//   output %1
std::string Describe(const models::Graph& graph);

// The pass succeeds and gives a valid graph with this description.
void ExpectBecomes(absl::Status (*pass)(models::Graph&), models::Graph& graph,
                   absl::string_view description);
// The pass succeeds and does not change the graph.
void ExpectUntouched(absl::Status (*pass)(models::Graph&),
                     models::Graph& graph);

// x f32[4,8] -> Gemm 16 -> Relu -> Gemm 10, output logits f32[4,10].
models::Graph SmallMlp();

// x f32[batch,3] -> BatchNormTraining with running statistics -> MatMul 2,
// output f32[batch,2].
models::Graph BatchNormModel(int64_t batch);

}  // namespace loadline::passes

#endif  // LOADLINE_TESTS_PASSES_GRAPHS_H_
