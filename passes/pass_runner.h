// The one wrapper around every pass: times it, verifies the graph after it,
// can dump the graph after it, can switch it off by name.
//
//   PassRunner runner(options);
//   LOADLINE_RETURN_IF_ERROR(
//       runner.Run("fuse_gelu", PassNeed::kOptional, FuseGelu, graph));
//   LOADLINE_RETURN_IF_ERROR(runner.Finish());
#ifndef LOADLINE_PASSES_PASS_RUNNER_H_
#define LOADLINE_PASSES_PASS_RUNNER_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

struct PassOptions {
  // Optional passes to leave out. Naming a required one, or one that does not
  // exist, is an InvalidArgument.
  std::set<std::string> disabled;
  // Folder for the graph's text after every pass, as NN-name.txt; made if it
  // is missing. Empty: no dump.
  std::string dump_dir;
  // Called after every pass that ran. May be empty.
  std::function<void(absl::string_view name, double seconds,
                     size_t nodes_before, size_t nodes_after)>
      log;
};

// A required pass makes what later ones stand on; an optional one only makes
// the graph better.
enum class PassNeed { kOptional, kRequired };

class PassRunner {
 public:
  explicit PassRunner(PassOptions options) : options_(std::move(options)) {}

  // Runs `pass` on `graph`, unless it is switched off. Errors: the pass's own;
  // Internal naming the pass if the graph does not verify after it;
  // InvalidArgument if a required pass is switched off; what writing the dump
  // gives. After an error the graph is in no defined state.
  absl::Status Run(absl::string_view name, PassNeed need,
                   absl::FunctionRef<absl::Status(models::Graph&)> pass,
                   models::Graph& graph);

  // InvalidArgument if a name in `disabled` belongs to no pass that was
  // offered; the message lists those that can be switched off.
  absl::Status Finish() const;

 private:
  absl::Status Dump(absl::string_view name, const models::Graph& graph) const;

  const PassOptions options_;
  std::set<std::string> optional_names_;
  int offered_ = 0;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_PASS_RUNNER_H_
