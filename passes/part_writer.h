// Writes the nodes of a region part by part into the graph that it takes apart.
#ifndef LOADLINE_PASSES_PART_WRITER_H_
#define LOADLINE_PASSES_PART_WRITER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/ops/operator.h"

namespace loadline::passes {

class PartWriter {
 public:
  // Takes all nodes out of the graph; Keep and Write put them back. `cut_of`:
  // by node, its cut, or null for a node outside the region. Part i has rows
  // starts[i] to starts[i + 1]. New nodes are named after their node and
  // `label`: "fc[head 1/4]".
  PartWriter(models::Graph& graph,
             const std::vector<const models::RowCut*>& cut_of,
             std::vector<int64_t> starts, std::string label);

  // A node outside the region.
  void Keep(size_t node);
  // Part `part` of a node of the region, after that of all nodes whose parts it
  // reads. Parts of one node come in order. The last one completes its outputs.
  absl::Status Write(size_t node, int64_t part);

 private:
  using ValueId = models::ValueId;

  int64_t parts() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t PartRows(int64_t part) const {
    const auto at = static_cast<size_t>(part);
    return starts_[at + 1] - starts_[at];
  }
  void FindWholeReaders();
  // Adds a node of part `part`; with `stands_for`, its output 0 is that value.
  absl::StatusOr<std::vector<ValueId>> Add(
      const models::Node& of, int64_t part, const char* what, const char* op,
      std::vector<ValueId> inputs, models::Attributes attributes,
      ValueId stands_for = models::kNoValue);
  // A value's type with its first `lead` dimensions merged; the same of a part.
  models::TensorType RowsType(ValueId value, int lead) const;
  models::TensorType PartType(ValueId value, int lead, int64_t part) const;
  // The first element of a value's part.
  int64_t Start(ValueId value, int64_t part) const;
  // The rows of a value: of the region, or a slice of one from outside.
  absl::StatusOr<ValueId> Part(const models::Node& reader, ValueId value,
                               int lead, int64_t part);
  absl::StatusOr<ValueId> Slice(const models::Node& reader, ValueId value,
                                int lead, int64_t part);
  absl::Status WriteParts(size_t node, int64_t part,
                          const std::vector<ValueId>& inputs);
  // Products of gradients: the sum is part of the product.
  absl::Status WriteProductSum(size_t node, int64_t part,
                               const std::vector<ValueId>& inputs, bool trans_a,
                               bool trans_b);
  absl::Status Join(const models::Node& node, ValueId value, ValueId rows,
                    int64_t part);
  // Adds a part to the sum `value`.
  absl::Status Sum(const models::Node& node, ValueId value, ValueId addend,
                   int64_t part);
  // The value that the last step of a sum in f32 makes: `value` itself, the
  // cast of it to f32, or none of them. Then Narrow makes `value`.
  ValueId ResultOfSum(ValueId value);
  absl::Status Narrow(const models::Node& node, ValueId value, ValueId sum,
                      int64_t part);

  models::Graph& graph_;
  const std::vector<const models::RowCut*>& cut_of_;
  const std::vector<int64_t> starts_;
  const std::string label_;
  const std::vector<bool> named_;
  const models::GraphIndex index_;
  const std::vector<models::Node> old_;
  std::vector<bool> read_whole_;  // by old value: joined for a reader
  std::set<size_t> replaced_;     // casts that a sum replaces
  std::map<std::pair<ValueId, int64_t>, ValueId> part_of_;
  std::map<ValueId, ValueId> so_far_;  // rows joined, or sum of parts
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_PART_WRITER_H_
