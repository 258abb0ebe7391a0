// Helpers of the ONNX tests: models written as text, and lookups in a Graph.
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

// Operators of the graph's nodes, in order.
std::vector<std::string> Ops(const Graph& graph);
int Count(const Graph& graph, const std::string& op);
// The first node with this operator; fails the test if there is none.
const Node& NodeWith(const Graph& graph, const std::string& op);
std::vector<std::string> Names(const Graph& graph, ValueKind kind);

std::string DataPath(const std::string& name);
// Options with this batch size.
ImportOptions Batch(int64_t batch);
// Imports a file of tests/models/data/; fails the test if that fails.
Imported ImportExport(const std::string& name,
                      const ImportOptions& options = Batch(5));
// The path of a new temporary folder.
std::string TempFolder();
void WriteFile(const std::string& path, const std::string& bytes);
std::string ReadFile(const std::string& path);

}  // namespace loadline::models

#endif  // LOADLINE_TESTS_MODELS_ONNX_TEST_UTIL_H_
