// Encode, Decode and ReluMaskGrad. Blocks of a loop begin at whole bytes and
// whole groups, so threads never write the same byte. Tested in
// tests/conformance/.
#include "models/ops/codec.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "executor/cpu/dropout_mask.h"
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/bf16.h"
#include "executor/ops/codec_formulas.h"
#include "executor/ops/codec_types.h"
#include "executor/ops/dispatch.h"

namespace loadline::executor::cpu {
namespace {

using models::CodecKind;
using models::CodecSpec;
using models::kGroupElements;
using models::kGroupHeaderBytes;

constexpr int64_t kByteBlock = kElementBlock / 8;

// The lowest position that a codec could not hold, of any thread.
class FirstWrong {
 public:
  void Add(int64_t position) {
    int64_t old = first_.load(std::memory_order_relaxed);
    while (position < old && !first_.compare_exchange_weak(
                                 old, position, std::memory_order_relaxed)) {
    }
  }
  absl::Status Result(const std::string& value,
                      const std::string& codec) const {
    const int64_t first = first_.load();
    if (first == kNone) return absl::OkStatus();
    return DoesNotFit(value, codec, first);
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> first_ = kNone;
};

// One bit per element: is_set(element).
template <typename T, typename IsSet>
PreparedKernel PackBits(int64_t n, const IsSet& is_set) {
  return MakeKernel([n, is_set](const KernelArgs& args) {
    const T* x = In<T>(args, 0);
    uint8_t* y = Out<uint8_t>(args, 0);
    const auto pack = [=](int64_t byte, int64_t count) {
      unsigned bits = 0;
      for (int64_t i = 0; i < count; ++i) {
        bits |= static_cast<unsigned>(is_set(x[8 * byte + i])) << i;
      }
      y[byte] = static_cast<uint8_t>(bits);
    };
    ParallelFor(n / 8, kByteBlock, [=](int64_t begin, int64_t end) {
      for (int64_t byte = begin; byte < end; ++byte) pack(byte, 8);
    });
    if (n % 8 != 0) pack(n / 8, n % 8);
  });
}

// Calls write(element, bit) for each of n bits at `bits`.
template <typename Write>
void ForBits(int64_t n, const uint8_t* bits, const Write& write) {
  const auto unpack = [=](int64_t byte, int64_t count) {
    const unsigned of_byte = bits[byte];
    for (int64_t i = 0; i < count; ++i) {
      write(8 * byte + i, (of_byte >> i & 1u) != 0);
    }
  };
  ParallelFor(n / 8, kByteBlock, [=](int64_t begin, int64_t end) {
    for (int64_t byte = begin; byte < end; ++byte) unpack(byte, 8);
  });
  if (n % 8 != 0) unpack(n / 8, n % 8);
}

// y[i] = narrow(x[i]); an element that does not come back is an error.
template <typename From, typename To, typename Narrow, typename Widen>
PreparedKernel NarrowChecked(const Prepare& p, Narrow narrow, Widen widen) {
  const int64_t n = p.input(0).elements();
  return MakeKernel(
      [n, narrow, widen, value = p.node().name,
       codec = p.attributes().String("codec", "")](const KernelArgs& args) {
        const From* x = In<From>(args, 0);
        To* y = Out<To>(args, 0);
        FirstWrong wrong;
        ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
          // Integers, also of floats: it vectorizes.
          From difference = 0;
          for (int64_t i = begin; i < end; ++i) {
            y[i] = narrow(x[i]);
            difference |= widen(y[i]) ^ x[i];
          }
          for (int64_t i = begin; difference != 0; ++i) {
            if (widen(narrow(x[i])) == x[i]) continue;
            wrong.Add(i);
            break;
          }
        });
        return wrong.Result(value, codec);
      });
}

template <typename From, typename To, typename Widen>
PreparedKernel WidenAll(int64_t n, Widen widen) {
  return MakeKernel([n, widen](const KernelArgs& args) {
    const From* x = In<From>(args, 0);
    To* y = Out<To>(args, 0);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = widen(x[i]);
    });
  });
}

uint16_t UpperHalf(uint32_t word) { return static_cast<uint16_t>(word >> 16); }
uint32_t FromUpperHalf(uint16_t half) { return uint32_t{half} << 16; }

struct GroupCodec {
  CodecSpec spec;
  int64_t elements;
  DropoutMask random;  // any step

  float most_level() const { return static_cast<float>((1 << spec.bits) - 1); }
  int64_t groups() const {
    return (elements + kGroupElements - 1) / kGroupElements;
  }
  int64_t count(int64_t group) const {
    return std::min(kGroupElements, elements - group * kGroupElements);
  }
  // Offsets in the encoded tensor.
  int64_t header(int64_t group) const { return group * kGroupHeaderBytes; }
  int64_t packed(int64_t group) const {
    return models::GroupHeadersBytes(spec, elements) +
           group * kGroupElements * spec.bits / 8;
  }
};

void DrawUniform(const DropoutMask& random, int64_t begin, float* uniform) {
  for (int64_t at = 0; at < kGroupElements; at += DropoutMask::kBatchElements) {
    const PhiloxBatch batch = random.Words(begin + at);
    for (int i = 0; i < kPhiloxBatch; ++i) {
      for (int w = 0; w < 4; ++w) {
        uniform[at + 4 * i + w] = UniformOf(batch.words[w][i]);
      }
    }
  }
}

// Of kGroupElements values, in lanes so that it vectorizes.
GroupHeader HeaderOf(const float* values, float most_level) {
  constexpr int kWidth = 16;
  float least[kWidth], most[kWidth];
  int odd[kWidth] = {};
  std::copy(values, values + kWidth, least);
  std::copy(values, values + kWidth, most);
  for (int64_t i = 0; i < kGroupElements; i += kWidth) {
#pragma omp simd
    for (int l = 0; l < kWidth; ++l) {
      const float value = values[i + l];
      least[l] = value < least[l] ? value : least[l];
      most[l] = value > most[l] ? value : most[l];
      // NaN for infinities and NaN, which equals nothing.
      odd[l] |= value - value != 0.0f;
    }
  }
  bool finite = odd[0] == 0;
  for (int l = 1; l < kWidth; ++l) {
    least[0] = std::min(least[0], least[l]);
    most[0] = std::max(most[0], most[l]);
    finite = finite && odd[l] == 0;
  }
  return MakeGroupHeader(least[0], most[0], finite, most_level);
}

// Elements of a byte are those of the lowest bits first.
template <int kBits>
void PackLevels(const uint8_t* levels, int64_t n, uint8_t* packed) {
  constexpr int kPerByte = 8 / kBits;
  for (int64_t byte = 0; byte < (n + kPerByte - 1) / kPerByte; ++byte) {
    unsigned bits = 0;
    for (int k = 0; k < kPerByte; ++k) {
      bits |= unsigned{levels[byte * kPerByte + k]} << (k * kBits);
    }
    packed[byte] = static_cast<uint8_t>(bits);
  }
}

template <int kBits, typename T>
void EncodeGroup(const GroupCodec& codec, int64_t group,
                 const DropoutMask& random, const T* x, uint8_t* encoded) {
  const int64_t n = codec.count(group);
  const T* from = x + group * kGroupElements;
  float values[kGroupElements];
  for (int64_t i = 0; i < n; ++i) values[i] = from[i];
  std::fill(values + n, values + kGroupElements, values[0]);
  const float top = codec.most_level();
  const GroupHeader header = HeaderOf(values, top);
  std::memcpy(encoded + codec.header(group), &header, sizeof(header));

  float uniform[kGroupElements];
  if (codec.spec.stochastic) {
    DrawUniform(random, group * kGroupElements, uniform);
  } else {
    std::fill(uniform, uniform + kGroupElements, 0.5f);
  }
  const float inverse = InverseStep(header);
  uint8_t levels[kGroupElements] = {};
  if (inverse > 0) {
#pragma omp simd
    for (int64_t i = 0; i < kGroupElements; ++i) {
      levels[i] = static_cast<uint8_t>(
          LevelOf(values[i], header.least, inverse, uniform[i], top));
    }
  }
  std::fill(levels + n, levels + kGroupElements, uint8_t{0});
  PackLevels<kBits>(levels, n, encoded + codec.packed(group));
}

template <int kBits, typename T>
void DecodeGroup(const GroupCodec& codec, int64_t group, const uint8_t* encoded,
                 T* y) {
  constexpr int kPerByte = 8 / kBits;
  GroupHeader header;
  std::memcpy(&header, encoded + codec.header(group), sizeof(header));
  const uint8_t* packed = encoded + codec.packed(group);
  T* to = y + group * kGroupElements;
  for (int64_t i = 0; i < codec.count(group); ++i) {
    const unsigned level =
        packed[i / kPerByte] >> (i % kPerByte * kBits) & ((1u << kBits) - 1);
    to[i] = OfLevel(level, header);
  }
}

// Calls body(integral_constant) with the bits of an element.
template <typename Body>
void WithLevelBits(int bits, const Body& body) {
  switch (bits) {
    case 8:
      return body(std::integral_constant<int, 8>());
    case 4:
      return body(std::integral_constant<int, 4>());
    case 2:
      return body(std::integral_constant<int, 2>());
    default:
      return body(std::integral_constant<int, 1>());
  }
}

PreparedKernel EncodeGroups(const Prepare& p, const GroupCodec& codec) {
  return WithFloat<Bf16>(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([codec](const KernelArgs& args) {
      const DropoutMask random = codec.random.At(*args.scalars);
      const T* x = In<T>(args, 0);
      uint8_t* y = Out<uint8_t>(args, 0);
      WithLevelBits(codec.spec.bits, [&](auto bits) {
        ParallelEach(codec.groups(), 4 * kGroupElements, [&](int64_t group) {
          EncodeGroup<bits()>(codec, group, random, x, y);
        });
      });
    });
  });
}

PreparedKernel DecodeGroups(const Prepare& p, const GroupCodec& codec) {
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([codec](const KernelArgs& args) {
          const uint8_t* x = In<uint8_t>(args, 0);
          T* y = Out<T>(args, 0);
          WithLevelBits(codec.spec.bits, [&](auto bits) {
            ParallelEach(codec.groups(), kGroupElements, [&](int64_t group) {
              DecodeGroup<bits()>(codec, group, x, y);
            });
          });
        });
      });
}

GroupCodec GroupsOf(const Prepare& p, const CodecSpec& spec, int64_t elements) {
  DropoutSettings settings = {};
  settings.salt = static_cast<uint32_t>(p.attributes().Int("salt", 0));
  return {spec, elements, DropoutMask{settings}};
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
      return PackBits<uint8_t>(n, [](uint8_t x) { return x != 0; });
    case CodecKind::kPositive:
      return WithFloat<Bf16>(p, type.dtype, [&](auto of) {
        using T = decltype(of);
        return PackBits<T>(n, [](T x) { return float{x} > 0.0f; });
      });
    case CodecKind::kInteger:
      return WithIndex(p, type.dtype, [&](auto of) {
        using From = decltype(of);
        return WithStored(codec, [&](auto stored) {
          using To = decltype(stored);
          return NarrowChecked<From, To>(
              p, [](From x) { return static_cast<To>(x); },
              [](To y) { return static_cast<From>(y); });
        });
      });
    case CodecKind::kBf16:
      return NarrowChecked<uint32_t, uint16_t>(p, UpperHalf, FromUpperHalf);
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
      return MakeKernel([n](const KernelArgs& args) {
        uint8_t* y = Out<uint8_t>(args, 0);
        ForBits(n, In<uint8_t>(args, 0),
                [y](int64_t e, bool bit) { y[e] = bit ? 1 : 0; });
      });
    case CodecKind::kPositive:
      return p.NoKernel();
    case CodecKind::kInteger:
      return WithIndex(p, type.dtype, [&](auto of) {
        using To = decltype(of);
        return WithStored(codec, [&](auto stored) {
          using From = decltype(stored);
          return WidenAll<From, To>(n,
                                    [](From x) { return static_cast<To>(x); });
        });
      });
    case CodecKind::kBf16:
      return WidenAll<uint16_t, uint32_t>(n, FromUpperHalf);
    case CodecKind::kGroup:
      return DecodeGroups(p, GroupsOf(p, codec, n));
  }
  return p.NoKernel();
}

PreparedKernel ReluMaskGrad(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([n](const KernelArgs& args) {
          const T* dy = In<T>(args, 0);
          T* dx = Out<T>(args, 0);
          ForBits(n, In<uint8_t>(args, 1), [dy, dx](int64_t e, bool bit) {
            dx[e] = bit ? dy[e] : T(0.0f);
          });
        });
      });
}

constexpr KernelEntry kCodecKernels[] = {
    {"Encode", Encode}, {"Decode", Decode}, {"ReluMaskGrad", ReluMaskGrad}};

}  // namespace

absl::Span<const KernelEntry> CodecKernels() { return kCodecKernels; }

}  // namespace loadline::executor::cpu
