// The annealing loop does not allocate: this test program counts operator new.
// Sanitizers bring their own, so there nothing is counted.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>

#include "gtest/gtest.h"
#include "planner/search.h"
#include "planner/simulate.h"
#include "tests/planner/transformer_problem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define LOADLINE_OWN_NEW 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LOADLINE_OWN_NEW 0
#endif
#ifndef LOADLINE_OWN_NEW
#define LOADLINE_OWN_NEW 1
#endif

#if LOADLINE_OWN_NEW
namespace {
thread_local int64_t allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* place = std::malloc(bytes > 0 ? bytes : 1)) return place;
  std::abort();
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

namespace loadline::planner {
namespace {

// Of one annealing with so many moves, from the given order.
int64_t AllocationsOf(const Model& model, int64_t target_bytes, int64_t moves) {
  SearchState state(model, GivenOrder(model), target_bytes);
  Effort effort{.left = std::numeric_limits<int64_t>::max()};
  std::optional<Schedule> best;
  double step_ns = std::numeric_limits<double>::infinity();
  const int64_t before = allocations;
  Anneal(state, {.moves = moves}, effort, &best, &step_ns);
  return allocations - before;
}

TEST(Anneal, AllocatesNothingMoveByMove) {
  TransformerShape shape;
  shape.layers = 2;
  const Problem problem = TransformerProblem(shape);
  for (bool offload : {false, true}) {
    const Model model = MakeModel(problem, true, offload);
    const int64_t target_bytes =
        FindLifetimes(model, GivenOrder(model)).peak_bytes * 7 / 10;
    // What is there at first, and the lists made anew now and then, count in
    // both.
    constexpr int64_t kMoves = 10'000;
    const int64_t once = AllocationsOf(model, target_bytes, kMoves);
    const int64_t twice = AllocationsOf(model, target_bytes, 2 * kMoves);
    ASSERT_GT(once, 0);
    EXPECT_LT(twice - once, kMoves / 4) << "copies: " << offload;
  }
}

}  // namespace
}  // namespace loadline::planner
#endif
