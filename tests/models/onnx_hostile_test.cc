// Malicious and damaged files. Most tests only expect an error and no crash;
// they are meant to run under the sanitizers too.
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

ImportOptions Small() {
  ImportOptions options;
  options.batch = 2;
  options.max_bytes = 1 << 22;
  options.max_folded_bytes = 1 << 20;
  return options;
}

absl::Status ImportStatus(const onnx::ModelProto& model) {
  return ImportOnnxBytes(Bytes(model), Small()).status();
}

onnx::ModelProto OneNode() {
  return ModelFromText(
      "g (float[2,3] x) => (float[2,3] y) <float[2,3] w = {1,2,3,4,5,6}> {"
      " [add] y = Add(x, w) }");
}

TEST(HostileOnnx, EveryTruncationIsAnErrorOrAValidModel) {
  const std::string bytes = ReadFile(DataPath("mlp_dynamo.onnx"));
  ASSERT_GT(bytes.size(), 1000u);
  int refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    refused += !ImportOnnxBytes(bytes.substr(0, n), Small()).ok();
  }
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
}

TEST(HostileOnnx, FlippedBitsNeverCrash) {
  std::mt19937 random(7);
  int imported = 0, refused = 0;
  for (const char* name : {"mlp_torchscript.onnx", "cnn_torchscript.onnx",
                           "cnn_dynamo_unoptimized.onnx"}) {
    const std::string original = ReadFile(DataPath(name));
    for (int i = 0; i < 200; ++i) {
      std::string bytes = original;
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      }
      const auto result = ImportOnnxBytes(bytes, Small());
      ++(result.ok() ? imported : refused);
      EXPECT_FALSE(absl::IsInternal(result.status())) << result.status();
    }
  }
  EXPECT_GT(imported, 0);
  EXPECT_GT(refused, 0);
}

// What reads the graph before the onnx library has checked it must not rely on
// an operator's inputs and outputs.
TEST(HostileOnnx, RefusesNodesWithoutInputsOrOutputs) {
  std::vector<onnx::ModelProto> models = {
      ModelFromText("g (float[2,2] x) => (float[2,2] y, float[2,2] v) "
                    "<float[2,2] w = {1,2,3,4}> {"
                    " z = MatMul(x, w) q = Round(z) s = Sub(q, z) y = Add(z, s)"
                    " t = Add(q, z) u = Clip(t) v = Sub(u, z) }")};
  for (const char* name :
       {"cnn_torchscript.onnx", "cnn_dynamo_unoptimized.onnx",
        "gpt_torchscript_17.onnx"}) {
    models.emplace_back();
    ASSERT_TRUE(models.back().ParseFromString(ReadFile(DataPath(name))));
  }
  for (const onnx::ModelProto& model : models) {
    ASSERT_TRUE(ImportStatus(model).ok()) << ImportStatus(model);
    for (int n = 0; n < model.graph().node_size(); ++n) {
      onnx::ModelProto changed = model;
      onnx::NodeProto* node = changed.mutable_graph()->mutable_node(n);
      const auto inputs = node->input();
      for (int kept = 0; kept < inputs.size(); ++kept) {
        node->clear_input();
        for (int i = 0; i < kept; ++i) node->add_input(inputs[i]);
        // Only an optional input may be left out.
        EXPECT_TRUE(kept > 0 || !ImportStatus(changed).ok()) << n;
      }
      *node->mutable_input() = inputs;
      node->clear_output();
      EXPECT_FALSE(ImportStatus(changed).ok()) << node->op_type();
    }
  }
}

TEST(HostileOnnx, RefusesCycles) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2] x) => (float[2] y) { a = Relu(x) y = Add(a, x) }");
  model.mutable_graph()->mutable_node(0)->set_input(0, "y");
  EXPECT_TRUE(absl::IsInvalidArgument(ImportStatus(model)));
}

TEST(HostileOnnx, RefusesWhatIsMadeTwiceOrNever) {
  onnx::ModelProto twice = ModelFromText(
      "g (float[2] x) => (float[2] y) { a = Relu(x) y = Add(a, x) }");
  twice.mutable_graph()->mutable_node(1)->set_output(0, "a");
  EXPECT_TRUE(absl::IsInvalidArgument(ImportStatus(twice)));
  onnx::ModelProto never = OneNode();
  never.mutable_graph()->mutable_node(0)->set_input(1, "ghost");
  EXPECT_TRUE(absl::IsInvalidArgument(ImportStatus(never)));
  onnx::ModelProto output = OneNode();
  output.mutable_graph()->mutable_output(0)->set_name("ghost");
  EXPECT_TRUE(absl::IsInvalidArgument(ImportStatus(output)));
  onnx::ModelProto outputs = OneNode();
  *outputs.mutable_graph()->add_output() = outputs.graph().output(0);
  EXPECT_THAT(std::string(ImportStatus(outputs).message()),
              HasSubstr("two outputs are named 'y'"));
  onnx::ModelProto initializers = OneNode();
  *initializers.mutable_graph()->add_initializer() =
      initializers.graph().initializer(0);
  EXPECT_THAT(std::string(ImportStatus(initializers).message()),
              HasSubstr("two initializers are named 'w'"));
}

TEST(HostileOnnx, RefusesTensorsThatClaimMoreThanTheyHold) {
  for (int64_t dim : {int64_t{-1}, int64_t{7}, int64_t{1} << 40,
                      std::numeric_limits<int64_t>::max()}) {
    onnx::ModelProto model = OneNode();
    auto* w = model.mutable_graph()->mutable_initializer(0);
    w->set_dims(0, dim);
    EXPECT_FALSE(ImportStatus(model).ok()) << dim;
    w->set_dims(1, dim);
    EXPECT_FALSE(ImportStatus(model).ok()) << dim;
  }
  onnx::ModelProto rank = OneNode();
  for (int i = 0; i < 100; ++i) {
    rank.mutable_graph()->mutable_initializer(0)->add_dims(1);
  }
  EXPECT_THAT(std::string(ImportStatus(rank).message()),
              HasSubstr("too many axes"));
}

// Readers of ONNX differ in which field they take.
TEST(HostileOnnx, RefusesTensorsThatHoldTheirContentsTwice) {
  onnx::ModelProto model = OneNode();
  auto* w = model.mutable_graph()->mutable_initializer(0);
  const std::vector<float> zeros(6);
  w->set_raw_data(zeros.data(), zeros.size() * sizeof(float));
  if (w->float_data_size() == 0) {
    for (float v : zeros) w->add_float_data(v);
  }
  EXPECT_THAT(std::string(ImportStatus(model).message()),
              HasSubstr("tensor 'w': has its contents twice"));
  w->clear_raw_data();
  EXPECT_TRUE(ImportStatus(model).ok());
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_THAT(std::string(ImportStatus(model).message()),
              HasSubstr("tensor 'w': has its contents twice"));
}

// The onnx library lists all nodes after it too, and without what they read.
TEST(HostileOnnx, NamesTheFirstNodeWhoseShapesDoNotFit) {
  for (const auto& [name, label] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "node making 'b' (Mul)"}, {"[odd] ", "node 'odd' (Mul)"}}) {
    const absl::Status status = ImportStatus(
        ModelFromText("g (float[2,4] x) => (float[s] y)"
                      " <float[2,3] w = {1,2,3,4,5,6}> { a = Relu(x) " +
                      name +
                      "b = Mul(a, w) c = Relu(b)"
                      " y = ReduceSum<keepdims=0>(c) }"));
    EXPECT_EQ(status.message(),
              absl::StrCat("the model's shapes do not fit: ", label,
                           ": Incompatible dimensions; it reads a f32[2,4], w "
                           "f32[2,3]"));
  }
  EXPECT_THAT(std::string(ImportStatus(
                              ModelFromText(
                                  "g (float[2] x, int64[2] i) => (float[a] y) {"
                                  " [odd] y = Add(x, i) }"))
                              .message()),
              AllOf(HasSubstr("node 'odd' (Add)"),
                    HasSubstr("it reads x f32[2], i i64[2]")));
}

TEST(HostileOnnx, RefusesAbsurdInputs) {
  for (int64_t dim : {int64_t{-3}, std::numeric_limits<int64_t>::max()}) {
    onnx::ModelProto model = OneNode();
    model.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(dim);
    EXPECT_THAT(std::string(ImportStatus(model).message()),
                HasSubstr("absurd"));
  }
  onnx::ModelProto sequence = OneNode();
  sequence.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_sequence_type();
  EXPECT_THAT(std::string(ImportStatus(sequence).message()),
              HasSubstr("not a dense tensor"));
  onnx::ModelProto text = OneNode();
  text.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::STRING);
  EXPECT_THAT(std::string(ImportStatus(text).message()), HasSubstr("STRING"));
}

TEST(HostileOnnx, RefusesSparseTensorsAndControlFlow) {
  onnx::ModelProto sparse = OneNode();
  sparse.mutable_graph()->add_sparse_initializer();
  EXPECT_THAT(std::string(ImportStatus(sparse).message()), HasSubstr("sparse"));
  const auto branch = ImportText(
      "g (bool[1] c, float[2] x) => (float[2] y) {"
      " [branch] y = If(c) <then_branch = a () => (float[2] p)"
      " { p = Relu(x) }, else_branch = b () => (float[2] q)"
      " { q = Neg(x) }> }");
  EXPECT_TRUE(IsUnsupported(branch.status())) << branch.status();
  EXPECT_THAT(std::string(branch.status().message()),
              HasSubstr("If (whose condition depends on data) x1: branch"));
}

TEST(HostileOnnx, RefusesControlCharactersInNames) {
  onnx::ModelProto model = OneNode();
  model.mutable_graph()->mutable_node(0)->set_name("a\nb");
  EXPECT_TRUE(absl::IsInvalidArgument(ImportStatus(model)));
}

TEST(HostileOnnx, RefusesRubbishAndMissingFiles) {
  EXPECT_FALSE(ImportOnnxBytes("", Small()).ok());
  EXPECT_FALSE(ImportOnnxBytes("hello, world", Small()).ok());
  const std::string folder = TempFolder();
  EXPECT_TRUE(
      absl::IsNotFound(ImportOnnx(folder + "/none.onnx", Small()).status()));
  EXPECT_FALSE(ImportOnnx(folder, Small()).ok());
  WriteFile(folder + "/empty.onnx", "");
  EXPECT_FALSE(ImportOnnx(folder + "/empty.onnx", Small()).ok());
  WriteFile(folder + "/big.onnx", std::string((1 << 22) + 1, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(
      ImportOnnx(folder + "/big.onnx", Small()).status()));
}

// A model whose w is external data, in a file of 100 bytes in its folder.
class ExternalData : public ::testing::Test {
 protected:
  absl::Status ImportWith(const std::string& location,
                          const std::string& offset = "0",
                          const std::string& length = "24") {
    onnx::ModelProto model = OneNode();
    auto* w = model.mutable_graph()->mutable_initializer(0);
    w->clear_float_data();
    w->clear_raw_data();
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>{"location", location},
          {"offset", offset},
          {"length", length}}) {
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    WriteFile(folder_ + "/model/m.onnx", Bytes(model));
    return ImportOnnx(folder_ + "/model/m.onnx", Small()).status();
  }

  void SetUp() override {
    folder_ = TempFolder();
    std::filesystem::create_directories(folder_ + "/model/sub");
    WriteFile(folder_ + "/model/w.data", std::string(100, '\0'));
    WriteFile(folder_ + "/model/sub/w.data", std::string(100, '\0'));
    WriteFile(folder_ + "/secret", std::string(100, '\0'));
    std::filesystem::create_symlink(folder_ + "/secret",
                                    folder_ + "/model/link");
    std::filesystem::create_symlink(folder_, folder_ + "/model/up");
    std::filesystem::create_symlink("w.data", folder_ + "/model/inside");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(ExternalData, IsReadFromInsideTheFolder) {
  EXPECT_TRUE(ImportWith("w.data").ok()) << ImportWith("w.data");
  EXPECT_TRUE(ImportWith("sub/w.data", "76").ok());
  EXPECT_TRUE(ImportWith("./w.data").ok());
  EXPECT_TRUE(ImportWith("inside").ok());
}

TEST_F(ExternalData, NeverLeavesTheFolder) {
  for (const std::string& location :
       {std::string("../secret"), std::string("sub/../../secret"),
        folder_ + "/secret", std::string("link"), std::string("up/secret"),
        std::string("up/model/../secret")}) {
    EXPECT_THAT(std::string(ImportWith(location).message()),
                HasSubstr("leaves the model's folder"))
        << location;
  }
}

TEST_F(ExternalData, IsCheckedAgainstTheFile) {
  EXPECT_FALSE(ImportWith("").ok());
  EXPECT_FALSE(ImportWith("sub").ok());
  EXPECT_TRUE(absl::IsNotFound(ImportWith("none.data")));
  EXPECT_THAT(std::string(ImportWith("w.data", "77").message()),
              HasSubstr("beyond the 100 bytes"));
  for (const char* offset :
       {"-1", "x", "9223372036854775807", "99999999999999999999"}) {
    EXPECT_FALSE(ImportWith("w.data", offset).ok()) << offset;
  }
  EXPECT_FALSE(ImportWith("w.data", "0", "25").ok());
}

TEST_F(ExternalData, IsRefusedInMemory) {
  ASSERT_TRUE(ImportWith("w.data").ok());
  const auto imported =
      ImportOnnxBytes(ReadFile(folder_ + "/model/m.onnx"), Small());
  EXPECT_THAT(std::string(imported.status().message()),
              AnyOf(HasSubstr("not allowed here")));
}

// A model whose function F0 runs one node and every other the one before it
// `calls` times.
onnx::ModelProto Nested(int functions, int calls) {
  onnx::ModelProto model = OneNode();
  auto* opset = model.add_opset_import();
  opset->set_domain("l");
  opset->set_version(1);
  for (int f = 0; f < functions; ++f) {
    onnx::FunctionProto* function = model.add_functions();
    function->set_domain("l");
    function->set_name(absl::StrCat("F", f));
    function->add_input("a0");
    const int nodes = f == 0 ? 1 : calls;
    function->add_output(absl::StrCat("a", nodes));
    *function->mutable_opset_import() = model.opset_import();
    for (int n = 0; n < nodes; ++n) {
      onnx::NodeProto* node = function->add_node();
      node->set_op_type(f == 0 ? "Relu" : absl::StrCat("F", f - 1));
      node->set_domain(f == 0 ? "" : "l");
      node->add_input(absl::StrCat("a", n));
      node->add_output(absl::StrCat("a", n + 1));
    }
  }
  onnx::NodeProto* node = model.mutable_graph()->mutable_node(0);
  node->set_input(1, "called");
  onnx::NodeProto call;
  call.set_op_type(absl::StrCat("F", functions - 1));
  call.set_domain("l");
  call.add_input("w");
  call.add_output("called");
  *model.mutable_graph()->add_node() = call;
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  return model;
}

// A kilobyte of file, and nodes without end.
TEST(HostileOnnx, FunctionsThatBecomeTooManyNodesAreRefused) {
  EXPECT_TRUE(ImportStatus(Nested(5, 3)).ok()) << ImportStatus(Nested(5, 3));
  for (int functions : {10, 20, 60}) {
    const absl::Status status = ImportStatus(Nested(functions, 3));
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("function 'F9' has"));
  }
  EXPECT_THAT(std::string(ImportStatus(Nested(5000, 1)).message()),
              HasSubstr("called through 64 others"));
}

TEST(HostileOnnx, FunctionsThatCallThemselvesAreRefused) {
  onnx::ModelProto model = Nested(4, 2);
  model.mutable_functions(1)->mutable_node(0)->set_op_type("F3");
  EXPECT_THAT(std::string(ImportStatus(model).message()),
              HasSubstr("function 'F3' calls itself"));
}

// Whatever the package of tomorrow writes into the file; operators are checked
// one by one.
TEST(HostileOnnx, NewerVersionsOfTheFormatAreTaken) {
  onnx::ModelProto model = OneNode();
  for (int64_t version : {13, 14, 99}) {
    model.set_ir_version(version);
    EXPECT_TRUE(ImportStatus(model).ok())
        << version << ": " << ImportStatus(model);
  }
  model.mutable_graph()->mutable_node(0)->set_op_type("NewerThanUs");
  EXPECT_THAT(std::string(ImportStatus(model).message()),
              HasSubstr("NewerThanUs"));
}

TEST(HostileOnnx, NamesThatAreNotUtf8AreRefused) {
  onnx::ModelProto model = OneNode();
  model.mutable_graph()->mutable_initializer(0)->set_name("w\xff");
  model.mutable_graph()->mutable_node(0)->set_input(1, "w\xff");
  EXPECT_THAT(std::string(ImportStatus(model).message()),
              HasSubstr("not UTF-8"));
}

// A model whose weights are in the file w.bin in the same folder.
std::string WithWeightsOutside(const std::string& folder, int floats) {
  onnx::ModelProto model = ModelFromText(absl::StrCat(
      "g (float[2,", floats, "] x) => (float[2,", floats,
      "] y) <float[1] one = {1}> { u = Mul(x, one) y = Add(u, w) }"));
  onnx::TensorProto* w = model.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(floats);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = w->add_external_data();
  location->set_key("location");
  location->set_value("w.bin");
  const std::string path = folder + "/m.onnx";
  WriteFile(path, Bytes(model));
  return path;
}

// A plan needs the sizes of weights only.
TEST(ImportOnnxWithoutWeights, GivesTheSameGraphWithoutContents) {
  for (int floats : {4, 4000}) {
    const std::string folder = TempFolder();
    const std::string path = WithWeightsOutside(folder, floats);
    ImportOptions options = Small();
    EXPECT_EQ(ImportOnnx(path, options).status().code(),
              absl::StatusCode::kNotFound);
    options.allow_missing_weights = true;
    const auto without = ImportOnnx(path, options);
    ASSERT_TRUE(without.ok()) << without.status();
    ASSERT_FALSE(without->warnings.empty());
    EXPECT_THAT(without->warnings[0], HasSubstr("missing"));
    WriteFile(folder + "/w.bin", std::string(4 * floats, '\1'));
    const auto with = ImportOnnx(path, options);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ(with->warnings.size() + 1, without->warnings.size());
    ASSERT_EQ(with->graph.values.size(), without->graph.values.size());
    for (size_t v = 0; v < with->graph.values.size(); ++v) {
      const Value& a = with->graph.values[v];
      const Value& b = without->graph.values[v];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.kind, b.kind);
      EXPECT_EQ(a.type, b.type);
      EXPECT_EQ(b.initial.has_value() && b.initial->data == nullptr,
                a.name == "w");
    }
  }
}

// What leaves the folder is an attack, not a file that was left at home.
TEST(ImportOnnxWithoutWeights, StillRefusesPathsOutsideTheFolder) {
  const std::string folder = TempFolder();
  const std::string path = WithWeightsOutside(folder, 4);
  std::string bytes = ReadFile(path);
  bytes.replace(bytes.find("w.bin"), 5, "../ab");
  WriteFile(path, bytes);
  ImportOptions options = Small();
  options.allow_missing_weights = true;
  EXPECT_EQ(ImportOnnx(path, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::models
