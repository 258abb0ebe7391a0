// Runs passes: times each one, verifies the graph after it, optionally dumps
// the graph, and skips passes that are disabled by name.
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
  // Optional passes to skip. InvalidArgument for a required or unknown name.
  std::set<std::string> disabled;
  // Folder for the graph's text after every pass, as NN-name.txt; created if
  // missing. Empty: no dump.
  std::string dump_dir;
  // Called after every pass that ran. May be empty.
  std::function<void(absl::string_view name, double seconds,
                     size_t nodes_before, size_t nodes_after)>
      log;
};

// Later passes depend on required ones; optional ones only improve the graph.
enum class PassNeed { kOptional, kRequired };

class PassRunner {
 public:
  explicit PassRunner(PassOptions options) : options_(std::move(options)) {}

  // Runs `pass` on `graph` unless it is disabled. Errors: the pass's own;
  // Internal naming the pass if the graph does not verify afterwards;
  // InvalidArgument if a required pass is disabled; errors of writing the dump.
  // After an error the graph is undefined.
  absl::Status Run(absl::string_view name, PassNeed need,
                   absl::FunctionRef<absl::Status(models::Graph&)> pass,
                   models::Graph& graph);

  // InvalidArgument if a name in `disabled` is no pass that Run was called for;
  // lists the optional passes.
  absl::Status Finish() const;

 private:
  absl::Status Dump(absl::string_view name, const models::Graph& graph) const;

  const PassOptions options_;
  std::set<std::string> optional_names_;
  int offered_ = 0;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_PASS_RUNNER_H_
