// Tested in tests/models/onnx_tied_copies_test.cc.
#include "models/onnx/tied_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/edit_model.h"
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

}  // namespace

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

std::vector<TiedCopy> FindTiedCopies(const onnx::ModelProto& model,
                                     const std::string& folder) {
  if (model.producer_name() != kPyTorch) return {};
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
      tied.push_back({tensor->name(), candidate->name()});
      break;
    }
  }
  return tied;
}

void TieCopies(const std::vector<TiedCopy>& copies, onnx::GraphProto* graph) {
  std::set<std::string> names;
  for (const TiedCopy& tied : copies) {
    names.insert(tied.copy);
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("Transpose");
    node->set_name(absl::StrCat("tied ", tied.copy));
    node->add_input(tied.original);
    node->add_output(tied.copy);
    SetInts("perm", {1, 0}, node);
  }
  std::rotate(graph->mutable_node()->begin(),
              graph->mutable_node()->end() - std::ssize(copies),
              graph->mutable_node()->end());
  auto* initializers = graph->mutable_initializer();
  initializers->erase(std::remove_if(initializers->begin(), initializers->end(),
                                     [&names](const auto& tensor) {
                                       return names.count(tensor.name()) > 0;
                                     }),
                      initializers->end());
}

}  // namespace loadline::models::onnx_internal
