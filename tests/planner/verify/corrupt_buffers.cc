// Buffers of the wrong size, at the wrong place or of the wrong value. That
// each is sure to do harm is argued beside it. Tested by use, in
// verify_corruption_test.cc.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/planner/verify/corrupter.h"

namespace loadline::planner {

// Sizes must be equal, so one byte is enough.
bool Corrupter::Oversize() {
  const auto id = PickNodeBuffer();
  if (!id) return false;
  At(*id).bytes += random_.OneIn(2) ? 1 : problem_.alignment_bytes;
  return true;
}

bool Corrupter::Misaligned() {
  const auto id = PickNodeBuffer();
  if (!id || problem_.alignment_bytes < 2) return false;
  At(*id).offset += random_.In(1, problem_.alignment_bytes - 1);
  return true;
}

bool Corrupter::OutsideArena() {
  const auto id = PickNodeBuffer();
  if (!id || At(*id).bytes == 0 || !problem_.addresses) return false;
  const int64_t a = problem_.alignment_bytes;
  // The smallest aligned offset that is too large.
  At(*id).offset =
      std::max<int64_t>(0, (plan_.arena_bytes - At(*id).bytes) / a + 1) * a;
  return true;
}

bool Corrupter::HostSpace() {
  const auto id = PickNodeBuffer();
  if (!id) return false;
  At(*id).space = Space::kHost;
  return true;
}

bool Corrupter::InplaceListed(const Node& node, BufferId in, BufferId out) {
  for (const auto& [a, b] : node.inplace) {
    if (At(in).value == a && At(out).value == b) return true;
  }
  return false;
}

// A step accesses both at once, so no order keeps them apart.
bool Corrupter::WrongAddress() {
  if (!problem_.addresses) return false;
  std::vector<std::pair<BufferId, BufferId>> pairs;
  for (const Step& step : plan_.steps) {
    if (step.kind != StepKind::kNode) continue;
    const Node& node = problem_.node(step.node);
    for (BufferId out : step.out) {
      for (BufferId in : step.in) {
        if (!InplaceListed(node, in, out)) pairs.push_back({out, in});
      }
      if (step.workspace != kNoBuffer) pairs.push_back({out, step.workspace});
    }
    for (BufferId a : step.in) {
      for (BufferId b : step.in) {
        if (a != b) pairs.push_back({a, b});
      }
    }
  }
  std::erase_if(pairs, [&](const auto& pair) {
    return At(pair.first).bytes == 0 || At(pair.second).bytes == 0;
  });
  if (pairs.empty()) return false;
  const auto [a, b] = Pick(pairs);
  At(a).offset = At(b).offset;
  return true;
}

// No other buffer holds the last version, so it is nowhere at home.
bool Corrupter::ShiftedHome() {
  if (!problem_.addresses) return false;
  std::vector<BufferId> homes;
  std::vector<int> count(problem_.values.size(), 0);
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.value != kNoValue) ++count[Index(buffer.value)];
  }
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const ValueId value = plan_.buffers[b].value;
    if (value != kNoValue && count[Index(value)] == 1 &&
        index_.previous_version[Index(value)] != kNoValue &&
        index_.next_version[Index(value)] == kNoValue) {
      homes.push_back(BufferId(static_cast<int32_t>(b)));
    }
  }
  if (homes.empty()) return false;
  At(Pick(homes)).offset += problem_.alignment_bytes;
  return true;
}

bool Corrupter::WrongValue() {
  const std::vector<size_t> steps = StepsOf(StepKind::kNode);
  Step& step = plan_.steps[Pick(steps)];
  std::vector<BufferId>& side = step.in.empty() ? step.out : step.in;
  if (side.empty()) return false;
  BufferId& slot = side[static_cast<size_t>(
      random_.In(0, static_cast<int64_t>(side.size()) - 1))];
  std::vector<BufferId> others;
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].value != At(slot).value) {
      others.push_back(BufferId(static_cast<int32_t>(b)));
    }
  }
  if (others.empty()) return false;
  slot = Pick(others);
  return true;
}

bool Corrupter::StaleVersion() {
  std::vector<std::pair<BufferId*, BufferId>> places;
  for (Step& step : plan_.steps) {
    for (BufferId& slot : step.in) {
      const ValueId old = index_.previous_version[Index(At(slot).value)];
      if (old == kNoValue) continue;
      for (size_t b = 0; b < plan_.buffers.size(); ++b) {
        if (plan_.buffers[b].value == old) {
          places.push_back({&slot, BufferId(static_cast<int32_t>(b))});
        }
      }
    }
  }
  if (places.empty()) return false;
  const auto [slot, old] = Pick(places);
  *slot = old;
  return true;
}

bool Corrupter::SwappedBuffers() {
  const auto a = PickNodeBuffer();
  const auto b = PickNodeBuffer();
  if (!a || !b || At(*a).value == At(*b).value) return false;
  std::swap(At(*a).value, At(*b).value);
  return true;
}

}  // namespace loadline::planner
