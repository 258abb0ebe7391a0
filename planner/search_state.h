// A Schedule under search: any item can be inserted, removed or moved, and the
// bytes by position, the area over the target, the compute time and the number
// of broken rules follow incrementally. Every edit can be undone.
//
// Items sit in slots of an array with gaps, so that an edit shifts nothing.
// The bytes of one value over time depend on that value's own touches only
// (who makes it, who reads it, in slot order), so an edit takes the values it
// touches out of the sum, changes their touches and puts them back.
#ifndef LOADLINE_PLANNER_SEARCH_STATE_H_
#define LOADLINE_PLANNER_SEARCH_STATE_H_

#include <cstdint>
#include <vector>

#include "planner/schedule.h"
#include "planner/simulate.h"

namespace loadline::planner {

// One use of one value by one item.
struct Touch {
  int item = 0;
  bool makes = false;
};

class SearchState {
 public:
  SearchState(const Model& model, const Schedule& schedule,
              int64_t target_bytes);

  Schedule ToSchedule() const;
  void Load(const Schedule& schedule);
  void SetTarget(int64_t target_bytes);

  // Edits. A slot must be empty to be inserted into or moved to.
  int Insert(ItemKind kind, int id, int slot);  // returns the item
  void Remove(int item);
  void Move(int item, int slot);
  void SetHome(int chain, bool host);

  // An empty slot with no item between it and `slot`, before it; slides
  // neighbours if there is none, and returns -1 if that fails too (then
  // Respread before the next try). `slot` may be slot_count() for the end.
  // Sliding changes slots: ask items for their slot again afterwards.
  int GapBefore(int slot);

  // Undo back to an earlier Mark.
  size_t Mark() const { return log_.size(); }
  void Undo(size_t mark);
  void Commit() { log_.clear(); }
  // Spaces the items evenly again. The log must be empty.
  void Respread();

  bool valid() const { return broken_ == 0 && HostFits(); }
  double area() const { return area_; }  // bytes x slots over the target
  int64_t compute_ns() const { return compute_ns_; }
  int token_count() const { return token_count_; }
  double target() const { return target_; }
  // End of the last lane; fills times by slot if asked. Requires valid().
  double Makespan();
  // When compute had passed the item at or before each slot; from Makespan
  // with UpdateTimes.
  void UpdateTimes();
  double TimeAt(int slot) const { return time_at_[slot]; }
  // Time in which compute reaches a slot at or after `ns`, by UpdateTimes.
  int SlotAtTime(double ns) const;

  int PeakSlot() const;
  double BytesAt(int slot) const { return mem_[slot]; }
  double PeakBytes() const { return mem_[PeakSlot()]; }

  const Model& model() const { return model_; }
  int slot_count() const { return static_cast<int>(slots_.size()); }
  int item_at(int slot) const { return slots_[slot]; }  // -1: empty
  int slot_of(int item) const { return slot_of_[item]; }
  const Item& item(int item) const { return items_[item]; }
  const std::vector<Touch>& touches(int value) const { return touches_[value]; }
  int run_count(int node) const { return run_count_[node]; }
  bool host_home(int chain) const { return host_home_[chain]; }
  // Whether an In of the value may stand at `slot`: its bytes are on the host.
  bool OnHost(int value, int slot) const;
  int OutItem(int value) const;  // -1: none
  int edits() const { return edits_; }

 private:
  enum class Op : uint8_t { kInsert, kRemove, kMove, kHome };
  struct Span {
    int order;  // of the value among those of the edit
    int lower, upper;
    double bytes;
  };
  struct Edit {
    Op op;
    int item;  // or the chain
    int slot;  // where it was
    Item what;
  };

  bool HostFits() const { return host_bytes_ <= host_limit_; }
  bool HostHome(int value) const {
    const int chain = model_.chain_of[value];
    return chain >= 0 && host_home_[chain];
  }
  void AddRange(int lower, int upper, double bytes);  // [lower, upper)
  // Adds (sign 1) or takes out (-1) a value's lifetimes and broken rules. The
  // lifetimes are only noted; FlushSpans then adds where old and new differ.
  void Contribute(int value, int sign);
  void FlushSpans();
  void AddDifference(int from, int to, double bytes);
  void ContributeAll(const Item& item, int sign);
  void AddTouch(int value, int item, bool makes);
  void DropTouch(int value, int item);
  void Place(int item, int slot);
  void Lift(int item);
  int NewItem(Item item);
  void ApplyHome(int chain, bool host);
  int SlideFor(int slot);

  const Model& model_;
  double target_ = 0;
  std::vector<int> slots_;
  std::vector<double> mem_;
  std::vector<Item> items_;
  std::vector<int> slot_of_;
  std::vector<int> free_items_;
  std::vector<std::vector<Touch>> touches_;
  std::vector<int> run_count_;
  std::vector<char> host_home_;
  std::vector<char> has_in_;
  double area_ = 0;
  int64_t compute_ns_ = 0;
  int64_t broken_ = 0;
  int64_t host_bytes_ = 0;
  int64_t host_limit_ = 0;
  int token_count_ = 0;
  int edits_ = 0;
  std::vector<Edit> log_;
  std::vector<Span> before_, after_;  // scratch: lifetimes taken out, added
  int before_order_ = 0, after_order_ = 0;
  LaneSimulator lanes_;
  std::vector<Item> sequence_;     // scratch
  std::vector<double> passed_ns_;  // scratch
  std::vector<double> time_at_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_STATE_H_
