// A Schedule under search: any item can be inserted, removed or moved, and the
// bytes by position, the excess area over the target, the compute time, the
// broken rules and the times of the lanes follow incrementally.
//
// Items sit in slots of an array with gaps, so that an edit shifts nothing.
// The bytes of one value over time depend on that value's own accesses only
// (who makes it, who reads it, in slot order). Edits form a transaction: they
// change accesses at once, but the bytes by slot only note where they would
// change (search_memory.h). Commit writes them, Undo forgets them: most
// candidates are rejected, and rejecting one costs little. The lanes are
// simulated from the first changed item on, against the times of the committed
// state, and only until the step is surely too long.
#ifndef LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_
#define LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/schedule/schedule.h"
#include "planner/search/search_memory.h"

namespace loadline::planner {

// How an item accesses a value.
enum AccessFlag : uint8_t {
  kMakes = 1,       // a Run of the producer or of a decode, or an In
  kFromHost = 2,    // an In
  kToHost = 4,      // an Out
  kUpdates = 8,     // replaces the value by its next version
  kTakesOver = 16,  // if the value dies here, an output has its bytes
};

// One use of one value, or of an encoded form, by one item.
struct Access {
  int slot = 0;
  int item = 0;
  uint8_t flags = 0;
  bool makes() const { return (flags & kMakes) != 0; }
};

class SearchState {
 public:
  SearchState(const SearchModel& model, const Schedule& schedule,
              int64_t target_bytes);

  Schedule ToSchedule() const;
  // Replaces everything, uncommitted edits included.
  void Load(const Schedule& schedule);
  // No edit may be pending.
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

  // Undo back to an earlier Mark; 0 is the committed state.
  size_t Mark() const { return log_.size(); }
  void Undo(size_t mark);
  void Commit();
  // Spaces the items evenly again. No edit may be pending.
  void Respread();

  // With the pending edits:
  bool valid() const { return broken_ == 0 && host_bytes_ <= host_limit_; }
  double excess_area() {
    return memory_.excess_area();
  }  // bytes x slots over the target
  // Whether the pending edits lift a slot above so many bytes.
  bool Exceeds(double bytes) { return memory_.Exceeds(bytes); }
  int64_t compute_ns() const { return compute_ns_; }
  int copy_count() const { return copy_count_; }
  // End of the last lane and SearchModel::switch_ns for each copy, or infinity
  // if that is surely above `limit_ns`. Requires valid().
  double Makespan(double limit_ns = std::numeric_limits<double>::infinity());
  double PeakBytes() const { return memory_.PeakBytes(); }

  // Of the committed state: bytes at a slot, the slot with the most, and when
  // compute has passed an item. An item of a pending insertion has the time of
  // its neighbour.
  double BytesAt(int slot) const { return memory_.at(slot); }
  int PeakSlot() { return memory_.PeakSlot(); }
  double PassedNs(int item) const { return passed_ns_[item]; }

  double target() const { return memory_.target(); }
  const SearchModel& model() const { return model_; }
  int slot_count() const { return static_cast<int>(slots_.size()); }
  int item_at(int slot) const { return slots_[slot]; }  // -1: empty
  int slot_of(int item) const { return slot_of_[item]; }
  // Neighbours in the sequence; -1 is before the first and after the last.
  int next(int item) const { return item < 0 ? head_ : next_[item]; }
  int previous(int item) const { return item < 0 ? tail_ : previous_[item]; }
  // Whether the item is in the sequence (ids of removed ones are reused).
  bool alive(int item) const {
    return item < static_cast<int>(items_.size()) && slot_of_[item] >= 0;
  }
  const Item& item(int item) const { return items_[item]; }
  const std::vector<Access>& accesses(int form) const {
    return accesses_[form];
  }
  // Whether the item brings back what was there before: a rerun, a decode, a
  // copy back.
  bool Spare(int item) const;
  bool host_home(int chain) const { return host_home_[chain]; }
  // Whether an In of the value may stand at `slot`: its bytes are on the host.
  bool OnHost(int value, int slot) const;
  int OutItem(int value) const;  // -1: none

 private:
  enum class Op : uint8_t { kInsert, kRemove, kMove, kHome };
  struct Edit {
    Op op;
    int item;  // or the chain
    int slot;  // where it was
    Item what;
  };
  struct Use {
    int value;
    uint8_t flags;
  };
  // What has come about once compute has passed an item: when that was, when
  // the copy lanes are free, and how long each lane has been idle so far.
  struct ItemTimes {
    double passed = 0, out_free = 0, in_free = 0;
    double stall = 0, out_idle = 0, in_idle = 0;
  };
  // One of two copy lanes that slow each other down.
  struct CopyLane {
    int token = -1;  // copied now, or next; -1: none is known
    bool busy = false;
    double ready_ns = 0;       // when it may start
    double moves_from_ns = 0;  // end of the latency
    double left_bytes = 0;
    int ahead = -1;  // what ended last, if compute is not at its token yet
    bool Moving(double now) const { return busy && now >= moves_from_ns; }
  };
  // How far both have been followed: at most to when compute passed.
  struct LanePair {
    double now_ns = 0;
    CopyLane out, in;
  };
  // What decides when an item can run, as of the committed state.
  struct ItemLinks {
    // Of a run, the last copy back it reads; of an Out, the run that made what
    // it copies. -1: none.
    int source = -1;
    int reach = -1;        // the last item for which its own time matters
    int next_out = -1;     // the next Out of the sequence
    uint64_t touched = 0;  // == edits_: source and reach are to be found anew
  };
  struct ValueFacts {
    double bytes;
    int chain;
    bool input, first, last, output;
  };
  static constexpr double kRounding = 0.01;  // of the sums of times, at most
  struct Counts {
    int64_t compute_ns = 0, broken = 0, host_bytes = 0;
    double out_ns = 0, in_ns = 0;
    int copy_count = 0;
  };

  const Use* UsesBegin(const Item& item);
  const Use* UsesEnd(const Item& item);
  bool HostHome(const ValueFacts& facts) const {
    return facts.chain >= 0 && host_home_[facts.chain];
  }
  void FindUses();
  // Adds (sign 1) or takes out (-1) a value's lifetimes and broken rules.
  void Sweep(int value, int sign);
  void NoteWorkspace(const Item& item, int slot, int sign);
  void CountItem(const Item& item, int sign);
  void BeginEdit(int lower, int upper);
  // Changes the accesses of all that `what` uses up to `slot`, and what they
  // say.
  template <typename Change>
  void ChangeAccesses(const Item& what, int slot, const Change& change);
  void NoteWaiters(const Use& use, int slot);
  void FinishTimes();
  Counts CountsNow() const;
  int ItemBefore(int slot) const;
  void MarkLinks(int item);
  void MarkReaders(const Use& use);
  int FindSource(int item) const;
  int FindReach(int item) const;
  void TakeLinks();
  void TakeNextOuts();
  void LoadLinks();
  int SourceOf(int item) const {
    return links_[item].touched == edits_ ? FindSource(item)
                                          : links_[item].source;
  }
  // The last slot at which it matters when `item` was ready; -1: none.
  int ReachOf(int item) const {
    const int reach =
        links_[item].touched == edits_ ? FindReach(item) : links_[item].reach;
    return reach < 0 ? -1 : slot_of_[reach];
  }
  void AddAccess(int value, Access touch);
  void MoveAccess(int value, int item, int slot);
  void DropAccess(int value, int item);
  void Link(int item, int slot);
  void Unlink(int item);
  int NewItem(Item item);
  void Restore(const Edit& edit);  // without counting
  void Reverse(const Edit& edit);  // with
  int SlideFor(int slot);
  // Compute waits until `ready`.
  static void Stall(double ready, ItemTimes& at) {
    if (ready <= at.passed) return;
    at.stall += ready - at.passed;
    at.passed = ready;
  }
  int MakerOf(int value, int slot) const;
  inline double ReadyAt(int maker) const;
  bool TooLate(const ItemTimes& at, double limit_ns) const {
    const double most = limit_ns + kRounding;
    return at.stall + static_cast<double>(compute_ns_) > most ||
           at.out_idle + out_ns_ > most || at.in_idle + in_ns_ > most;
  }
  double RunLanes(double limit_ns);
  double RunCoupledLanes(double limit_ns);
  int RestartCoupled(ItemTimes& at, LanePair& lanes) const;
  double PassedAt(int item, int restart_slot) const {
    return slot_of_[item] <= restart_slot ? times_[item].passed
                                          : trial_[item].passed;
  }
  int NextOut(int item) const;
  int NextIn(int item, int end) const;
  bool SameLanes(const LanePair& a, const LanePair& b) const;
  struct CoupledPass;
  void TakeOut(CoupledPass& pass, int token) const;
  void TakeIn(CoupledPass& pass, int token) const;
  bool StepLanes(CoupledPass& pass) const;
  void TakeTimes();

  const SearchModel& model_;
  SearchMemory memory_;
  std::vector<int> use_begin_;  // by job, into uses_
  std::vector<Use> uses_;
  Use copy_use_{};  // scratch of UsesBegin
  std::vector<ValueFacts> facts_;
  std::vector<int> slots_;
  std::vector<Item> items_;
  std::vector<int> slot_of_;  // -1: removed
  std::vector<int> next_, previous_;
  int head_ = -1, tail_ = -1;
  std::vector<int> free_items_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<int> run_count_;             // by node
  std::vector<int> in_count_, out_count_;  // by value: its tokens
  std::vector<char> host_home_;
  int64_t compute_ns_ = 0;
  double out_ns_ = 0, in_ns_ = 0;  // of all copies
  int64_t broken_ = 0;
  int64_t host_bytes_ = 0;
  int64_t host_limit_ = 0;
  int copy_count_ = 0;
  Counts committed_;
  std::vector<Edit> log_;
  int first_changed_ = 0, last_changed_ = -1;  // slots
  std::vector<ItemTimes> times_, trial_;       // by item
  std::vector<double> passed_ns_;              // by item, see PassedNs
  bool trial_done_ = false;
  int trial_begin_ = -1;
  int trial_end_ = -1;  // from this item on the times are the committed ones
  double trial_ns_ = 0, end_ns_ = 0;  // makespans
  bool times_stale_ = true;           // times_ are not the committed state's
  // By item, only where the lanes slow each other down.
  std::vector<LanePair> lanes_, trial_lanes_;
  std::vector<ItemLinks> links_;  // by item
  uint64_t edits_ = 1;            // transactions so far
  std::vector<int> touched_;      // items whose links may have changed
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_
