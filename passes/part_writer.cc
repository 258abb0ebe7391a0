// Rows of a part are one stretch of bytes. A slice is a view where it is
// aligned as kernels need it, else a copy. Rows that are read whole are written
// into one buffer, which passes from part to part in place. Sums over parts are
// f32, also where the whole operator's result is bf16: it is rounded once, as
// in the whole operator, or not at all where the next operator widens it.
// Tested in tests/passes/split_operators_test.cc.
#include "passes/part_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/plain_product.h"
#include "passes/rewrite.h"
#include "planner/base/align.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

using models::Attributes;
using models::DType;
using models::Graph;
using models::Ints;
using models::kNoValue;
using models::Node;
using models::RowCut;
using models::TensorType;
using models::ValueId;

namespace {

bool WidensToF32(const Node& node) {
  return node.op == "Cast" && node.attributes.String("to", "") == "f32";
}

}  // namespace

PartWriter::PartWriter(Graph& graph, const std::vector<const RowCut*>& cut_of,
                       std::vector<int64_t> starts, std::string label)
    : graph_(graph),
      cut_of_(cut_of),
      starts_(std::move(starts)),
      label_(std::move(label)),
      named_(NamedByGraph(graph)),
      index_(models::IndexGraph(graph)),
      old_(std::move(graph.nodes)),
      read_whole_(graph.values.size(), false) {
  graph_.nodes.clear();
  FindWholeReaders();
}

void PartWriter::FindWholeReaders() {
  for (size_t n = 0; n < old_.size(); ++n) {
    for (size_t i = 0; i < old_[n].inputs.size(); ++i) {
      const ValueId id = old_[n].inputs[i];
      if (id == kNoValue) continue;
      if (cut_of_[n] == nullptr || cut_of_[n]->inputs[i] <= 0) {
        read_whole_[Index(id)] = true;
      }
    }
  }
  for (size_t v = 0; v < read_whole_.size(); ++v) {
    if (named_[v]) read_whole_[v] = true;
  }
}

void PartWriter::Keep(size_t node) {
  if (replaced_.count(node) == 0) graph_.nodes.push_back(old_[node]);
}

absl::StatusOr<std::vector<ValueId>> PartWriter::Add(
    const Node& of, int64_t part, const char* what, const char* op,
    std::vector<ValueId> inputs, Attributes attributes, ValueId stands_for) {
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> outputs,
      graph_.AddNode(op,
                     absl::StrCat(of.name, what, "[", label_, " ", part + 1,
                                  "/", parts(), "]"),
                     std::move(inputs), std::move(attributes), of.phase));
  if (stands_for != kNoValue) {
    LOADLINE_CHECK(graph_.value(outputs[0]).type ==
                   graph_.value(stands_for).type);
    graph_.nodes.back().outputs[0] = stands_for;
    outputs[0] = stands_for;
  }
  return outputs;
}

TensorType PartWriter::PartType(ValueId value, int lead, int64_t part) const {
  TensorType type = RowsType(value, lead);
  type.dims[0] = type.dims[0] / starts_.back() * PartRows(part);
  return type;
}

TensorType PartWriter::RowsType(ValueId value, int lead) const {
  TensorType type = graph_.value(value).type;
  int64_t rows = 1;
  for (int i = 0; i < lead; ++i) rows *= type.dims[static_cast<size_t>(i)];
  type.dims.erase(type.dims.begin(), type.dims.begin() + lead);
  type.dims.insert(type.dims.begin(), rows);
  return type;
}

int64_t PartWriter::Start(ValueId value, int64_t part) const {
  return graph_.value(value).type.elements() / starts_.back() *
         starts_[static_cast<size_t>(part)];
}

absl::StatusOr<ValueId> PartWriter::Part(const Node& reader, ValueId value,
                                         int lead, int64_t part) {
  const auto known = part_of_.find({value, part});
  if (known != part_of_.end()) return known->second;
  LOADLINE_ASSIGN_OR_RETURN(const ValueId slice,
                            Slice(reader, value, lead, part));
  part_of_[{value, part}] = slice;
  return slice;
}

absl::StatusOr<ValueId> PartWriter::Slice(const Node& reader, ValueId value,
                                          int lead, int64_t part) {
  Node named = reader;  // the slice is named after the value
  named.name = graph_.value(value).name;
  const TensorType type = PartType(value, lead, part);
  const int64_t start = Start(value, part);
  if (start * models::DTypeBytes(type.dtype) % planner::kBufferAlignmentBytes ==
      0) {
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> view,
                              Add(named, part, "", "RowsView", {value},
                                  {{"start", start}, {"shape", type.dims}}));
    return view[0];
  }
  const Ints all = RowsType(value, lead).dims;
  const int64_t first =
      all[0] / starts_.back() * starts_[static_cast<size_t>(part)];
  if (all != graph_.value(value).type.dims) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> flat,
        Add(named, part, ".rows", "Reshape", {value}, {{"shape", all}}));
    value = flat[0];
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> copy,
                            Add(named, part, "", "Slice", {value},
                                {{"starts", Ints{first}},
                                 {"ends", Ints{first + type.dims[0]}},
                                 {"axes", Ints{0}},
                                 {"steps", Ints{1}}}));
  return copy[0];
}

absl::Status PartWriter::Write(size_t node, int64_t part) {
  const Node& old = old_[node];
  const RowCut& cut = *cut_of_[node];
  std::vector<ValueId> inputs = old.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoValue || cut.inputs[i] <= 0) continue;
    LOADLINE_ASSIGN_OR_RETURN(inputs[i],
                              Part(old, inputs[i], cut.inputs[i], part));
  }
  if (cut.outputs[0] == RowCut::kAdded) {
    if (old.op == "GemmBiasGrad") {
      return WriteProductSum(node, part, inputs,
                             old.attributes.Int("transA", 0) != 0,
                             old.attributes.Int("transB", 0) != 0);
    }
    const auto product = AsPlainProduct(graph_, old);
    if (product.has_value()) {
      return WriteProductSum(node, part, inputs, product->trans_a,
                             product->trans_b);
    }
  }
  return WriteParts(node, part, inputs);
}

absl::Status PartWriter::WriteParts(size_t node, int64_t part,
                                    const std::vector<ValueId>& inputs) {
  const Node& old = old_[node];
  const RowCut& cut = *cut_of_[node];
  Attributes attributes = cut.attributes;
  if (attributes.Has("shape") && cut.outputs[0] > 0) {
    attributes.Set("shape",
                   PartType(old.outputs[0], cut.outputs[0], part).dims);
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      Add(old, part, "", old.op.c_str(), inputs, std::move(attributes)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId value = old.outputs[i];
    const int lead = cut.outputs[i];
    const TensorType expected =
        lead > 0 ? PartType(value, lead, part) : graph_.value(value).type;
    if (graph_.value(outputs[i]).type != expected) {
      return absl::InternalError(
          absl::StrCat("part of node '", old.name, "' makes ",
                       graph_.value(outputs[i]).type.ToString(), ", not ",
                       expected.ToString()));
    }
    if (lead == RowCut::kAdded) {
      LOADLINE_RETURN_IF_ERROR(Sum(old, value, outputs[i], part));
      continue;
    }
    part_of_[{value, part}] = outputs[i];
    if (read_whole_[Index(value)]) {
      LOADLINE_RETURN_IF_ERROR(Join(old, value, outputs[i], part));
    }
  }
  return absl::OkStatus();
}

absl::Status PartWriter::WriteProductSum(size_t node, int64_t part,
                                         const std::vector<ValueId>& inputs,
                                         bool trans_a, bool trans_b) {
  const Node& old = old_[node];
  const ValueId value = old.outputs[0];
  const bool last = part + 1 == parts();
  std::vector<ValueId> operands = {inputs[0], inputs[1]};
  if (part > 0) operands.push_back(so_far_[value]);
  const ValueId result = last ? ResultOfSum(value) : kNoValue;
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> sum,
      Add(old, part, "", "GemmSum", std::move(operands),
          {{"transA", int64_t{trans_a}}, {"transB", int64_t{trans_b}}},
          result));
  so_far_[value] = sum[0];
  if (last) LOADLINE_RETURN_IF_ERROR(Narrow(old, value, sum[0], part));
  if (old.outputs.size() == 1) return absl::OkStatus();

  // GemmBiasGrad's second result.
  const bool of_a = old.attributes.String("dy", "") == "a";
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> bias,
      Add(old, part, ".bias", "ReduceSum", {inputs[of_a ? 0 : 1]},
          {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}));
  return Sum(old, old.outputs[1], bias[0], part);
}

absl::Status PartWriter::Join(const Node& node, ValueId value, ValueId rows,
                              int64_t part) {
  const TensorType type = graph_.value(value).type;
  std::vector<ValueId> inputs = {rows};
  if (part > 0) inputs.push_back(so_far_[value]);
  const bool last = part + 1 == parts();
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> joined,
      Add(node, part, ".joined", "WriteRows", std::move(inputs),
          {{"start", Start(value, part)}, {"shape", type.dims}},
          last ? value : kNoValue));
  so_far_[value] = joined[0];
  return absl::OkStatus();
}

absl::Status PartWriter::Sum(const Node& node, ValueId value, ValueId addend,
                             int64_t part) {
  const bool last = part + 1 == parts();
  if (graph_.value(addend).type.dtype == DType::kBF16) {
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> wide,
                              Add(node, part, ".f32", "Cast", {addend},
                                  {{"to", std::string("f32")}}));
    addend = wide[0];
  }
  if (part > 0) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> sum,
        Add(node, part, ".sum", "Add", {so_far_[value], addend}, {},
            last ? ResultOfSum(value) : kNoValue));
    addend = sum[0];
  }
  so_far_[value] = addend;
  return last ? Narrow(node, value, addend, part) : absl::OkStatus();
}

ValueId PartWriter::ResultOfSum(ValueId value) {
  if (graph_.value(value).type.dtype != DType::kBF16) return value;
  for (models::NodeId reader : index_.consumers[Index(value)]) {
    const Node& cast = old_[Index(reader)];
    if (cut_of_[Index(reader)] == nullptr && WidensToF32(cast) &&
        replaced_.count(Index(reader)) == 0) {
      replaced_.insert(Index(reader));
      return cast.outputs[0];
    }
  }
  return kNoValue;
}

absl::Status PartWriter::Narrow(const Node& node, ValueId value, ValueId sum,
                                int64_t part) {
  if (graph_.value(value).type.dtype != DType::kBF16) return absl::OkStatus();
  bool read = named_[Index(value)];
  for (models::NodeId reader : index_.consumers[Index(value)]) {
    read = read || replaced_.count(Index(reader)) == 0;
  }
  if (!read) return absl::OkStatus();
  return Add(node, part, ".bf16", "Cast", {sum}, {{"to", std::string("bf16")}},
             value)
      .status();
}

}  // namespace loadline::passes
