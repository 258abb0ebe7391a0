// A graph while its batch is cut into parts, and what is known of its values.
#ifndef LOADLINE_PASSES_CUT_GRAPH_H_
#define LOADLINE_PASSES_CUT_GRAPH_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "models/ops/cut_axis.h"
#include "models/types.h"
#include "passes/example_positions.h"

namespace loadline::passes {

struct CutValue {
  // The axis of the examples, as models::NodeCut has it.
  int64_t axis = models::kWhole;
  // By how much each element is larger in the next part than what it is in this
  // one, such as the number of the first token of an example.
  int64_t shift = 0;
  models::TensorType whole;  // its type in the whole batch
  bool trained = false;      // depends on a parameter
};

class CutGraph {
 public:
  // Keeps `graph`, which must outlive this. Every value is whole at first.
  CutGraph(models::Graph& graph, int64_t parts,
           models::BatchStatistics statistics);

  models::Graph& graph() { return graph_; }
  const models::Graph& graph() const { return graph_; }
  int64_t parts() const { return parts_; }
  models::BatchStatistics statistics() const { return statistics_; }

  CutValue& operator[](models::ValueId id) { return values_[Index(id)]; }
  const CutValue& operator[](models::ValueId id) const {
    return values_[Index(id)];
  }

  // 0 for an input that is left out.
  int64_t Shift(models::ValueId id) const {
    return id == models::kNoValue ? 0 : (*this)[id].shift;
  }

  // The axis and the whole type of a value, which may be new in the graph.
  void Follow(models::ValueId id, models::TensorType whole, int64_t axis);

  bool AnyInputCut(const models::Node& node) const;
  bool ReadsTrained(const models::Node& node) const;

  // In the whole batch; null for inputs that are left out. They are valid
  // until the next Follow.
  std::vector<const models::TensorType*> WholeInputs(
      const models::Node& node) const;
  std::vector<models::TensorType> WholeOutputs(const models::Node& node) const;

  // Nodes by the values they make, as they were last.
  Makers& makers() { return makers_; }
  const Makers& makers() const { return makers_; }

  // For a new node: `base` and `what`, unlike the name of any node of the graph
  // before or after the cut.
  std::string NewName(absl::string_view base, absl::string_view what);

 private:
  models::Graph& graph_;
  const int64_t parts_;
  const models::BatchStatistics statistics_;
  std::vector<CutValue> values_;
  Makers makers_;
  std::set<std::string> names_;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CUT_GRAPH_H_
