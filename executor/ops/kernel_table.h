// The kernels of one device, collected from its operator families and looked up
// by operator name.
#ifndef LOADLINE_EXECUTOR_OPS_KERNEL_TABLE_H_
#define LOADLINE_EXECUTOR_OPS_KERNEL_TABLE_H_

#include <initializer_list>
#include <map>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/ops/prepare.h"

namespace loadline::executor {

// `P`: the device's Prepare class.
template <typename P>
using PrepareKernelFunction = PreparedKernel (*)(const P& prepare);

template <typename P>
struct KernelEntryOf {
  absl::string_view op;
  PrepareKernelFunction<P> prepare;
};

template <typename P>
class KernelTable {
 public:
  using Family = absl::Span<const KernelEntryOf<P>>;

  KernelTable(std::initializer_list<Family> families) {
    for (const Family& family : families) {
      for (const KernelEntryOf<P>& entry : family) {
        entries_.emplace(entry.op, entry.prepare);
      }
    }
  }

  bool Has(absl::string_view op) const { return entries_.count(op) > 0; }

  // Prepares the kernel of p.node(). Unimplemented: the device has none.
  PreparedKernel Make(const P& p) const {
    const auto it = entries_.find(p.node().op);
    if (it == entries_.end()) return p.NoKernel();
    return it->second(p);
  }

 private:
  std::map<absl::string_view, PrepareKernelFunction<P>> entries_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_KERNEL_TABLE_H_
