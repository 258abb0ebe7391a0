// Every tuned constant of the search, and a switch for every stage.
//
// A constant is here if another value would also give correct plans, only
// slower or faster ones. Units stand last in a name; a name without a unit is a
// count, or a share of what its comment names. A switch set to false skips its
// stage; the others stay as they are. The values were measured on the public
// training-step and recompute instances in November 2026 unless a comment says
// otherwise. Tests and tests/bench/ set fields to measure what they are worth;
// callers of Solve leave the defaults.
#ifndef LOADLINE_PLANNER_SCHEDULE_SEARCH_TUNING_H_
#define LOADLINE_PLANNER_SCHEDULE_SEARCH_TUNING_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace loadline::planner {

// The course of one simulated annealing. Temperatures are in mean run times of
// a node. Lambda is the price of excess area (bytes over the target, summed
// over slots): at 1, one mean run pays for freeing a mean value over a tenth of
// the sequence. Both change geometrically.
struct Cooling {
  double first_temperature = 0.5;
  double last_temperature = 0.003;
  // Lambda starts low, so that the order settles first, and rises 300-fold, so
  // that reruns and copies enter late. A high first lambda freezes the order.
  double first_lambda = 0.2;
  double last_lambda = 60;
};

struct SearchTuning {
  // Work units: one unit is about the time to price one edit of a short
  // sequence, so that a work limit takes about the same time for every problem.
  struct Work {
    // Slots of the sequence per unit, for an edit priced exactly. Coupled copy
    // lanes need an event simulation, which reads the sequence more slowly.
    int edit_slots = 24;
    int edit_slots_coupled = 12;
    // The same for a move of the annealing: most are rejected early.
    int move_slots = 600;
    int move_slots_coupled = 250;
  } work;

  // The array of slots that holds the sequence.
  struct Sequence {
    // More slots make room for insertions without sliding neighbours, and cost
    // time in every pass over bytes by slot.
    int slots_per_item = 3;
    // Neighbours that one insertion may slide, in each direction.
    int slide_limit = 24;
    // Empty slots searched for the middle of a gap.
    int gap_limit = 8;
  } sequence;

  // Start orders besides the given order (order.cc).
  struct Orders {
    // Updates directly after their gradients. On the 7B step the search ends at
    // 10.0 % instead of 12 to 21 %.
    bool early_updates = true;
    // List scheduling by fewest live bytes: helps graphs in shuffled order.
    bool fewest_bytes = true;
  } orders;

  // One pass over an order that evicts values (eviction_start.cc).
  struct Eviction {
    bool enabled = true;
    // Problems from this many nodes on start with it: a descent reads all
    // values in every round, so its time grows with the square of the nodes.
    int many_nodes = 20'000;
    // Values compared for one eviction, drawn at random.
    int sampled_candidates = 32;
    // Nodes that may run again for one evicted value. If the pass fails, it is
    // repeated with the next number.
    std::array<int, 2> most_source_nodes = {64, 1024};
    // The pass gives up at a schedule of this many items per node.
    int most_items_per_node = 8;
    // Copies back start this many of their durations before they are needed.
    double copy_back_lead = 1.5;
    // Price of lane time in step time.
    double lane_price = 0.05;
  } eviction;

  // Descents that lower the highest point (greedy.cc).
  struct Greedy {
    // Candidates of each kind priced exactly per round: the best by estimate.
    int priced_reruns = 6;
    int priced_copies = 12;
    int priced_encodings = 6;
    // Reruns that one rerun may take along in all.
    int chain_limit = 10;
    // Rounds between even respacings of the sequence.
    int respread_rounds = 8;
    // After the best candidate, others of at least this share of its score are
    // taken in the same round: fewer rounds.
    double nearly_as_good = 0.5;
    // Leads of a copy, in durations of the copy: how much compute time is left
    // for it. The short one occupies memory for less time.
    double short_lead = 1.2;
    double long_lead = 3;
    // Least price of lane time in estimates, in step time per lane time: orders
    // copies that cost no step time by their bytes.
    double least_lane_price = 0.01;
    // A candidate's cost is at least this share of the compute time plus
    // `least_ns`: it keeps scores of free candidates finite.
    double least_share = 1e-7;
    double least_ns = 1e-3;
  } greedy;

  // Simulated annealing (anneal.cc); its courses are those of PointSearch.
  struct Anneal {
    // Moves between updates of the lists that moves are drawn from. The lists
    // cost one pass over the sequence.
    int refresh_moves = 256;
    // Share of the bytes' cost unit: see Cooling, lambda.
    double lambda_span = 0.1;
    // Lambda reaches its last value after 1/lambda_speed of the moves; the rest
    // is spent under the full price.
    double lambda_speed = 1.2;
    // After this share of the moves lambda adapts at every refresh: it rises by
    // `pressure_rise` while bytes are over the target and falls by
    // `pressure_fall` otherwise, within the limits. Insurance where the fixed
    // course does not get under the target.
    double pressure_from = 0.5;
    double pressure_rise = 1.05;
    double pressure_fall = 0.98;
    double least_pressure = 0.3;
    double most_pressure = 1e3;
  } anneal;

  // The random moves of the annealing (anneal_moves.cc, anneal_shifts.cc).
  struct Moves {
    // Percent of moves of each kind; drags take what remains of 100. Half of
    // all change only the order.
    int shift_percent = 50;
    int free_percent = 25;
    int drop_percent = 12;
    int replace_percent = 7;
    // The same where values can be copied.
    int shift_percent_with_copies = 30;
    int shift_copy_percent = 20;
    int free_percent_with_copies = 20;
    int drop_percent_with_copies = 10;
    int replace_percent_with_copies = 10;
    int change_home_percent = 5;
    // One move in so many exchanges a node's variant, where there are any.
    int variant_period = 12;
    // Reruns that one rerun takes along: drawn from 1 to this. Without chains
    // the random graph of 1,000 nodes (RLG4 at 70 %) loses two points.
    int chain_limit = 6;
    // Random values tried until one is idle at the chosen slot.
    int gap_tries = 24;
    // Random items tried until one lies over the target.
    int high_tries = 4;
    // Without bytes over the target, items above this share of it count as
    // high: freeing bytes there makes room for other moves.
    double near_target = 0.98;
    // The lead of a copy is least_lead + lead_scale x an exponential variable,
    // in durations of the copy.
    double least_lead = 0.2;
    double lead_scale = 1.2;
    // One encoding in so many encodes again instead of reading an older
    // encoded instance.
    int encode_again_period = 4;
    // A shift, in tenths: by a few items, next to an item that shares a value,
    // to a random place; of the rest, half to the earliest and half to the
    // latest place.
    int nudge_tenths = 4;
    int neighbour_tenths = 3;
    int anywhere_tenths = 1;
    // A nudge goes on by one more item with probability 1 - 1/period.
    int nudge_period = 4;
    int most_nudge_items = 64;
    // The same for a copy: short steps, and one in `far_copy_period` far.
    int copy_nudge_period = 3;
    int far_copy_nudge_period = 16;
    int far_copy_period = 4;
    int most_copy_nudge_items = 200;
    // A drag moves a run by drag_items up to drag_items + drag_spread - 1 items
    // and takes along at most drag_limit - 1 runs that block it.
    int drag_items = 4;
    int drag_spread = 60;
    int drag_limit = 6;
  } moves;

  // Lowers excess area at no cost before a schedule is laid out (ReducePressure
  // in anneal.cc): what is near its peak at few positions packs tighter. Worth
  // 0.26 to 0.5 points on GPT-2 124M steps and 7 to 14 on the 7B.
  struct ReducePressure {
    bool enabled = true;
  } reduce_pressure;

  // One program decides for all values at the highest point at once what is
  // kept (peak_cut_seed.cc).
  struct PeakCutSeed {
    bool enabled = true;
    // Of a lane's time on its side of the point, the share that copies may take
    // at no cost: the rest is left for what copies wait for.
    double lane_share = 0.8;
    // Price of lane time in step time: where the step is equal, fewer bytes are
    // moved.
    double lane_price = 0.01;
    // Programs per point. Each asks for as many bytes fewer as the one before
    // left over the target elsewhere.
    int most_seeds = 3;
    // A descent from a seed may spend work / work_part where a plan is known,
    // but at least a first descent's least / least_work_part.
    int64_t work_part = 10;
    int64_t least_work_part = 4;
    // Larger problems skip the programs: they would take minutes.
    int most_nodes = 100'000;
    // Simplex iterations per program: work / iteration_part, at least this
    // many; and what one of them takes from the work.
    int64_t iteration_part = 100;
    int64_t least_iterations = 1000;
    int64_t work_per_iteration = 10;
  } peak_cut_seed;

  // Decides again, one by one, where persistent values live between steps and
  // when they are copied (persistent_placement.cc). Worth 5 points on the 7B.
  struct PersistentPlacement {
    bool enabled = true;
    // Sweeps over all persistent values, each ending early if nothing improves.
    int most_sweeps = 4;
    // Values between even respacings of the sequence.
    size_t respread_values = 8;
    // Leads tried, in durations of the copy; long ones start copies before
    // other values crowd the lane.
    std::array<double, 6> leads = {1.2, 0.2, 3, 8, 20, 50};
    // It may spend work / work_part, at least a first descent's least /
    // least_work_part.
    int64_t work_part = 5;
    int64_t least_work_part = 6;
  } persistent_placement;

  // Windows of optional items solved exactly (window.cc, window_search.cc).
  struct Window {
    bool enabled = true;
    // Optional items of the smallest and the largest window.
    int least_items = 4;
    int most_items = 13;
    // Reruns that one step may take along in all.
    int chain_limit = 10;
    // Leads of a copy that are tried, in durations of the copy.
    std::array<double, 2> leads = {1.2, 3};
    // Steps that a window may have more than items were taken out.
    int spare_steps = 3;
    // A step of the branch and bound is charged 1/step_price_part of an edit
    // priced exactly: most are rejected before the lanes are simulated.
    int64_t step_price_part = 16;
    // Least gain that counts, above what rounding may hide.
    double least_gain_ns = 0.5;
    // Work for all windows, as a share of the point's, on top of it; one window
    // gets 1/window_part of that.
    double work_share = 0.03;
    int64_t window_part = 24;
    // Longer schedules have too many windows for that work.
    size_t most_schedule_items = 5000;
  } window;

  // Takes out what is no longer needed (clean_up.cc). Worth 8 points on the 7B.
  struct CleanUp {
    bool enabled = true;
    // Afterwards runs each node as its fastest variant that fits.
    bool faster_variants = true;
  } clean_up;

  // The stages for one budget, in order (point_search.cc). Shares are of the
  // point's work.
  struct PointSearch {
    // Schedules kept for layout: if the fastest cannot be laid out, the next
    // one may be.
    size_t most_finds = 4;

    // Greedy descents. The first always runs; its price is lane_prices[0], in
    // step time per lane time. The others need `lane_price_descents`: no one
    // price is best, and two more are worth 0.2 to 0.3 points on Grace.
    bool lane_price_descents = true;
    std::array<double, 3> lane_prices = {0.05, 0.0, 0.3};
    // Descents from the schedules of other budgets and other modes.
    bool start_descents = true;
    double greedy_share = 0.1;
    // The first descent may spend this much per node and price of an edit, even
    // above the point's work: without it there may be no plan at all.
    int64_t descent_edits_per_node = 20;

    // Ends the search at a proven bound of the step time. Only without copies:
    // with them, bounds are rarely met.
    bool stop_at_bound = true;
    // Simplex iterations: work / work_per_bound_iteration, at most this many.
    int64_t most_bound_iterations = 4000;
    int64_t work_per_bound_iteration = 100;
    // Larger problems skip the bound: it would cost more than it saves.
    int most_bound_nodes = 1000;

    // All anneals are of several walks (anneal.cc): one per so many moves per
    // node, at most `most_walks`; and the segments of each. On gen5 at 20 % two
    // walks of 8 segments end 0.2 points lower than one walk with as much work.
    // Four end there too, but 0.3 points higher on grace: each is too short.
    // With 250 and not 800 moves per node, reheats have two walks as well: on
    // two cores gen5 at 20 % takes 12.4 s and not 16.4. Of seven cells of the
    // steps three end lower and four higher, by 0.2 points or 2 %.
    int64_t moves_per_walk_per_node = 250;
    int64_t most_walks = 2;
    int segments = 8;

    // Annealing from an order. Worth 6 points on the 7B.
    bool cold_anneal = true;
    double cold_share = 0.45;
    double cold_share_with_copies = 0.52;
    Cooling cold = {.first_temperature = 0.8};
    Cooling cold_with_copies = {.first_temperature = 0.7};
    // Fewer moves per node cannot settle an order: skipped if a plan is known.
    int64_t least_cold_moves_per_node = 60;

    // Annealing from the plan of the next larger budget and from the best.
    bool warm_anneal = true;
    double warm_share = 0.25;
    Cooling warm = {.first_temperature = 0.2, .first_lambda = 1};

    // Anneals from the best schedule over what remains of the work, in equal
    // parts. Worth 0.16 points on RLG2 (0.57 against 0.73 %).
    bool reheat = true;
    std::array<double, 2> reheat_temperatures = {0.1, 0.05};
    Cooling reheat_cooling = {.first_lambda = 3};  // temperature: the list's
    // One reheat where no plan is known yet, from where the last anneal ended:
    // probably there is no plan, so a high price of excess area must decide.
    Cooling unfinished = {
        .first_temperature = 0.2, .first_lambda = 3, .last_lambda = 600};

    // A descent where an anneal ends a little above the target; it may spend
    // work / finish_part.
    bool finish_greedily = true;
    int64_t finish_part = 50;

    // Repairs: a descent with half of the work and an anneal at low
    // temperatures from the given schedule, for schedules that are close to
    // what is wanted.
    bool repair = true;
    double repair_share = 0.5;
    Cooling repair_cooling = {.first_temperature = 0.08, .first_lambda = 6};

    // Shorter anneals are skipped: they only cost the set-up.
    int64_t least_moves = 200;
    // A bound counts as met within this share of it (rounding of the solver).
    double bound_rounding = 1e-7;
  } point;

  // Plans that do the same in the same time with fewer copies and reruns
  // (planner/solve/drop_redundant_transfers.cc).
  struct DropRedundantTransfers {
    bool enabled = true;
    // Targets tried; each asks for the bytes fewer by which the layout before
    // it lay over the budget.
    int most_tries = 5;
  } drop_redundant_transfers;

  // Choice of budgets and modes, and what each gets of the work
  // (planner/solve/).
  struct Bisection {
    // Points between budgets of 0 and 100 % of the given order's peak: quarter
    // percents.
    int points = 400;
    // If a layout with everything kept needs more times the peak than this, as
    // with an alignment far above all bytes, the points divide that layout's
    // bytes instead. Training steps need less than 1.1 times.
    int most_peaks = 16;
    // Round distances between points, roundest first, and the share of the work
    // limit that a search at such a point gets. A bisection meets two to four
    // points of the first distance.
    struct Roundness {
      int distance = 1;
      double share = 0;
    };
    std::array<Roundness, 5> roundness = {
        Roundness{40, 0.5}, Roundness{20, 0.12}, Roundness{4, 0.06},
        Roundness{2, 0.03}, Roundness{1, 0.03}};
    // Between these shares of the peak plans are hard to find and to lay out:
    // `tight_factor` times the work. Below them more work only takes longer.
    double least_tight_share = 0.2;
    double most_tight_share = 0.4;
    double tight_factor = 1.4;

    // Continues between two neighbouring points, byte by byte, where the lower
    // has no plan or a much slower one: a problem may just fit by a copy of a
    // few bytes.
    bool search_between_points = true;
    // Much slower: by more than this share of the step.
    double steep_share = 5e-3;
    // Budgets there are not distinguished below this part of a point; the share
    // of the work limit that each search there gets.
    int grains_per_point = 16;
    double grain_share = 0.03;

    // Modes besides the one asked for, whose plans are starts for it, and their
    // shares of a point's work. The mode asked for gets what is left.
    //
    // Orders alone, where nothing can be copied: an order that fits needs no
    // reruns, and is hard to find among them. On top of the point's work.
    bool orders_mode = true;
    double orders_share = 0.2;
    // Recomputation alone and copies alone, where both are allowed.
    bool recompute_mode = true;
    double recompute_share = 0.15;
    bool copies_mode = true;
    double copies_share = 0.05;
    // Both with copy lanes that never slow each other down, where the lanes are
    // coupled: edits cost far less to price. The share is of the joint mode's
    // work. With fewer nodes than this edits are cheap in either case.
    bool apart_lanes_mode = true;
    double apart_lanes_share = 0.5;
    size_t least_apart_lanes_nodes = 100;

    // Searches with fewer bytes after finds that cannot be laid out.
    bool layout_retries = true;
    int most_layout_tries = 5;
    // Then, while the fastest find that could not be laid out is faster than
    // the plan that is known by this share of the plan's step, so many whole
    // searches with fewer bytes. Without them a 7B model at 50 % has a plan of
    // 3,211 ms where there is one of 1,550 ms, and no plan of fewer bytes is
    // faster than that (budget_bisection.h).
    double worth_whole_search = 0.02;
    int whole_layout_tries = 4;
    // Shares of the mode's work: the first search (problems without addresses
    // need no others, and give it all; what is searched by layers is repaired
    // with little), and each later one. If the first find can be laid out at
    // once, one more search from it gets what the first has left.
    double first_share = 0.5;
    double layered_first_share = 0.8;
    double retry_share = 0.12;
    // The next target is lower by this share of the bytes by which the layout
    // was too high, and by so much more after each failure: in the end one
    // fits.
    double retry_step = 0.6;
    double retry_growth = 0.3;
    // Where layers are expanded a search costs much more than its work says,
    // and a layout too: a larger step, fewer finds laid out, and no further try
    // once the step is within `layered_negligible` of the find's.
    double layered_retry_step = 1.2;
    int layered_finds = 2;
    double layered_negligible = 5e-4;
    // Targets closer than 1/same_budget_part of the budget are the same.
    int64_t same_budget_part = 1000;
    // Finds whose pressure is reduced where they lie too high (ReducePressure),
    // and the share of the mode's work that each gets. On gen5 at 20 % with 3
    // million units, 0.03 leaves one seed of four without a plan, 0.1 none.
    int pressure_finds = 2;
    double pressure_share = 0.1;
    // A layout may examine this many neighbours per unit of the search's work,
    // but at least `least_pack_work`: it takes a small part of the search's
    // time, and a layout that fits saves further searches.
    int64_t pack_work_per_unit = 2;
    int64_t least_pack_work = 2000;

    // With a time limit: work of the first round, and how much more each round
    // may have: few rounds, because longer anneals end lower. The last is to
    // take `timed_fill` of the time left, and no round more than anybody waits
    // for: rounds with nothing left to search take no time.
    double first_timed_work = 2e5;
    // If after this share of the time there is no plan, one is made from the
    // plan of the fewest bytes, if that fits (smallest_start.cc).
    double timed_find_share = 0.3;
    // Each thread has a walk in the rounds: at most so many. On two cores,
    // overheads of six random layered graphs of 500 and 1,000 nodes sum to 16.1
    // and not 16.5 % (10 s each); three end lower and three higher.
    int most_timed_walks = 8;
    double timed_growth = 8;
    double timed_fill = 0.85;
    double last_timed_work = 1e15;
    // Of a time limit: the share for the bound and for checks after the search,
    // at least `finish_setups` times what layouts and models took before it, at
    // most a quarter.
    double finish_share = 0.05;
    double finish_setups = 2;
    // Simplex iterations times nodes that a second is good for. With fewer
    // iterations than the first of these, no linear program proves anything;
    // with fewer than the second, there is no time to rank cuts either.
    double bound_node_iterations_per_s = 3e6;
    int64_t least_bound_iterations = 1000;
    int64_t least_ranking_iterations = 60;
  } bisection;

  // Search over a few of many equal layers (planner/layers/).
  struct Layers {
    // Plans all layers as a few of them are planned. A 7B of 32 layers is not
    // searched well without it.
    bool enabled = true;

    // Detection (find_layers.cc). How far the compared neighbourhoods of nodes
    // reach, the fewest equal stretches that are a run, periods tried from each
    // start, and stretches that a run may lack near the ends.
    int neighbourhood = 2;
    int least_stretches = 6;
    int most_periods = 16;
    int missing_stretches = 4;

    // Problems that are searched by layers: from this many nodes on, or with
    // less work per node. At the default work the first decides.
    int64_t many_nodes = 3000;
    int64_t little_work_per_node = 1000;
    // Nodes left after coarsening, fewer where the search would not have this
    // much work for each; and the limits on layers left.
    int64_t few_nodes = 1200;
    int64_t enough_work_per_node = 8000;
    int64_t least_layers = 8;
    int64_t most_layers = 100;
    // Ways to match all layers to the few: the middle in so many blocks.
    std::array<int, 3> blocks = {1, 2, 4};

    // Rounds of one search: each corrects the bytes of the few layers by what
    // the expanded schedule needs (layer_search.cc). After so many rounds in a
    // row without a find there is none.
    int most_rounds = 6;
    int most_misses = 2;
    // Searches of the few layers at so many sixteenths of their bytes: where
    // greedy descents get stuck, they often do not a little lower, and the way
    // back up is easy.
    std::array<int, 3> target_sixteenths = {16, 14, 16};
    // Shares of the work: the first searches, and each one after a correction;
    // more than for a whole problem, because all layers gain by it. And the
    // least of the latter, in edits per node.
    double first_share = 1.5;
    double repair_share = 0.25;
    int64_t least_repair_edits_per_node = 50;
    // Parts of the target: this near to it ends the rounds, and this near above
    // it all layers are lowered edit by edit.
    int64_t nearly_full_part = 500;
    int64_t tunable_part = 20;
    // A schedule that could not be laid out is followed by one lower by this
    // part of the target.
    int64_t layout_step_part = 1000;
    // Edits that lower and clean up an expanded schedule, and the price of lane
    // time there, in step time.
    int64_t tuned_edits = 1000;
    double lane_price = 0.05;
    // Also tries each expanded schedule with its copies scheduled again
    // (schedule_copies.cc): copies of neighbouring layers may crowd a lane.
    bool schedule_copies = true;
    // Expanded schedules whose few layers are remembered as later starts.
    size_t most_remembered = 64;
    // Continues the search over all layers at once, where there is this much
    // work per node: single layers gain by it.
    bool improve_all = true;
    int64_t least_improvement_work_per_node = 50;
    // A gain below this share of the step is not worth another round.
    double negligible = 1e-5;
  } layers;

  // Lowering to addresses and fitting into the budget (planner/layout/).
  struct Layout {
    // Most neighbours that one layout examines (planner/pack).
    int64_t pack_work = 1'000'000;
    // Before a further layout, bytes above these shares of the budget are
    // reduced, as long as each share more than halves what is too high.
    std::array<double, 2> pressure_targets = {0.9, 0.85};
    // Fewer moves per item than this change too little.
    int64_t least_pressure_moves_per_item = 8;
  } layout;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SEARCH_TUNING_H_
