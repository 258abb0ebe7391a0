// In a layout without holes, blocks that end together leave their bytes to
// blocks that start there: a *run* of neighbours is exchanged for another run
// of as many bytes. So the blocks of a run were neighbours, which a PQ-tree of
// the orders that are possible at one time remembers (pq_tree.h). Mostly one
// run ends at a time, and there is no choice. Where several do, blocks of equal
// bytes belong together (zero_sums.h); what cannot be told apart is exchanged
// as one run, and blocks that would have to move in memory for that stray from
// their place in the tree.
//
// A sweep over time records the exchanges; from the last one back to the first,
// offsets follow (pack_tiling_place.cc). Sweeps run forwards and backwards in
// turn. Each knows the runs that the last layout shows, and which starts the
// last sweep, for which they were ends, has found to be neighbours. Tested in
// pack_tiling_test.cc.
#include "planner/pack/pack_tiling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/base/check.h"
#include "planner/pack/zero_sums.h"

namespace loadline::planner {
namespace {

using Ids = std::vector<int>;

void TakeFrom(Ids& from, const Ids& taken) {
  for (int id : taken) std::erase(from, id);
}

// Blocks that are exchanged together.
using Sets = std::vector<Ids>;

Sets Singles(const Ids& ids) {
  Sets sets;
  for (int id : ids) sets.push_back({id});
  return sets;
}

Ids All(const Sets& sets) {
  Ids all;
  for (const Ids& set : sets) all.insert(all.end(), set.begin(), set.end());
  return all;
}

// What one sweep tells the next, by block. Numbers are of exchanges; -1: none.
struct SweepMemory {
  Ids ended_with, started_with;
  std::vector<int64_t> offsets;
};

class TilingSweep {
 public:
  // `before`: the sweep in the other direction; null in the first.
  TilingSweep(const TilingEvents& events, const SweepMemory* before,
              const PackTuning& tuning, PackWork& work)
      : events_(events),
        before_(before),
        tuning_(tuning),
        work_(work),
        tree_(events.starts[0]) {
    now_.ended_with = now_.started_with = Ids(events.bytes.size(), -1);
  }

  // nullopt: no work was left.
  std::optional<SweepMemory> Run() {
    for (int event = 1; event + 1 < static_cast<int>(events_.ends.size());
         ++event) {
      if (work_.Done()) return std::nullopt;
      const int64_t before = tree_.work();
      Exchange(event);
      work_.left -= tree_.work() - before;
    }
    now_.offsets =
        PlaceBackwards(events_, exchanges_, tree_.Order(), tuning_, work_.left);
    return std::move(now_);
  }

 private:
  void Exchange(int event) {
    event_ = event;
    Ids ends = events_.ends[event], starts = events_.starts[event];
    if (before_ != nullptr) ExchangeSeen(ends, starts);
    Sets end_sets = Singles(ends), start_sets = Singles(starts);
    while (MatchOne(end_sets, start_sets, false)) {
    }
    if (!end_sets.empty()) ExchangeRest(All(end_sets), All(start_sets));
  }

  void Record(const Ids& ends, const Ids& starts) {
    std::optional<PqTree::Replaced> replaced = tree_.Replace(ends, starts);
    LOADLINE_CHECK(replaced.has_value());
    const int number = static_cast<int>(exchanges_.size());
    for (int id : ends) now_.ended_with[id] = number;
    for (int id : starts) now_.started_with[id] = number;
    exchanges_.push_back({event_, *std::move(replaced), starts});
  }

  Ids InLayout(const Ids& ids) const {
    const std::vector<int64_t>& offsets = before_->offsets;
    Ids order;
    for (int id : ids) {
      if (offsets[id] >= 0) order.push_back(id);
    }
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return offsets[a] < offsets[b]; });
    return order;
  }

  // Runs of ends and starts with the same first and last byte in the last
  // layout, as short as possible.
  void ExchangeSeen(Ids& ends, Ids& starts) {
    struct Side {
      Ids order, run;
      size_t at = 0;
      int64_t high = 0;
    };
    Side sides[2];
    sides[0].order = InLayout(ends);
    sides[1].order = InLayout(starts);
    const auto offset = [&](const Side& side) {
      return before_->offsets[side.order[side.at]];
    };
    const auto extend = [&](Side& side) {
      side.high = offset(side) + events_.bytes[side.order[side.at]];
      side.run.push_back(side.order[side.at++]);
    };
    Side &a = sides[0], &b = sides[1];
    while (a.at < a.order.size() && b.at < b.order.size()) {
      if (offset(a) != offset(b)) {
        ++(offset(a) < offset(b) ? a : b).at;
        continue;
      }
      for (Side& side : sides) {
        side.run.clear();
        extend(side);
      }
      while (a.high != b.high) {
        Side& low = a.high < b.high ? a : b;
        if (low.at == low.order.size() || offset(low) != low.high) break;
        extend(low);
      }
      if (a.high != b.high || !tree_.CanReplace(a.run)) continue;
      Record(a.run, b.run);
      TakeFrom(ends, a.run);
      TakeFrom(starts, b.run);
    }
  }

  // Exchanges the sets of the least doubt that have equal bytes. With `force`,
  // also ends that cannot be neighbours.
  bool MatchOne(Sets& ends, Sets& starts, bool force) {
    if (ends.size() < 2 || starts.size() < 2) return false;
    std::vector<int64_t> values;
    for (const Ids& set : ends) values.push_back(events_.Bytes(set));
    for (const Ids& set : starts) values.push_back(-events_.Bytes(set));
    int64_t looked = 0;
    std::vector<ZeroSum> sums = FindZeroSums(values, tuning_, looked);
    work_.left -= looked;
    if (sums.size() > tuning_.most_sum_tries) {
      sums.resize(tuning_.most_sum_tries);
    }
    for (bool forced : {false, true}) {
      if (forced && !force) break;
      for (const ZeroSum& sum : sums) {
        std::vector<bool> in(values.size(), false);
        Sets some_ends, some_starts;
        for (int m : sum.members) {
          in[m] = true;
          const size_t start = m - ends.size();
          if (m < static_cast<int>(ends.size())) {
            some_ends.push_back(ends[m]);
          } else {
            some_starts.push_back(starts[start]);
          }
        }
        if (!forced && !tree_.CanReplace(All(some_ends))) continue;
        ExchangeStraying(All(some_ends), All(some_starts));
        size_t at = 0;
        std::erase_if(ends, [&](const Ids&) { return in[at++]; });
        std::erase_if(starts, [&](const Ids&) { return in[at++]; });
        return true;
      }
    }
    return false;
  }

  // Clusters of neighbours, the largest first.
  Sets Clusters(Ids ends) {
    Sets clusters;
    while (!ends.empty()) {
      clusters.push_back(tree_.MostConsecutive(ends));
      TakeFrom(ends, clusters.back());
    }
    return clusters;
  }

  // The starts come to the largest cluster of the ends; the other ends stray.
  void ExchangeStraying(const Ids& ends, const Ids& starts) {
    const auto remove = [&](const Ids& ids) {
      for (int id : ids) Record({id}, {});
    };
    const Sets clusters = Clusters(ends);
    for (size_t c = clusters.size(); c-- > 1;) {
      // A cluster may be one only without those after it.
      if (tree_.CanReplace(clusters[c])) {
        Record(clusters[c], {});
      } else {
        remove(clusters[c]);
      }
    }
    Ids main = clusters[0];
    while (!tree_.CanReplace(main)) {
      const Ids kept = tree_.MostConsecutive(main);
      TakeFrom(main, kept);
      remove(main);
      main = kept;
    }
    Record(main, starts);
  }

  // Starts that were neighbours when the other sweep saw them end.
  Sets StartsSeen(const Ids& starts) const {
    if (before_ == nullptr) return Singles(starts);
    std::map<int, Ids> of_exchange;
    for (int id : starts) of_exchange[before_->ended_with[id]].push_back(id);
    Sets sets;
    for (const auto& [exchange, ids] : of_exchange) {
      if (exchange < 0) {
        for (int id : ids) sets.push_back({id});
      } else {
        sets.push_back(ids);
      }
    }
    return sets;
  }

  // Exchanges of the other sweep that are possible here too.
  void ExchangeAsBefore(Ids& ends, Ids& starts) {
    std::map<int, std::pair<Ids, Ids>> runs;
    for (int id : ends) runs[before_->started_with[id]].first.push_back(id);
    for (int id : starts) runs[before_->ended_with[id]].second.push_back(id);
    for (const auto& [number, run] : runs) {
      const auto& [from, to] = run;
      if (number < 0 || from.empty() || to.empty() ||
          events_.Bytes(from) != events_.Bytes(to) || !tree_.CanReplace(from)) {
        continue;
      }
      Record(from, to);
      TakeFrom(ends, from);
      TakeFrom(starts, to);
    }
  }

  // Runs that could not be told apart by the bytes of single blocks.
  void ExchangeRest(Ids ends, Ids starts) {
    if (before_ != nullptr) {
      Sets end_sets = Singles(ends), start_sets = StartsSeen(starts);
      while (MatchOne(end_sets, start_sets, false)) {
      }
      ends = All(end_sets);
      starts = All(start_sets);
    }
    if (ends.empty()) return;
    if (tree_.CanReplace(ends)) return Record(ends, starts);
    if (before_ != nullptr) ExchangeAsBefore(ends, starts);
    if (ends.empty()) return;
    Sets clusters = Clusters(ends);
    Sets start_sets = StartsSeen(starts);
    while (MatchOne(clusters, start_sets, true)) {
    }
    clusters = Singles(All(clusters));
    while (MatchOne(clusters, start_sets, false)) {
    }
    if (clusters.empty()) return;
    clusters = Clusters(All(clusters));
    start_sets = Singles(All(start_sets));
    while (MatchOne(clusters, start_sets, true)) {
    }
    if (!clusters.empty()) ExchangeStraying(All(clusters), All(start_sets));
  }

  const TilingEvents& events_;
  const SweepMemory* const before_;
  const PackTuning& tuning_;
  PackWork& work_;
  PqTree tree_;
  int event_ = 0;
  std::vector<TilingExchange> exchanges_;
  SweepMemory now_;
};

// nullopt: some section has more bytes than another.
std::optional<TilingEvents> EventsOf(const PackBlocks& blocks) {
  TilingEvents events;
  events.ends.resize(blocks.sections + 1);
  events.starts.resize(blocks.sections + 1);
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    const PackBlock& block = blocks.blocks[b];
    if (block.fixed >= 0) return std::nullopt;
    events.bytes.push_back(block.padded);
    events.ends[block.upper].push_back(static_cast<int>(b));
    events.starts[block.lower].push_back(static_cast<int>(b));
  }
  events.height_bytes = events.Bytes(events.starts[0]);
  for (int s = 1; s < blocks.sections; ++s) {
    if (events.Bytes(events.starts[s]) != events.Bytes(events.ends[s])) {
      return std::nullopt;
    }
  }
  return events;
}

// Bytes times life of the blocks without an offset.
double OpenArea(const PackBlocks& blocks, const std::vector<int64_t>& offsets) {
  double area = 0;
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    if (offsets[b] >= 0) continue;
    area += static_cast<double>(blocks.blocks[b].padded) *
            static_cast<double>(blocks.blocks[b].life);
  }
  return area;
}

}  // namespace

int64_t TilingEvents::Bytes(const std::vector<int>& blocks) const {
  int64_t sum = 0;
  for (int b : blocks) sum += bytes[b];
  return sum;
}

void TilingEvents::Reverse() {
  std::swap(ends, starts);
  std::reverse(ends.begin(), ends.end());
  std::reverse(starts.begin(), starts.end());
}

bool CanTile(const PackBlocks& blocks, const PackTuning& tuning) {
  return !blocks.blocks.empty() &&
         blocks.blocks.size() <= tuning.most_tiling_blocks &&
         EventsOf(blocks).has_value();
}

std::optional<PackLayout> PackTiling(const PackBlocks& blocks,
                                     const PackTuning& tuning, PackWork& work) {
  if (!CanTile(blocks, tuning)) return std::nullopt;
  std::optional<TilingEvents> events = EventsOf(blocks);
  PackLayout layout;
  std::optional<SweepMemory> before;
  double least = 0;
  for (int sweep = 0; sweep < tuning.tiling_sweeps; ++sweep) {
    std::optional<SweepMemory> now =
        TilingSweep(*events, before ? &*before : nullptr, tuning, work).Run();
    if (!now) break;
    const double area = OpenArea(blocks, now->offsets);
    if (layout.offsets.empty() || area < least) {
      least = area;
      layout.offsets = now->offsets;
    }
    if (least == 0) break;
    before = std::move(now);
    events->Reverse();
  }
  if (layout.offsets.empty()) return std::nullopt;
  FillHoles(blocks, events->height_bytes, tuning, work, layout.offsets);
  layout.height_bytes = 0;
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    layout.height_bytes = std::max(layout.height_bytes,
                                   layout.offsets[b] + blocks.blocks[b].size);
  }
  return layout;
}

}  // namespace loadline::planner
