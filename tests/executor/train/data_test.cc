// Arrays fit the graph or are refused with an explanation; batches depend on
// the step's number alone.
#include "executor/train/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/executor/support/npz_files.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using models::DType;
using ::testing::HasSubstr;

template <typename T>
NpyArray Array(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  NpyArray array{dtype, std::move(shape), {}};
  array.data.resize(values.size() * sizeof(T));
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

// One input x of `dtype`, with two elements per example.
models::Graph OneInput(DType dtype) {
  models::Graph graph;
  graph.values.push_back(
      {"x", {dtype, {8, 2}}, models::ValueKind::kInput, std::nullopt});
  graph.inputs = {models::ValueId{0}};
  return graph;
}

template <typename To>
std::vector<To> Values(const DataSet& data) {
  std::vector<To> values(data.columns[0].data.size() / sizeof(To));
  std::memcpy(values.data(), data.columns[0].data.data(),
              data.columns[0].data.size());
  return values;
}

TEST(MakeDataSet, ConvertsWhatLosesNothing) {
  const auto f64 = MakeDataSet({Array<double>(DType::kF64, {1, 2}, {0.1, -3})},
                               OneInput(DType::kF32));
  ASSERT_TRUE(f64.ok()) << f64.status();
  EXPECT_EQ(Values<float>(*f64), (std::vector<float>{0.1f, -3}));
  // 1.0, -2.0, the largest number, the smallest subnormal.
  const auto f16 = MakeDataSet(
      {Array<uint16_t>(DType::kF16, {2, 2}, {0x3C00, 0xC000, 0x7BFF, 0x0001})},
      OneInput(DType::kF32));
  ASSERT_TRUE(f16.ok());
  EXPECT_EQ(Values<float>(*f16),
            (std::vector<float>{1, -2, 65504, 5.9604644775390625e-08f}));
  const auto u8 = MakeDataSet({Array<uint8_t>(DType::kU8, {1, 2}, {255, 0})},
                              OneInput(DType::kI64));
  ASSERT_TRUE(u8.ok());
  EXPECT_EQ(Values<int64_t>(*u8), (std::vector<int64_t>{255, 0}));
  const auto i64 = MakeDataSet({Array<int64_t>(DType::kI64, {1, 2}, {-5, 9})},
                               OneInput(DType::kI32));
  ASSERT_TRUE(i64.ok());
  EXPECT_EQ(Values<int32_t>(*i64), (std::vector<int32_t>{-5, 9}));
}

TEST(MakeDataSet, RefusesWithWhatWasExpectedAndFound) {
  const auto refusal = [](NpyArray array, DType dtype) {
    return std::string(
        MakeDataSet({std::move(array)}, OneInput(dtype)).status().message());
  };
  EXPECT_EQ(refusal(Array<int64_t>(DType::kI64, {1, 2}, {int64_t{1} << 40, 0}),
                    DType::kI32),
            "array 'x': a number does not fit i32");
  EXPECT_EQ(refusal(Array<uint8_t>(DType::kU8, {1, 2}, {1, 2}), DType::kF32),
            "array 'x': expected f32, found u8; convert it with astype before "
            "saving");
  EXPECT_EQ(refusal(Array<float>(DType::kF32, {1, 3}, {1, 2, 3}), DType::kF32),
            "array 'x': expected f32[1,2] (first axis: examples), found "
            "f32[1,3]");
  EXPECT_EQ(refusal(Array<float>(DType::kF32, {}, {1}), DType::kF32),
            "array 'x' holds no examples");
}

TEST(MakeDataSet, WantsAsManyExamplesOfEverything) {
  const Toy toy = MakeToy({.batch = 2, .width = 1});
  const absl::Status status =
      MakeDataSet({Array<float>(DType::kF32, {3, 1}, {1, 2, 3}),
                   Array<float>(DType::kF32, {2, 1}, {1, 2})},
                  toy.graph)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("target"), absl::string_view::npos);
}

// Rows of a table of 3, and labels of 2 classes through a view.
models::Graph LooksUp() {
  models::Graph graph;
  const auto row = graph.AddInput("row", {DType::kI64, {2}});
  const auto target = graph.AddInput("target", {DType::kI32, {2, 1}});
  const auto table = graph.AddInput("table", {DType::kF32, {3, 2}});
  const auto logits =
      *graph.AddNode("Gather", "lookup", {table, row}, {{"axis", int64_t{0}}});
  const auto labels = *graph.AddNode("Reshape", "labels", {target},
                                     {{"shape", models::Ints{2}}});
  EXPECT_TRUE(graph
                  .AddNode("SoftmaxCrossEntropy", "loss",
                           {logits[0], labels[0]}, {{"class_axis", int64_t{1}}})
                  .ok());
  return graph;
}

absl::Status LookUp(std::vector<int64_t> rows, std::vector<int32_t> labels) {
  const auto count = static_cast<int64_t>(rows.size());
  return MakeDataSet({Array<int64_t>(DType::kI64, {count}, std::move(rows)),
                      Array<int32_t>(DType::kI32, {count, 1}, labels),
                      Array<float>(DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6})},
                     LooksUp())
      .status();
}

// Found here it costs a second; found by a kernel, the hours before that step.
TEST(MakeDataSet, RefusesLabelsAndIndicesOutOfRangeNamingTheFirst) {
  EXPECT_EQ(LookUp({0, 1, 2, -3}, {0, 1, 1, 0}), absl::OkStatus());
  // Labels that the loss ignores.
  EXPECT_EQ(LookUp({0, 1}, {0, -100}), absl::OkStatus());
  EXPECT_NE(LookUp({0, -100}, {0, 1}), absl::OkStatus());
  EXPECT_EQ(LookUp({0, 1, 2, 0}, {0, 1, 2, 7}).message(),
            "array 'target': 2 in example 2 (counted from 0) is not one of 2 "
            "classes");
  EXPECT_EQ(LookUp({0, 0}, {0, -1}).message(),
            "array 'target': -1 in example 1 (counted from 0) is not one of 2 "
            "classes");
  EXPECT_EQ(LookUp({0, 3}, {0, 0}).message(),
            "array 'row': 3 in example 1 (counted from 0) is not a row of "
            "'table', which has 3");
  EXPECT_EQ(LookUp({-4, 0}, {0, 0}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(MakeDataSet, RefusesBooleansAsLabelsOfMoreThanTwoClasses) {
  for (int64_t classes : {2, 3}) {
    models::Graph graph;
    const auto x = graph.AddInput("x", {DType::kF32, {2, classes}});
    const auto target = graph.AddInput("target", {DType::kI64, {2}});
    ASSERT_TRUE(graph
                    .AddNode("SoftmaxCrossEntropy", "loss", {x, target},
                             {{"class_axis", int64_t{1}}})
                    .ok());
    const auto data = MakeDataSet(
        {Array<float>(DType::kF32, {2, classes},
                      std::vector<float>(static_cast<size_t>(2 * classes))),
         Array<uint8_t>(DType::kBool, {2}, {1, 0})},
        graph);
    EXPECT_EQ(data.ok(), classes == 2);
    if (classes == 2) continue;
    EXPECT_EQ(data.status().message(),
              "array 'target': found booleans, which name two classes, and the "
              "model has 3; give the number of each example's class");
  }
}

// An x f32[batch,2], and a mask f32[3] without an axis for examples.
models::Graph WithMask(int64_t batch) {
  models::Graph graph;
  graph.AddInput("x", {DType::kF32, {batch, 2}});
  graph.AddInput("mask", {DType::kF32, {3}});
  return graph;
}

NpyArray Rows(int64_t count) {
  return Array<float>(DType::kF32, {count, 2},
                      std::vector<float>(static_cast<size_t>(2 * count)));
}

// A row of 4 bytes in a batch of 2 is less than the step reads.
TEST(MakeDataSet, RefusesARowForEachExampleWhereTheInputHasNoBatch) {
  const absl::Status status =
      MakeDataSet({Rows(4), Array<float>(DType::kF32, {4}, {1, 2, 3, 4})},
                  WithMask(2))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("input 'mask' is f32[3]: its first axis is not the "
                        "batch, which is 2"));
  EXPECT_THAT(status.message(), HasSubstr("found f32[4]"));
}

TEST(MakeDataSet, GivesAnArrayOfTheInputsOwnShapeToEveryStep) {
  for (const int64_t in_memory : {0, 1 << 20}) {
    std::string mask(12, '\0');
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<char>(i);
    const std::string path =
        WriteZip("mask.npz",
                 {{"x.npy", NpyFile("<f4", "(6, 2)", std::string(48, '\0'))},
                  {"mask.npy", NpyFile("<f4", "(3,)", mask)}},
                 false);
    const auto data =
        LoadData(path, WithMask(2), {.most_bytes_in_memory = in_memory});
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(CheckBytes(*data, WithMask(2)), absl::OkStatus());
    EXPECT_EQ(data->examples, 6);
    EXPECT_TRUE(data->columns[1].every_step);
    auto batcher =
        Batcher::Create(*data, 2, 1, /*shuffle=*/true, /*micro_batches=*/2);
    ASSERT_TRUE(batcher.ok());
    for (int64_t step = 0; step < 5; ++step) {
      const auto rows = (*batcher)->Batch(step);
      ASSERT_TRUE(rows.ok()) << rows.status();
      for (const size_t part : {2, 3}) {
        EXPECT_EQ(std::memcmp((*rows)[part], mask.data(), mask.size()), 0);
      }
    }
  }
}

TEST(MakeDataSet, ChecksTheIndicesOfEveryStep) {
  models::Graph graph;
  graph.AddInput("x", {DType::kF32, {2, 2}});
  const auto at = graph.AddInput("positions", {DType::kI64, {3}});
  const auto table = graph.AddInput("table", {DType::kF32, {2, 2}});
  ASSERT_TRUE(
      graph.AddNode("Gather", "lookup", {table, at}, {{"axis", int64_t{0}}})
          .ok());
  EXPECT_EQ(
      MakeDataSet(
          {Rows(4), Array<int64_t>(DType::kI64, {3}, {0, 1, 2}), Rows(4)},
          graph)
          .status()
          .message(),
      "array 'positions': 2 at position 2 (counted from 0) is not a row of "
      "'table', which has 2");
}

TEST(CheckBytes, RefusesTheDataOfAnotherBatch) {
  const auto data = MakeDataSet(
      {Rows(4), Array<float>(DType::kF32, {3}, {1, 2, 3})}, WithMask(2));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(CheckBytes(*data, WithMask(4)), absl::OkStatus());
  models::Graph other = WithMask(4);
  other.values[models::Index(other.inputs[1])].type.dims = {4};
  EXPECT_THAT(CheckBytes(*data, other).message(),
              HasSubstr("input 'mask' is f32[4], which has 16 bytes"));
  EXPECT_FALSE(CheckBytes(*data, OneInput(DType::kF32)).ok());
}

DataSet Numbers(int64_t examples) {
  DataSet data;
  data.examples = examples;
  std::vector<int64_t> numbers(examples);
  for (int64_t i = 0; i < examples; ++i) numbers[i] = i;
  data.columns.push_back({"x", 8, {}});
  data.columns[0].data.resize(examples * 8);
  std::memcpy(data.columns[0].data.data(), numbers.data(), examples * 8);
  return data;
}

// Every type that a file may have, in every place that rows may be.
TEST(LoadData, GivesTheSameRowsFromMemoryAndFromFiles) {
  struct Case {
    const char* descr;
    int64_t bytes;
    DType wanted;
  };
  for (const Case& c : {Case{"<f4", 4, DType::kF32},
                        {"<f8", 8, DType::kF32},
                        {"<f2", 2, DType::kF32},
                        {"<u2", 2, DType::kI64},
                        {"<i2", 2, DType::kI32},
                        {"|u1", 1, DType::kI64},
                        {"<u4", 4, DType::kI64},
                        {"<i4", 4, DType::kI64}}) {
    SCOPED_TRACE(c.descr);
    std::string numbers(static_cast<size_t>(37 * 2 * c.bytes), '\0');
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<char>(i * 37 % 60);
    }
    const std::string npy = NpyFile(c.descr, "(37, 2)", numbers);
    const std::string folder = TemporaryPath("columns");
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/x.npy", std::ios::binary) << npy;
    const models::Graph graph = OneInput(c.wanted);
    const auto whole =
        LoadData(WriteZip("whole.npz", {{"x.npy", npy}}, true), graph);
    ASSERT_TRUE(whole.ok()) << whole.status();
    auto expected = Batcher::Create(*whole, 5, 4, true);
    for (const std::string& path :
         {folder, WriteZip("stored.npz", {{"x.npy", npy}}, false)}) {
      for (const int64_t in_memory : {0, 1 << 20}) {
        const auto data =
            LoadData(path, graph, {.most_bytes_in_memory = in_memory});
        ASSERT_TRUE(data.ok()) << data.status();
        EXPECT_EQ(data->columns[0].stored.has_value(), in_memory == 0);
        auto batcher = Batcher::Create(*data, 5, 4, true);
        // Forward, back and over the end of an epoch.
        for (const int64_t step : {0, 1, 2, 6, 7, 8, 3, 3, 20}) {
          const auto a = (*expected)->Batch(step);
          const auto b = (*batcher)->Batch(step);
          ASSERT_TRUE(a.ok() && b.ok()) << b.status();
          const auto bytes =
              static_cast<size_t>(5 * data->columns[0].row_bytes);
          EXPECT_EQ(std::memcmp((*a)[0], (*b)[0], bytes), 0) << step;
        }
      }
    }
  }
}

TEST(LoadData, RefusesStoredNumbersThatDoNotFit) {
  std::string numbers(37 * 2 * 8, '\0');
  numbers[36 * 16 + 5] = 1;  // 2^40 in the last row
  const std::string path = WriteZip(
      "wide.npz", {{"x.npy", NpyFile("<i8", "(37, 2)", numbers)}}, false);
  for (const int64_t in_memory : {0, 1 << 20}) {
    const auto data = LoadData(path, OneInput(DType::kI32),
                               {.most_bytes_in_memory = in_memory});
    EXPECT_THAT(data.status().message(), HasSubstr("does not fit i32"));
  }
}

TEST(Batcher, ReportsAFileThatHasBecomeShorter) {
  const std::string folder = TemporaryPath("shrinking");
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/x.npy";
  std::ofstream(path, std::ios::binary)
      << NpyFile("<f4", "(4000, 2)", std::string(32'000, '\0'));
  const auto data =
      LoadData(folder, OneInput(DType::kF32), {.most_bytes_in_memory = 0});
  ASSERT_TRUE(data.ok()) << data.status();
  auto batcher = Batcher::Create(*data, 1000, 0, false);
  EXPECT_TRUE((*batcher)->Batch(0).ok());
  std::filesystem::resize_file(path, 5000);
  // The next batch was perhaps read before.
  absl::Status status;
  for (int64_t step = 1; step < 4; ++step) {
    status = (*batcher)->Batch(step).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST(Batcher, InOrderTakesTheExamplesInOrderAndWraps) {
  const DataSet data = Numbers(10);
  auto batcher = Batcher::Create(data, 4, 0, false);
  ASSERT_TRUE(batcher.ok());
  const std::vector<std::vector<int64_t>> expected = {
      {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}};
  for (size_t step = 0; step < expected.size(); ++step) {
    const auto batch = (*batcher)->Batch(static_cast<int64_t>(step)).value();
    int64_t got[4];
    std::memcpy(got, batch[0], sizeof(got));
    EXPECT_EQ(std::vector<int64_t>(got, got + 4), expected[step]);
  }
}

TEST(Batcher, ShuffledEpochsArePermutationsThatDiffer) {
  const DataSet data = Numbers(12);
  auto batcher = Batcher::Create(data, 4, 9, true);
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::vector<int64_t> order;
    for (int k = 0; k < 3; ++k) {
      const auto examples = (*batcher)->Examples(3 * epoch + k);
      order.insert(order.end(), examples.begin(), examples.end());
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 12; ++i) ASSERT_EQ(order[i], i);
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(Batcher, AStepHasTheSameBatchHoweverOneGetsThere) {
  const DataSet data = Numbers(37);
  auto forward = Batcher::Create(data, 5, 4, true);
  auto backward = Batcher::Create(data, 5, 4, true);
  std::vector<std::vector<int64_t>> seen(50);
  for (int64_t step = 0; step < 50; ++step) {
    const auto examples = (*forward)->Examples(step);
    seen[step].assign(examples.begin(), examples.end());
  }
  for (int64_t step = 49; step >= 0; --step) {
    const auto examples = (*backward)->Examples(step);
    EXPECT_EQ(std::vector<int64_t>(examples.begin(), examples.end()),
              seen[step]);
  }
}

TEST(Batcher, ReadsTheSameBatchesAhead) {
  const DataSet data = Numbers(37);
  auto asked = Batcher::Create(data, 6, 4, true, 2);
  auto ahead = Batcher::Create(data, 6, 4, true, 2, /*always_ahead=*/true);
  for (const int64_t step : {0, 1, 2, 3, 20, 21, 4, 5, 5, 6}) {
    const auto expected = (*asked)->Batch(step);
    const auto found = (*ahead)->Batch(step);
    ASSERT_TRUE(expected.ok() && found.ok());
    ASSERT_EQ(found->size(), expected->size());
    for (size_t i = 0; i < found->size(); ++i) {
      EXPECT_EQ(std::memcmp((*found)[i], (*expected)[i],
                            static_cast<size_t>(3 * data.columns[0].row_bytes)),
                0);
    }
  }
}

// Must never change: a resumed run of an old version needs the same batches.
// The numbers come from an independent implementation in another language.
TEST(Batcher, OrderIsTheSameOnEveryMachine) {
  const DataSet data = Numbers(8);
  auto batcher = Batcher::Create(data, 8, 1, true);
  const auto examples = (*batcher)->Examples(0);
  EXPECT_EQ(std::vector<int64_t>(examples.begin(), examples.end()),
            (std::vector<int64_t>{0, 3, 7, 1, 4, 2, 6, 5}));
}

TEST(Batcher, WantsAtLeastOneBatch) {
  const DataSet data = Numbers(3);
  EXPECT_EQ(Batcher::Create(data, 4, 0, true).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Batcher::Create(data, 0, 0, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::executor
