// Parts of a parameter overlap where a run of neighbours is in two of them: so
// long a run that no other is equal by chance. Tested in
// tests/models/onnx_tied_copies_test.cc.
#include "models/onnx/overlapping_parts.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/computed_parameters.h"
#include "models/onnx/export_marks.h"
#include "models/onnx/model_file.h"
#include "models/onnx/producers.h"
#include "models/types.h"

namespace loadline::models::onnx_internal {
namespace {

// By parameter, the initializers that may be parts of it. Of those of which the
// file has the whole too, classify.cc warns.
std::map<std::string, std::vector<const onnx::TensorProto*>> PartsOfParameters(
    const onnx::GraphProto& graph, const ExportMarks& marks) {
  std::map<std::string, std::vector<const onnx::TensorProto*>> parts;
  std::set<std::string> whole;
  for (const auto& tensor : graph.initializer()) {
    if (marks.marks.count(tensor.name()) > 0) {
      whole.insert(tensor.name());
    } else if (const auto moved = FindMovedParameter(marks, tensor.name())) {
      if (!moved->part) whole.insert(moved->parameter);
      parts[moved->parameter].push_back(&tensor);
    }
  }
  std::erase_if(parts, [&whole](const auto& all) {
    return all.second.size() < 2 || whole.count(all.first) > 0;
  });
  return parts;
}

// Bits that an element has of its own, beside the others of its tensor.
int64_t OwnBits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 40;
    case DType::kF32:
      return 20;
    default:
      return 7;
  }
}

// How many neighbours are together so long that none of `elements` has them by
// chance where another of `elements` has.
int64_t RunLength(DType dtype, int64_t elements) {
  constexpr int64_t kSafety = 10;
  const int64_t bits = 2 * static_cast<int64_t>(std::bit_width(
                               static_cast<uint64_t>(elements))) +
                       kSafety;
  return (bits + OwnBits(dtype) - 1) / OwnBits(dtype);
}

// Whether runs that begin with this element are looked at: one of `share`.
bool IsSample(const char* element, size_t size, uint64_t share) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, std::min(size, sizeof(bits)));
  return (bits * 0x9e3779b97f4a7c15u >> 32) % share == 0;
}

// Hashes of the runs of neighbours along every axis, but for those that the
// tensor has twice and those of zeros.
std::unordered_set<size_t> RunsOf(const Tensor& tensor, int64_t length,
                                  uint64_t share) {
  const size_t size =
      tensor.data->size() / static_cast<size_t>(tensor.type.elements());
  const auto* bytes = reinterpret_cast<const char*>(tensor.data->data());
  const std::string zeros(static_cast<size_t>(length) * size, '\0');
  std::unordered_map<size_t, int> counts;
  const int64_t count = tensor.type.elements();
  int64_t stride = 1;
  std::string run;
  for (int64_t axis = tensor.type.rank(); axis-- > 0;) {
    const int64_t dim = tensor.type.dims[static_cast<size_t>(axis)];
    for (int64_t at = 0; at < count; ++at) {
      if (at / stride % dim + length > dim ||
          !IsSample(bytes + static_cast<size_t>(at) * size, size, share)) {
        continue;
      }
      run.clear();
      for (int64_t i = 0; i < length; ++i) {
        run.append(bytes + static_cast<size_t>(at + i * stride) * size, size);
      }
      if (run != zeros) ++counts[std::hash<std::string>()(run)];
    }
    stride *= dim;
    if (length == 1) break;  // the same along all axes
  }
  std::unordered_set<size_t> runs;
  for (const auto& [hash, times] : counts) {
    if (times == 1) runs.insert(hash);
  }
  return runs;
}

// The first initializer that has elements of an earlier one, with that one.
std::optional<std::pair<std::string, std::string>> FirstOverlap(
    const std::vector<const onnx::TensorProto*>& parts,
    const std::string& folder) {
  constexpr int64_t kMostRuns = 1 << 18;  // of an axis, about
  std::unordered_map<size_t, std::string> seen;
  int64_t elements = 1;
  for (const onnx::TensorProto* proto : parts) {
    const absl::StatusOr<TensorType> type = TypeOfTensor(*proto);
    if (type.ok()) elements = std::max(elements, type->elements());
  }
  const auto share = static_cast<uint64_t>(elements / kMostRuns + 1);
  for (const onnx::TensorProto* proto : parts) {
    int64_t unlimited = std::numeric_limits<int64_t>::max();
    const absl::StatusOr<Tensor> tensor =
        ReadTensor(*proto, folder, &unlimited);
    if (!tensor.ok() || tensor->type.elements() == 0) continue;
    const int64_t length = RunLength(tensor->type.dtype, elements);
    for (const size_t run : RunsOf(*tensor, length, share)) {
      const auto [it, added] = seen.emplace(run, proto->name());
      if (!added && it->second != proto->name()) {
        return std::pair(it->second, proto->name());
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> FindOverlaps(const onnx::ModelProto& model,
                                      const std::string& folder) {
  std::vector<std::string> warnings;
  if (model.producer_name() != kPyTorch) return warnings;
  const ExportMarks marks = ReadExportMarks(model.graph());
  for (const auto& [parameter, parts] :
       PartsOfParameters(model.graph(), marks)) {
    const auto two = FirstOverlap(parts, folder);
    if (!two) continue;
    warnings.push_back(
        absl::StrCat("'", two->first, "' and '", two->second,
                     "' share elements of ", parameter,
                     ", and are trained apart, unlike in PyTorch; export with "
                     "optimize=False"));
  }
  return warnings;
}

}  // namespace loadline::models::onnx_internal
