// Tested by tests/end_to_end/rescue_test.cc.
#include "tools/verbs/rescue.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "tools/verbs/check_room.h"

namespace loadline::tools {
namespace {

constexpr char kSuffix[] = ".checkpoint.safetensors";

}  // namespace

std::vector<std::string> RescuePaths(const RunFlags& flags,
                                     const ModelFiles& files,
                                     const models::Graph& graph) {
  const std::string& model =
      flags.out.empty() ? flags.training.average : flags.out;
  if (model.empty()) return {};
  absl::Status ready = files.CheckUnchanged();
  if (ready.ok()) ready = CheckRoomForModels(flags, graph);
  if (ready.ok()) return {};
  spdlog::warn("{}; the run is kept in a checkpoint",
               std::string(ready.message()));
  std::vector<std::string> paths = {absl::StrCat(model, kSuffix)};
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path(error);
  if (!error) {
    const std::filesystem::path name =
        std::filesystem::path(paths.front()).filename();
    paths.push_back((folder / name).string());
  }
  return paths;
}

absl::Status WithRescue(const absl::Status& written,
                        const std::string& rescue_path) {
  if (written.ok() || rescue_path.empty()) return written;
  return absl::Status(
      written.code(),
      absl::StrCat(written.message(), "; the run is kept in ", rescue_path,
                   ": with the model and the room that it needs, the same "
                   "command with --checkpoint ",
                   rescue_path, " --resume writes the result"));
}

}  // namespace loadline::tools
