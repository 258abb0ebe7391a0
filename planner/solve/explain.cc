// Each sentence states facts of the finished schedule: how long the value is
// off the device, what bringing it back costs, and whether it is alive at the
// peak. Tested in explain_test.cc.
#include "planner/solve/explain.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/base/units.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

struct Facts {
  int reruns = 0;
  int64_t rerun_ns = 0;
  int copies_in = 0;
  int copies_out = 0;
  int codec = -1;        // of an encode of the value
  int64_t codec_ns = 0;  // of all its encodes and decodes
  double away_ns = 0;    // between instances
  double last_end_ns = -1;
  bool at_peak = false;
  bool has_buffer = false;
  bool made = false;  // by its first run
};

std::vector<Facts> Gather(const SearchModel& model, const Schedule& schedule,
                          const Lifetimes& lives, const Times& times) {
  std::vector<Facts> facts(model.value_count);
  const int peak = static_cast<int>(
      std::max_element(lives.live_bytes.begin(), lives.live_bytes.end()) -
      lives.live_bytes.begin());
  const auto passed = [&](int position) {
    const bool passes = position >= 0 && !times.passed_ns.empty();
    return passes ? times.passed_ns[position] : 0.0;
  };
  for (const Instance& instance : lives.instances) {
    if (instance.value >= model.value_count) continue;  // encoded
    Facts& fact = facts[instance.value];
    if (instance.upper <= instance.lower) continue;
    if (fact.has_buffer && fact.last_end_ns >= 0) {
      fact.away_ns +=
          std::max(0.0, passed(instance.lower - 1) - fact.last_end_ns);
    }
    if (instance.made_at >= 0) {
      const Item& maker = schedule.items[instance.made_at];
      const bool runs =
          maker.kind == ItemKind::kRun && model.jobs[maker.id].node >= 0;
      if (runs && fact.made) {
        ++fact.reruns;
        fact.rerun_ns += model.node_ns[maker.id];
      }
      fact.made = fact.made || runs;
    }
    fact.has_buffer = true;
    fact.last_end_ns = passed(instance.upper - 1);
    if (instance.lower <= peak && peak < instance.upper) fact.at_peak = true;
  }
  for (const Item& item : schedule.items) {
    if (item.kind == ItemKind::kIn) ++facts[item.id].copies_in;
    if (item.kind == ItemKind::kOut) ++facts[item.id].copies_out;
    if (item.kind != ItemKind::kRun) continue;
    const Job& job = model.jobs[item.id];
    if (job.node >= 0) continue;
    facts[job.value].codec = job.codec;
    facts[job.value].codec_ns += model.node_ns[item.id];
  }
  return facts;
}

std::string TimeText(double ns) { return FormatNs(std::llround(ns)); }

}  // namespace

std::vector<Decision> Explain(const SearchModel& model,
                              const Schedule& schedule) {
  const Lifetimes lives = FindLifetimes(model, schedule);
  const Times times = FindTimes(model, schedule);
  const std::vector<Facts> facts = Gather(model, schedule, lives, times);
  const double stall =
      std::max(0.0, times.lanes_ns - static_cast<double>(times.compute_ns));
  const std::string stalls =
      stall < 1 ? "the step never waits for a copy"
                : absl::StrCat("the step waits ", TimeText(stall),
                               " for copies in all");
  std::vector<Decision> decisions;
  for (int v = 0; v < model.value_count; ++v) {
    const Facts& fact = facts[v];
    if (!fact.has_buffer) continue;
    Decision decision;
    decision.value = ValueId{v};
    const std::string bytes = FormatBytes(model.problem->values[v].bytes);
    const int chain = model.chain_of[v];
    const bool home = chain >= 0 && schedule.host_home[chain];
    if (home || fact.copies_in + fact.copies_out > 0) {
      decision.action = Action::kOffload;
      const double copy_ns =
          fact.copies_in * model.in_ns[v] + fact.copies_out * model.out_ns[v];
      decision.why =
          home ? absl::StrCat("lives on the host, ", bytes,
                              " free outside its ", "uses; ", TimeText(copy_ns),
                              " of copies, ", stalls)
               : absl::StrCat("frees ", bytes, " for ", TimeText(fact.away_ns),
                              " with ", TimeText(copy_ns), " of copies; ",
                              stalls);
    } else if (fact.codec >= 0) {
      const Codec& codec = model.stash[v][fact.codec];
      decision.action = Action::kStash;
      decision.why =
          absl::StrCat("is kept in ", FormatBytes(codec.bytes), " instead of ",
                       bytes, " for ", TimeText(fact.away_ns), " by codec ",
                       codec.name, ", at the cost of ", FormatNs(fact.codec_ns),
                       " to encode and decode");
      if (!codec.lossless) {
        absl::StrAppend(&decision.why, "; its error is up to ", codec.error);
      }
    } else if (fact.reruns > 0) {
      decision.action = Action::kRecompute;
      decision.why = absl::StrCat("frees ", bytes, " for ",
                                  TimeText(fact.away_ns), " at the cost of ",
                                  FormatNs(fact.rerun_ns), " of rerun");
    } else {
      decision.action = Action::kKeep;
      decision.why = fact.at_peak
                         ? absl::StrCat("on the device at the highest point (",
                                        FormatBytes(lives.peak_bytes),
                                        "); others were cheaper to free")
                         : "touches no tight point";
    }
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

}  // namespace loadline::planner
