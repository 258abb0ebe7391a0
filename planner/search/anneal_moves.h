// The moves of the annealing, drawn at random.
#ifndef LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_
#define LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_

#include <vector>

#include "planner/base/random.h"
#include "planner/search/edits.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// Where a run stands that draws moves: what cannot pay is not tried.
struct MoveLimits {
  double allowed_ns = 0;  // what the move may cost
  double lambda = 0;      // price of excess area over the target
  double step_ns = 0;     // before the move
};

class Moves {
 public:
  // Both must outlive it.
  Moves(SearchState& state, Random& random);

  // Values that take bytes.
  const std::vector<int>& values() const { return values_; }

  // Draws one move and leaves it pending; false if it came to nothing.
  bool Propose(const MoveLimits& limits);
  // Brings the lists that moves are drawn from up to date.
  void Refresh();

 private:
  // Shifts and drags, in anneal_shifts.cc.
  bool PlaceBefore(int item, int slot);
  // A touch of a value that `node` reads or makes.
  int PickNeighbour(int node);
  // Slots between which a run may stand without breaking a first read.
  void Window(int item, int* lower, int* upper) const;
  bool Shift();
  // By a few items.
  bool Nudge(int item, int lower, int upper);
  bool ShiftToken();
  bool Touches(int item, int value) const;
  // Moves a run far, with the first runs that block its way.
  bool Drag();
  bool DragLeft(int item, int before, int* budget);
  bool DragRight(int item, int after, int* budget);

  // All others.
  int Pick(const std::vector<int>& list);
  bool IsRun(int item) const;
  // The jobs that the item might run as; none for a token or a codec.
  const std::vector<int>& WaysOf(int item) const;
  bool ChangeWay();
  // A slot over the target, or close below it if there is none.
  int PickHigh();
  bool PickGap(int slot, Gap* gap);
  double DrawLead();
  ChainLimits DrawLimits();
  bool FreeGap(const Gap& gap, int slot, bool copy, double removed_ns);
  bool Free();
  int PickExtra();
  bool Drop();
  // Takes a rerun or copy out; frees the same value another way, or another
  // value at a point the first was away from.
  bool Replace();
  bool ChangeHome();

  SearchState& state_;
  const SearchModel& model_;
  Random& random_;
  bool copies_ = false, codecs_ = false;
  const std::vector<int> none_;
  std::vector<int> homes_, values_;
  std::vector<int> runs_, extras_, permissions_, tokens_, over_, near_;
  MoveLimits limits_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_
