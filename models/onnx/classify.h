// Which initializers are trained. ONNX does not say, so this is a rule:
//
// 1. Running statistics (inputs 3 and 4 of BatchNormalization, also through
//    Identity) are states.
// 2. Constants are: everything that is not f32; names that a pattern of
//    ImportOptions::frozen matches; a single element under a name that
//    exporters invent ("val_72", "onnx::Mul_9"); masks, tables of sines and
//    their frequencies, told by their contents (tables.h); and what no
//    gradient can reach, because it only feeds comparisons, conditions, shapes
//    or indices.
// 3. All other initializers are parameters. So any other float buffer that
//    takes part in the arithmetic is trained unless a frozen pattern names it.
//
// Constant nodes are never trained.
#ifndef LOADLINE_MODELS_ONNX_CLASSIFY_H_
#define LOADLINE_MODELS_ONNX_CLASSIFY_H_

#include <map>
#include <string>
#include <vector>

#include "models/graph.h"
#include "models/onnx/prepare.h"

namespace loadline::models::onnx_internal {

// kParameter, kState or kConstant for every initializer.
std::map<std::string, ValueKind> ClassifyInitializers(
    const PreparedModel& model, const std::vector<std::string>& frozen);

// Signs that the exporter rearranged the weights so that training would not
// be what the model's author meant: parameters that several normalizations
// share (equal ones merged), and copies of one parameter (a tied weight
// duplicated).
std::vector<std::string> WarnAboutWeights(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CLASSIFY_H_
