// One pass forward over the copies out, first in first out, and one backward
// over the copies back, against a clock on which compute never waits. Both at
// the rates that the lanes have while the other is busy. Tested in
// schedule_copies_test.cc.
#include "planner/layers/schedule_copies.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "planner/layers/repair_order.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

class CopyScheduler {
 public:
  CopyScheduler(const SearchModel& model, const Schedule& schedule)
      : model_(model),
        items_(schedule.items),
        host_home_(schedule.host_home),
        lives_(FindLifetimes(model, schedule)),
        count_(static_cast<int>(items_.size())) {}

  std::optional<Schedule> Run() {
    if (!lives_.valid) return std::nullopt;
    double now = 0;
    for (const Item& item : items_) {
      if (item.kind == ItemKind::kRun) {
        now += static_cast<double>(model_.node_ns[item.id]);
      }
      passed_ns_.push_back(now);
    }
    PlaceOuts();
    PlaceIns();
    // Copies for a position stand after its run, copies out first.
    std::stable_sort(places_.begin(), places_.end());
    Schedule copies_rescheduled;
    copies_rescheduled.host_home = host_home_;
    size_t next = 0;
    for (int p = -1; p < count_; ++p) {
      if (p >= 0 && items_[p].kind == ItemKind::kRun) {
        copies_rescheduled.items.push_back(items_[p]);
      }
      for (; next < places_.size() && places_[next].first == p; ++next) {
        copies_rescheduled.items.push_back(items_[places_[next].second]);
      }
    }
    return RepairOrder(model_, std::move(copies_rescheduled));
  }

 private:
  // The first position that compute has passed at this time or later.
  int PassedBy(double ns) const {
    const auto at = std::lower_bound(passed_ns_.begin(), passed_ns_.end(), ns);
    return std::min(count_ - 1, static_cast<int>(at - passed_ns_.begin()));
  }

  void PlaceOuts() {
    double free_ns = 0;
    for (int p = 0; p < count_; ++p) {
      if (items_[p].kind != ItemKind::kOut) continue;
      const int made_at = lives_.instances[lives_.reads[p][0]].made_at;
      free_ns = std::max(free_ns, made_at < 0 ? 0 : passed_ns_[made_at]) +
                model_.OutLeadNs(items_[p].id) / model_.bidirectional;
      places_.emplace_back(std::max(made_at, PassedBy(free_ns)), p);
    }
  }

  // The copy of the latest need first.
  void PlaceIns() {
    std::vector<int> reader(lives_.instances.size(), count_ - 1);
    for (int p = count_ - 1; p >= 0; --p) {
      for (int read : lives_.reads[p]) reader[read] = p;
    }
    double start_ns = std::numeric_limits<double>::infinity();
    for (int p = count_ - 1; p >= 0; --p) {
      if (items_[p].kind != ItemKind::kIn) continue;
      const int first = reader[lives_.makes[p][0]];
      const double needed_ns = first == 0 ? 0 : passed_ns_[first - 1];
      start_ns = std::min(start_ns, needed_ns) -
                 model_.InLeadNs(items_[p].id) / model_.bidirectional;
      // The last position that compute has passed by then.
      const auto at =
          std::upper_bound(passed_ns_.begin(), passed_ns_.end(), start_ns);
      const int place = static_cast<int>(at - passed_ns_.begin()) - 1;
      places_.emplace_back(std::min(place, first - 1), p);
    }
  }

  const SearchModel& model_;
  const std::vector<Item>& items_;
  const std::vector<char>& host_home_;
  const Lifetimes lives_;
  const int count_;
  std::vector<double> passed_ns_;            // by position
  std::vector<std::pair<int, int>> places_;  // (position before it, its own)
};

}  // namespace

std::optional<Schedule> ScheduleCopies(const SearchModel& model,
                                       const Schedule& schedule) {
  return CopyScheduler(model, schedule).Run();
}

}  // namespace loadline::planner
