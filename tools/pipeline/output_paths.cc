// Two paths name the same file if both exist with the same inode, or if they
// are equal after links are resolved. Tested by
// tests/tools/pipeline/output_paths_test.cc.
#include "tools/pipeline/output_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/import.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/device_names.h"
#include "tools/cli/reproduce.h"
#include "tools/pipeline/machine_profile.h"

namespace loadline::tools {
namespace {

constexpr char kStandardOutput[] = "-";

bool IsPipeOrDevice(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

// Where the file is or will be: links are followed, also those that lead to
// what does not exist yet, which weakly_canonical takes for files.
std::string Resolved(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code error;
  std::filesystem::path file = std::filesystem::absolute(path, error);
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path target =
        std::filesystem::read_symlink(file, error);
    if (error) break;  // no link
    file = file.parent_path() / target;
  }
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(file, error);
  return (error ? file.lexically_normal() : real).string();
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat one, other;
  if (stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  }
  return Resolved(a) == Resolved(b);
}

absl::Status Clash(const NamedPath& output, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(
      output.flag, " ", output.path, ": ", why, "; name another file"));
}

// Long work must not end with a file that cannot be written. A link is
// followed: the file that it leads to is replaced.
absl::Status CheckFolder(const NamedPath& output) {
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::is_symlink(
          std::filesystem::symlink_status(output.path, error))
          ? Resolved(output.path)
          : output.path;
  const std::filesystem::path folder =
      path.has_parent_path() ? path.parent_path() : ".";
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(output.path, ": the folder ", folder.string(), " ", why));
  };
  if (!std::filesystem::is_directory(folder, error)) {
    return refused(std::filesystem::exists(folder, error) ? "is none"
                                                          : "does not exist");
  }
  if (access(folder.c_str(), W_OK) != 0) return refused("cannot be written to");
  return absl::OkStatus();
}

// The model and the files that hold its external data.
absl::Status CheckAgainstInput(const NamedPath& output,
                               const NamedPath& input) {
  if (SameFile(output.path, input.path)) {
    return Clash(output, absl::StrCat("would overwrite ", input.flag));
  }
  // External data is in the model's folder, so only an output that already
  // exists there can be part of it. Checking this first saves the seconds that
  // reading a large model takes.
  struct stat info;
  if (!absl::EndsWith(input.path, ".onnx") ||
      stat(output.path.c_str(), &info) != 0) {
    return absl::OkStatus();
  }
  const auto files = models::ExternalDataFiles(input.path);
  if (!files.ok()) return absl::OkStatus();  // Importing it says what is wrong.
  for (const std::string& file : *files) {
    if (SameFile(output.path, file)) {
      return Clash(output, absl::StrCat("would overwrite weights of ",
                                        input.flag, " ", input.path));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddDataPaths(const std::string& flag, const std::string& data,
                  std::vector<NamedPath>* paths) {
  paths->push_back({flag, data});
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(data, ignored)) {
    if (entry.path().extension() == ".npy") {
      paths->push_back({flag, entry.path().string()});
    }
  }
}

std::vector<NamedPath> InputPaths(const StepFlags& flags) {
  std::vector<NamedPath> paths = {{"MODEL", flags.model.model},
                                  {"--machine", flags.plan.machine}};
  AddDataPaths("--data", flags.loss.data, &paths);
  for (const char* device : {kCpu, kEmulated, kCuda}) {
    paths.push_back({"the profile of this machine", OwnProfilePath(device)});
  }
  return paths;
}

absl::Status CheckOutputPaths(const std::vector<NamedPath>& inputs,
                              const std::vector<NamedPath>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedPath& output = outputs[i];
    if (output.path.empty()) continue;
    std::error_code error;
    const bool is_folder = std::filesystem::is_directory(output.path, error);
    if (error == std::errc::too_many_symbolic_link_levels) {
      return Clash(output, "is a link that leads back to itself");
    }
    if (!output.may_be_folder && is_folder) {
      return Clash(output, "is a folder");
    }
    for (size_t k = 0; k < i; ++k) {
      const bool once =
          output.path == kStandardOutput || !IsPipeOrDevice(output.path);
      if (!outputs[k].path.empty() && once &&
          (output.path == outputs[k].path ||
           (outputs[k].path != kStandardOutput &&
            output.path != kStandardOutput &&
            SameFile(output.path, outputs[k].path)))) {
        return Clash(output,
                     absl::StrCat("is written by ", outputs[k].flag, " too"));
      }
    }
    if (output.path == kStandardOutput || IsPipeOrDevice(output.path)) continue;
    for (const NamedPath& input : inputs) {
      if (input.path.empty()) continue;
      LOADLINE_RETURN_IF_ERROR(CheckAgainstInput(output, input));
    }
    for (const std::string& file : ConfigFiles()) {
      LOADLINE_RETURN_IF_ERROR(CheckAgainstInput(output, {"--config", file}));
    }
    if (!output.may_be_folder) LOADLINE_RETURN_IF_ERROR(CheckFolder(output));
  }
  return absl::OkStatus();
}

void LogWritten(const std::vector<NamedPath>& outputs) {
  for (const NamedPath& output : outputs) {
    std::error_code ignored;
    if (output.path == kStandardOutput || output.may_be_folder ||
        !std::filesystem::is_regular_file(output.path, ignored)) {
      continue;
    }
    spdlog::info("wrote {}", output.path);
  }
}

}  // namespace loadline::tools
