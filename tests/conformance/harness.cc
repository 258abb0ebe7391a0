// Runs kernels in guarded memory; used by every test of this folder.
#include "tests/conformance/harness.h"

#include <sanitizer/asan_interface.h>

#include <cmath>
#include <cstring>

#include "executor/cpu/kernels.h"
#include "executor/device/algorithms.h"
#include "executor/ops/bf16.h"
#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "models/ops/state_blocks.h"
#include "models/storage.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::TensorType;

constexpr int64_t kCanaryBytes = 128;
constexpr std::byte kCanary{0xA5};
// Initial contents of every buffer: quiet NaNs.
constexpr std::byte kStale{0xFF};

template <typename T>
void Store(const Array& a, std::byte* to) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    const T value = static_cast<T>(a.values[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
void Load(const std::byte* from, Array& a) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    a.values[i] = static_cast<double>(value);
  }
}

// The first four bytes of each block of a state: a float from 0.1 to 2.
void MakeScales(std::mt19937_64& random, Array& blocks) {
  std::uniform_real_distribution<float> real(0.1f, 2);
  for (size_t at = 0; at < blocks.values.size();
       at += models::kStateBlockBytes) {
    const float scale = real(random);
    uint8_t bytes[sizeof(scale)];
    std::memcpy(bytes, &scale, sizeof(scale));
    std::copy(bytes, bytes + sizeof(scale), blocks.values.begin() + at);
  }
}

// Codes and scales of states in 8 bits. A scale is the largest number, and a
// code the nearest to a number: both are computed in float, so that the other
// code beside a number is right where both are nearly as near.
void ExpectCloseBlocks(const Array& got, const Array& want, double tolerance) {
  int64_t others = 0;
  const auto signed_code = [](double code) {
    return code > 128 ? 128 - code : code;
  };
  for (size_t i = 0; i < got.values.size(); ++i) {
    const size_t in_block = i % models::kStateBlockBytes;
    if (in_block == 0) {
      float scales[2];
      for (const Array* a : {&got, &want}) {
        uint8_t bytes[sizeof(float)];
        std::copy(a->values.begin() + i, a->values.begin() + i + sizeof(float),
                  bytes);
        std::memcpy(&scales[a == &want], bytes, sizeof(float));
      }
      ASSERT_NEAR(scales[0], scales[1], tolerance * (1 + scales[1])) << i;
    } else if (in_block >= models::kStateScaleBytes &&
               got.values[i] != want.values[i]) {
      ++others;
      const bool next = std::fabs(got.values[i] - want.values[i]) == 1 ||
                        std::fabs(signed_code(got.values[i]) -
                                  signed_code(want.values[i])) == 1;
      ASSERT_TRUE(next) << "byte " << i << ": code " << got.values[i]
                        << " instead of " << want.values[i];
    }
  }
  EXPECT_LE(others, 1 + static_cast<int64_t>(got.values.size()) / 1000);
}

Array RandomArray(const InputSpec& spec, std::mt19937_64& random) {
  Array a{spec.type, std::vector<double>(spec.type.elements())};
  std::uniform_real_distribution<double> real(spec.low, spec.high);
  std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(spec.low),
                                               static_cast<int64_t>(spec.high));
  for (double& v : a.values) {
    switch (spec.type.dtype) {
      case DType::kF32:
        v = static_cast<float>(real(random));
        break;
      case DType::kBF16:
        v = executor::Bf16(static_cast<float>(real(random)));
        break;
      default:
        v = static_cast<double>(whole(random));
    }
  }
  if (models::IsStateBlocks(spec.type)) MakeScales(random, a);
  return a;
}

// Random positions of maxima that a MaxPool with these attributes could return,
// as an input of MaxPoolGrad.
void MakeArgmax(const OperatorCase& c, std::mt19937_64& random, Array& argmax) {
  const Array x =
      RandomArray(F32(c.attributes.IntList("shape"), -20, 20), random);
  std::vector<Array> outputs = {argmax, argmax};
  const executor::StepScalars scalars;
  References().at("MaxPool")(Call{c.attributes, {&x}, outputs, scalars});
  argmax = outputs[1];
}

struct F32Values {
  std::vector<size_t> inputs, outputs;
};
// Which values stay f32 when the others of an operator are bf16; one entry per
// supported form.
std::vector<F32Values> Bf16Rules(const std::string& op) {
  static const auto* rules = new std::map<std::string, std::vector<F32Values>>{
      {"Cast", {{{0}, {}}, {{}, {0}}}},
      {"LayerNormalization", {{{1, 2}, {1, 2}}}},
      {"LayerNormGrad", {{{2, 3, 4}, {1, 2}}}},
      {"BatchNormTraining", {{{1, 2}, {1, 2}}}},
      {"BatchNormGrad", {{{2, 3, 4}, {1, 2}}}},
      {"BatchNormalization", {{{1, 2, 3, 4}, {}}}},
      {"RunningStatsUpdate", {}},
      {"Fmod", {}},
      {"ReduceMax", {}},
      {"ReduceMin", {}},
      {"CumSum", {}},
      {"ScatterReduce", {}},
      {"TopK", {}},
      {"RandomUniform", {}},
      {"FakeQuantize", {}},
      {"FakeQuantizeGrad", {}},
      {"FakeQuantizeScaleGrad", {}},
      {"ValueRange", {}},
      {"RangeUpdate", {}},
      {"QuantizationGrid", {}},
      // tests/conformance/codec_test.cc has their bf16.
      {"Encode", {}},
      {"Decode", {}},
      {"SoftmaxCrossEntropy", {{{2, 3}, {0, 1}}}},
      {"SoftmaxCrossEntropyGrad", {{{0, 3, 4, 5}, {}}}},
      {"CrossEntropyRows", {{{}, {0, 1}}}},
      {"CrossEntropyMean", {}},
      {"CountTargets", {}},
      {"GemmSum", {{{2}, {0}}}},
      {"MseLoss", {{{}, {0}}}},
      {"MseLossGrad", {{{0}, {}}}},
      {"Sgd", {{{0, 2, 3, 4, 5}, {0, 1}}}},
      {"AdamW", {{{0, 2, 3, 4, 5, 6}, {0, 1, 2}}}},
      {"Adam", {{{0, 2, 3, 4, 5, 6}, {0, 1, 2}}}},
      {"Adagrad", {{{0, 2, 3, 4, 5}, {0, 1}}}},
      {"Lion", {{{0, 2, 3}, {0, 1}}}},
      {"Adafactor", {{{0, 2, 3, 4}, {0, 1, 2}}}},
      {"AverageUpdate", {}},
      {"SumSquares", {}},
      {"ClipFactor", {}},
      {"Attention", {{{3}, {1}}}},
      {"AttentionGrad", {{{5, 6}, {}}}},
  };
  const auto it = rules->find(op);
  return it == rules->end() ? std::vector<F32Values>{{}} : it->second;
}

// Converts f32 values to bf16, except those at the positions `kept`. Returns
// whether it converted any.
bool ToBf16(const std::vector<models::ValueId>& ids,
            const std::vector<size_t>& kept, models::Graph& graph) {
  bool changed = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == models::kNoValue) continue;
    TensorType& type = graph.values[models::Index(ids[i])].type;
    if (type.dtype != DType::kF32 ||
        std::find(kept.begin(), kept.end(), i) != kept.end()) {
      continue;
    }
    type.dtype = DType::kBF16;
    changed = true;
  }
  return changed;
}

bool SameBytes(const std::byte* a, const std::vector<std::byte>& b) {
  return b.empty() || std::memcmp(a, b.data(), b.size()) == 0;
}

}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes, int64_t shift)
    : storage_(bytes + 2 * kCanaryBytes + 256 + shift, kCanary), bytes_(bytes) {
  const auto start =
      reinterpret_cast<uintptr_t>(storage_.data()) + kCanaryBytes;
  data_ = reinterpret_cast<std::byte*>((start + 255) / 256 * 256 + shift);
  if (bytes > 0) std::memset(data_, static_cast<int>(kStale), bytes);
  // Under the address sanitizer, reading beyond the buffer is an error too.
  const std::byte* end = storage_.data() + storage_.size();
  ASAN_POISON_MEMORY_REGION(storage_.data(), data_ - storage_.data());
  ASAN_POISON_MEMORY_REGION(data_ + bytes_, end - (data_ + bytes_));
}

bool GuardedBuffer::Intact() const {
  ASAN_UNPOISON_MEMORY_REGION(storage_.data(), storage_.size());
  for (const std::byte* p = storage_.data();
       p != storage_.data() + storage_.size(); ++p) {
    if ((p < data_ || p >= data_ + bytes_) && *p != kCanary) return false;
  }
  return true;
}

std::vector<std::byte> ToBytes(const Array& a) {
  std::vector<std::byte> bytes(a.type.bytes());
  switch (a.type.dtype) {
    case DType::kF32:
      Store<float>(a, bytes.data());
      break;
    case DType::kBF16:
      Store<executor::Bf16>(a, bytes.data());
      break;
    case DType::kI64:
      Store<int64_t>(a, bytes.data());
      break;
    case DType::kI32:
      Store<int32_t>(a, bytes.data());
      break;
    default:
      Store<uint8_t>(a, bytes.data());
  }
  return bytes;
}

Array ToArray(const TensorType& type, const std::byte* bytes) {
  Array a{type, std::vector<double>(type.elements())};
  switch (type.dtype) {
    case DType::kF32:
      Load<float>(bytes, a);
      break;
    case DType::kBF16:
      Load<executor::Bf16>(bytes, a);
      break;
    case DType::kI64:
      Load<int64_t>(bytes, a);
      break;
    case DType::kI32:
      Load<int32_t>(bytes, a);
      break;
    default:
      Load<uint8_t>(bytes, a);
  }
  return a;
}

std::vector<const Array*> CaseGraph::NodeInputs() const {
  std::vector<const Array*> arrays;
  size_t next = 0;
  for (models::ValueId id : the_node().inputs) {
    arrays.push_back(id == models::kNoValue ? nullptr : &inputs[next++]);
  }
  return arrays;
}

absl::StatusOr<CaseGraph> MakeCaseGraph(const OperatorCase& c, uint64_t seed) {
  CaseGraph made;
  std::mt19937_64 random(seed);
  std::vector<models::ValueId> inputs;
  for (const std::optional<InputSpec>& spec : c.inputs) {
    if (!spec.has_value()) {
      inputs.push_back(models::kNoValue);
      continue;
    }
    inputs.push_back(made.graph.AddInput("x", spec->type));
    made.inputs.push_back(RandomArray(*spec, random));
  }
  if (c.op == "MaxPoolGrad") MakeArgmax(c, random, made.inputs[1]);
  LOADLINE_ASSIGN_OR_RETURN(
      made.graph.outputs,
      made.graph.AddNode(c.op, "node", inputs, c.attributes));
  made.node = models::NodeId(0);
  return made;
}

std::vector<CaseGraph> Bf16Forms(const CaseGraph& c) {
  std::vector<CaseGraph> forms;
  for (const F32Values& kept : Bf16Rules(c.the_node().op)) {
    CaseGraph form = c;
    const bool in = ToBf16(c.the_node().inputs, kept.inputs, form.graph);
    const bool out = ToBf16(c.the_node().outputs, kept.outputs, form.graph);
    if (!in && !out) continue;
    for (size_t i = 0; i < form.inputs.size(); ++i) {
      Array& a = form.inputs[i];
      a.type = form.graph.value(form.graph.inputs[i]).type;
      a = ToArray(a.type, ToBytes(a).data());  // rounds to bf16
    }
    forms.push_back(std::move(form));
  }
  return forms;
}

std::vector<std::pair<int, int>> InplacePairs(const CaseGraph& c) {
  const models::Node& node = c.the_node();
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [in, out] : models::FindOperator(node.op)->inplace) {
    if (in < static_cast<int>(node.inputs.size()) &&
        out < static_cast<int>(node.outputs.size()) &&
        node.inputs[in] != models::kNoValue &&
        c.graph.value(node.inputs[in]).type.bytes() ==
            c.graph.value(node.outputs[out]).type.bytes()) {
      pairs.emplace_back(in, out);
    }
  }
  return pairs;
}

void ExpectClose(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(got.values.size(), want.values.size());
  if (models::IsStateBlocks(got.type)) {
    return ExpectCloseBlocks(got, want, tolerance);
  }
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double allowed = tolerance * (1 + std::fabs(want.values[i]));
    // This form of the comparison fails for NaN.
    ASSERT_TRUE(std::fabs(got.values[i] - want.values[i]) <= allowed)
        << "element " << i << ": " << got.values[i] << " instead of "
        << want.values[i];
  }
}

const Backend kCpu = {
    executor::PrepareCpuKernel,
    [](executor::Kernel& kernel, const executor::KernelArgs& args) {
      return kernel.Run(args);
    }};

absl::StatusOr<std::vector<CaseGraph>> WithEachAlgorithm(
    const CaseGraph& c, const Backend& backend) {
  LOADLINE_ASSIGN_OR_RETURN(const auto kernel,
                            backend.prepare(c.graph, c.the_node()));
  std::vector<CaseGraph> cases;
  for (const std::string& algorithm : kernel->algorithms()) {
    CaseGraph one = c;
    one.graph.nodes[models::Index(c.node)].attributes.Set(
        executor::kAlgorithmAttribute, algorithm);
    cases.push_back(std::move(one));
  }
  if (cases.empty()) cases.push_back(c);
  return cases;
}

std::string AlgorithmOf(const CaseGraph& c) {
  return c.the_node().attributes.String(executor::kAlgorithmAttribute, "");
}

executor::StepScalars TestScalars() {
  executor::StepScalars scalars;
  scalars.learning_rate = 0.05f;
  scalars.step = 7;
  scalars.seed = 0x123456789abcdefULL;
  return scalars;
}

absl::StatusOr<RunResult> RunCase(const CaseGraph& c,
                                  const RunOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<executor::Kernel> kernel,
                            options.backend->prepare(c.graph, c.the_node()));
  const std::vector<const Array*> arrays = c.NodeInputs();
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> writable;
  std::vector<std::vector<std::byte>> contents;
  for (const Array* a : arrays) {
    contents.push_back(a == nullptr ? std::vector<std::byte>() : ToBytes(*a));
    buffers.push_back(std::make_unique<GuardedBuffer>(
        static_cast<int64_t>(contents.back().size()), options.shift));
    writable.push_back(buffers.back()->data());
    inputs.push_back(a == nullptr ? nullptr : buffers.back()->data());
  }
  std::vector<std::byte*> outputs;
  for (models::ValueId id : c.the_node().outputs) {
    buffers.push_back(std::make_unique<GuardedBuffer>(
        c.graph.value(id).type.bytes(), options.shift));
    outputs.push_back(buffers.back()->data());
  }
  std::vector<bool> overwritten(inputs.size(), false);
  for (const auto& [in, out] : options.inplace) {
    outputs[out] = writable[in];
    overwritten[in] = true;
  }
  GuardedBuffer workspace(kernel->workspace_bytes());
  const executor::StepScalars scalars = TestScalars();
  const executor::KernelArgs args = {
      inputs, outputs,
      kernel->workspace_bytes() == 0 ? nullptr : workspace.data(), &scalars};
  RunResult result;
  result.workspace_bytes = kernel->workspace_bytes();
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::copy(contents[i].begin(), contents[i].end(), writable[i]);
    }
    absl::Status status;
    result.heap =
        MeasureHeap([&] { status = options.backend->run(*kernel, args); });
    LOADLINE_RETURN_IF_ERROR(status);
  }
  for (const auto& buffer : buffers) result.intact &= buffer->Intact();
  result.intact &= workspace.Intact();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!overwritten[i]) {
      result.inputs_unchanged &= SameBytes(writable[i], contents[i]);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t bytes = c.graph.value(c.the_node().outputs[i]).type.bytes();
    result.outputs.emplace_back(outputs[i], outputs[i] + bytes);
  }
  return result;
}

std::vector<Array> ReferenceOutputs(const CaseGraph& c,
                                    const std::vector<const Array*>& inputs) {
  // References have no bf16: they compute with its numbers as f32.
  const auto plain = [](TensorType type) {
    if (type.dtype == DType::kBF16) type.dtype = DType::kF32;
    return type;
  };
  std::vector<Array> copies(inputs.size());
  std::vector<const Array*> plain_inputs(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    copies[i] = {plain(inputs[i]->type), inputs[i]->values};
    plain_inputs[i] = &copies[i];
  }
  std::vector<Array> outputs;
  for (models::ValueId id : c.the_node().outputs) {
    const TensorType type = plain(c.graph.value(id).type);
    outputs.push_back({type, std::vector<double>(type.elements(), 0.0)});
  }
  const auto it = References().find(c.the_node().op);
  LOADLINE_CHECK(it != References().end());
  const executor::StepScalars scalars = TestScalars();
  it->second(Call{c.the_node().attributes, plain_inputs, outputs, scalars});
  return outputs;
}

absl::StatusOr<std::vector<Array>> RunGraph(const models::Graph& graph,
                                            const std::vector<Array>& given,
                                            const Backend& backend) {
  std::vector<std::vector<std::byte>> memory(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const models::Value& v = graph.values[i];
    memory[i].resize(v.type.bytes(), kStale);
    if (v.initial.has_value()) memory[i] = *v.initial->data;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    memory[models::Index(graph.inputs[i])] = ToBytes(given[i]);
  }
  const executor::StepScalars scalars = TestScalars();
  for (const models::Node& node : graph.nodes) {
    if (models::IsView(node)) {
      const models::TensorType& type = graph.value(node.outputs[0]).type;
      const auto from = memory[models::Index(node.inputs[0])].begin() +
                        models::ViewOffsetBytes(node, type);
      memory[models::Index(node.outputs[0])].assign(from, from + type.bytes());
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<executor::Kernel> kernel,
                              backend.prepare(graph, node));
    std::vector<const std::byte*> inputs;
    for (models::ValueId id : node.inputs) {
      inputs.push_back(
          id == models::kNoValue ? nullptr : memory[models::Index(id)].data());
    }
    std::vector<std::byte*> outputs;
    for (models::ValueId id : node.outputs) {
      outputs.push_back(memory[models::Index(id)].data());
    }
    GuardedBuffer workspace(kernel->workspace_bytes());
    LOADLINE_RETURN_IF_ERROR(
        backend.run(*kernel, {inputs, outputs, workspace.data(), &scalars}));
  }
  std::vector<Array> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    values.push_back(ToArray(graph.values[i].type, memory[i].data()));
  }
  return values;
}

}  // namespace loadline::conformance
