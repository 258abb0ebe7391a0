// Optimizer updates in place, many tensors per launch: a table of tensors is
// passed as the launch's parameters, which are in constant memory. Blocks take
// chunks of equal size from any tensor, so many small tensors cost as much as
// one large one, and an element's result does not depend on its chunk. Learning
// rate and step are read on the device, so that a captured step can be
// replayed; factors that depend on them alone are computed in double, once per
// block. Gradients may be bf16, and may come with a factor, as clipping gives
// it. States may be in 8 bits. Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/group_kernel.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/state_blocks.h"
#include "executor/cuda/types.h"
#include "executor/ops/optimizer_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kWidth = 4;
constexpr int64_t kChunk = kBlock * kWidth;  // elements
constexpr int kMostTensors = 48;
// Limit on launch parameters that every GPU supports.
constexpr size_t kMostParameterBytes = 4096;

template <typename Tensors>
struct Table {
  Tensors tensors[kMostTensors];
  int64_t elements[kMostTensors];
  int64_t first_chunk[kMostTensors + 1];
  int count = 0;

  __device__ int64_t chunks() const { return first_chunk[count]; }
};

// Calls body(tensors, begin, end) for each chunk of this block: elements
// [begin, end) of one tensor.
template <int64_t kElements = kChunk, typename Tensors, typename Body>
__device__ inline void ForChunks(const Table<Tensors>& table,
                                 const Body& body) {
  int at = 0;
  for (int64_t chunk = blockIdx.x; chunk < table.chunks(); chunk += gridDim.x) {
    while (chunk >= table.first_chunk[at + 1]) ++at;
    const int64_t begin = (chunk - table.first_chunk[at]) * kElements;
    const int64_t end = begin + kElements;
    body(table.tensors[at], begin,
         end < table.elements[at] ? end : table.elements[at]);
  }
}

// A gradient and its factor, which may be null.
struct Gradient {
  const void* g;
  const float* factor;

  __device__ float Factor() const { return factor == nullptr ? 1 : *factor; }
};
Gradient GradientOf(const KernelArgs& args, size_t factor) {
  const bool has = args.inputs.size() > factor;
  return {args.inputs[1], has ? In(args, static_cast<int>(factor)) : nullptr};
}

// The node's own learning rate and count, inputs i and i + 1; null: the step's.
struct OwnProgress {
  const float* learning_rate;
  const float* count;

  __device__ Progress Of(const StepScalars& scalars) const {
    return ProgressOf(scalars, learning_rate, count);
  }
};
OwnProgress OwnProgressOf(const KernelArgs& args, size_t i) {
  if (args.inputs.size() <= i + 1) return {nullptr, nullptr};
  const int at = static_cast<int>(i);
  return {In(args, at), In(args, at + 1)};
}

struct SgdTensors {
  const float* p;
  Gradient gradient;
  const float* buffer;  // null: no momentum
  float *new_p, *new_buffer;
};

template <typename G>
__global__ void SgdKernel(SgdSettings s, const StepScalars* scalars,
                          OwnProgress own,
                          const __grid_constant__ Table<SgdTensors> table) {
  const SgdFactors f = MakeFactors(s, own.Of(*scalars));
  ForChunks(table, [&](const SgdTensors& t, int64_t begin, int64_t end) {
    const G* g = static_cast<const G*>(t.gradient.g);
    const float factor = t.gradient.Factor();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const float gradient = Widen(g[i]) * factor;
      if (t.buffer == nullptr) {
        t.new_p[i] = SgdPlain(f, t.p[i], gradient);
      } else {
        const Updated updated = UpdateOne(f, t.p[i], gradient, t.buffer[i]);
        t.new_p[i] = updated.p;
        t.new_buffer[i] = updated.state;
      }
    }
  });
}

struct AdamTensors {
  const float* p;
  Gradient gradient;
  const float *m, *v;
  float *new_p, *new_m, *new_v;
};

template <typename G>
__global__ void AdamKernel(AdamSettings s, const StepScalars* scalars,
                           OwnProgress own,
                           const __grid_constant__ Table<AdamTensors> table) {
  __shared__ AdamFactors of_step;
  if (threadIdx.x == 0) of_step = MakeFactors(s, own.Of(*scalars));
  __syncthreads();
  const AdamFactors f = of_step;
  ForChunks(table, [&](const AdamTensors& t, int64_t begin, int64_t end) {
    const G* g = static_cast<const G*>(t.gradient.g);
    const float factor = t.gradient.Factor();
    const int64_t at = begin + int64_t{threadIdx.x} * kWidth;
    if (at + kWidth <= end) {
      Pack<float, kWidth> p = LoadPack<kWidth>(t.p + at);
      Pack<float, kWidth> m = LoadPack<kWidth>(t.m + at);
      Pack<float, kWidth> v = LoadPack<kWidth>(t.v + at);
      const Pack<G, kWidth> gradient = LoadPack<kWidth>(g + at);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const AdamMoved moved = AdamStep(
            f, p.at[k], Widen(gradient.at[k]) * factor, m.at[k], v.at[k]);
        p.at[k] = moved.p;
        m.at[k] = moved.m;
        v.at[k] = moved.v;
      }
      StorePack(t.new_p + at, p);
      StorePack(t.new_m + at, m);
      StorePack(t.new_v + at, v);
      return;
    }
    for (int64_t i = at; i < end; ++i) {
      const AdamMoved moved =
          AdamStep(f, t.p[i], Widen(g[i]) * factor, t.m[i], t.v[i]);
      t.new_p[i] = moved.p;
      t.new_m[i] = moved.m;
      t.new_v[i] = moved.v;
    }
  });
}

// Of an optimizer with one number of state for each element.
struct StateTensors {
  const float* p;
  Gradient gradient;
  const float* state;
  float *new_p, *new_state;
};

template <typename Settings, typename G>
__global__ void StateKernel(Settings s, const StepScalars* scalars,
                            OwnProgress own,
                            const __grid_constant__ Table<StateTensors> table) {
  using Factors = decltype(MakeFactors(s, Progress()));
  __shared__ Factors of_step;
  if (threadIdx.x == 0) of_step = MakeFactors(s, own.Of(*scalars));
  __syncthreads();
  const Factors f = of_step;
  ForChunks(table, [&](const StateTensors& t, int64_t begin, int64_t end) {
    const G* g = static_cast<const G*>(t.gradient.g);
    const float factor = t.gradient.Factor();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const Updated updated =
          UpdateOne(f, t.p[i], Widen(g[i]) * factor, t.state[i]);
      t.new_p[i] = updated.p;
      t.new_state[i] = updated.state;
    }
  });
}

// Of an optimizer with kStates states in 8 bits.
template <int kStates>
struct BlockTensors {
  const float* p;
  Gradient gradient;
  const uint8_t* states[kStates];
  float* new_p;
  uint8_t* new_states[kStates];
};

__device__ inline void UpdateElement(const AdamFactors& f, float g, float& p,
                                     float (&states)[2]) {
  const AdamMoved moved = AdamStep(f, p, g, states[0], states[1]);
  p = moved.p;
  states[0] = moved.m;
  states[1] = moved.v;
}
template <typename Factors>
__device__ inline void UpdateElement(const Factors& f, float g, float& p,
                                     float (&states)[1]) {
  const Updated updated = UpdateOne(f, p, g, states[0]);
  p = updated.p;
  states[0] = updated.state;
}

constexpr int64_t kBlocksChunk = kBlock / kWarp * models::kStateBlockElements;

// A warp takes one block of the states at a time, and keeps it in registers.
template <typename Settings, int kStates, typename G>
__global__ void BlocksKernel(
    Settings s, const StepScalars* scalars, OwnProgress own,
    const __grid_constant__ Table<BlockTensors<kStates>> table) {
  using Factors = decltype(MakeFactors(s, Progress()));
  __shared__ Factors of_step;
  __shared__ StateNumbers numbers;
  if (threadIdx.x == 0) of_step = MakeFactors(s, own.Of(*scalars));
  MakeStateNumbers(numbers);
  __syncthreads();
  const Factors f = of_step;
  ForChunks<kBlocksChunk>(
      table, [&](const BlockTensors<kStates>& t, int64_t begin, int64_t end) {
        const int64_t first =
            begin + threadIdx.x / kWarp * models::kStateBlockElements;
        if (first >= end) return;
        const G* g = static_cast<const G*>(t.gradient.g);
        const float factor = t.gradient.Factor();
        StateBlock states[kStates];
#pragma unroll
        for (int i = 0; i < kStates; ++i) {
          states[i] = ReadStateBlock(numbers, i, t.states[i], first);
        }
#pragma unroll
        for (int k = 0; k < kStatePerThread; ++k) {
          const int64_t at = first + StatePosition(k);
          if (at >= end) {
            for (StateBlock& state : states) state.numbers[k] = 0;
            continue;
          }
          float p = t.p[at];
          float of_element[kStates];
          for (int i = 0; i < kStates; ++i)
            of_element[i] = states[i].numbers[k];
          UpdateElement(f, Widen(g[at]) * factor, p, of_element);
          for (int i = 0; i < kStates; ++i)
            states[i].numbers[k] = of_element[i];
          t.new_p[at] = p;
        }
#pragma unroll
        for (int i = 0; i < kStates; ++i) {
          WriteStateBlock(states[i], i, first, t.new_states[i]);
        }
      });
}

// An optimizer as UpdateKernel needs it: Settings are common to all members,
// Of(args) makes a member's Tensors, Kernel<G>() updates them, in chunks of
// kElements. kFactor: the position of the gradient's factor, before those of
// its own progress.
struct SgdUpdate {
  using Settings = SgdSettings;
  using Tensors = SgdTensors;
  static constexpr int kFactor = 3;
  static constexpr int64_t kElements = kChunk;
  template <typename G>
  static auto Kernel() {
    return SgdKernel<G>;
  }

  static Tensors Of(const KernelArgs& args) {
    const bool has_buffer = args.outputs.size() == 2;
    return {In(args, 0), GradientOf(args, kFactor),
            has_buffer ? In(args, 2) : nullptr, Out(args, 0),
            has_buffer ? Out(args, 1) : nullptr};
  }
};

struct AdamUpdate {
  using Settings = AdamSettings;
  using Tensors = AdamTensors;
  static constexpr int kFactor = 4;
  static constexpr int64_t kElements = kChunk;
  template <typename G>
  static auto Kernel() {
    return AdamKernel<G>;
  }

  static Tensors Of(const KernelArgs& args) {
    return {In(args, 0),  GradientOf(args, kFactor),
            In(args, 2),  In(args, 3),
            Out(args, 0), Out(args, 1),
            Out(args, 2)};
  }
};

template <typename S>
struct StateUpdate {
  using Settings = S;
  using Tensors = StateTensors;
  static constexpr int kFactor = 3;
  static constexpr int64_t kElements = kChunk;
  template <typename G>
  static auto Kernel() {
    return StateKernel<S, G>;
  }

  static Tensors Of(const KernelArgs& args) {
    return {In(args, 0), GradientOf(args, kFactor), In(args, 2), Out(args, 0),
            Out(args, 1)};
  }
};

template <typename S, int kStates>
struct BlocksUpdate {
  using Settings = S;
  using Tensors = BlockTensors<kStates>;
  static constexpr int kFactor = 2 + kStates;
  static constexpr int64_t kElements = kBlocksChunk;
  template <typename G>
  static auto Kernel() {
    return BlocksKernel<S, kStates, G>;
  }

  static Tensors Of(const KernelArgs& args) {
    Tensors tensors = {.p = In(args, 0),
                       .gradient = GradientOf(args, kFactor),
                       .new_p = Out(args, 0)};
    for (int i = 0; i < kStates; ++i) {
      tensors.states[i] = In<uint8_t>(args, 2 + i);
      tensors.new_states[i] = Out<uint8_t>(args, 1 + i);
    }
    return tensors;
  }
};

absl::Status CopyElements(const float* from, float* to, int64_t elements,
                          const LaunchContext& context) {
  if (elements == 0) return absl::OkStatus();
  return CudaStatus(
      cudaMemcpyAsync(to, from, static_cast<size_t>(elements) * sizeof(float),
                      cudaMemcpyDeviceToDevice, context.stream),
      "copying what an update leaves as it is");
}

// The elements that the node does not update; none to copy in place.
absl::Status KeepOthers(const KernelArgs& args, const UpdatedElements& at,
                        const LaunchContext& context) {
  const float* from = In(args, 0);
  float* to = Out(args, 0);
  if (from == to) return absl::OkStatus();
  const int64_t end = at.start + at.count;
  LOADLINE_RETURN_IF_ERROR(CopyElements(from, to, at.start, context));
  return CopyElements(from + end, to + end, at.after(), context);
}

// `G`: the gradient's type.
template <typename Update, typename G>
class UpdateKernel final : public GroupKernel {
 public:
  using Settings = typename Update::Settings;

  // `own`: the node has its own learning rate, so no other joins.
  UpdateKernel(const Settings& settings, const UpdatedElements& at, bool own)
      : settings_(settings), at_(at), own_(own) {}

  bool Joins(const GroupKernel& other) const override {
    const auto* same = dynamic_cast<const UpdateKernel*>(&other);
    return same != nullptr && !own_ && !same->own_ &&
           settings_ == same->settings_;
  }
  int64_t most_members() const override { return kMostTensors; }

  absl::Status EnqueueGroup(absl::Span<const Member> members,
                            const LaunchContext& context) override {
    using Members = Table<typename Update::Tensors>;
    static_assert(sizeof(Settings) + sizeof(StepScalars*) + sizeof(Members) +
                      sizeof(OwnProgress) + sizeof(double) <=
                  kMostParameterBytes);
    Members table = {};
    int64_t chunks = 0;
    for (const Member& member : members) {
      const UpdatedElements at =
          static_cast<const UpdateKernel*>(member.kernel)->at_;
      LOADLINE_RETURN_IF_ERROR(KeepOthers(member.args, at, context));
      typename Update::Tensors tensors = Update::Of(member.args);
      tensors.p += at.start;
      tensors.new_p += at.start;
      tensors.gradient.g = static_cast<const G*>(tensors.gradient.g) + at.start;
      table.tensors[table.count] = tensors;
      table.elements[table.count] = at.count;
      table.first_chunk[table.count++] = chunks;
      chunks += (at.count + Update::kElements - 1) / Update::kElements;
    }
    table.first_chunk[table.count] = chunks;
    if (chunks == 0) return absl::OkStatus();
    return LaunchKernel(
        Update::template Kernel<G>(), GridFor(chunks, 1), kBlock, 0,
        context.stream, settings_, members[0].args.scalars,
        OwnProgressOf(members[0].args, Update::kFactor + 1), table);
  }

 private:
  const Settings settings_;
  const UpdatedElements at_;
  const bool own_;
};

template <typename Update>
PreparedKernel PrepareUpdate(const Prepare& p,
                             const typename Update::Settings& settings) {
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    return std::make_unique<UpdateKernel<Update, decltype(type)>>(
        settings, UpdatedElementsOf(p), p.has_input(Update::kFactor + 1));
  });
}

// What is not of the gradient's type is f32, but for states in blocks.
template <int kStates>
absl::Status CheckTypes(const Prepare& p) {
  for (int i = 0; i < p.inputs(); ++i) {
    const bool state = i >= 2 && i < 2 + kStates;
    if (i == 1 || (state && HasStateBlocks(p))) continue;
    LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {i}, {}));
  }
  for (int i = 0; i < p.outputs(); ++i) {
    if (i > 0 && HasStateBlocks(p)) break;
    LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {}, {i}));
  }
  return absl::OkStatus();
}

// `Update`: with states in f32.
template <typename Update, int kStates>
PreparedKernel PrepareWithStates(const Prepare& p,
                                 const typename Update::Settings& settings) {
  LOADLINE_RETURN_IF_ERROR(CheckTypes<kStates>(p));
  using Blocks = BlocksUpdate<typename Update::Settings, kStates>;
  return HasStateBlocks(p) ? PrepareUpdate<Blocks>(p, settings)
                           : PrepareUpdate<Update>(p, settings);
}

PreparedKernel Sgd(const Prepare& p) {
  if (p.has_input(2) != (p.outputs() == 2)) {
    return p.Invalid("a momentum buffer goes in and out, or neither");
  }
  return PrepareWithStates<SgdUpdate, 1>(p, MakeSgdSettings(p));
}

PreparedKernel Adam(const Prepare& p) {
  return PrepareWithStates<AdamUpdate, 2>(p, MakeAdamSettings(p));
}

PreparedKernel Adagrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(
      RequireType(p, DType::kF32, {0, 2, 3, 4, 5}, {0, 1}));
  return PrepareUpdate<StateUpdate<AdagradSettings>>(p, MakeAdagradSettings(p));
}

PreparedKernel Lion(const Prepare& p) {
  return PrepareWithStates<StateUpdate<LionSettings>, 1>(p,
                                                         MakeLionSettings(p));
}

__global__ void AverageKernel(float rest, const StepScalars* scalars,
                              const float* average, const float* p, int64_t n,
                              float* out) {
  const int64_t step = scalars->step;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    out[i] = Average(rest, step, average[i], p[i]);
  }
}

PreparedKernel AverageUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 1}, {0}));
  const int64_t n = p.output(0).elements();
  const auto rest =
      static_cast<float>(1 - p.attributes().Float("decay", 0.999));
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(AverageKernel, GridFor(n), kBlock, 0, launch.stream,
                        rest, args.scalars, In(args, 0), In(args, 1), n,
                        Out(args, 0));
  });
}

constexpr KernelEntry kKernels[] = {
    {"Sgd", Sgd},         {"AdamW", Adam}, {"Adam", Adam},
    {"Adagrad", Adagrad}, {"Lion", Lion},  {"AverageUpdate", AverageUpdate}};

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
