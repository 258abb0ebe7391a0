// tools/dev/check_names must find what would not compile as one unit, and
// accept what would: each case is a library of two sources that are one unit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/run_check.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

std::string Anonymous(const std::string& text, const std::string& space = "a") {
  return absl::StrCat("namespace ", space, " {\nnamespace {\n\n", text,
                      "\n\n}  // namespace\n}  // namespace ", space, "\n");
}

// The script's exit status for a library with these two sources.
int CheckNames(const std::string& first, const std::string& second,
               const std::string& header = "") {
  return RunCheck("check_names", {{"models/CMakeLists.txt",
                                   "loadline_unity(loadline_models 1)\n"},
                                  {"models/first.cc", first},
                                  {"models/second.cc", second},
                                  {"models/face.h", header}});
}

TEST(CheckNames, RejectsANameOfTwoThings) {
  for (const char* text :
       {"struct Row {\n  int x;\n};", "constexpr int kMost = 1;",
        "int Count(int rows) { return rows; }", "using Row = int;"}) {
    EXPECT_EQ(CheckNames(Anonymous(text), Anonymous("struct Other {};")), 0);
    const int clash =
        CheckNames(Anonymous(text),
                   Anonymous(absl::StrCat(
                       "// Another.\n", text == std::string("using Row = int;")
                                            ? "using Row = char;"
                                            : text)));
    EXPECT_EQ(clash, 1) << text;
  }
  EXPECT_EQ(CheckNames(Anonymous("struct Row {};"),
                       Anonymous("int Row(int x) { return x; }")),
            1);
  EXPECT_EQ(CheckNames(Anonymous("constexpr Item kFirst{0},\n    kMost{1};"),
                       Anonymous("constexpr Item kOther{0}, kMost{1};")),
            1);
}

TEST(CheckNames, RejectsAFunctionThatAHeaderDeclares) {
  const std::string header =
      "namespace a {\n\nbool Moves(const Node& node,\n           int x = "
      "1);\n\n}"
      "  // namespace a\n";
  const std::string same =
      "bool Moves(const models::Node& n, int) {\n  return true;\n}";
  EXPECT_EQ(CheckNames(Anonymous(same), "", header), 1);
  EXPECT_EQ(CheckNames(Anonymous(same, "b"), "", header), 0);
  EXPECT_EQ(
      CheckNames(Anonymous("bool Moves(int x) {\n  return x;\n}"), "", header),
      0);
}

TEST(CheckNames, AcceptsOverloadsAliasesAndOtherNamespaces) {
  const std::string row = "struct Row {};";
  EXPECT_EQ(CheckNames(Anonymous(row, "a"), Anonymous(row, "b")), 0);
  const std::string alias = "using Json = nlohmann::json;";
  EXPECT_EQ(CheckNames(Anonymous(alias), Anonymous(alias)), 0);
  EXPECT_EQ(
      CheckNames(Anonymous("int Of(int x) { return x; }"),
                 Anonymous("int Of(std::pair<int, int> x) {\n  return 1;\n}")),
      0);
}

// Sources of different units may share names: with two units for these, the
// digests of the paths part them.
TEST(CheckNames, LooksAtTheUnitsOfEveryBuild) {
  const std::string row = Anonymous("struct Row {};");
  const auto check = [&](const std::string& units) {
    return CheckOutput(
        "check_names",
        {{"models/CMakeLists.txt",
          absl::StrCat("loadline_unity(loadline_models ", units, ")\n")},
         {"models/first.cc", row},
         {"models/second.cc", row}});
  };
  EXPECT_THAT(check("1"), HasSubstr("models/second.cc:4: Row is also in "
                                    "models/first.cc:4"));
  // A build with sanitizers has one unit where release has three.
  EXPECT_THAT(check("3"), HasSubstr("1 names that clash"));
  EXPECT_THAT(check("300"), HasSubstr("0 names that clash"));
}

TEST(CheckNames, RejectsALibraryWhoseUnitsItCannotFind) {
  EXPECT_EQ(RunCheck("check_names", {{"models/CMakeLists.txt", "\n"},
                                     {"models/first.cc", ""}}),
            1);
}

}  // namespace
}  // namespace loadline::tools
