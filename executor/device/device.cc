// The bounds check that every device shares. Tested in
// tests/executor/cpu/cpu_device_test.cc.
#include "executor/device/device.h"

#include "absl/strings/str_cat.h"

namespace loadline::executor {

absl::Status CheckInside(const Region& region, int64_t limit_bytes,
                         absl::string_view what) {
  // Written without sums, which a hostile offset could overflow.
  if (region.offset >= 0 && region.bytes >= 0 && region.bytes <= limit_bytes &&
      region.offset <= limit_bytes - region.bytes) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat(what, ": ", region.bytes, " bytes at ", region.offset,
                   " lie outside the ", limit_bytes, " bytes set aside"));
}

}  // namespace loadline::executor
