// Reads the model's file as the flags say: batch, sizes of named axes, and what
// is trained.
#ifndef LOADLINE_TOOLS_PIPELINE_IMPORT_MODEL_H_
#define LOADLINE_TOOLS_PIPELINE_IMPORT_MODEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/onnx/import.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

absl::StatusOr<models::ImportOptions> ImportOptionsFor(const ModelFlags& flags,
                                                       bool training);
absl::StatusOr<models::Imported> ImportModel(const ModelFlags& flags,
                                             bool training);
// The same at another batch than that of the flags, whichever of them says it.
absl::StatusOr<models::Imported> ImportModelAt(const ModelFlags& flags,
                                               int64_t batch, bool training);
// InvalidArgument if --batch says something else than --dim or --input-shape,
// which go before it. ImportModel checks it.
absl::Status CheckBatch(const ModelFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_IMPORT_MODEL_H_
