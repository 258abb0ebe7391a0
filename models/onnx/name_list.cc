// Tested in tests/models/onnx_straight_through_test.cc.
#include "models/onnx/name_list.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace loadline::models::onnx_internal {
namespace {

// Files name at most this many tensors in one sentence.
constexpr size_t kMostListed = 10;

}  // namespace

std::string NameList(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    absl::StrAppend(&list, i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kMostListed) {
    absl::StrAppend(&list, " and ", names.size() - kMostListed, " more");
  }
  return list;
}

}  // namespace loadline::models::onnx_internal
