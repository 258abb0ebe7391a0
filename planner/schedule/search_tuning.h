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

    // Annealing from an order. Worth 6 to 18 points on the 7B.
    bool cold_anneal = true;
    double cold_share = 0.45;
    double cold_share_with_copies = 0.52;
    Cooling cold = {};
    // Cooler: with copies the order from the start is near enough.
    Cooling cold_with_copies = {.first_temperature = 0.35};
    // Fewer moves per node cannot settle an order: skipped if a plan is known.
    int64_t least_cold_moves_per_node = 60;
    // One anneal per so many moves per node: which local optimum an anneal ends
    // in is luck, so several are tried where each is long enough.
    int64_t moves_per_cold_anneal_per_node = 800;
    int64_t most_cold_anneals = 4;

    // Annealing from the plan of the next larger budget.
    bool warm_anneal = true;
    double warm_share = 0.15;
    Cooling warm = {.first_temperature = 0.2, .first_lambda = 1};

    // A short anneal at low temperature around the best schedule.
    bool polish = true;
    double polish_share = 0.1;
    Cooling polish_cooling = {.first_temperature = 0.08, .first_lambda = 6};

    // Anneals from the best schedule over what remains of the work, in equal
    // parts. Worth 0.16 points on RLG2 (0.57 against 0.73 %).
    bool reheat = true;
    std::array<double, 4> reheat_temperatures = {0.1, 0.2, 0.05, 0.1};
    Cooling reheat_cooling = {.first_lambda = 3};  // temperature: the list's
    // One reheat where no plan is known yet, from where the last anneal ended:
    // probably there is no plan, so a high price of excess area must decide.
    Cooling unfinished = {
        .first_temperature = 0.2, .first_lambda = 3, .last_lambda = 600};

    // A descent where an anneal ends a little above the target; it may spend
    // work / finish_part.
    bool finish_greedily = true;
    int64_t finish_part = 50;

    // Repairs: a descent with half of the work and a polish of the given
    // schedule, for schedules that are close to what is wanted.
    bool repair = true;
    double repair_share = 0.5;

    // Shorter anneals are skipped: they only cost the set-up.
    int64_t least_moves = 200;
    // A bound counts as met within this share of it (rounding of the solver).
    double bound_rounding = 1e-7;
  } point;

  // Choice of budgets and modes, and what each gets of the work
  // (planner/solve/).
  struct Bisection {
  } bisection;

  // Search over a few of many equal layers (planner/layers/).
  struct Layers {
  } layers;

  // Lowering to addresses and fitting into the budget (planner/layout/).
  struct Layout {
  } layout;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SEARCH_TUNING_H_
