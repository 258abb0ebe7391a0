// A map of disjoint pieces, each with its owner: a write cuts off the pieces
// that reach into it, takes out those inside and becomes one piece itself.
// Tested in tests/planner/verify/verify_bytes_test.cc against every pair of
// buffers.
#include "planner/verify/verify_bytes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/verify/verify_facts.h"

namespace loadline::planner {

template <typename Map>
auto LastWriters::FirstBeyond(Map& pieces, int64_t offset) {
  auto at = pieces.upper_bound(offset);
  if (at != pieces.begin() && std::prev(at)->second.end > offset) --at;
  return at;
}

std::vector<BufferId> LastWriters::Write(BufferId buffer) {
  const std::vector<BufferId> owners = In(buffer);
  const int64_t lower = plan_.buffer(buffer).offset;
  const int64_t upper = lower + plan_.buffer(buffer).bytes;
  if (upper <= lower) return owners;
  Pieces& pieces = spaces_[static_cast<size_t>(plan_.buffer(buffer).space)];
  auto at = FirstBeyond(pieces, lower);
  if (at != pieces.end() && at->first < lower) {
    const Piece cut = std::exchange(at->second, {lower, at->second.owner});
    at = pieces.emplace(lower, cut).first;
  }
  while (at != pieces.end() && at->first < upper) {
    const Piece piece = at->second;
    at = pieces.erase(at);
    if (piece.end > upper) pieces.emplace(upper, piece);
  }
  pieces[lower] = {upper, buffer};
  return owners;
}

std::vector<BufferId> LastWriters::In(BufferId buffer) const {
  std::vector<BufferId> owners;
  const int64_t lower = plan_.buffer(buffer).offset;
  const int64_t upper = lower + plan_.buffer(buffer).bytes;
  if (upper <= lower) return owners;
  const Pieces& pieces =
      spaces_[static_cast<size_t>(plan_.buffer(buffer).space)];
  for (auto at = FirstBeyond(pieces, lower);
       at != pieces.end() && at->first < upper; ++at) {
    owners.push_back(at->second.owner);
  }
  return owners;
}

std::vector<BufferId> InWriteOrder(const Plan& plan, const PlanFacts& facts) {
  std::vector<BufferId> buffers;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    buffers.push_back(BufferId(static_cast<int32_t>(b)));
  }
  std::stable_sort(buffers.begin(), buffers.end(), [&](BufferId a, BufferId b) {
    return facts.WritePlace(a) < facts.WritePlace(b);
  });
  return buffers;
}

}  // namespace loadline::planner
