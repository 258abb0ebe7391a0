// Bytes by slot and the excess area over a target, under edits of which most
// are rejected. A pending change is only noted; its change of excess area takes
// one pass over the slots it covers and writes nothing. Commit writes the
// changes, Drop forgets them. Bytes are whole numbers in doubles, so sums are
// exact. Slots are grouped into blocks that know their most and fewest bytes,
// so that a pass skips blocks that lie wholly below or above the target.
#ifndef LOADLINE_PLANNER_SEARCH_SEARCH_MEMORY_H_
#define LOADLINE_PLANNER_SEARCH_SEARCH_MEMORY_H_

#include <cstddef>
#include <vector>

namespace loadline::planner {

class SearchMemory {
 public:
  // No bytes anywhere.
  void Reset(int slots);
  // No change may be pending.
  void SetTarget(double target_bytes);
  double target() const { return target_; }

  // Pending: more bytes (or fewer) over the slots [lower, upper).
  void Note(int lower, int upper, double bytes) {
    changes_.push_back({lower, bytes});
    changes_.push_back({upper, -bytes});
    merged_ = false;
  }
  // Removes pairs of opposite changes: those between the marks `first` and
  // `second` against those from `second` on. An edit puts back most of what it
  // removed.
  size_t Mark() const { return changes_.size(); }
  void Cancel(size_t first, size_t second);

  // With the pending changes.
  double excess_area();  // bytes x slots over the target
  double PeakBytes() const;
  // Whether some slot that they raise ends above so many bytes.
  bool Exceeds(double bytes);
  // By how much the excess area falls if [lower, upper) gets so many bytes
  // fewer.
  double FreedArea(int lower, int upper, double bytes);
  // Of the committed state.
  double at(int slot) const { return bytes_[slot]; }
  int PeakSlot();
  // Whether a slot of [lower, upper) is over the target.
  bool AnyOver(int lower, int upper) { return AnyAbove(lower, upper, target_); }

  void Commit();
  void Drop();
  // Commit, for about as many changes as there are slots.
  void Settle();

 private:
  // From this slot on there are so many bytes more.
  struct Change {
    int slot;
    double bytes;
  };

  // Of the committed bytes of one block.
  struct Range {
    double least = 0, most = 0;
    bool known = false;  // else computed when needed
  };

  const Range& RangeOf(int block);
  bool AnyAbove(int lower, int upper, double most_bytes);
  void Lift(int lower, int upper, double bytes);
  double AreaOver(int lower, int upper, double bytes);
  double AreaWithin(int lower, int upper, double bytes) const;
  void SortChanges();
  void MergeChanges();

  double target_ = 0;
  std::vector<double> bytes_;  // committed
  std::vector<Range> ranges_;  // by block
  double excess_area_ = 0;     // committed
  std::vector<Change> changes_;
  bool merged_ = true;  // changes_ are sorted and area_change_ is theirs
  double area_change_ = 0;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_SEARCH_MEMORY_H_
