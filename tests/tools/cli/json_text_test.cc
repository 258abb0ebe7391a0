// The output is valid JSON, whatever names files have.
#include "tools/cli/json_text.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace loadline::tools {
namespace {

TEST(JsonText, IsOneLineThatReadsBack) {
  const nlohmann::ordered_json document = {{"b", 1}, {"a", {"x y", "\u00fc"}}};
  const std::string text = JsonText(document);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), document);
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(JsonText({{"name", "a\xff.onnx"}}), "{\"name\":\"a\uFFFD.onnx\"}");
}

}  // namespace
}  // namespace loadline::tools
