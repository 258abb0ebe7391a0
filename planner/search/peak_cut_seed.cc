// See peak_cut_seed.h. Local edits free one value at a time. Where a value is
// cheap to recompute only from others that are gone too (a residual stream,
// layer by layer), no such edit helps alone. This program decides all of them
// at once. A value that is not kept is rerun before its first read after the
// highest point, after the inputs that this rerun needs, so that layer after
// layer comes back when it is read. Tested in peak_cut_seed_test.cc.
#include "planner/search/peak_cut_seed.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/bound/mip.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

class PeakCutProgram {
 public:
  PeakCutProgram(const SearchModel& model, const Schedule& order)
      : model_(model),
        tuning_(model.tuning.peak_cut_seed),
        order_(order),
        lives_(FindLifetimes(model, order)) {}

  PeakCutSeed Run(int64_t target_bytes, const PeakCutSeedOptions& options) {
    PeakCutSeed seed;
    if (!lives_.valid) return seed;
    cut_ = static_cast<int>(
        std::max_element(lives_.live_bytes.begin(), lives_.live_bytes.end()) -
        lives_.live_bytes.begin());
    const int64_t excess_bytes = lives_.live_bytes[cut_] - target_bytes;
    if (excess_bytes <= 0) return seed;
    FindValues();
    AddRows(static_cast<double>(excess_bytes));
    const MipBound found =
        options.rounded
            ? SolveLp(program_, {options.iteration_limit}, true)
            : SolveMip(program_, {options.iteration_limit}, kNoLimit);
    seed.iterations = found.iterations;
    if (found.x.empty()) return seed;
    for (const std::vector<int>& values : {idle_, dead_}) {
      for (int v : values) {
        there_[v] =
            Chosen(found, columns_[v].keep) || Chosen(found, columns_[v].host);
      }
    }
    Schedule schedule;
    schedule.host_home = order_.host_home;
    if (Write(schedule.items)) seed.schedule = std::move(schedule);
    return seed;
  }

 private:
  // The decisions about one value, as columns of the program; -1: none.
  struct Columns {
    bool decided = false;  // by the program
    int keep = -1;         // on the device at the cut
    int host = -1;         // on the host then
  };

  static bool Chosen(const MipBound& found, int column) {
    return column >= 0 && found.x[column] > 0.5;
  }

  double Unit() const { return static_cast<double>(model_.compute_ns) / 1000; }

  int JobOf(int v) const {
    const int node = model_.producer[v];
    return node < 0 ? -1 : job_[node];
  }
  bool MayRerun(int v) const {
    return JobOf(v) >= 0 && model_.may_rerun[JobOf(v)] != 0;
  }

  // The program decides about the values that are idle at the cut, and about
  // inputs that might be kept in their place.
  void FindValues() {
    columns_.resize(model_.value_count);
    there_.assign(model_.value_count, 0);
    rerun_.assign(model_.node_count, -1);
    job_.assign(model_.node_count, -1);
    for (const Item& item : order_.items) {
      job_[model_.jobs[item.id].node] = item.id;
    }
    std::vector<char> busy(lives_.instances.size(), 0);
    for (int i : lives_.reads[cut_]) busy[i] = 1;
    for (int i : lives_.makes[cut_]) busy[i] = 1;
    for (size_t i = 0; i < lives_.instances.size(); ++i) {
      const Instance& instance = lives_.instances[i];
      if (instance.lower > cut_ || instance.upper <= cut_) continue;
      const int v = instance.value;
      there_[v] = 1;
      if (busy[i] != 0 || instance.last) continue;
      if (MayRerun(v) || model_.may_copy[v] != 0) Decide(v, idle_);
    }
    // Inputs of what may run again; those that are there need no decision.
    std::vector<int> open = idle_;
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (!MayRerun(v) || rerun_[model_.producer[v]] >= 0) continue;
      rerun_[model_.producer[v]] = program_.AddColumn(
          static_cast<double>(model_.node_ns[JobOf(v)]) / Unit(), 0, 1, true);
      for (int input : model_.reads[JobOf(v)]) {
        if (columns_[input].decided || there_[input] != 0) continue;
        Decide(input, dead_);
        open.push_back(input);
      }
    }
  }

  void Decide(int v, std::vector<int>& values) {
    values.push_back(v);
    columns_[v].decided = true;
    // An old version that has been replaced cannot be there.
    if (model_.chain_of[v] < 0 || there_[v] != 0) {
      columns_[v].keep = program_.AddColumn(0, 0, 1, true);
    }
    if (model_.may_copy[v] != 0) {
      columns_[v].host = program_.AddColumn(
          tuning_.lane_price * (model_.out_ns[v] + model_.in_ns[v]) / Unit(), 0,
          1, true);
    }
  }

  // keep + host + rerun of the value, as far as there are such columns.
  std::vector<Term> SourcesOf(int v) const {
    std::vector<Term> terms;
    if (columns_[v].keep >= 0) terms.push_back({columns_[v].keep, 1});
    if (columns_[v].host >= 0) terms.push_back({columns_[v].host, 1});
    const int node = model_.producer[v];
    if (node >= 0 && rerun_[node] >= 0) terms.push_back({rerun_[node], 1});
    return terms;
  }

  void AddRows(double excess_bytes) {
    for (int v : idle_) program_.AddRow(1, kNoLimit, SourcesOf(v));
    for (int node = 0; node < model_.node_count; ++node) {
      if (rerun_[node] < 0) continue;
      for (int input : model_.reads[job_[node]]) {
        if (!columns_[input].decided) continue;
        std::vector<Term> terms = SourcesOf(input);
        terms.push_back({rerun_[node], -1});
        program_.AddRow(0, kNoLimit, terms);
      }
    }
    // What is freed, less what is kept instead.
    std::vector<Term> kept;
    double idle = 0;
    for (const std::vector<int>& values : {idle_, dead_}) {
      for (int v : values) {
        const double part = static_cast<double>(model_.bytes[v]) / excess_bytes;
        idle += there_[v] != 0 ? part : 0;
        if (columns_[v].keep >= 0) kept.push_back({columns_[v].keep, part});
      }
    }
    program_.AddRow(-kNoLimit, idle - 1, kept);
    AddLane(model_.out_ns, 0, cut_);
    AddLane(model_.in_ns, cut_, static_cast<int>(order_.items.size()));
  }

  // Copies of one direction during the runs of [first, last). What does not fit
  // into that time lengthens the step.
  void AddLane(const std::vector<double>& copy_ns, int first, int last) {
    double runs_ns = 0;
    for (int at = first; at < last; ++at) {
      runs_ns += static_cast<double>(model_.node_ns[order_.items[at].id]);
    }
    std::vector<Term> terms;
    for (size_t v = 0; v < columns_.size(); ++v) {
      if (columns_[v].host < 0) continue;
      terms.push_back({columns_[v].host, copy_ns[v] / Unit()});
    }
    if (terms.empty()) return;
    terms.push_back({program_.AddColumn(1, 0, kNoLimit, false), -1});
    program_.AddRow(-kNoLimit, tuning_.lane_share * runs_ns / Unit(), terms);
  }

  // False if a node would have to run again that may not.
  bool Write(std::vector<Item>& items) {
    for (size_t at = 0; at < order_.items.size(); ++at) {
      const Item& item = order_.items[at];
      const bool after_cut = static_cast<int>(at) > cut_;
      for (int v : model_.reads[item.id]) {
        if (after_cut && !Bring(v, items)) return false;
      }
      items.push_back(item);
      if (!after_cut) continue;
      for (int v : model_.makes[item.id]) there_[v] = 1;
    }
    return true;
  }

  // Reruns nodes until the value is there.
  bool Bring(int value, std::vector<Item>& items) {
    std::vector<int> stack = {value};
    while (!stack.empty()) {
      const int v = stack.back();
      const size_t depth = stack.size();
      if (there_[v] == 0) {
        if (!MayRerun(v)) return false;
        for (int input : model_.reads[JobOf(v)]) {
          if (there_[input] == 0) stack.push_back(input);
        }
        if (stack.size() > depth) continue;
        items.push_back({ItemKind::kRun, JobOf(v)});
        for (int made : model_.makes[JobOf(v)]) there_[made] = 1;
      }
      stack.pop_back();
    }
    return true;
  }

  const SearchModel& model_;
  const SearchTuning::PeakCutSeed& tuning_;
  const Schedule& order_;
  const Lifetimes lives_;
  MipProgram program_;
  int cut_ = 0;
  std::vector<int> idle_, dead_;  // values decided about
  std::vector<Columns> columns_;  // by value
  std::vector<int> rerun_;        // by node: column
  std::vector<int> job_;          // by node: that the order runs
  std::vector<char> there_;       // by value: may be read after the cut
};

}  // namespace

PeakCutSeed SeedFromPeakCut(const SearchModel& model, const Schedule& order,
                            int64_t target_bytes,
                            const PeakCutSeedOptions& options) {
  return PeakCutProgram(model, order).Run(target_bytes, options);
}

}  // namespace loadline::planner
