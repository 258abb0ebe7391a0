// Encode, Decode and ReluMaskGrad with the CPU's bits. A thread writes whole
// bytes; a warp encodes a group. Tested in tests/conformance/.
#include <string>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/device/philox.h"
#include "executor/ops/codec_formulas.h"
#include "executor/ops/codec_types.h"
#include "models/ops/codec.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

using models::CodecKind;
using models::CodecSpec;
using models::kGroupElements;
using models::kGroupHeaderBytes;

struct IsTrue {
  __device__ bool operator()(uint8_t x) const { return x != 0; }
};
struct IsPositive {
  template <typename T>
  __device__ bool operator()(T x) const {
    return Widen(x) > 0.0f;
  }
};

// One bit per element: is_set(element). A thread writes a byte.
template <typename T, typename IsSet>
__global__ void PackBitsKernel(const T* x, uint8_t* y, int64_t n) {
  const IsSet is_set;
  const int64_t bytes = (n + 7) / 8;
  for (int64_t byte = GridThread(); byte < bytes; byte += GridThreads()) {
    unsigned bits = 0;
    for (int i = 0; i < 8 && 8 * byte + i < n; ++i) {
      bits |= static_cast<unsigned>(is_set(x[8 * byte + i])) << i;
    }
    y[byte] = static_cast<uint8_t>(bits);
  }
}

template <typename T, typename IsSet>
PreparedKernel PackBits(int64_t n) {
  return MakeKernel([n](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(PackBitsKernel<T, IsSet>, GridFor((n + 7) / 8), kBlock,
                        0, launch.stream, In<T>(args, 0), Out<uint8_t>(args, 0),
                        n);
  });
}

__device__ bool BitOf(const uint8_t* bits, int64_t element) {
  return (bits[element / 8] >> (element % 8) & 1u) != 0;
}

__global__ void UnpackBitsKernel(const uint8_t* bits, uint8_t* y, int64_t n) {
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    y[e] = BitOf(bits, e) ? 1 : 0;
  }
}

template <typename T>
__global__ void ReluMaskGradKernel(const T* dy, const uint8_t* bits, T* dx,
                                   int64_t n) {
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    dx[e] = BitOf(bits, e) ? dy[e] : Narrow<T>(0.0f);
  }
}

template <typename From, typename To>
struct CastOf {
  __device__ To Narrowed(From x) const { return static_cast<To>(x); }
  __device__ From Widened(To y) const { return static_cast<From>(y); }
};
struct UpperHalfOf {
  __device__ uint16_t Narrowed(uint32_t x) const {
    return static_cast<uint16_t>(x >> 16);
  }
  __device__ uint32_t Widened(uint16_t y) const { return uint32_t{y} << 16; }
};

template <typename From, typename To, typename Conversion>
__global__ void NarrowKernel(const From* x, To* y, int64_t n,
                             DataErrorSink errors) {
  const Conversion conversion;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    const To narrow = conversion.Narrowed(x[e]);
    if (conversion.Widened(narrow) != x[e]) ReportDataError(errors, e);
    y[e] = narrow;
  }
}

template <typename From, typename To, typename Conversion>
__global__ void WidenKernel(const To* x, From* y, int64_t n) {
  const Conversion conversion;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    y[e] = conversion.Widened(x[e]);
  }
}

template <typename From, typename To, typename Conversion>
PreparedKernel MakeNarrow(const Prepare& p) {
  const int64_t n = p.input(0).elements();
  return MakeKernel(
      [n](const KernelArgs& args, const LaunchContext& launch) {
        if (n == 0) return absl::OkStatus();
        return LaunchKernel(NarrowKernel<From, To, Conversion>, GridFor(n),
                            kBlock, 0, launch.stream, In<From>(args, 0),
                            Out<To>(args, 0), n, launch.sink());
      },
      0,
      [value = p.node().name, codec = p.attributes().String("codec", "")](
          int64_t position) { return DoesNotFit(value, codec, position); });
}

template <typename From, typename To, typename Conversion>
PreparedKernel MakeWiden(int64_t n) {
  return MakeKernel([n](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(WidenKernel<From, To, Conversion>, GridFor(n), kBlock,
                        0, launch.stream, In<To>(args, 0), Out<From>(args, 0),
                        n);
  });
}

struct GroupCodec {
  int bits;
  bool stochastic;
  uint32_t salt;
  int64_t elements;
  int64_t headers_bytes;

  __device__ float most_level() const {
    return static_cast<float>((1 << bits) - 1);
  }
  __device__ int64_t groups() const {
    return (elements + kGroupElements - 1) / kGroupElements;
  }
};

struct Range {
  float least;
  float most;
  int finite;
};
struct Widest {
  __device__ Range operator()(const Range& a, const Range& b) const {
    return {fminf(a.least, b.least), fmaxf(a.most, b.most),
            a.finite & b.finite};
  }
};

// Elements of a group that a thread encodes: two counters' random words.
constexpr int kPerThread = static_cast<int>(kGroupElements) / kWarp;

__device__ void DrawUniform(const GroupCodec& codec, int64_t first,
                            const StepScalars* scalars, float* uniform) {
  const uint64_t seed = scalars->seed;
  for (int c = 0; c < kPerThread / 4; ++c) {
    const uint64_t counter = static_cast<uint64_t>(first) / 4 + c;
    PhiloxCounters<1> words;
    words.words[0][0] = static_cast<uint32_t>(counter);
    words.words[1][0] = static_cast<uint32_t>(counter >> 32);
    words.words[2][0] = static_cast<uint32_t>(scalars->step);
    words.words[3][0] = codec.salt;
    PhiloxRounds(words, static_cast<uint32_t>(seed),
                 static_cast<uint32_t>(seed >> 32));
    for (int w = 0; w < 4; ++w) {
      uniform[4 * c + w] = UniformOf(words.words[w][0]);
    }
  }
}

template <typename T>
__global__ void EncodeGroupsKernel(GroupCodec codec, const StepScalars* scalars,
                                   const T* x, uint8_t* encoded) {
  const float top = codec.most_level();
  for (int64_t group = TeamIndex<kWarp>(); group < codec.groups();
       group += TeamsOfGrid<kWarp>()) {
    const int64_t first =
        group * kGroupElements + TeamThread<kWarp>() * kPerThread;
    float values[kPerThread];
    Range range = {INFINITY, -INFINITY, 1};
    for (int i = 0; i < kPerThread && first + i < codec.elements; ++i) {
      values[i] = Widen(x[first + i]);
      range = Widest()(
          range, {values[i], values[i], fabsf(values[i]) < INFINITY ? 1 : 0});
    }
    range = TeamReduce<kWarp>(range, Widest());
    const GroupHeader header =
        MakeGroupHeader(range.least, range.most, range.finite != 0, top);
    if (TeamThread<kWarp>() == 0) {
      reinterpret_cast<GroupHeader*>(encoded)[group] = header;
    }
    float uniform[kPerThread];
    if (codec.stochastic) {
      DrawUniform(codec, first, scalars, uniform);
    } else {
      for (int i = 0; i < kPerThread; ++i) uniform[i] = 0.5f;
    }
    const float inverse = InverseStep(header);
    // A thread has kPerThread * bits bits: whole bytes.
    const int per_byte = 8 / codec.bits;
    uint8_t* packed = encoded + codec.headers_bytes + first / per_byte;
    for (int byte = 0; byte < codec.bits; ++byte) {
      if (first + byte * per_byte >= codec.elements) break;
      unsigned bits = 0;
      for (int k = 0; k < per_byte; ++k) {
        const int i = byte * per_byte + k;
        if (first + i >= codec.elements) break;
        bits |= LevelOf(values[i], header.least, inverse, uniform[i], top)
                << (k * codec.bits);
      }
      packed[byte] = static_cast<uint8_t>(bits);
    }
  }
}

template <typename T>
__global__ void DecodeGroupsKernel(GroupCodec codec, const uint8_t* encoded,
                                   T* y) {
  const GroupHeader* headers = reinterpret_cast<const GroupHeader*>(encoded);
  const uint8_t* packed = encoded + codec.headers_bytes;
  const int per_byte = 8 / codec.bits;
  const unsigned mask = (1u << codec.bits) - 1;
  for (int64_t e = GridThread(); e < codec.elements; e += GridThreads()) {
    const unsigned level =
        packed[e / per_byte] >> (e % per_byte * codec.bits) & mask;
    y[e] = Narrow<T>(OfLevel(level, headers[e / kGroupElements]));
  }
}

GroupCodec GroupsOf(const Prepare& p, const CodecSpec& spec, int64_t elements) {
  return {spec.bits, spec.stochastic,
          static_cast<uint32_t>(p.attributes().Int("salt", 0)), elements,
          models::GroupHeadersBytes(spec, elements)};
}

PreparedKernel EncodeGroups(const Prepare& p, const GroupCodec& codec) {
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [codec](const KernelArgs& args, const LaunchContext& launch) {
          if (codec.elements == 0) return absl::OkStatus();
          return LaunchKernel(EncodeGroupsKernel<T>,
                              GridFor(codec.elements / kPerThread + kWarp),
                              kBlock, 0, launch.stream, codec, args.scalars,
                              In<T>(args, 0), Out<uint8_t>(args, 0));
        });
  });
}

PreparedKernel DecodeGroups(const Prepare& p, const GroupCodec& codec) {
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [codec](const KernelArgs& args, const LaunchContext& launch) {
          if (codec.elements == 0) return absl::OkStatus();
          return LaunchKernel(DecodeGroupsKernel<T>, GridFor(codec.elements),
                              kBlock, 0, launch.stream, codec,
                              In<uint8_t>(args, 0), Out<T>(args, 0));
        });
  });
}

PreparedKernel Encode(const Prepare& p) {
  const TensorType& type = p.input(0);
  const auto checked =
      models::CheckedCodec(p.attributes().String("codec", ""), type);
  if (!checked.ok()) return p.Unsupported(type.dtype);
  const CodecSpec& codec = *checked;
  const int64_t n = type.elements();
  switch (codec.kind) {
    case CodecKind::kBits:
      return PackBits<uint8_t, IsTrue>(n);
    case CodecKind::kPositive:
      return WithFloat(p, type.dtype, [&](auto of) {
        return PackBits<decltype(of), IsPositive>(n);
      });
    case CodecKind::kInteger:
      return WithIndex(p, type.dtype, [&](auto of) {
        using From = decltype(of);
        return WithStored(codec, [&](auto stored) {
          using To = decltype(stored);
          return MakeNarrow<From, To, CastOf<From, To>>(p);
        });
      });
    case CodecKind::kBf16:
      return MakeNarrow<uint32_t, uint16_t, UpperHalfOf>(p);
    case CodecKind::kGroup:
      return EncodeGroups(p, GroupsOf(p, codec, n));
  }
  return p.NoKernel();
}

PreparedKernel Decode(const Prepare& p) {
  const TensorType& type = p.output(0);
  const auto checked =
      models::CheckedCodec(p.attributes().String("codec", ""), type);
  if (!checked.ok()) return p.Unsupported(type.dtype);
  const CodecSpec& codec = *checked;
  const int64_t n = type.elements();
  switch (codec.kind) {
    case CodecKind::kBits:
      return MakeKernel(
          [n](const KernelArgs& args, const LaunchContext& launch) {
            if (n == 0) return absl::OkStatus();
            return LaunchKernel(UnpackBitsKernel, GridFor(n), kBlock, 0,
                                launch.stream, In<uint8_t>(args, 0),
                                Out<uint8_t>(args, 0), n);
          });
    case CodecKind::kPositive:
      return p.NoKernel();
    case CodecKind::kInteger:
      return WithIndex(p, type.dtype, [&](auto of) {
        using From = decltype(of);
        return WithStored(codec, [&](auto stored) {
          using To = decltype(stored);
          return MakeWiden<From, To, CastOf<From, To>>(n);
        });
      });
    case CodecKind::kBf16:
      return MakeWiden<uint32_t, uint16_t, UpperHalfOf>(n);
    case CodecKind::kGroup:
      return DecodeGroups(p, GroupsOf(p, codec, n));
  }
  return p.NoKernel();
}

PreparedKernel ReluMaskGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.output(0).dtype, {0}, {}));
  const int64_t n = p.output(0).elements();
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([n](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      return LaunchKernel(ReluMaskGradKernel<T>, GridFor(n), kBlock, 0,
                          launch.stream, In<T>(args, 0), In<uint8_t>(args, 1),
                          Out<T>(args, 0), n);
    });
  });
}

constexpr KernelEntry kKernels[] = {
    {"Encode", Encode}, {"Decode", Decode}, {"ReluMaskGrad", ReluMaskGrad}};

}  // namespace

absl::Span<const KernelEntry> CodecKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
