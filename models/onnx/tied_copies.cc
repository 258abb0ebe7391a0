// Tested in tests/models/onnx_tied_copies_test.cc.
#include "models/onnx/tied_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/computed_parameters.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/export_marks.h"
#include "models/onnx/initializer_names.h"
#include "models/onnx/model_file.h"
#include "models/onnx/producers.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kLeastElements = 64;

bool MayBeCopy(const std::string& name) {
  return absl::StartsWith(name, "onnx::") && IsInventedName(name);
}

bool IsMatrix(const onnx::TensorProto& tensor) {
  return tensor.dims_size() == 2 && tensor.dims(0) > 1 && tensor.dims(1) > 1 &&
         tensor.dims(0) >= kLeastElements / tensor.dims(1);
}

using Shape = std::pair<int64_t, int64_t>;

Shape ShapeOf(const onnx::TensorProto& matrix) {
  return {matrix.dims(0), matrix.dims(1)};
}

// Bits of the first element, its neighbours below and to the right, and the
// last one: matrices that differ there need not be compared.
std::string Corners(const Tensor& matrix, bool transposed) {
  const int64_t columns = matrix.type.dims[1];
  const int64_t count = matrix.type.elements();
  const size_t size = matrix.data->size() / static_cast<size_t>(count);
  std::string bits;
  for (int64_t at : {int64_t{0}, transposed ? columns : 1,
                     transposed ? 1 : columns, count - 1}) {
    bits.append(reinterpret_cast<const char*>(matrix.data->data()) +
                    static_cast<size_t>(at) * size,
                size);
  }
  return bits;
}

Tensor Transposed(const Tensor& matrix) {
  const int64_t rows = matrix.type.dims[0], columns = matrix.type.dims[1];
  const size_t size = matrix.data->size() /
                      static_cast<size_t>(std::max<int64_t>(rows * columns, 1));
  auto moved = *matrix.data;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(
          moved.data() + static_cast<size_t>(c * rows + r) * size,
          matrix.data->data() + static_cast<size_t>(r * columns + c) * size,
          size);
    }
  }
  return MakeTensor({matrix.type.dtype, {columns, rows}}, moved.data());
}

// By the elements' bits, so that a NaN equals itself.
bool IsTransposed(const Tensor& a, const Tensor& b) {
  const Tensor other = Transposed(b);
  return a.type == other.type && *a.data == *other.data;
}

bool IsOneValue(const Tensor& tensor) {
  const auto& bytes = *tensor.data;
  const size_t size =
      bytes.size() / static_cast<size_t>(tensor.type.elements());
  return std::equal(bytes.begin() + static_cast<long>(size), bytes.end(),
                    bytes.begin());
}

absl::StatusOr<Tensor> Read(const onnx::TensorProto& proto,
                            const std::string& folder) {
  int64_t unlimited = std::numeric_limits<int64_t>::max();
  return ReadTensor(proto, folder, &unlimited);
}

std::vector<TiedCopy> FindGuessedCopies(const onnx::ModelProto& model,
                                        const std::string& folder) {
  std::set<std::string> inputs;
  for (const auto& input : model.graph().input()) inputs.insert(input.name());
  std::vector<const onnx::TensorProto*> copies;
  std::set<Shape> shapes;  // of what the copies are transposed from
  for (const auto& tensor : model.graph().initializer()) {
    if (!IsMatrix(tensor) || !MayBeCopy(tensor.name()) ||
        inputs.count(tensor.name()) > 0) {
      continue;
    }
    copies.push_back(&tensor);
    shapes.insert({tensor.dims(1), tensor.dims(0)});
  }
  // Each tensor is read once: a file may have hundreds of one shape.
  std::map<std::pair<Shape, std::string>, std::vector<const onnx::TensorProto*>>
      originals;
  for (const auto& tensor : model.graph().initializer()) {
    if (!IsMatrix(tensor) || IsInventedName(tensor.name()) ||
        shapes.count(ShapeOf(tensor)) == 0) {
      continue;
    }
    const absl::StatusOr<Tensor> original = Read(tensor, folder);
    if (!original.ok()) continue;
    originals[{ShapeOf(tensor), Corners(*original, false)}].push_back(&tensor);
  }
  std::vector<TiedCopy> tied;
  for (const onnx::TensorProto* tensor : copies) {
    if (originals.empty()) break;
    const absl::StatusOr<Tensor> copy = Read(*tensor, folder);
    if (!copy.ok() || IsOneValue(*copy)) continue;
    const auto alike = originals.find(
        {{tensor->dims(1), tensor->dims(0)}, Corners(*copy, true)});
    if (alike == originals.end()) continue;
    for (const onnx::TensorProto* candidate : alike->second) {
      const absl::StatusOr<Tensor> original = Read(*candidate, folder);
      if (!original.ok() || !IsTransposed(*copy, *original)) continue;
      tied.push_back({tensor->name(), candidate->name(), copy->type.dims});
      break;
    }
  }
  return tied;
}

// An initializer with the elements of a parameter, moved.
struct Moved {
  const onnx::TensorProto* proto;
  MovedParameter from;
};

// By parameter, those that the file has several times as a whole.
std::map<std::string, std::vector<Moved>> RepeatedParameters(
    const onnx::GraphProto& graph, const ExportMarks& marks) {
  std::map<std::string, std::vector<Moved>> repeated;
  for (const auto& tensor : graph.initializer()) {
    const auto mark = marks.marks.find(tensor.name());
    if (mark == marks.marks.end()) {
      auto moved = FindMovedParameter(marks, tensor.name());
      if (!moved || moved->part) continue;
      repeated[moved->parameter].push_back({&tensor, std::move(*moved)});
    } else if (mark->second == Mark::kParameter) {
      auto& all = repeated[tensor.name()];
      all.insert(all.begin(), {&tensor, {tensor.name(), false, {}}});
    }
  }
  std::erase_if(repeated,
                [](const auto& all) { return all.second.size() < 2; });
  return repeated;
}

std::vector<int64_t> LongAxes(const std::vector<int64_t>& dims) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < std::ssize(dims); ++i) {
    if (dims[static_cast<size_t>(i)] != 1) axes.push_back(i);
  }
  return axes;
}

Tensor WithoutOnes(const Tensor& tensor) {
  std::vector<int64_t> dims = tensor.type.dims;
  std::erase(dims, 1);
  return {{tensor.type.dtype, std::move(dims)}, tensor.data};
}

// How to make the copy of the original; nullopt: not known.
std::optional<TiedCopy> Tied(const Moved& copy, const Tensor& copy_tensor,
                             const Moved& original, const Tensor& tensor) {
  TiedCopy tied{copy.proto->name(), original.proto->name(),
                copy_tensor.type.dims, false, false};
  if (copy_tensor.type.dtype != tensor.type.dtype) return std::nullopt;
  const Tensor a = WithoutOnes(copy_tensor), b = WithoutOnes(tensor);
  const bool same = *a.data == *b.data;
  const bool transposed =
      a.type.rank() == 2 && b.type.rank() == 2 && IsTransposed(a, b);
  if (same && transposed) {
    const bool moved_alike = copy.from.moves == original.from.moves &&
                             copy_tensor.type == tensor.type;
    return moved_alike ? std::optional(tied) : std::nullopt;
  }
  if (!same && !transposed) return std::nullopt;
  tied.transposed = transposed;
  return tied;
}

std::vector<TiedCopy> FindComputedCopies(const onnx::GraphProto& graph,
                                         const ExportMarks& marks,
                                         const std::string& folder) {
  std::vector<TiedCopy> tied;
  for (const auto& [parameter, all] : RepeatedParameters(graph, marks)) {
    const absl::StatusOr<Tensor> original = Read(*all[0].proto, folder);
    if (!original.ok()) continue;
    for (size_t i = 1; i < all.size(); ++i) {
      const absl::StatusOr<Tensor> copy = Read(*all[i].proto, folder);
      if (!copy.ok()) continue;
      std::optional<TiedCopy> found = Tied(all[i], *copy, all[0], *original);
      if (found) tied.push_back(std::move(*found));
    }
  }
  return tied;
}

// Nodes that compute a copy, and the shape that one of them reads.
class Tie {
 public:
  Tie(const TiedCopy& tied, const onnx::TensorProto& original,
      onnx::GraphProto* graph)
      : tied_(tied), graph_(graph) {
    std::vector<int64_t> dims(original.dims().begin(), original.dims().end());
    std::string from = tied.original;
    if (tied.transposed) {
      const std::vector<int64_t> axes = LongAxes(dims);
      std::vector<int64_t> order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      const auto a = static_cast<size_t>(axes[0]),
                 b = static_cast<size_t>(axes[1]);
      std::swap(order[a], order[b]);
      std::swap(dims[a], dims[b]);
      onnx::NodeProto* node =
          Add("Transpose", {from}, dims == tied.dims, "transposed ");
      SetInts("perm", {order.begin(), order.end()}, node);
      from = node->output(0);
    }
    if (dims != tied.dims) {
      onnx::TensorProto* shape = graph->add_initializer();
      shape->set_name(absl::StrCat("shape of tied ", tied.copy));
      const std::vector<int64_t> size = {std::ssize(tied.dims)};
      SetTensor(MakeTensor({DType::kI64, size}, tied.dims.data()), shape);
      Add("Reshape", {from, shape->name()}, true, "");
    } else if (!tied.transposed) {
      Add("Identity", {from}, true, "");
    }
  }

  int nodes() const { return nodes_; }

 private:
  onnx::NodeProto* Add(const std::string& op,
                       const std::vector<std::string>& inputs, bool last,
                       const std::string& stage) {
    ++nodes_;
    onnx::NodeProto* node = graph_->add_node();
    node->set_op_type(op);
    node->set_name(absl::StrCat("tied ", stage, tied_.copy));
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(last ? tied_.copy : absl::StrCat("tied ", tied_.copy));
    return node;
  }

  const TiedCopy& tied_;
  onnx::GraphProto* graph_;
  int nodes_ = 0;
};

}  // namespace

std::vector<TiedCopy> FindTiedCopies(const onnx::ModelProto& model,
                                     const std::string& folder) {
  if (model.producer_name() != kPyTorch) return {};
  const ExportMarks marks = ReadExportMarks(model.graph());
  return marks.marks.empty() ? FindGuessedCopies(model, folder)
                             : FindComputedCopies(model.graph(), marks, folder);
}

Tensor CopyOf(const Tensor& original, const TiedCopy& tied) {
  Tensor copy = tied.transposed ? Transposed(WithoutOnes(original)) : original;
  copy.type.dims = tied.dims;
  return copy;
}

void TieCopies(const std::vector<TiedCopy>& copies, onnx::GraphProto* graph) {
  std::map<std::string, onnx::TensorProto> originals;  // dims only
  for (const TiedCopy& tied : copies) originals[tied.original];
  for (const auto& tensor : graph->initializer()) {
    const auto original = originals.find(tensor.name());
    if (original == originals.end()) continue;
    *original->second.mutable_dims() = tensor.dims();
  }
  std::set<std::string> names;
  int nodes = 0;
  for (const TiedCopy& tied : copies) {
    names.insert(tied.copy);
    nodes += Tie(tied, originals.at(tied.original), graph).nodes();
  }
  std::rotate(graph->mutable_node()->begin(),
              graph->mutable_node()->end() - nodes,
              graph->mutable_node()->end());
  EraseIf(graph->mutable_initializer(),
          [&names](const onnx::TensorProto* tensor) {
            return names.count(tensor->name()) > 0;
          });
}

}  // namespace loadline::models::onnx_internal
