// The emulator's schedule: rounds over the threads that can run. A warp
// exchange ends when its last lane arrives; a barrier opens when, after a
// round, every thread of the block waits at it. Tested in
// tests/conformance/cuda_emulator_test.cc.
#include "tests/cuda_emulator/emulator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/cuda_runtime.h"
#include "tests/cuda_emulator/fiber.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_emulator {
namespace {

constexpr unsigned kMostThreads = 1024;

enum class State { kFresh, kRunning, kAtBarrier, kInExchange, kDone };

struct Thread {
  State state = State::kFresh;
  int number = 0;
  std::unique_ptr<Fiber> fiber;
  Where where;  // of the barrier or exchange it waits at
};

struct Warp {
  // Indexed by the parity of the exchange: a lane can begin the exchange after
  // the next only when all lanes have read this one.
  std::array<std::array<uint64_t, 32>, 2> lanes;
  int64_t exchanges = 0;
  unsigned arrived = 0;
  Where where;
};

struct Emulator {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::unique_ptr<Fiber>> idle;
  std::vector<int> now, next;  // threads to run in this round, in the next
  Thread* running = nullptr;
  const std::function<void()>* body = nullptr;
  std::string error;
  std::mt19937_64 random;
  uint64_t seed = 0;
  Counts counts;
};
Emulator& Self() {
  static auto* emulator = new Emulator;
  return *emulator;
}

void RunBody() {
  Emulator& e = Self();
  (*e.body)();
  e.running->state = State::kDone;
}

void Shuffle(std::vector<int>& order) {
  Emulator& e = Self();
  if (e.seed != 0) std::shuffle(order.begin(), order.end(), e.random);
}

bool SamePlace(const Where& a, const Where& b) {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

std::string Place(const Where& where) {
  return std::string(where.file) + ":" + std::to_string(where.line);
}

void Fail(const std::string& what, const Where& where) {
  Emulator& e = Self();
  if (e.error.empty()) e.error = what + " at " + Place(where);
}

dim3 Unflatten(unsigned i, const dim3& dims) {
  return {i % dims.x, i / dims.x % dims.y, i / dims.x / dims.y};
}

void Step(Thread& t) {
  Emulator& e = Self();
  if (t.state == State::kFresh) {
    if (e.idle.empty()) e.idle.push_back(std::make_unique<Fiber>(RunBody));
    t.fiber = std::move(e.idle.back());
    e.idle.pop_back();
  }
  t.state = State::kRunning;
  e.running = &t;
  threadIdx = Unflatten(static_cast<unsigned>(t.number), blockDim);
  t.fiber->Resume();
  if (t.state == State::kDone) e.idle.push_back(std::move(t.fiber));
}

// Called when no thread can run: opens the barrier if all wait at the same one.
void OpenBarrier() {
  Emulator& e = Self();
  const Thread* first = nullptr;
  for (const Thread& t : e.threads) {
    if (t.state == State::kInExchange) {
      return Fail("a warp exchange misses a lane", t.where);
    }
    if (t.state == State::kAtBarrier && first == nullptr) first = &t;
  }
  if (first == nullptr) return;  // all threads have ended
  for (Thread& t : e.threads) {
    if (t.state != State::kAtBarrier || !SamePlace(t.where, first->where)) {
      return Fail("not all threads of a block reach the barrier", first->where);
    }
    e.next.push_back(t.number);
  }
}

void RunBlock(int threads) {
  Emulator& e = Self();
  e.threads.clear();
  e.threads.resize(static_cast<size_t>(threads));
  e.warps.assign(static_cast<size_t>((threads + 31) / 32), Warp());
  e.next.resize(static_cast<size_t>(threads));
  std::iota(e.next.begin(), e.next.end(), 0);
  for (int i = 0; i < threads; ++i) e.threads[i].number = i;
  while (!e.next.empty() && e.error.empty()) {
    e.now.swap(e.next);
    e.next.clear();
    Shuffle(e.now);
    for (int i : e.now) Step(e.threads[i]);
    if (e.next.empty()) OpenBarrier();
  }
  e.counts.threads += threads;
}

void RunBlocks(int blocks, unsigned threads) {
  Emulator& e = Self();
  std::vector<int> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  Shuffle(order);
  for (int b : order) {
    blockIdx = Unflatten(static_cast<unsigned>(b), gridDim);
    RunBlock(static_cast<int>(threads));
    if (!e.error.empty()) return;
  }
}

}  // namespace

cudaError_t Launch(const dim3& grid, const dim3& block,
                   const std::function<void()>& thread) {
  Emulator& e = Self();
  const unsigned threads = block.x * block.y * block.z;
  const unsigned blocks = grid.x * grid.y * grid.z;
  e.error.clear();
  ++e.counts.launches;
  if (threads == 0 || threads > kMostThreads || blocks == 0 || grid.y > 65535 ||
      grid.z > 65535) {
    Fail("a launch of no size that a GPU takes", {__FILE__, __LINE__});
    return cudaErrorLaunchFailure;
  }
  e.body = &thread;
  e.random.seed(e.seed);
  blockDim = block;
  gridDim = grid;
  std::thread([&] { RunBlocks(static_cast<int>(blocks), threads); }).join();
  return e.error.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

void SyncThreads(const Where& where) {
  Thread& t = *Self().running;
  t.state = State::kAtBarrier;
  t.where = where;
  t.fiber->Yield();
}

int Lane() { return Self().running->number % 32; }

const uint64_t* Exchange(unsigned mask, uint64_t bits, const Where& where) {
  Emulator& e = Self();
  Thread& t = *e.running;
  Warp& warp = e.warps[static_cast<size_t>(t.number / 32)];
  if (mask != 0xffffffffu) Fail("an exchange of part of a warp", where);
  if (warp.arrived != 0 && !SamePlace(warp.where, where)) {
    Fail("lanes of a warp exchange in different places", where);
  }
  auto& lanes = warp.lanes[static_cast<size_t>(warp.exchanges % 2)];
  lanes[static_cast<size_t>(Lane())] = bits;
  warp.where = where;
  if (++warp.arrived == 32) {
    warp.arrived = 0;
    ++warp.exchanges;
    const int first = t.number / 32 * 32;
    for (int i = first; i < first + 32; ++i) {
      if (i != t.number) e.next.push_back(i);
    }
    return lanes.data();
  }
  t.state = State::kInExchange;
  t.where = where;
  t.fiber->Yield();
  return lanes.data();
}

void SetOrder(uint64_t seed) { Self().seed = seed; }
Counts CountsSoFar() { return Self().counts; }

}  // namespace cuda_emulator

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error"
                              : cuda_emulator::Self().error.c_str();
}
