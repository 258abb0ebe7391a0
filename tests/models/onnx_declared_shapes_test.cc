// Shapes that a file declares, compared with the ones that its nodes make.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;

absl::Status ImportStatus(const std::string& body,
                          const ImportOptions& options = {}) {
  return ImportText(body, options).status();
}

// The onnx library does not follow Max into shapes, so nothing speaks for
// [2,3].
constexpr char kUnknownShape[] =
    " <int64[2] p = {2,1}, int64[2] q = {1,3}> {"
    " r = Max(p, q) [last] y = Reshape(x, r) }";

TEST(DeclaredShapes, WrongOnesAreErrorsThatNameBoth) {
  const std::string head = "g (float[6] x) => ";
  const absl::Status status =
      ImportStatus(head + "(float[3,2] y)" + kUnknownShape);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("node 'last' (Reshape): makes 'y' with the shape "
                        "[2,3], but the file declares the shape [3,2]"));
  const absl::Status right =
      ImportStatus(head + "(float[2,3] y)" + kUnknownShape);
  EXPECT_TRUE(right.ok()) << right;
}

TEST(DeclaredShapes, OpenAxesAreNotCompared) {
  const absl::Status open = ImportStatus(
      "g (float[2,3] x) => (float[2,m] y) <float[k,3] t, float[j,l] u> {"
      " t = Exp(x) u = Exp(t) y = Relu(u) }");
  EXPECT_TRUE(open.ok()) << open;
  EXPECT_THAT(
      std::string(ImportStatus(std::string("g (float[6] x) => (float[n,4] y)") +
                               kUnknownShape)
                      .message()),
      HasSubstr("declares the shape [?,4]"));
}

// Tools change the sizes of inputs and leave the other declarations.
TEST(DeclaredShapes, ThoseThatAreOutOfDateAreIgnored) {
  const absl::Status status = ImportStatus(
      "g (float[8,3] x) => (float[1,3] y) <float[1,3] t> {"
      " t = Exp(x) y = Relu(t) }");
  EXPECT_TRUE(status.ok()) << status;
}

// Exporters leave the sizes of their example in values that depend on an open
// axis, in whichever place it comes to be.
TEST(DeclaredShapes, SizesThatTheUserChoosesAreNotCompared) {
  const std::string head = "g (float[n,3] x) => (float[3,1] y) <float[1,3] t";
  const std::string body = "> { t = Exp(x) y = Transpose<perm=[1,0]>(t) }";
  EXPECT_TRUE(ImportStatus(head + body, Batch(1)).ok());
  const absl::Status chosen = ImportStatus(head + body, Batch(8));
  EXPECT_TRUE(chosen.ok()) << chosen;
  ImportOptions named;
  named.dims = {{"n", 8}};
  EXPECT_TRUE(ImportStatus(head + body, named).ok());
  // A shape that is computed from the open axis.
  const absl::Status through_shape = ImportStatus(
      "g (float[n,2,3] x) => (float[1,6] y) <int64[1] m = {-1}> {"
      " s = Shape<start=0, end=1>(x) r = Concat<axis=0>(s, m)"
      " y = Reshape(x, r) }",
      Batch(8));
  EXPECT_TRUE(through_shape.ok()) << through_shape;
}

}  // namespace
}  // namespace loadline::models
