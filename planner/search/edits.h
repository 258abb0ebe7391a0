// The edits that lower memory: rerun a value before its next use, copy it to
// the host and back, keep it encoded, let a persistent value live on the host,
// run a node another way. Each is a
// transaction on the SearchState's log: the caller prices it and commits or
// undoes it. All return false if the edit cannot be made; then undo too.
#ifndef LOADLINE_PLANNER_SEARCH_EDITS_H_
#define LOADLINE_PLANNER_SEARCH_EDITS_H_

#include <cstdint>
#include <limits>

#include "planner/search/search_state.h"

namespace loadline::planner {

// A stretch over which a value is alive and nothing accesses it.
struct Gap {
  int value = 0;
  int from_item = -1;  // -1: from the start of the step
  int to_item = -1;    // -1: to the end of the step
  int from_slot = -1;
  int to_slot = 0;  // idle over (from_slot, to_slot)
  // The run in between, the first of the gap, whose output has the value's
  // bytes if the value dies there; -1: none.
  int taken_item = -1;
};

// The gap of `value` around `slot`, if it is alive there and untouched, or read
// by a run that could take over its bytes.
bool FindGap(const SearchState& state, int value, int slot, Gap* gap);

// How far a rerun may pull others after it.
struct ChainLimits {
  int items = 1;  // reruns in all
  // Its lowest bits say, input by input, whether one that would have to stay
  // alive for long is kept encoded, or copied out and back, instead of rerun.
  uint32_t copies = 0;
  double lead = 1.2;                                         // of those copies
  double most_ns = std::numeric_limits<double>::infinity();  // of reruns
};

// Runs the producer again just before the gap's end. Inputs that are no
// longer alive there are rerun or copied back too where keeping them would
// cross a point over the target.
bool EditRecompute(SearchState& state, const Gap& gap, ChainLimits limits);

// Out after the gap's start, In before its end, both clear of `avoid_slot`,
// with `lead` times the copy's duration of compute time left for the copy.
// Where the gap starts at an In or ends at an Out, that token moves instead.
bool EditCopy(SearchState& state, const Gap& gap, int avoid_slot, double lead);

// Encodes with that one of the model's codings after the gap's start, decodes
// before its end. Unless `again`, an older encoded instance serves once more.
bool EditStash(SearchState& state, const Gap& gap, int coding, bool again);

// Runs the node of a run as another of the node's jobs, at the same place.
void EditVariant(SearchState& state, int item, int job);

// The chain lives on the host between steps: In before its first use, Out
// after its update.
bool EditHome(SearchState& state, int chain, int avoid_slot, double lead);

// Takes out one rerun, copy, decode, encode or host home; what it served reads
// the older instance again. The last decode of an encoded instance takes the
// encode along.
bool EditDrop(SearchState& state, int item);
bool EditUnhome(SearchState& state, int chain);

// The chain is on the device throughout.
void EditStay(SearchState& state, int chain);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_EDITS_H_
