// Moves contents out of the protobuf, and gives its inputs their types.
#ifndef LOADLINE_MODELS_ONNX_TAKE_CONTENTS_H_
#define LOADLINE_MODELS_ONNX_TAKE_CONTENTS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "models/onnx/import.h"
#include "models/onnx/prepare.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The onnx library's checker refuses nodes that read what is left out.
void DropUnneededNodes(onnx::GraphProto* graph);

// Moves initializers to `prepared`; small ones also stay in the protobuf. The
// bytes of large ones are freed there at once, so that they exist once.
// Those of an unsupported type are left out where no node reads them.
absl::Status TakeInitializers(const std::string& folder,
                              const ImportOptions& options,
                              const std::set<DType>& widened,
                              PreparedModel* prepared);

// Gives inputs their whole types; large initializers become further inputs.
// `unread` ones are left out.
absl::Status SetInputs(const ImportOptions& options,
                       const std::set<std::string>& unread,
                       PreparedModel* prepared);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_TAKE_CONTENTS_H_
