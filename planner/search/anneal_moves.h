// The random moves of the annealing: shift an item, insert or remove a rerun, a
// copy or a codec, exchange them, change a variant or a home.
#ifndef LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_
#define LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_

#include <vector>

#include "planner/base/random.h"
#include "planner/search/edits.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// What the annealing accepts now: moves that cannot pay are not tried.
struct MoveLimits {
  double allowed_ns = 0;  // the most energy that the move may add
  double lambda = 0;      // price of excess area over the target
  double step_ns = 0;     // before the move
};

class Moves {
 public:
  // Both arguments must outlive it.
  Moves(SearchState& state, Random& random);

  // Values of more than 0 bytes.
  const std::vector<int>& values() const { return values_; }

  // Draws one move and leaves it pending; false if it could not be made.
  bool Propose(const MoveLimits& limits);
  // Updates the lists that moves are drawn from. No edit may be pending.
  void Refresh();

 private:
  // Shifts and drags, in anneal_shifts.cc.
  bool PlaceBefore(int item, int slot);
  // An item that accesses a value which the job reads or makes; -1: none.
  int PickNeighbour(int job);
  // The slots between which a run may move without breaking a first read.
  void Window(int item, int* lower, int* upper) const;
  // Raises `lower` beyond all accesses of the value by other items.
  void AfterAccesses(int value, int item, int* lower) const;
  bool Shift();
  // By a few items.
  bool Nudge(int item, int lower, int upper);
  bool ShiftCopy();
  bool Accesses(int item, int value) const;
  // Moves a run far, together with the first runs that block it.
  bool Drag();
  bool DragLeft(int item, int before, int* budget);
  bool DragRight(int item, int after, int* budget);

  // All others, in anneal_moves.cc.
  int Pick(const std::vector<int>& list);
  bool IsRun(int item) const;
  // The jobs that the item could run as; none for a copy or a codec.
  const std::vector<int>& JobsOf(int item) const;
  bool ChangeVariant();
  // A slot over the target, or close below it if there is none; -1: none.
  int PickHigh();
  bool PickGap(int slot, Gap* gap);
  double DrawLead();
  ChainLimits DrawLimits();
  void LimitTime(const Gap& gap, double removed_ns, ChainLimits* limits);
  bool FreeGap(const Gap& gap, int slot, bool copy, double removed_ns);
  bool Free();
  int PickExtra();
  bool Drop();
  // Removes a rerun or copy; then frees the same value by other means, or
  // another value at a slot where the first was absent.
  bool Replace();
  bool ChangeHome();

  SearchState& state_;
  const SearchModel& model_;
  const SearchTuning::Moves& tuning_;
  Random& random_;
  bool copies_ = false, codecs_ = false;
  const std::vector<int> no_jobs_;
  std::vector<int> homes_;   // chains that may live on the host
  std::vector<int> values_;  // of more than 0 bytes
  // Items as of the last Refresh; some may be gone since.
  std::vector<int> runs_, copy_items_, extras_;
  std::vector<int> with_variants_;  // runs of nodes with several jobs
  std::vector<int> over_, near_;    // over the target, close to it
  MoveLimits limits_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_ANNEAL_MOVES_H_
