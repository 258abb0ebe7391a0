// Tested by tests/end_to_end/rescue_test.cc.
#include "tools/verbs/rescue.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/structures.h"
#include "tools/verbs/check_room.h"

namespace loadline::tools {
namespace {

constexpr char kSuffix[] = ".checkpoint.safetensors";

// Nothing that an earlier run kept is replaced, and no link is followed.
std::string UnusedPath(const std::string& model) {
  std::string path = absl::StrCat(model, kSuffix);
  std::error_code error;
  for (int n = 2;
       std::filesystem::exists(std::filesystem::symlink_status(path, error));
       ++n) {
    path = absl::StrCat(model, ".", n, kSuffix);
  }
  return path;
}

}  // namespace

std::vector<std::string> RescuePaths(const RunFlags& flags,
                                     const ModelFiles& files,
                                     const models::Graph& graph, bool ended) {
  const std::string& model =
      flags.out.empty() ? flags.training.average : flags.out;
  if (model.empty()) return {};
  absl::Status ready = files.CheckUnchanged();
  if (ready.ok() && ended) ready = CheckRoomForModels(flags, graph);
  if (ready.ok()) return {};
  spdlog::warn("{}; the run is kept in a checkpoint",
               std::string(ready.message()));
  std::vector<std::string> paths = {UnusedPath(model)};
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path(error);
  if (!error) {
    const std::filesystem::path name = std::filesystem::path(model).filename();
    paths.push_back(UnusedPath((folder / name).string()));
  }
  return paths;
}

absl::Status WithRescue(const absl::Status& written,
                        const std::string& rescue_path) {
  if (written.ok() || rescue_path.empty()) return written;
  return Appended(
      written, absl::StrCat("; the run is kept in ", rescue_path,
                            ": with the model and the room that it needs, the "
                            "same command with --checkpoint ",
                            rescue_path, " --resume writes the result"));
}

}  // namespace loadline::tools
