// The readers of problem files: round trips, canonical bytes, and one broken
// file for each kind of error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "planner/base/sha256.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

// Ids with gaps, in no order; every optional field once.
constexpr char kText[] = R"({
  "format": "loadline.problem/1", "name": "t\u00e9st\u0001", "extra": [1, {}],
  "values": [
    {"id": 30, "name": "w", "bytes": 8, "persistent": true, "offload": false},
    {"id": 7, "name": "x", "bytes": 0, "extra": null,
     "stash": [{"codec": "c", "bytes": 4, "encode_ns": 1, "decode_ns": 2,
                "lossless": false, "error": 1e-05}]},
    {"bytes": 8, "id": 9, "name": "w2", "persistent": true}],
  "nodes": [
    {"id": 5, "name": "update", "time_ns": 11, "inputs": [7, 30, 7],
     "outputs": [9], "workspace_bytes": 3, "recompute": false,
     "inplace": [[30, 9]],
     "variants": [{"name": "v", "time_ns": 1, "workspace_bytes": 2,
                   "exact": true}]}],
  "outputs": [9], "addresses": true, "alignment_bytes": 64,
  "machine": {"format": "loadline.machine/1", "name": "m", "device_bytes": 100,
    "reserved_bytes": 1, "d2h_bytes_per_s": 2.5, "h2d_bytes_per_s": 5e10,
    "copy_latency_ns": 3, "bidirectional": 0.6, "host_bytes": 9,
    "ops": {"b": 2, "a": 1}, "rates": {"matmul_flop_per_s": {"f32": 1e22},
    "memory_bytes_per_s": 1, "launch_ns": 4}}})";

constexpr char kCanonical[] =
    R"({"format":"loadline.problem/1","name":"tést\u0001","values":[)"
    R"({"id":30,"name":"w","bytes":8,"persistent":true,"offload":false},)"
    R"({"id":7,"name":"x","bytes":0,"stash":[{"codec":"c","bytes":4,)"
    R"("encode_ns":1,"decode_ns":2,"lossless":false,"error":1e-05}]},)"
    R"({"id":9,"name":"w2","bytes":8,"persistent":true}],"nodes":[)"
    R"({"id":5,"name":"update","time_ns":11,"inputs":[7,30,7],"outputs":[9],)"
    R"("workspace_bytes":3,"recompute":false,"inplace":[[30,9]],)"
    R"("variants":[{"name":"v","time_ns":1,"workspace_bytes":2,)"
    R"("exact":true}]}],"outputs":[9],"alignment_bytes":64,"machine":)"
    R"({"format":"loadline.machine/1","name":"m","device_bytes":100,)"
    R"("reserved_bytes":1,"d2h_bytes_per_s":2.5,)"
    R"("h2d_bytes_per_s":50000000000,"copy_latency_ns":3,)"
    R"("bidirectional":0.6,"host_bytes":9,"ops":{"a":1,"b":2},)"
    R"("rates":{"matmul_flop_per_s":{"f32":1e+22},"memory_bytes_per_s":1,)"
    R"("launch_ns":4}}})";

// The machine of kCanonical as a file has it, and as the hash has it.
constexpr char kMachine2[] =
    R"({"format":"loadline.machine/2","name":"m","device_bytes":100,)"
    R"("reserved_bytes":1,"host_bytes":9,)"
    R"("d2h":{"bytes_per_s":2.5,"latency_ns":3},)"
    R"("h2d":{"bytes_per_s":50000000000,"latency_ns":3},)"
    R"("d2h_h2d_factor":0.6)";
constexpr char kOutsideHash[] =
    R"(,"nominal":true,"algorithms":{"a":"b"},"ops":{"a":1,"b":2},)"
    R"("rates":{"matmul_flop_per_s":{"f32":1e+22},"memory_bytes_per_s":1,)"
    R"("launch_ns":4})";

std::string WithMachine(absl::string_view machine) {
  const absl::string_view canonical = kCanonical;
  const size_t begin = canonical.find("{\"format\":\"loadline.machine/1\"");
  return absl::StrCat(canonical.substr(0, begin), machine, "}}");
}

TEST(ProblemJson, HashesTheCanonicalBytes) {
  const auto problem = ProblemFromJson(kText);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(ProblemSha256(*problem), Sha256Hex(kCanonical));
  const std::string canonical = WithMachine(kMachine2);
  const std::string file = WithMachine(absl::StrCat(kMachine2, kOutsideHash));
  const auto problem2 = ProblemFromJson(file);
  ASSERT_TRUE(problem2.ok()) << problem2.status();
  EXPECT_EQ(ProblemToJson(*problem2), file);
  EXPECT_EQ(ProblemSha256(*problem2), Sha256Hex(canonical));
  EXPECT_EQ(problem->values[1].file_id, 7);
  EXPECT_EQ(problem->nodes[0].inputs[1], ValueId(0));
}

TEST(ProblemJson, KeepsTheHashOfTheSmallProblem) {
  // If one of these changes, every plan written so far loses its problem.
  Problem problem = SmallProblem();
  EXPECT_EQ(ProblemSha256(problem),
            "25a97e4910b081ff08302db347dc62437f7fca753430d2638b3a11d1d48289dc");
  problem.machine->format_version = 1;
  EXPECT_EQ(ProblemSha256(problem),
            "10c1daa45a40920dafd954b2cd00d248172005491afc7c9070f677d507b9ac7a");
}

TEST(ProblemJson, WrittenAgainAProblemKeepsItsPlans) {
  const auto read = ProblemFromJson(kText);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto again = ProblemFromJson(ProblemToJson(*read));
  ASSERT_TRUE(again.ok()) << again.status();
  const std::string hash = ProblemSha256(*read);
  EXPECT_NE(ProblemSha256(*again), hash);
  EXPECT_TRUE(IsProblemSha256(*again, hash));
  EXPECT_TRUE(IsProblemSha256(*read, ProblemSha256(*again)));
  EXPECT_FALSE(IsProblemSha256(*again, ""));
}

TEST(ProblemJson, EveryFieldThatPlansDependOnChangesTheHash) {
  const Problem problem = SmallProblem();
  const auto changed = [&](auto change) {
    Problem other = problem;
    change(*other.machine);
    return !IsProblemSha256(other, ProblemSha256(problem));
  };
  EXPECT_TRUE(changed([](Machine& m) { ++m.host_bytes; }));
  EXPECT_TRUE(changed([](Machine& m) { ++m.disk_bytes; }));
  EXPECT_TRUE(changed([](Machine& m) { ++m.d2h.latency_ns; }));
  EXPECT_TRUE(changed([](Machine& m) { ++m.h2d.bytes_per_s; }));
  EXPECT_TRUE(changed([](Machine& m) { m.write.bytes_per_s = 1; }));
  EXPECT_TRUE(changed([](Machine& m) { m.read.bytes_per_s = 1; }));
  EXPECT_TRUE(changed([](Machine& m) { m.d2h_h2d_factor = 0.25; }));
  EXPECT_TRUE(changed([](Machine& m) { m.write_read_factor = 0.25; }));
  EXPECT_TRUE(changed([](Machine& m) { m.copy_overhead_ns = 1; }));
  EXPECT_TRUE(changed([](Machine& m) { m.copies_exclude_compute = true; }));
  EXPECT_FALSE(changed([](Machine& m) { m.nominal = true; }));
  EXPECT_FALSE(changed([](Machine& m) { m.algorithms["a"] = "b"; }));
  EXPECT_FALSE(changed([](Machine& m) { m.ops["a"] = 1; }));
  EXPECT_FALSE(changed([](Machine& m) { m.rates.emplace(); }));
}

TEST(ProblemJson, ReadsBackWhatItWrites) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Problem problem =
        RandomProblem(seed, 30, seed % 2 == 0, seed % 3 == 0);
    ASSERT_EQ(ValidateProblem(problem), absl::OkStatus()) << seed;
    const std::string text = ProblemToJson(problem);
    const auto again = ProblemFromJson(text);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ProblemToJson(*again), text);
  }
}

TEST(ProblemJson, NamesTheFieldAndTheIdOfEveryError) {
  const struct {
    const char* from;  // in kCanonical
    const char* to;
    const char* message;
  } cases[] = {
      {"problem/1", "problem/2", "field \"format\" must be"},
      {"\"name\":\"w\",", "", "values[0] (id 30): field \"name\" is missing"},
      {"\"bytes\":0", "\"bytes\":-1",
       "values[1] (id 7): field \"bytes\" must not be negative: -1"},
      {"\"bytes\":0", "\"bytes\":0.0", "\"bytes\" must be an integer"},
      {"\"bytes\":0", "\"bytes\":1e3", "\"bytes\" must be an integer"},
      {"\"bytes\":0", "\"bytes\":\"0\"", "\"bytes\" must be an integer"},
      {"\"bytes\":0", "\"bytes\":9223372036854775808",
       "\"bytes\" does not fit 64 bits"},
      {"\"bytes\":0", "\"bytes\":99999999999999999999999",
       "\"bytes\" does not fit 64 bits"},
      {"\"bytes\":0", "\"bytes\":NaN", "not JSON (byte "},
      {"\"bytes\":0", "\"bytes\":9223372036854775807", "overflow 64 bits"},
      {"\"bytes\":0", "\"bytes\":0,\"bytes\":1",
       "field \"bytes\" is given twice"},
      {"\"bytes\":0", "\"bytes\":0,\"color\":1",
       "values[1] (id 7): field \"color\" is unknown"},
      {"\"name\":\"x\"", "\"name\":3", "field \"name\" must be a string"},
      {"\"persistent\":true,", "\"persistent\":1,",
       "field \"persistent\" must be true or false"},
      {"\"id\":7", "\"id\":30",
       "values[1] (id 30): field \"id\" was given to an earlier entry too"},
      {"[7,30,7]", "[7,31,7]",
       "nodes[0] (id 5): field \"inputs\" refers to id 31, which is nothing"},
      {"[7,30,7]", "7", "field \"inputs\" must be a list"},
      {"[7,30,7]", "[7,30,9]", "nodes form a cycle: node 5 'update'"},
      {"[[30,9]]", "[[30]]", "field \"inplace\" must hold pairs"},
      {"[[30,9]]", "[[7,9]]", "field \"inplace\" pairs value 7 'x' of 0 bytes"},
      {"[[30,9]]", "[[30,30]]", "field \"inplace\" pairs something"},
      {"\"inplace\":[[30,9]],", "",
       "value 9 'w2': field \"persistent\": it is made by a node"},
      {"\"recompute\":false,", "",
       "node 5 'update': field \"recompute\" must be false"},
      {"\"outputs\":[9],\"align", "\"outputs\":[9,9],\"align", "twice"},
      {"\"outputs\":[9],\"align", "\"outputs\":[30],\"align",
       "lists value 30 'w', which is updated"},
      {"\"alignment_bytes\":64", "\"alignment_bytes\":0",
       "field \"alignment_bytes\" must be from 1"},
      {"\"bidirectional\":0.6", "\"bidirectional\":1.5",
       "machine: field \"bidirectional\" must be"},
      {"\"d2h_bytes_per_s\":2.5", "\"d2h_bytes_per_s\":0.5",
       "machine: field \"d2h_bytes_per_s\" must be 0 or"},
      {"\"copy_latency_ns\":3,", "", "field \"copy_latency_ns\" is missing"},
      {"\"a\":1", "\"a\":1.5", "machine.ops: field \"a\" must be an integer"},
      {"\"launch_ns\":4", "\"launch\":4", "field \"launch_ns\" is missing"},
      {"\"codec\":\"c\"", "\"codec\":\"\"", "value 7 'x': field \"stash\""},
      {"\"error\":1e-05", "\"error\":-1", "must not be negative"},
      {"\"lossless\":false,", "", "stash of value 7: field \"lossless\""},
  };
  for (const auto& test : cases) {
    const std::string text =
        absl::StrReplaceAll(kCanonical, {{test.from, test.to}});
    ASSERT_NE(text, kCanonical) << test.from;
    const auto problem = ProblemFromJson(text);
    ASSERT_FALSE(problem.ok()) << test.from << " -> " << test.to;
    EXPECT_EQ(problem.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(problem.status().message()),
                HasSubstr(test.message));
  }
}

TEST(ProblemJson, RefusesEveryTruncation) {
  const std::string text = kCanonical;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ProblemFromJson(text.substr(0, size)).ok()) << size;
  }
}

TEST(ProblemJson, RefusesDeepNesting) {
  const std::string text(100'000, '[');
  EXPECT_THAT(std::string(ProblemFromJson(text).status().message()),
              HasSubstr("nested deeper than 64 levels"));
}

TEST(ValidateProblem, TellsMisorderFromCycle) {
  Problem problem = SmallProblem();
  std::swap(problem.nodes[0], problem.nodes[1]);
  EXPECT_THAT(std::string(ValidateProblem(problem).message()),
              HasSubstr("not in a valid order: node 1 'grad' reads value 2 'y',"
                        " which node 0 'forward' makes later"));
  problem = SmallProblem();
  problem.nodes[0].inputs.push_back(ValueId(3));
  EXPECT_THAT(std::string(ValidateProblem(problem).message()),
              HasSubstr("nodes form a cycle: node 0 'forward' reads value 3"));
}

TEST(ValidateProblem, RefusesTwoMakersAndReadsAfterAnUpdate) {
  Problem problem = SmallProblem();
  problem.nodes[1].outputs.push_back(ValueId(2));
  EXPECT_THAT(std::string(ValidateProblem(problem).message()),
              HasSubstr("value 2 'y' is already made by node 0 'forward'"));
  problem = SmallProblem();
  problem.nodes.push_back({9, "late", 1, {ValueId(0)}, {}, 0, true, {}, {}});
  EXPECT_THAT(std::string(ValidateProblem(problem).message()),
              HasSubstr("node 9 'late' reads value 0 'w' after node 2"));
}

TEST(IndexProblem, FollowsMakersReadersAndVersions) {
  const ProblemIndex index = IndexProblem(SmallProblem());
  EXPECT_EQ(index.producer, (std::vector<int32_t>{-1, -1, 0, 1, 2}));
  EXPECT_EQ(index.consumers[0], (std::vector<NodeId>{NodeId(0), NodeId(2)}));
  EXPECT_EQ(index.next_version[0], ValueId(4));
  EXPECT_EQ(index.previous_version[4], ValueId(0));
  EXPECT_EQ(index.next_version[2], kNoValue);
  EXPECT_TRUE(index.is_output[2]);
}

TEST(ProblemJson, ReadsAHundredThousandValuesAtOnce) {
  std::string text =
      R"({"format":"loadline.problem/1","name":"large","values":[)";
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "{\"id\":", i,
                    ",\"name\":\"v\",\"bytes\":", i, "}");
  }
  absl::StrAppend(&text, R"(],"nodes":[],"outputs":[]})");
  const absl::Time start = absl::Now();
  const auto problem = ProblemFromJson(text);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->values.size(), size_t{kCount});
  EXPECT_EQ(ProblemToJson(*problem), text);
  // A quadratic reader would take minutes.
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

}  // namespace
}  // namespace loadline::planner
