// A pass is any function on a graph; PassRunner has everything that passes
// share. Tested in tests/passes/pass_runner_test.cc.
#include "passes/pass_runner.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/text.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

absl::Status PassRunner::Run(
    absl::string_view name, PassNeed need,
    absl::FunctionRef<absl::Status(models::Graph&)> pass,
    models::Graph& graph) {
  ++offered_;
  const bool off = options_.disabled.contains(std::string(name));
  if (need == PassNeed::kRequired) {
    if (off) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pass '", name, "' is required and cannot be switched off"));
    }
  } else {
    optional_names_.insert(std::string(name));
    if (off) return absl::OkStatus();
  }

  const size_t nodes_before = graph.nodes.size();
  const auto start = std::chrono::steady_clock::now();
  LOADLINE_RETURN_IF_ERROR(pass(graph));
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  const absl::Status verified = models::VerifyGraph(graph);
  // Dump before verifying: a broken graph is the one to look at.
  if (!options_.dump_dir.empty()) LOADLINE_RETURN_IF_ERROR(Dump(name, graph));
  if (!verified.ok()) {
    return absl::InternalError(absl::StrCat(
        "pass '", name, "' broke the graph: ", verified.message()));
  }
  if (options_.log) {
    options_.log(name, took.count(), nodes_before, graph.nodes.size());
  }
  return absl::OkStatus();
}

absl::Status PassRunner::Finish() const {
  for (const std::string& name : options_.disabled) {
    if (optional_names_.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no pass named '", name, "' can be switched off; those that can: ",
        absl::StrJoin(optional_names_, ", ")));
  }
  return absl::OkStatus();
}

absl::Status PassRunner::Dump(absl::string_view name,
                              const models::Graph& graph) const {
  std::error_code error;
  std::filesystem::create_directories(options_.dump_dir, error);
  if (std::filesystem::exists(options_.dump_dir, error) &&
      !std::filesystem::is_directory(options_.dump_dir, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write the graphs after each pass: ", options_.dump_dir,
        " is not a folder"));
  }
  const std::string path =
      absl::StrFormat("%s/%02d-%s.txt", options_.dump_dir, offered_, name);
  std::ofstream file(path);
  file << models::GraphToText(graph);
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
