// Used by every onnx_*_test.cc, and by tests of other rooms that import models.
#include "tests/models/onnx_test_util.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "onnx/defs/parser.h"

namespace loadline::models {

onnx::ModelProto ModelFromText(const std::string& body, int opset) {
  onnx::ModelProto model;
  const std::string text = absl::StrCat(
      "<ir_version: 10, opset_import: [\"\" : ", opset, "]> ", body);
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

std::string Bytes(const onnx::ModelProto& model) {
  return model.SerializeAsString();
}

absl::StatusOr<Imported> ImportText(const std::string& body,
                                    const ImportOptions& options, int opset) {
  return ImportOnnxBytes(Bytes(ModelFromText(body, opset)), options);
}

std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

int Count(const Graph& graph, const std::string& op) {
  const std::vector<std::string> ops = Ops(graph);
  return static_cast<int>(std::count(ops.begin(), ops.end(), op));
}

const Node& NodeWith(const Graph& graph, const std::string& op) {
  static const auto* const kNone = new Node;
  for (const Node& node : graph.nodes) {
    if (node.op == op) return node;
  }
  ADD_FAILURE() << "no " << op;
  return *kNone;
}

std::vector<std::string> Names(const Graph& graph, ValueKind kind) {
  std::vector<std::string> names;
  for (const Value& value : graph.values) {
    if (value.kind == kind) names.push_back(value.name);
  }
  return names;
}

std::string DataPath(const std::string& name) {
  return absl::StrCat("tests/models/data/", name);
}

ImportOptions Batch(int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

Imported ImportExport(const std::string& name, const ImportOptions& options) {
  absl::StatusOr<Imported> imported = ImportOnnx(DataPath(name), options);
  EXPECT_TRUE(imported.ok()) << name << ": " << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

std::string TempFolder() {
  std::string path = absl::StrCat(::testing::TempDir(), "/loadline_XXXXXX");
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace loadline::models
