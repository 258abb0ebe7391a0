// Turns the exceptions of the onnx library into statuses.
#ifndef LOADLINE_MODELS_ONNX_GUARD_H_
#define LOADLINE_MODELS_ONNX_GUARD_H_

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace loadline::models::onnx_internal {

// What an assertion of the onnx library says: without the path of its source.
inline std::string WithoutPath(const std::string& message) {
  const std::string before = "` failed: ";
  const size_t assertion = message.find(": Assertion `");
  const size_t failed = message.find(before);
  if (assertion == std::string::npos || failed == std::string::npos) {
    return message;
  }
  return message.substr(failed + before.size());
}

// Runs a step of the onnx library. InvalidArgument, which begins with `what`,
// if it throws. Its exceptions derive from std::exception in several unrelated
// ways, and their messages can be long.
template <typename Step>
absl::Status Guard(absl::string_view what, Step step) {
  std::string message;
  try {
    step();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    message = WithoutPath(error.what());
  } catch (...) {
    message = "unknown failure";
  }
  if (message.size() > 2000) message.resize(2000);
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", message));
}

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_GUARD_H_
