// Shared by the ONNX tests: models written as text, and questions to a Graph.
#ifndef LOADLINE_TESTS_MODELS_ONNX_TEST_UTIL_H_
#define LOADLINE_TESTS_MODELS_ONNX_TEST_UTIL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace loadline::models {

// Parses a model in ONNX's text syntax. `body` is everything after the
// header, which imports `opset`.
onnx::ModelProto ModelFromText(const std::string& body, int opset = 22);
std::string Bytes(const onnx::ModelProto& model);
absl::StatusOr<Imported> ImportText(const std::string& body,
                                    const ImportOptions& options = {},
                                    int opset = 22);

// The operators of the graph's nodes, in order.
std::vector<std::string> Ops(const Graph& graph);
int Count(const Graph& graph, const std::string& op);
// The first node with this operator; fails the test where there is none.
const Node& NodeWith(const Graph& graph, const std::string& op);
std::vector<std::string> Names(const Graph& graph, ValueKind kind);

std::string DataPath(const std::string& name);
// A path in a fresh temporary folder of this test.
std::string TempFolder();
void WriteFile(const std::string& path, const std::string& bytes);
std::string ReadFile(const std::string& path);

}  // namespace loadline::models

#endif  // LOADLINE_TESTS_MODELS_ONNX_TEST_UTIL_H_
