// The values of --device.
#ifndef LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_
#define LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_

namespace loadline::tools {

inline constexpr char kCpu[] = "cpu";
inline constexpr char kCuda[] = "cuda";

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_DEVICE_NAMES_H_
