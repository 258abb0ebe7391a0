// Packs every CSV file of a folder (columns id,lower,upper,size and optionally
// group; the capacity in the name: NAME.CAPACITY.csv) for several seeds, then
// generated training steps and planted instances with a known optimum: cut
// along time or bytes, the same with every hundredth item left out, and cut
// into pinwheels. Prints height over bound and processor time.
//
//   pack_bench [FOLDER] [--seeds=N] [--work=N] [--no-tiling]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/pack/pack.h"
#include "tests/planner/pack/cut_items.h"

namespace loadline::planner {
namespace {

std::vector<PackItem> ReadItems(const std::filesystem::path& path) {
  std::vector<PackItem> items;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    PackItem item;
    if (cells.size() >= 4 && absl::SimpleAtoi(cells[0], &item.id) &&
        absl::SimpleAtoi(cells[1], &item.lower) &&
        absl::SimpleAtoi(cells[2], &item.upper) &&
        absl::SimpleAtoi(cells[3], &item.size) &&
        (cells.size() < 5 || absl::SimpleAtoi(cells[4], &item.group))) {
      items.push_back(item);
    }
  }
  return items;
}

// A rectangle of `height` bytes cut at random into `count` items, so the
// optimum is the height.
std::vector<PackItem> PlantedItems(uint64_t seed, size_t count, int64_t height,
                                   bool pinwheels) {
  std::mt19937_64 random(seed);
  std::vector<PackItem> items = {
      {.lower = 0, .upper = static_cast<int64_t>(count) * 4, .size = height}};
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % n);
  };
  if (pinwheels) {
    CutPinwheels(count, below, items);
  } else {
    CutItems(count, 2, below, items);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].id = static_cast<int64_t>(i);
  }
  return items;
}

// Forward and backward pass of a deep stack: a layer's values are kept until
// the backward pass uses them, recomputed shortly before it, or copied out and
// back; gradients and workspaces live for a few positions.
std::vector<PackItem> TrainingItems(uint64_t seed, size_t count) {
  constexpr int64_t kUnit = 1 << 20;
  constexpr int64_t kSizes[] = {4, 4, 4, 12, 16, 16, 4, 1};  // quarter units
  std::mt19937_64 random(seed);
  const auto in = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % (most - least + 1));
  };
  std::vector<PackItem> items;
  const auto add = [&](int64_t lower, int64_t upper, int64_t quarters) {
    items.push_back({.id = static_cast<int64_t>(items.size()),
                     .lower = lower,
                     .upper = upper,
                     .size = quarters * kUnit / 4});
  };
  const int64_t values = static_cast<int64_t>(count) * 100 / 285;
  for (int64_t v = 0; v < values; ++v) {
    const int64_t size = kSizes[v % std::size(kSizes)];
    const int64_t use = 2 * values - v;
    const int64_t kind = in(0, 9);
    if (kind < 5) {
      add(v, use + 1, size);
    } else {
      const bool copied = kind >= 8;
      add(v, v + (copied ? in(4, 20) : in(1, 3)), size);
      const int64_t back = use - (copied ? in(6, 30) : in(1, 8));
      add(std::max(values, back), use + 1, size);
    }
    add(use, use + in(1, 3), size);
    if (in(0, 9) < 3) add(v, v + 1, in(1, 2));
    if (in(0, 9) < 2) add(use, use + 1, in(2, 8));
  }
  return items;
}

void Bench(const std::string& name, const std::vector<PackItem>& items,
           const PackOptions& options) {
  PackReport report;
  const std::clock_t start = std::clock();
  const bool fits = Pack(items, options, &report).ok();
  const double seconds =
      static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf(
      "%-24s seed %-2llu %8zu items  +%.3f %% over the bound  %-4s %.3f s\n",
      name.c_str(), static_cast<unsigned long long>(options.seed), items.size(),
      100 * (static_cast<double>(report.height_bytes) /
                 static_cast<double>(report.lower_bound_bytes) -
             1),
      fits ? "fits" : "", seconds);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  PackOptions options;
  uint64_t seeds = 1;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (absl::StartsWith(argument, "--work=")) {
      if (!absl::SimpleAtoi(argument.substr(7), &options.work_limit)) return 2;
    } else if (argument == "--no-tiling") {
      options.tuning.tiling_stage = false;
    } else if (absl::StartsWith(argument, "--seeds=")) {
      if (!absl::SimpleAtoi(argument.substr(8), &seeds)) return 2;
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        if (entry.path().extension() == ".csv") files.push_back(entry.path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  for (options.seed = 0; options.seed < seeds; ++options.seed) {
    for (const std::filesystem::path& file : files) {
      const std::string stem = file.stem().string();
      const size_t dot = stem.rfind('.');
      if (dot == std::string::npos ||
          !absl::SimpleAtoi(stem.substr(dot + 1), &options.capacity_bytes)) {
        continue;
      }
      Bench(stem, ReadItems(file), options);
    }
  }
  for (options.seed = 0; options.seed < seeds; ++options.seed) {
    for (size_t count : {1000, 10'000, 100'000, 1'000'000}) {
      const auto items = TrainingItems(options.seed, count);
      options.capacity_bytes = PackLowerBound(items);
      Bench(absl::StrCat("training ", count), items, options);
    }
  }
  for (options.seed = 0; options.seed < seeds; ++options.seed) {
    for (size_t count : {100, 1000, 10'000, 100'000, 1'000'000}) {
      options.capacity_bytes = int64_t{1} << 40;
      auto items =
          PlantedItems(options.seed, count, options.capacity_bytes, false);
      Bench(absl::StrCat("planted ", count), items, options);
      if (count > 100'000) continue;
      std::erase_if(items, [](const PackItem& i) { return i.id % 100 == 1; });
      Bench(absl::StrCat("planted, 1 % out ", count), items, options);
      items = PlantedItems(options.seed, count, options.capacity_bytes, true);
      Bench(absl::StrCat("pinwheels ", count), items, options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
