// Data sheet figures times the fraction that an H100 was measured to reach; the
// measurements are in docs/gpu.md. Tested in
// tests/planner/problem/known_machines_test.cc.
#include "planner/problem/known_machines.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace loadline::planner {
namespace {

// One direction of 16 lanes of PCI Express.
constexpr double kGen3BytesPerS = 15.75e9;
constexpr double kGen4BytesPerS = 31.5e9;
constexpr double kGen5BytesPerS = 63e9;

// NVIDIA's data sheets: dense products without sparsity that sum in f32; of f32
// without TF32. `half` is f16 and, from Ampere on, bf16; `mib` is the whole
// memory by nvidia-smi.
struct DataSheet {
  const char* name;
  const char* driver_name;
  int64_t mib;
  double memory_bytes_per_s;
  double f32_flop_per_s;
  double half_flop_per_s;
  bool bf16;
  double link_bytes_per_s;
};

constexpr DataSheet kDataSheets[] = {
    {"a10", "NVIDIA A10", 23'028, 600e9, 31.2e12, 125e12, true, kGen4BytesPerS},
    {"a100-pcie-40gb", "NVIDIA A100-PCIE-40GB", 40'960, 1555e9, 19.5e12, 312e12,
     true, kGen4BytesPerS},
    {"a100-pcie-80gb", "NVIDIA A100 80GB PCIe", 81'920, 1935e9, 19.5e12, 312e12,
     true, kGen4BytesPerS},
    {"a100-sxm-40gb", "NVIDIA A100-SXM4-40GB", 40'960, 1555e9, 19.5e12, 312e12,
     true, kGen4BytesPerS},
    {"a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", 81'920, 2039e9, 19.5e12, 312e12,
     true, kGen4BytesPerS},
    {"a10g", "NVIDIA A10G", 23'028, 600e9, 35e12, 70e12, true, kGen4BytesPerS},
    {"h100-nvl", "NVIDIA H100 NVL", 95'830, 3938e9, 60e12, 835e12, true,
     kGen5BytesPerS},
    {"h100-pcie", "NVIDIA H100 PCIe", 81'559, 2039e9, 51.2e12, 756e12, true,
     kGen5BytesPerS},
    {"h100-sxm", "NVIDIA H100 80GB HBM3", 81'559, 3350e9, 66.9e12, 989e12, true,
     kGen5BytesPerS},
    {"h200-sxm", "NVIDIA H200", 143'771, 4800e9, 66.9e12, 989e12, true,
     kGen5BytesPerS},
    {"l4", "NVIDIA L4", 23'034, 300e9, 30.3e12, 121e12, true, kGen4BytesPerS},
    {"l40s", "NVIDIA L40S", 46'068, 864e9, 91.6e12, 362e12, true,
     kGen4BytesPerS},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", 24'576, 936e9, 35.6e12, 71e12, true,
     kGen4BytesPerS},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 24'564, 1008e9, 82.6e12, 165e12,
     true, kGen4BytesPerS},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", 32'607, 1792e9, 104.8e12, 209.5e12,
     true, kGen5BytesPerS},
    {"t4", "Tesla T4", 15'360, 320e9, 8.1e12, 65e12, false, kGen3BytesPerS},
    {"v100-pcie-16gb", "Tesla V100-PCIE-16GB", 16'384, 900e9, 14e12, 112e12,
     false, kGen3BytesPerS},
    {"v100-pcie-32gb", "Tesla V100-PCIE-32GB", 32'768, 900e9, 14e12, 112e12,
     false, kGen3BytesPerS},
    {"v100-sxm-16gb", "Tesla V100-SXM2-16GB", 16'384, 900e9, 15.7e12, 125e12,
     false, kGen3BytesPerS},
    {"v100-sxm-32gb", "Tesla V100-SXM2-32GB", 32'768, 900e9, 15.7e12, 125e12,
     false, kGen3BytesPerS},
};

// Fraction of its data sheet that an H100 SXM reached in `loadline doctor`.
constexpr double kProductsKept = 0.76;
constexpr double kMemoryKept = 0.81;
constexpr double kLinkKept = 0.85;
constexpr double kBidirectional = 0.88;
// Measured on the same H100; other GPUs have not been measured.
constexpr int64_t kReservedBytes = int64_t{550} << 20;
constexpr int64_t kCopyLatencyNs = 7000;
constexpr int64_t kCopyOverheadNs = 2000;
constexpr int64_t kLaunchNs = 1200;

Machine MachineOf(const DataSheet& sheet) {
  Machine machine;
  machine.name = sheet.name;
  machine.nominal = true;
  machine.device_bytes = sheet.mib << 20;
  machine.reserved_bytes = kReservedBytes;
  machine.d2h.bytes_per_s = kLinkKept * sheet.link_bytes_per_s;
  machine.h2d.bytes_per_s = kLinkKept * sheet.link_bytes_per_s;
  machine.d2h.latency_ns = machine.h2d.latency_ns = kCopyLatencyNs;
  machine.d2h_h2d_factor = kBidirectional;
  // Hosts have at least twice their GPU's memory, as a rule of thumb.
  machine.host_bytes = 2 * machine.device_bytes;
  machine.copy_overhead_ns = kCopyOverheadNs;
  Rates rates;
  rates.matmul_flop_per_s["f32"] = kProductsKept * sheet.f32_flop_per_s;
  rates.matmul_flop_per_s["f16"] = kProductsKept * sheet.half_flop_per_s;
  if (sheet.bf16) {
    rates.matmul_flop_per_s["bf16"] = kProductsKept * sheet.half_flop_per_s;
  }
  rates.memory_bytes_per_s = kMemoryKept * sheet.memory_bytes_per_s;
  rates.launch_ns = kLaunchNs;
  machine.rates = rates;
  return machine;
}

// As people write a GPU's name: "RTX 4090", "NVIDIA GeForce RTX 4090" and
// "rtx_4090" are "rtx4090".
std::string Simplified(absl::string_view name) {
  std::string kept;
  for (char c : name) {
    if (absl::ascii_isalnum(c)) kept += absl::ascii_tolower(c);
  }
  absl::string_view rest = kept;
  for (absl::string_view maker : {"nvidia", "geforce"}) {
    absl::ConsumePrefix(&rest, maker);
  }
  return std::string(rest);
}

}  // namespace

std::vector<std::string> KnownMachineNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kDataSheets));
  for (const DataSheet& sheet : kDataSheets) names.emplace_back(sheet.name);
  return names;
}

absl::StatusOr<Machine> KnownMachine(absl::string_view name) {
  const std::string wanted = Simplified(name);
  const auto* found =
      std::find_if(std::begin(kDataSheets), std::end(kDataSheets),
                   [&](const DataSheet& sheet) {
                     return wanted == Simplified(sheet.name) ||
                            wanted == Simplified(sheet.driver_name);
                   });
  if (found != std::end(kDataSheets)) return MachineOf(*found);
  return absl::NotFoundError(
      absl::StrCat("no machine is known as \"", name, "\": there are ",
                   absl::StrJoin(KnownMachineNames(), ", ")));
}

}  // namespace loadline::planner
