// Times of the main kernels at the sizes of the three model families.
//   kernel_bench --benchmark_filter=Conv
#include <benchmark/benchmark.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "executor/cpu/kernels.h"

namespace loadline::executor {
namespace {

using models::Attributes;
using models::DType;
using models::Ints;
using models::TensorType;

struct Bench {
  std::string name;
  std::string op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  double flops = 0;  // 0: report bytes
};

TensorType F32(Ints dims) { return {DType::kF32, std::move(dims)}; }
TensorType I64(Ints dims) { return {DType::kI64, std::move(dims)}; }

void Run(benchmark::State& state, const Bench& bench) {
  models::Graph graph;
  std::vector<models::ValueId> inputs;
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> from;
  int64_t moved = 0;
  for (const TensorType& type : bench.inputs) {
    inputs.push_back(graph.AddInput("x", type));
    memory.emplace_back(type.bytes(), std::byte{0});
    moved += type.bytes();
    if (type.dtype != DType::kF32) continue;
    auto* values = reinterpret_cast<float*>(memory.back().data());
    for (int64_t i = 0; i < type.elements(); ++i) {
      values[i] = 0.5f + static_cast<float>(i * 37 % 101) / 101;
    }
  }
  const auto outputs =
      graph.AddNode(bench.op, "node", inputs, bench.attributes);
  if (!outputs.ok())
    return state.SkipWithError(outputs.status().ToString().c_str());
  auto kernel = PrepareCpuKernel(graph, graph.nodes[0]);
  if (!kernel.ok()) return state.SkipWithError("no kernel");
  std::vector<std::byte*> to;
  for (models::ValueId id : *outputs) {
    memory.emplace_back(graph.value(id).type.bytes());
    moved += graph.value(id).type.bytes();
  }
  memory.emplace_back((*kernel)->workspace_bytes() + 256);
  for (size_t i = 0; i < inputs.size(); ++i) from.push_back(memory[i].data());
  for (size_t i = 0; i < outputs->size(); ++i) {
    to.push_back(memory[inputs.size() + i].data());
  }
  const auto address = reinterpret_cast<uintptr_t>(memory.back().data());
  auto* workspace = reinterpret_cast<std::byte*>((address + 255) / 256 * 256);
  StepScalars scalars;
  scalars.learning_rate = 1e-3f;
  const KernelArgs args = {from, to, workspace, &scalars};
  for (auto _ : state) {
    if (!(*kernel)->Run(args).ok()) return state.SkipWithError("run failed");
  }
  const auto rounds = static_cast<double>(state.iterations());
  if (bench.flops > 0) {
    state.counters["FLOP/s"] =
        benchmark::Counter(bench.flops * rounds, benchmark::Counter::kIsRate);
  } else {
    state.SetBytesProcessed(moved * state.iterations());
  }
}

void AddConvolutions(std::vector<Bench>& benches) {
  for (int64_t size : {8, 32}) {
    const Ints x = {32, 64, size, size};
    const Ints w = {64, 64, 3, 3};
    const double flops = 2.0 * 32 * 64 * 64 * 9 * size * size;
    Attributes a = {{"kernel_shape", Ints{3, 3}},
                    {"strides", Ints{1, 1}},
                    {"pads", Ints{1, 1, 1, 1}},
                    {"dilations", Ints{1, 1}},
                    {"group", int64_t{1}}};
    const std::string at = std::to_string(size);
    benches.push_back({"Conv" + at, "Conv", {F32(x), F32(w)}, a, flops});
    a.Set("shape", x);
    benches.push_back(
        {"ConvInputGrad" + at, "ConvInputGrad", {F32(x), F32(w)}, a, flops});
    a.Set("shape", w);
    benches.push_back(
        {"ConvWeightGrad" + at, "ConvWeightGrad", {F32(x), F32(x)}, a, flops});
  }
}

// Causal heads as in the zoo's GPT, and as in GPT-2.
void AddAttention(std::vector<Bench>& benches) {
  for (const Ints& q : std::vector<Ints>{{32, 64, 4, 16}, {1, 1024, 12, 64}}) {
    const TensorType a = F32(q);
    const Attributes attributes = {
        {"scale", 0.25}, {"causal", int64_t{1}}, {"interleaved", int64_t{1}}};
    const std::string at = std::to_string(q[1]);
    // Flops of one product over the scores that a causal mask leaves.
    const double flops = 1.0 * q[0] * q[2] * q[1] * (q[1] + 1) * q[3];
    benches.push_back(
        {"Attention" + at, "Attention", {a, a, a}, attributes, 2 * flops});
    benches.push_back({"AttentionGrad" + at,
                       "AttentionGrad",
                       {a, a, a, a, a, F32({q[0], q[2], q[1]})},
                       attributes,
                       5 * flops});
  }
}

std::vector<Bench> Benches() {
  std::vector<Bench> benches;
  AddConvolutions(benches);
  AddAttention(benches);
  const Ints act = {8, 128, 512};
  const Ints image = {32, 64, 32, 32};
  const Ints row = {512};
  const Ints rows = {8, 128};
  const Ints c = {64};
  const TensorType a = F32(act);
  for (Bench b : std::vector<Bench>{
           {"MatMul",
            "MatMul",
            {F32({512, 256}), F32({256, 1024})},
            {},
            2.0 * 512 * 256 * 1024},
           {"MatMulBatched",
            "MatMul",
            {F32({8, 8, 128, 64}), F32({8, 8, 128, 64})},
            {{"trans_b", int64_t{1}}},
            2.0 * 64 * 128 * 128 * 64},
           {"Add", "Add", {a, a}, {}},
           {"AddRow", "Add", {a, F32(row)}, {}},
           {"Gelu", "Gelu", {a}, {{"approximate", std::string("none")}}},
           {"GeluTanh", "Gelu", {a}, {{"approximate", std::string("tanh")}}},
           {"GeluGrad",
            "GeluGrad",
            {a, a},
            {{"approximate", std::string("none")}}},
           {"Softmax",
            "Softmax",
            {F32({64, 128, 128})},
            {{"axis", int64_t{-1}}}},
           {"LayerNorm",
            "LayerNormalization",
            {a, F32(row), F32(row)},
            {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}},
           {"LayerNormGrad",
            "LayerNormGrad",
            {a, a, F32(row), F32(rows), F32(rows)},
            {{"axis", int64_t{-1}}}},
           {"BatchNorm",
            "BatchNormTraining",
            {F32(image), F32(c), F32(c)},
            {{"epsilon", 1e-5}}},
           {"BatchNormGrad",
            "BatchNormGrad",
            {F32(image), F32(image), F32(c), F32(c), F32(c)},
            {}},
           {"Relu", "Relu", {F32(image)}, {}},
           {"ReduceRows", "ReduceSum", {a}, {{"axes", Ints{0, 1}}}},
           {"Transpose",
            "Transpose",
            {F32({8, 128, 8, 64})},
            {{"perm", Ints{0, 2, 1, 3}}}},
           {"Transpose2d",
            "Transpose",
            {F32({1024, 1024})},
            {{"perm", Ints{1, 0}}}},
           {"Dropout", "Dropout", {a}, {{"ratio", 0.1}, {"salt", int64_t{1}}}},
           {"CrossEntropy",
            "SoftmaxCrossEntropy",
            {F32({1024, 1000}), I64({1024})},
            {{"class_axis", int64_t{1}}}},
           {"AdamW",
            "AdamW",
            {F32({1000000}), F32({1000000}), F32({1000000}), F32({1000000})},
            {{"beta1", 0.9},
             {"beta2", 0.999},
             {"epsilon", 1e-8},
             {"weight_decay", 0.01}}}}) {
    benches.push_back(std::move(b));
  }
  return benches;
}

}  // namespace
}  // namespace loadline::executor

int main(int argc, char** argv) {
  for (const auto& bench : loadline::executor::Benches()) {
    benchmark::RegisterBenchmark(bench.name.c_str(),
                                 [bench](benchmark::State& state) {
                                   loadline::executor::Run(state, bench);
                                 })
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
