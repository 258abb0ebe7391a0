// The CPU's kernels: one prepared kernel per node of a graph.
//
//   LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
//                             PrepareCpuKernel(graph, node));
//   kernel->Run({inputs, outputs, workspace, &scalars});
#ifndef LOADLINE_EXECUTOR_CPU_KERNELS_H_
#define LOADLINE_EXECUTOR_CPU_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "executor/device/kernel.h"
#include "models/graph.h"

namespace loadline::executor {

// Makes the kernel of `node`, whose types are those of `graph`'s values. The
// kernel keeps no reference to the graph. Errors:
//   Unimplemented    no kernel for this operator, or not for these types
//   InvalidArgument  attributes and shapes that do not match; sizes beyond what
//                    the kernels count with
// Views (models::IsView) have no kernel, since they do not run.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareCpuKernel(
    const models::Graph& graph, const models::Node& node);

// Whether the CPU has a kernel for this operator.
bool HasCpuKernel(absl::string_view op);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_KERNELS_H_
