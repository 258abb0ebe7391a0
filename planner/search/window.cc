// See window.h: which windows exist, and in which order they are solved.
// Tested in window_test.cc.
#include "planner/search/window.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/edits.h"
#include "planner/search/window_search.h"

namespace loadline::planner {
namespace {

// The items that windows consist of, in order: all but Outs and the first runs
// of nodes.
std::vector<int> OptionalItems(const SearchState& state) {
  const SearchModel& model = state.model();
  std::vector<char> ran(model.node_count, 0);
  std::vector<int> items;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item& what = state.item(item);
    const int node =
        what.kind == ItemKind::kRun ? model.jobs[what.id].node : -1;
    if (what.kind != ItemKind::kOut && (node < 0 || ran[node])) {
      items.push_back(item);
    }
    if (node >= 0) ran[node] = 1;
  }
  return items;
}

// Time besides the first runs of all nodes (reruns, codecs, waiting), up to
// each of the items and, last, up to the end.
std::vector<double> ExtraNs(SearchState& state, const std::vector<int>& items) {
  std::vector<double> extra;
  size_t next = 0;
  double sum = 0, passed = 0;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item& what = state.item(item);
    const double run_ns =
        what.kind == ItemKind::kRun
            ? static_cast<double>(state.model().node_ns[what.id])
            : 0;
    // Without copies nothing waits, and the state has no times.
    const double now =
        state.copy_count() > 0 ? state.PassedNs(item) : passed + run_ns;
    const bool optional = next < items.size() && items[next] == item;
    sum += now - passed - (optional ? 0 : run_ns);
    passed = now;
    if (optional) {
      ++next;
      extra.push_back(sum);
    }
  }
  extra.push_back(sum);
  return extra;
}

// Removes the items as far as the schedule stays valid; returns how many.
int Drop(SearchState& state, const std::vector<int>& items) {
  int dropped = 0;
  for (int item : items) {
    if (!state.alive(item)) continue;  // removed with another
    const Item what = state.item(item);
    const int chain =
        what.kind == ItemKind::kIn ? state.model().chain_of[what.id] : -1;
    const size_t mark = state.Mark();
    const bool done = chain >= 0 && state.host_home(chain)
                          ? EditUnhome(state, chain)
                          : EditDrop(state, item);
    if (done && state.valid()) {
      ++dropped;
    } else {
      state.Undo(mark);
    }
  }
  return dropped;
}

class Windows {
 public:
  Windows(SearchState& state, const WindowOptions& options, WorkBudget& effort)
      : state_(state),
        tuning_(state.model().tuning.window),
        options_(options),
        effort_(effort) {}

  WindowReport Run() {
    if (!state_.valid() || state_.excess_area() > 0) return report_;
    state_.Respread();
    for (int size = tuning_.least_items; size <= tuning_.most_items;
         size += size / 2) {
      const WindowReport before = report_;
      while (Pass(size) && !effort_.Spent()) {
      }
      const int searched = report_.searched - before.searched;
      if (effort_.Spent() ||
          2 * (report_.finished - before.finished) < searched ||
          size >= static_cast<int>(OptionalItems(state_).size())) {
        break;
      }
    }
    return report_;
  }

 private:
  // Solves all windows of the size; true if one improved.
  bool Pass(int size) {
    const int improved = report_.improved;
    for (int start : Starts(size)) {
      if (effort_.Spent() || AtFloor()) return false;
      const std::vector<int> items = OptionalItems(state_);
      const int count = static_cast<int>(items.size());
      if (start >= count) continue;
      Solve({items.begin() + start,
             items.begin() + std::min(count, start + size)});
    }
    return report_.improved > improved;
  }

  bool AtFloor() {
    return std::round(state_.Makespan()) <=
           std::max(options_.floor_ns,
                    static_cast<double>(state_.model().compute_ns));
  }

  // Half a window apart, the most time in it first.
  std::vector<int> Starts(int size) {
    const std::vector<int> items = OptionalItems(state_);
    const int count = static_cast<int>(items.size());
    const std::vector<double> extra = ExtraNs(state_, items);
    std::vector<std::pair<double, int>> starts;
    for (int at = 0; at < count; at += std::max(1, size / 2)) {
      const int last = std::min(count, at + size) - 1;
      // Compute waits for a copy back after the copy's item.
      const double ns = extra[last + 1] - (at > 0 ? extra[at - 1] : 0);
      if (ns > 0) starts.emplace_back(-ns, at);
      if (last == count - 1) break;
    }
    std::sort(starts.begin(), starts.end());
    std::vector<int> result;
    result.reserve(starts.size());
    for (const auto& [ns, at] : starts) result.push_back(at);
    return result;
  }

  void Solve(const std::vector<int>& items) {
    const Schedule old = state_.ToSchedule();
    const double old_ns = state_.Makespan();
    const int dropped = Drop(state_, items);
    if (dropped == 0) return;
    state_.Commit();
    WorkBudget effort = effort_;
    effort.left = std::min(effort_.left, options_.window_work);
    const int64_t granted = effort.left;
    std::optional<Schedule> best;
    const WindowGoal goal = {dropped + tuning_.spare_steps, old_ns,
                             options_.floor_ns};
    ++report_.searched;
    report_.finished += SearchWindow(state_, goal, effort, &best);
    report_.improved += best.has_value();
    effort_.left -= granted - effort.left;
    state_.Load(best ? *best : old);
  }

  SearchState& state_;
  const SearchTuning::Window& tuning_;
  const WindowOptions options_;
  WorkBudget& effort_;
  WindowReport report_;
};

}  // namespace

WindowReport ImproveWindows(SearchState& state, const WindowOptions& options,
                            WorkBudget& effort) {
  return Windows(state, options, effort).Run();
}

}  // namespace loadline::planner
