// Names of tensors in a warning.
#ifndef LOADLINE_MODELS_ONNX_NAME_LIST_H_
#define LOADLINE_MODELS_ONNX_NAME_LIST_H_

#include <string>
#include <vector>

namespace loadline::models::onnx_internal {

// The first ten names, and how many more there are.
std::string NameList(const std::vector<std::string>& names);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_NAME_LIST_H_
