// The edits that lower memory: rerun a value before its next use, copy it to
// the host and back, keep it encoded, let a persistent value live on the host,
// run another variant of a node. Each leaves its changes pending in the
// SearchState: the caller prices them, then commits or undoes. All return false
// if the edit cannot be made; the caller must undo then too.
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
  // A run inside the gap that reads the value and whose output takes over the
  // value's bytes if the value dies there; -1: none.
  int taken_item = -1;
};

// The gap of `value` around `slot`, if it is alive there and untouched, or read
// by a run that could take over its bytes.
bool FindGap(const SearchState& state, int value, int slot, Gap* gap);

// How many further reruns one rerun may need, and by which means its inputs are
// provided.
struct ChainLimits {
  int items = 1;  // reruns in all
  // Bit by bit, lowest first, one for each input that would have to stay alive
  // across a high point: 1 keeps it encoded, or copies it out and back, instead
  // of rerunning it.
  uint32_t copies = 0;
  double lead = 1.2;  // of those copies, see EditCopy
  // The most time of all reruns together, and how much more it may be where one
  // of them makes several values.
  double most_ns = std::numeric_limits<double>::infinity();
  double several_ns = 0;
};

// Runs the producer again just before the gap's end. An input that is not alive
// there is provided too (rerun, decoded or copied back) if keeping it would
// cross a point over the target.
bool EditRecompute(SearchState& state, const Gap& gap, ChainLimits limits);

// An Out after the gap's start and before `avoid_slot`, an In after it and
// before the gap's end. Each copy gets `lead` times its duration of compute
// time if the gap is long enough. If the gap starts at an In or ends at an Out,
// that copy moves instead.
bool EditCopy(SearchState& state, const Gap& gap, int avoid_slot, double lead);

// Encodes after the gap's start, with the value's coding of that index, and
// decodes before its end. Unless `again`, the decode reads an older encoded
// instance if there is one.
bool EditStash(SearchState& state, const Gap& gap, int coding, bool again);

// Replaces a run by another job (variant) of the same node, at the same slot.
void EditVariant(SearchState& state, int item, int job);

// The chain lives on the host between steps: In before its first use, Out
// after its update.
bool EditHome(SearchState& state, int chain, int avoid_slot, double lead);

// Removes one rerun, copy back, decode or encode; later reads then find the
// older instance. The last copy back also removes its Out, the last decode of
// an encoded instance its encode.
bool EditDrop(SearchState& state, int item);
// Ends the chain's home on the host, and removes its copies.
bool EditUnhome(SearchState& state, int chain);

// Keeps the chain on the device for the whole step: no home, no copies.
void EditStay(SearchState& state, int chain);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_EDITS_H_
