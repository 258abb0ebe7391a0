// The values of --device, and the device that --emulate-device stands for.
#ifndef LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_
#define LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_

namespace loadline::tools {

inline constexpr char kCpu[] = "cpu";
inline constexpr char kCuda[] = "cuda";
// An accelerator emulated on the CPU: what is copied out goes to RAM, which no
// budget counts.
inline constexpr char kEmulated[] = "emulated";

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_
