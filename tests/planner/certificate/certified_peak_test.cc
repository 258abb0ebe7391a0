// Bytes that every plan needs, against sums done by hand.
#include <gtest/gtest.h>

#include <string>

#include "planner/certificate/check_certificate.h"
#include "planner/problem/problem.h"

namespace loadline::planner {
namespace {

// Inputs x (50 bytes), y (50) and one that nothing reads (70). A reads x and
// makes a (30), B reads y and makes b (40); both are outputs.
int64_t PeakOf(const std::string& outputs, int64_t workspace_bytes) {
  const auto problem = ProblemFromJson(
      R"json({"format": "loadline.problem/1", "name": "two",
"values": [{"id": 0, "name": "x", "bytes": 50},
{"id": 1, "name": "y", "bytes": 50}, {"id": 2, "name": "unread", "bytes": 70},
{"id": 3, "name": "a", "bytes": 30}, {"id": 4, "name": "b", "bytes": 40}],
"nodes": [{"id": 0, "name": "A", "time_ns": 1, "inputs": [0], "outputs": [3]},
{"id": 1, "name": "B", "time_ns": 1, "inputs": [1], "outputs": [4],
 "workspace_bytes": )json" +
      std::to_string(workspace_bytes) + R"json(}], "outputs": )json" + outputs +
      R"json(, "alignment_bytes": 1})json");
  EXPECT_TRUE(problem.ok()) << problem.status();
  return CertifiedPeakBytes(*problem);
}

TEST(CertifiedPeak, HasTheInputsAtTheStart) {
  EXPECT_EQ(PeakOf("[]", 0), 100);  // x and y; while B runs 90
}

TEST(CertifiedPeak, HasWhatANodeTouchesWhileItRuns) {
  EXPECT_EQ(PeakOf("[]", 200), 50 + 40 + 200);
}

TEST(CertifiedPeak, HasTheOutputsAtTheEnd) {
  EXPECT_EQ(PeakOf("[0, 1, 2, 3, 4]", 0), 50 + 50 + 70 + 30 + 40);
}

}  // namespace
}  // namespace loadline::planner
