// How hard Pack tries. Every value gives a valid layout; most only trade time
// for height. Measured with tests/bench/pack_bench.cc on the minimalloc
// benchmark set and on rectangles cut into up to 10^6 pieces.
#ifndef LOADLINE_PLANNER_PACK_PACK_TUNING_H_
#define LOADLINE_PLANNER_PACK_PACK_TUNING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loadline::planner {

struct PackTuning {
  // Stages, in the order in which they run; each only while nothing fits. The
  // greedy rules come first and always run: there must be a layout.
  bool stack_stage = true;      // blocks with holes at the bottom
  bool join_stage = true;       // everything once more with joined blocks
  bool tiling_stage = true;     // blocks that fill a rectangle
  bool first_fit_stage = true;  // first fit in fixed orders
  bool squeaky_stage = true;    // squeaky wheel
  bool exact_stage = true;      // exact search with restarts
  bool improve_stage = true;    // first fit in changing orders

  // Greedy rules. A block's key is size * life^power; the first power is the
  // best on most instances, the others win on some.
  std::vector<double> life_powers = {1, 3, 0.5};
  // Blocks above which only the first rule runs: one pass takes a second.
  size_t most_rule_blocks = 200'000;

  // Stacking. Sections looked at while the order of blocks with holes is
  // improved; about 10 ms.
  int64_t stack_order_work = 4'000'000;

  // Joining. Part of the work left for the exact search over joined blocks.
  int64_t joined_part = 2;
  // Doubt that blocks belong together: the expected number of such matches by
  // chance. Pairs that start and end alone have 4, where the search begins; at
  // the upper limit no match is left.
  double least_doubt = 4;
  double most_doubt = 1e12;
  // Weight of a match by size against one by life.
  double size_doubt = 16;
  // Blocks of one life of which all subsets are tried: 2^8 each time.
  size_t most_together = 8;
  // Limit on subsets, per block: keeps joining linear.
  int64_t looks_per_block = 200;

  // Tilings. Doubt up to which blocks are joined before; blocks above which no
  // tiling is looked for: at 3 * 10^5 it ended 50 % above the bound.
  double tiling_join_doubt = 5;
  size_t most_tiling_blocks = 200'000;
  // Sweeps over time, to and fro: from then on they repeat themselves.
  int tiling_sweeps = 14;
  // Sums that are zero. The most doubt that is taken; values of which all sets
  // are tried, sets of up to six, and of up to four; sets after which none is
  // looked for, and sets that are tried.
  double most_sum_doubt = 0.05;
  size_t most_sum_all = 20;
  size_t most_sum_triples = 40;
  size_t most_sum_pairs = 600;
  size_t most_sums = 300;
  size_t most_sum_tries = 30;
  // Blocks that are laid out again, at most; each looks at all blocks.
  int most_evictions = 20'000;

  // First fit. Blocks above which it does not run: it keeps a bit for each
  // pair.
  size_t most_first_fit_blocks = 4000;

  // A rule of its own ignores lives below so many positions.
  double short_life = 16;

  // First fit in changing orders. Blocks that end above the lowest layout less
  // 1/n of it move forward; one in so many, drawn, stays where it is.
  int64_t improve_margin = 64;
  uint64_t improve_stay = 4;
  // Every n-th failure swaps two blocks as well.
  int improve_swap = 3;
  // Failures after which layouts up to 1/n higher than the lowest are taken:
  // plateaus are wide. Failures after which the best order is taken up again.
  int improve_accept = 20;
  int64_t improve_worse = 50;
  int improve_restart = 60;

  // Squeaky wheel. Passes, the raise of a key that sticks out (natural
  // logarithm), and work of a pass per block.
  int squeaky_rounds = 12;
  double squeak = 0.3;
  int64_t work_per_floor_block = 64;

  // Exact search. Blocks above which it does not run: it never came to an end
  // there.
  size_t most_exact_blocks = 3000;
  // Part of the work left for the search at the capacity, and for each one
  // above it. Below this much work none is started.
  int64_t exact_first_part = 2;
  int64_t exact_part = 4;
  int64_t least_exact_work = 1000;
  // Work of one node: the sections of the skyline by so many, at least so much.
  int64_t sections_per_work = 16;
  int64_t least_work_per_node = 16;
  // Nodes of a restart, times Luby's sequence.
  int64_t first_limit_nodes = 500;
  // Restarts near one try without gain before another is taken.
  int patience = 50;
  // Share of restarts near the best try, and the noise on the logarithm of
  // their keys; the others take one of the far noises.
  double near_share = 0.7;
  double near_noise = 0.2;
  double far_noise[2] = {0.3, 1.0};
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_TUNING_H_
