// Parallel loops, and sums whose rounding does not depend on the threads.
//
// Work is divided into blocks by the problem's size alone. The number of
// threads only decides which thread runs a block, so results are bit-identical
// for any number of threads.
#ifndef LOADLINE_EXECUTOR_CPU_PARALLEL_H_
#define LOADLINE_EXECUTOR_CPU_PARALLEL_H_

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loadline::executor::cpu {

// Elements of a cheap elementwise loop below which waking a thread costs more
// than it saves.
inline constexpr int64_t kElementBlock = 16384;

// Number of threads that a loop may use.
inline int64_t ThreadCount() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// Keeps a single copy of a loop's code: a compiler may round two inlined copies
// differently.
template <typename Body>
__attribute__((noinline)) void RunBlock(const Body& body, int64_t begin,
                                        int64_t end) {
  body(begin, end);
}

// Calls body(begin, end) over [0, n) in blocks of `block`. A single block or a
// single thread runs without OpenMP, because libgomp allocates for a team of
// one.
template <typename Body>
void ParallelFor(int64_t n, int64_t block, const Body& body) {
  block = std::max<int64_t>(block, 1);
  if (n <= block) {
    if (n > 0) RunBlock(body, 0, n);
    return;
  }
  const int64_t blocks = (n + block - 1) / block;
  if (ThreadCount() <= 1) {
    for (int64_t b = 0; b < blocks; ++b) {
      RunBlock(body, b * block, std::min(n, (b + 1) * block));
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < blocks; ++b) {
    RunBlock(body, b * block, std::min(n, (b + 1) * block));
  }
}

inline void CopyBytes(const std::byte* from, std::byte* to, int64_t bytes) {
  ParallelFor(bytes, 4 * kElementBlock, [=](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

// Calls body(i) over [0, n); each call is about `cost` elements of work.
template <typename Body>
void ParallelEach(int64_t n, int64_t cost, const Body& body) {
  const int64_t block = kElementBlock / std::max<int64_t>(cost, 1);
  ParallelFor(n, block, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// How many of `tasks` may run at once. Kernels that need scratch per running
// task allocate this many slots when they are prepared.
inline int64_t TaskSlots(int64_t tasks) {
  return std::max<int64_t>(1, std::min(tasks, ThreadCount()));
}

// Calls body(task, slot) over [0, tasks) on `slots` threads; concurrent tasks
// have different slots. Results must not depend on the slot.
template <typename Body>
void ParallelTasks(int64_t tasks, int64_t slots, const Body& body) {
  if (slots <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, int64_t{0});
    return;
  }
#ifdef _OPENMP
  const int threads = static_cast<int>(slots);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t task = 0; task < tasks; ++task) {
    body(task, static_cast<int64_t>(omp_get_thread_num()));
  }
#endif
}

// Vector of LaneSum's partial sums.
inline constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

// Sum of term(i) over [begin, end) in a fixed order: element i goes to lane i -
// begin modulo 64; lanes are added pairwise at the end. Inline it into loops of
// at most a few thousand elements; SumOf divides longer ranges.
template <typename Term>
float LaneSum(int64_t begin, int64_t end, const Term& term) {
  constexpr int kWidth = 4 * kLanes;
  float sums[kWidth] = {};
  int64_t i = begin;
  for (; i + kWidth <= end; i += kWidth) {
#pragma omp simd
    for (int l = 0; l < kWidth; ++l) sums[l] += term(i + l);
  }
  for (int l = 0; i + l < end; ++l) sums[l] += term(i + l);
  for (int width = kWidth / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) sums[l] += sums[l + width];
  }
  return sums[0];
}

// The same for any length: sums of 4096 elements, added in order in double.
template <typename Term>
double SumOf(int64_t begin, int64_t end, const Term& term) {
  constexpr int64_t kRun = 4096;
  double sum = 0;
  for (int64_t i = begin; i < end; i += kRun) {
    sum += LaneSum(i, std::min(end, i + kRun), term);
  }
  return sum;
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_PARALLEL_H_
