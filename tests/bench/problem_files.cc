// Used by every planner benchmark that reads instances.
#include "tests/bench/problem_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "tools/pipeline/plan_files.h"

namespace loadline {

void ForEachProblem(
    const std::string& path,
    const std::function<void(const std::string& name,
                             const planner::Problem& problem)>& body) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  } else {
    files.emplace_back(path);
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const auto problem = tools::ReadProblemFile(file.string());
    if (!problem.ok()) {
      std::printf("%s\n", std::string(problem.status().message()).c_str());
      continue;
    }
    body(file.stem().string(), *problem);
    std::fflush(stdout);
  }
}

}  // namespace loadline
