// Bytes by slot and the excess area over a target, under edits that are mostly
// rejected: a pending change is only noted, the change of excess area is one
// pass over the stretches it accesses that writes nothing. Commit writes them,
// Drop forgets them. Bytes are whole numbers in doubles, so sums are exact.
// Slots form blocks that know the most and the fewest bytes in them: a stretch
// passes over those that lie wholly below or above the target, whatever its
// length.
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
  // Most of what an edit puts back is what it took out: the changes between
  // the marks `first` and `second` cancel those from `second` on.
  size_t Mark() const { return changes_.size(); }
  void Cancel(size_t first, size_t second);

  // With the pending changes.
  double excess_area();  // bytes x slots over the target
  double PeakBytes() const;
  // Whether a slot that they lift comes to lie above so many bytes.
  bool Exceeds(double bytes);
  // Without them.
  double at(int slot) const { return bytes_[slot]; }
  int PeakSlot();

  void Commit();
  void Drop();
  // Commit for as many changes as there are slots.
  void Settle();

 private:
  // The bytes change by this much from the slot on.
  struct Change {
    int slot;
    double bytes;
  };

  // Of the committed bytes of one block.
  struct Range {
    double least = 0, most = 0;
    bool known = false;  // else they are to be found anew
  };

  const Range& RangeOf(int block);
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
