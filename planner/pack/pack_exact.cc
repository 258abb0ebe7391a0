// Restarts of the search in pack_search.cc. Each draws new keys, mostly near
// those of the best try so far; their limits follow Luby's sequence (Luby,
// Sinclair and Zuckerman 1993). Once the quick search has exhausted its space,
// the complete search runs instead, which can prove that there is no layout.
// Tested in pack_exact_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "planner/pack/pack_parts.h"
#include "planner/pack/pack_search.h"

namespace loadline::planner {
namespace {

// 1 1 2 1 1 2 4 ...
int64_t Luby(int64_t i) {
  for (;;) {
    int64_t power = 1;
    while (2 * power - 1 < i) power *= 2;
    if (2 * power - 1 == i) return power;
    i -= power - 1;
  }
}

// Keys that prefer blocks that live long, are large, and are alive where most
// bytes are.
std::vector<std::vector<double>> Rules(const PackBlocks& blocks,
                                       const PackSearch& search) {
  std::vector<std::vector<double>> rules(3);
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    const double load = std::log(search.Load(static_cast<int>(b)) + 1);
    const double life =
        std::log(static_cast<double>(blocks.blocks[b].life) + 1);
    const double size =
        std::log(static_cast<double>(blocks.blocks[b].padded) + 1);
    rules[0].push_back(3 * load + life + size);
    rules[1].push_back(3 * load + 3 * life);
    rules[2].push_back(life);
  }
  return rules;
}

// Box and Muller (1958): the same numbers with every standard library.
double Normal(std::mt19937_64& random) {
  const auto unit = [&] {
    return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(unit()));
  return radius * std::cos(6.283185307179586 * unit());
}

}  // namespace

ExactResult PackExact(const PackBlocks& blocks, int64_t capacity_bytes,
                      uint64_t seed, const PackTuning& tuning, PackWork& work,
                      PackLayout& layout) {
  PackSearch search(blocks, capacity_bytes);
  const int64_t node_work = std::max(
      tuning.least_work_per_node, blocks.sections / tuning.sections_per_work);
  const std::vector<std::vector<double>> rules = Rules(blocks, search);
  std::mt19937_64 random(seed);
  std::vector<double> near;  // the keys of the best try since the last reset
  double near_left = std::numeric_limits<double>::infinity();
  int fails = 0;
  bool complete = false;
  for (int64_t restart = 1; !work.Done(); ++restart) {
    const auto draw = [&] {
      return static_cast<double>(random() >> 11) * 0x1p-53;
    };
    std::vector<double> keys = rules[restart % rules.size()];
    double noise = tuning.far_noise[random() % 2];
    if (!near.empty() && draw() < tuning.near_share) {
      keys = near;
      noise = tuning.near_noise;
    }
    if (restart > static_cast<int64_t>(rules.size())) {
      for (double& key : keys) key += noise * Normal(random);
    }
    const int64_t limit = std::min(tuning.first_limit_nodes * Luby(restart),
                                   work.left / node_work + 1);
    const ExactResult result = search.Run(keys, limit, complete);
    work.left -= node_work * (search.nodes() + 1);
    if (result == ExactResult::kFound) {
      layout.offsets = search.offsets();
      layout.height_bytes = 0;
      for (size_t b = 0; b < blocks.blocks.size(); ++b) {
        layout.height_bytes = std::max(
            layout.height_bytes, layout.offsets[b] + blocks.blocks[b].size);
      }
    }
    if (result == ExactResult::kFound) return result;
    if (result == ExactResult::kNone) {
      if (complete) return result;
      complete = true;  // the quick search is exhausted: seek a proof
    }
    if (search.least_left() < near_left) {
      near_left = search.least_left();
      near = std::move(keys);
      fails = 0;
    } else if (++fails > tuning.patience) {
      near.clear();
      near_left = std::numeric_limits<double>::infinity();
      fails = 0;
    }
  }
  return ExactResult::kGaveUp;
}

}  // namespace loadline::planner
