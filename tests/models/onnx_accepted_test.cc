// The list of accepted ONNX operators in models/ops/operators.md is that of the
// importer's tables.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/onnx/fold.h"
#include "models/onnx/importer.h"
#include "models/onnx/supported.h"
#include "onnx/defs/schema.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

constexpr size_t kMostColumns = 90;

// Every operator of ONNX's default domain that the importer accepts, with the
// mark that the page gives it.
std::map<std::string, std::string> AcceptedOperators() {
  std::map<std::string, std::string> accepted;
  for (const onnx::OpSchema& schema :
       onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.domain().empty()) continue;
    const std::string& name = schema.Name();
    if (onnx_internal::HasRule(name)) {
      accepted[name] = "";
    } else if (onnx_internal::CanFold(name)) {
      accepted[name] = " (c)";
    }
  }
  for (const std::string& name : onnx_internal::LateOperators()) {
    accepted[name] = " (w)";
  }
  for (const std::string& name : onnx_internal::CompositeOperators()) {
    accepted[name] = " (w)";
  }
  return accepted;
}

// In alphabetical order, as wrapped lines.
std::string List(const std::map<std::string, std::string>& accepted) {
  std::string text, line;
  for (const auto& [name, mark] : accepted) {
    const std::string item =
        absl::StrCat(name, mark, name == accepted.rbegin()->first ? "." : ",");
    if (!line.empty() && line.size() + 1 + item.size() > kMostColumns) {
      absl::StrAppend(&text, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", item);
  }
  return absl::StrCat(text, line, "\n");
}

// The paragraph of models/ops/operators.md that begins with the first name.
std::string Documented(const std::string& first) {
  const std::string page = ReadFile("models/ops/operators.md");
  const size_t begin = page.find(absl::StrCat("\n", first, ","));
  const size_t end = page.find("\n\n", begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return page.substr(begin + 1, end - begin);
}

TEST(AcceptedOnnxOperators, AreTheListOfTheDocs) {
  const auto accepted = AcceptedOperators();
  EXPECT_EQ(Documented(accepted.begin()->first), List(accepted));
}

}  // namespace
}  // namespace loadline::models
