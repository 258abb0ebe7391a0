// A checkpoint is written completely or not at all, and everything is checked
// when it is read.
#include "executor/train/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "executor/files/safetensors.h"
#include "executor/train/data.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A loaded toy program with everything that it refers to.
struct Loaded {
  explicit Loaded(const ToyOptions& options = {})
      : toy(MakeToy(options)), plan(KeepPlan(toy)), device(ToyDevice()) {
    program = *Load(toy.graph, toy.problem, plan, device);
  }
  Toy toy;
  planner::Plan plan;
  CpuDevice device;
  std::unique_ptr<Program> program;
};

TEST(Checkpoint, BringsBackEveryByteAndThePosition) {
  Loaded from;
  std::vector<std::byte> w(from.toy.options.width * 4, std::byte{42});
  ASSERT_TRUE(from.program->WritePersistent("w2", w).ok());
  const std::string path = TemporaryPath("round.safetensors");
  ASSERT_TRUE(SaveCheckpoint(path, *from.program,
                             {.step = 12,
                              .seed = UINT64_MAX,
                              .shuffle = false,
                              .batch = 4,
                              .examples_seen = 48})
                  .ok());
  Loaded to;
  EXPECT_NE(AllWeights(*to.program), AllWeights(*from.program));
  const auto position = LoadCheckpoint(path, *to.program);
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->step, 12);
  EXPECT_EQ(position->seed, UINT64_MAX);
  EXPECT_FALSE(position->shuffle);
  EXPECT_EQ(position->examples_seen, 48);
  EXPECT_EQ(AllWeights(*to.program), AllWeights(*from.program));
  EXPECT_EQ(*WeightsSha256(*to.program), *WeightsSha256(*from.program));
}

TEST(Checkpoint, AFullDiskLeavesTheOldOneAndNoTemporary) {
  Loaded run;
  const std::string folder = TemporaryPath("full");
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/run.safetensors";
  ASSERT_TRUE(SaveCheckpoint(path, *run.program, {.step = 1}).ok());
  const std::string before = ReadBytes(path);

  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t limit : {rlim_t{0}, rlim_t{100}, before.size() - 1}) {
    struct rlimit small = {limit, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const absl::Status status = SaveCheckpoint(path, *run.program, {.step = 2});
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find(path), absl::string_view::npos);
    EXPECT_EQ(ReadBytes(path), before);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}),
              1);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(SaveCheckpoint(path, *run.program, {.step = 2}).ok());
}

TEST(Checkpoint, NamesAFolderThatIsNotThere) {
  Loaded run;
  const absl::Status status =
      SaveCheckpoint(TemporaryPath("nowhere/c"), *run.program, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("nowhere/c"), absl::string_view::npos);
}

TEST(Checkpoint, OfAnotherModelIsRefusedAndChangesNothing) {
  Loaded from({.depth = 3});
  const std::string path = TemporaryPath("other.safetensors");
  ASSERT_TRUE(SaveCheckpoint(path, *from.program, {.step = 1}).ok());
  for (const ToyOptions& other :
       {ToyOptions{.depth = 4}, ToyOptions{.depth = 3, .width = 32},
        ToyOptions{.depth = 3, .batch = 2}}) {
    Loaded to(other);
    const auto before = AllWeights(*to.program);
    EXPECT_EQ(LoadCheckpoint(path, *to.program).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(AllWeights(*to.program), before);
  }
  Loaded to({.depth = 3});
  EXPECT_EQ(LoadCheckpoint(TemporaryPath("none"), *to.program).status().code(),
            absl::StatusCode::kNotFound);
}

// In the header and in the contents.
TEST(Checkpoint, IsRefusedWithAnyByteAltered) {
  Loaded from({.depth = 2});
  const std::string path = TemporaryPath("damaged.safetensors");
  ASSERT_TRUE(SaveCheckpoint(path, *from.program, {.step = 7}).ok());
  const std::string whole = ReadBytes(path);
  ASSERT_TRUE(LoadCheckpoint(path, *from.program).ok());
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    const size_t at = i < 20 ? whole.size() - 1 - static_cast<size_t>(i)
                             : random() % whole.size();
    // Without its key the hash is that of an older file, and nothing else is
    // altered.
    const size_t key = whole.find("content_hash");
    if (at >= key && at < key + 12) continue;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    std::ofstream(path, std::ios::binary) << damaged;
    const absl::Status status = LoadCheckpoint(path, *from.program).status();
    EXPECT_FALSE(status.ok()) << at;
  }
  std::string damaged = whole;
  damaged[whole.size() - 100] ^= 4;
  std::ofstream(path, std::ios::binary) << damaged;
  const absl::Status status = LoadCheckpoint(path, *from.program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("the file is damaged"),
            absl::string_view::npos)
      << status;
}

TEST(Checkpoint, OfAnotherStructureSaysWhich) {
  Loaded loaded({.depth = 2});
  const std::string path = TemporaryPath("structure.safetensors");
  const int64_t batch = *BatchOf(loaded.program->graph());
  ASSERT_TRUE(
      SaveCheckpoint(path, *loaded.program, {.step = 7, .batch = batch}).ok());
  const auto file = ReadSafetensors(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<NamedType> tensors;
  for (const auto& [name, type] : file->types) tensors.push_back({name, type});
  const auto error_with = [&](const char* key, const char* value) {
    auto metadata = file->metadata;
    metadata["model_sha256"] = "another";
    metadata[key] = value;
    EXPECT_TRUE(WriteSafetensors(
                    path, tensors, metadata,
                    [&](size_t i, absl::Span<std::byte> to) {
                      const auto& bytes = file->contents.at(tensors[i].name);
                      std::copy(bytes.begin(), bytes.end(), to.begin());
                      return absl::OkStatus();
                    })
                    .ok());
    return std::string(
        LoadCheckpoint(path, *loaded.program).status().message());
  };
  EXPECT_NE(error_with("micro_batches", "4")
                .find("4 micro-batches, and this one has 1; resume it with "
                      "--micro-batches 4"),
            std::string::npos);
  EXPECT_NE(error_with("segments", "head=4")
                .find("resume it with --split "
                      "head=4"),
            std::string::npos);
}

// A step that trains w and multiplies by a frozen weight.
Toy WithFrozen(float number) {
  models::Graph graph;
  const models::TensorType type = {models::DType::kF32, {1}};
  const auto x = graph.AddInput("x", type);
  const float one = 1;
  const auto w = graph.AddParameter("w", models::MakeTensor(type, &one));
  const auto frozen =
      graph.AddConstant("frozen\nweight", models::MakeTensor(type, &number));
  const auto y = (*graph.AddNode("Mul", "y", {x, w}))[0];
  const auto z = (*graph.AddNode("Mul", "z", {y, frozen}))[0];
  graph.outputs = {z};
  return ToyOf(std::move(graph));
}

// Resuming would mix two models without a word.
TEST(Checkpoint, IsRefusedByAModelWithOtherFrozenWeights) {
  const std::string path = TemporaryPath("frozen.safetensors");
  const auto with = [](const Toy& toy, const auto& use) {
    const planner::Plan plan = KeepPlan(toy);
    CpuDevice device;
    const auto program = Load(toy.graph, toy.problem, plan, device);
    ASSERT_TRUE(program.ok()) << program.status();
    use(**program);
  };
  const Toy toy = WithFrozen(2);
  with(toy, [&](Program& program) {
    ASSERT_EQ(SaveCheckpoint(path, program, {.step = 3}), absl::OkStatus());
    EXPECT_EQ(LoadCheckpoint(path, program)->step, 3);
  });
  EXPECT_EQ(ReadCheckpointPosition(path, toy.graph)->constants,
            DigestOfConstants(toy.graph));
  const Toy other = WithFrozen(3);
  with(other, [&](Program& program) {
    const absl::Status status = LoadCheckpoint(path, program).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("other numbers in 'frozen\nweight'"),
              absl::string_view::npos)
        << status;
  });
  EXPECT_EQ(ReadCheckpointPosition(path, other.graph).status().code(),
            absl::StatusCode::kFailedPrecondition);
  // An old checkpoint does not know.
  const auto file = ReadSafetensors(path);
  ASSERT_TRUE(file.ok());
  std::map<std::string, std::string> metadata = file->metadata;
  EXPECT_EQ(metadata.erase("constants"), 1u);
  const std::string old = TemporaryPath("old.safetensors");
  const auto& w = file->contents.at("w");
  ASSERT_EQ(WriteSafetensors(old, {{"w", file->types.at("w")}}, metadata,
                             [&](size_t, absl::Span<std::byte> to) {
                               std::copy(w.begin(), w.end(), to.begin());
                               return absl::OkStatus();
                             }),
            absl::OkStatus());
  with(other, [&](Program& program) {
    EXPECT_EQ(LoadCheckpoint(old, program).status(), absl::OkStatus());
  });
}

std::string File(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  }
  return bytes + header + data;
}

TEST(ParseSafetensors, ReadsWhatIsSound) {
  const auto file = ParseSafetensors(
      File(R"({"__metadata__":{"k":"v"},)"
           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
           R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
           "abcdef"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.at("k"), "v");
  EXPECT_EQ(file->types.at("a").ToString(), "f32[]");
  EXPECT_EQ(file->contents.at("b")[0], std::byte{'e'});
}

TEST(ParseSafetensors, RefusesEverythingElse) {
  const auto one = [](const std::string& tensor) {
    return File("{\"a\":" + tensor + "}", "abcd");
  };
  for (const std::string& bad : {
           std::string(),
           std::string("1234567"),
           std::string(8, '\xff'),
           File("[]", ""),
           File("{", ""),
           File("{}", "x"),
           one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"),
           one(R"({"dtype":"F32","shape":[],"data_offsets":[0,8]})"),
           one(R"({"dtype":"F32","shape":[],"data_offsets":[4,8]})"),
           one(R"({"dtype":"F32","shape":[],"data_offsets":[4,0]})"),
           one(R"({"dtype":"F32","shape":[],"data_offsets":[-4,0]})"),
           one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"),
           one(R"({"dtype":"F32","shape":[4294967296,4294967296],)"
               R"("data_offsets":[0,4]})"),
           one(R"({"dtype":"Q4","shape":[],"data_offsets":[0,4]})"),
           one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"),
           one(R"({"dtype":"F32","shape":[]})"),
           one(R"(7)"),
           File(R"({"__metadata__":{"k":1}})", ""),
           // Overlapping offsets, then a duplicate name.
           File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                "abc"),
           File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                "a"),
       }) {
    EXPECT_EQ(ParseSafetensors(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(ParseSafetensors, SurvivesSeededDamage) {
  Loaded run({.depth = 2, .width = 4});
  const std::string path = TemporaryPath("fuzz.safetensors");
  ASSERT_TRUE(SaveCheckpoint(path, *run.program, {}).ok());
  const std::string sound = ReadBytes(path);
  std::mt19937 random(5);
  int refused = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string bytes = sound;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (trial % 4 == 0) bytes.resize(random() % bytes.size());
    if (!ParseSafetensors(bytes).ok()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

// It never ends.
TEST(LoadCheckpoint, RefusesADevice) {
  EXPECT_EQ(ReadSafetensors("/dev/zero").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::executor
