// ONNX's node tests on the CPU, forward only. onnx_node_skips.txt lists those
// that Loadline does not pass, with reasons; the list must be exact.
#include "tests/conformance/onnx_node.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace loadline::conformance {
namespace {

// Where tools/dev/setup puts them, from onnx's sources.
constexpr char kRoot[] =
    LOADLINE_SOURCE_DIR "/build/deps/share/onnx_node_tests";
constexpr char kSkips[] =
    LOADLINE_SOURCE_DIR "/tests/conformance/onnx_node_skips.txt";

struct Skip {
  std::string pattern;
  std::string reason;
  int tests = 0;
};

// Lines PATTERN :: REASON; # begins a comment.
std::vector<Skip> ReadSkips() {
  std::vector<Skip> skips;
  std::ifstream in(kSkips);
  EXPECT_TRUE(in.good()) << kSkips;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t sign = line.find(" :: ");
    EXPECT_NE(sign, std::string::npos) << line;
    if (sign == std::string::npos) continue;
    skips.push_back({line.substr(0, sign), line.substr(sign + 4)});
  }
  return skips;
}

// The first entry whose pattern matches; null if there is none.
Skip* FindSkip(std::vector<Skip>& skips, const std::string& name) {
  for (Skip& skip : skips) {
    if (fnmatch(skip.pattern.c_str(), name.c_str(), 0) == 0) return &skip;
  }
  return nullptr;
}

const char* HowRun(KnownInputs known) {
  switch (known) {
    case KnownInputs::kNone:
      return "every input is data";
    case KnownInputs::kIntegers:
      return "integers are known at import";
    case KnownInputs::kAllButFirst:
      return "all inputs but the first are known at import";
    case KnownInputs::kAll:
      return "computed at import";
  }
  return "";
}

TEST(OnnxNodeTests, PassOrAreListedWithAReason) {
  const std::vector<std::string> names = OnnxNodeTests(kRoot);
  if (names.empty()) GTEST_SKIP() << "no tests in " << kRoot;
  std::vector<Skip> skips = ReadSkips();
  std::map<std::string, int> passed;
  int failed = 0, skipped = 0;
  for (const std::string& name : names) {
    const OnnxNodeResult result =
        RunOnnxNodeTest(std::string(kRoot) + "/" + name);
    Skip* skip = FindSkip(skips, name);
    if (skip != nullptr) ++skip->tests;
    if (result.passed && skip == nullptr) {
      ++passed[HowRun(result.known)];
      std::printf("passed   %s (%s)\n", name.c_str(), HowRun(result.known));
    } else if (!result.passed && skip != nullptr) {
      ++skipped;
      std::printf("skipped  %s: %s (%s)\n", name.c_str(), skip->reason.c_str(),
                  result.why.c_str());
    } else if (result.passed) {
      ++failed;
      ADD_FAILURE() << name << " passes: narrow \"" << skip->pattern << "\" in "
                    << kSkips;
    } else {
      ++failed;
      ADD_FAILURE() << name << ": " << result.why;
    }
  }
  for (const Skip& skip : skips) {
    EXPECT_GT(skip.tests, 0) << skip.pattern << " in " << kSkips
                             << " matches no test that is not matched before";
  }
  int all_passed = 0;
  for (const auto& [how, count] : passed) {
    std::printf("%5d passed: %s\n", count, how.c_str());
    all_passed += count;
  }
  std::printf("%d passed, %d failed, %d skipped of %zu\n", all_passed, failed,
              skipped, names.size());
}

}  // namespace
}  // namespace loadline::conformance
