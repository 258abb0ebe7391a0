// Decides which initializers are trained. ONNX does not say, so these are
// rules:
//
// 1. Running statistics (inputs 3 and 4 of BatchNormalization, also through
//    Identity) are states.
// 2. Constants are: everything that is not f32; initializers that match a
//    pattern of ImportOptions::frozen; a single element with a name that
//    exporters generate ("val_72", "onnx::Mul_9"); masks, tables of sines and
//    their frequencies, recognized by their contents (tables.h); and values
//    that no gradient can reach, because they only feed comparisons,
//    conditions, shapes or indices.
// 3. All other initializers are parameters. So any other float buffer that is
//    part of the arithmetic is trained unless a frozen pattern matches it.
//
// Constant nodes are never trained.
#ifndef LOADLINE_MODELS_ONNX_CLASSIFY_H_
#define LOADLINE_MODELS_ONNX_CLASSIFY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"
#include "models/onnx/prepare.h"

namespace loadline::models::onnx_internal {

// kParameter, kState or kConstant for every initializer.
std::map<std::string, ValueKind> ClassifyInitializers(
    const PreparedModel& model, const std::vector<std::string>& frozen);

// InvalidArgument for a frozen pattern that no initializer matches: a typo,
// which would train what should stay as it is.
absl::Status CheckFrozen(const PreparedModel& model,
                         const std::vector<std::string>& frozen);

// Warns if the exporter changed the weights so that training would differ from
// the author's model: equal parameters of several normalizations merged into
// one, or a tied weight duplicated.
std::vector<std::string> WarnAboutWeights(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CLASSIFY_H_
