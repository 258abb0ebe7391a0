// Bits, one for each node, value and codec. Tested by use: bound_test.cc holds
// bounds and plans against what oracle.cc finds over these states.
#include "tests/planner/support/device_state.h"

#include <algorithm>

#include "absl/base/casts.h"

namespace loadline::planner {

DeviceState::Bits DeviceState::Key() const {
  const auto both = [](uint32_t high, uint32_t low) {
    return (uint64_t{high} << 32) | low;
  };
  Bits key = {both(done, device), both(arriving, in_use), both(encoded, host),
              both(homes, extra_bytes), initial};
  size_t at = 5;
  for (const Running& lane : lanes) {
    key[at++] = static_cast<uint64_t>(lane.id);
    key[at++] = absl::bit_cast<uint64_t>(lane.fixed_ns);
    key[at++] = absl::bit_cast<uint64_t>(lane.moving_ns);
  }
  return key;
}

DeviceRules::DeviceRules(const Problem& problem)
    : problem_(problem), index_(IndexProblem(problem)) {
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    AddNode(static_cast<int>(n));
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    for (const Codec& codec : problem.values[v].stash) {
      AddCodec(static_cast<int>(v), codec);
    }
  }
  all_ = static_cast<uint32_t>((uint64_t{1} << problem.nodes.size()) - 1);
}

void DeviceRules::AddNode(int n) {
  const Node& node = problem_.nodes[n];
  reads_.push_back(0);
  makes_.push_back(0);
  DeviceJob job;
  job.node = n;
  for (ValueId id : node.inputs) job.reads |= Bit(static_cast<int>(id));
  for (ValueId id : node.outputs) job.makes |= Bit(static_cast<int>(id));
  reads_.back() = job.reads;
  makes_.back() = job.makes;
  job.ns = static_cast<double>(node.time_ns);
  job.workspace_bytes = node.workspace_bytes;
  for (ValueId id : node.outputs) {
    const int first = FirstOfLast(static_cast<int>(id));
    if (first >= 0 && problem_.values[first].bytes > 0) job.ends |= Bit(first);
  }
  least_ns_.push_back(job.ns);
  AddTakes(job, 0, 0);
  for (const Variant& variant : node.variants) {
    job.ns = static_cast<double>(variant.time_ns);
    job.workspace_bytes = variant.workspace_bytes;
    least_ns_.back() = std::min(least_ns_.back(), job.ns);
    AddTakes(job, 0, 0);
  }
}

// One job for every set of in-place pairs that use no value twice.
void DeviceRules::AddTakes(const DeviceJob& job, size_t pair, uint32_t used) {
  const auto& inplace = problem_.nodes[job.node].inplace;
  if (pair == inplace.size()) {
    jobs_.push_back(job);
    return;
  }
  const uint32_t in = Bit(static_cast<int>(inplace[pair].first));
  const uint32_t out = Bit(static_cast<int>(inplace[pair].second));
  AddTakes(job, pair + 1, used);
  if ((used & (in | out)) != 0) return;
  DeviceJob taking = job;
  taking.taken |= in;
  AddTakes(taking, pair + 1, used | in | out);
}

void DeviceRules::AddCodec(int v, const Codec& codec) {
  const uint32_t bit = Bit(static_cast<int>(codec_bytes_.size()));
  codec_bytes_.push_back(codec.bytes);
  DeviceJob encode;
  encode.ns = static_cast<double>(codec.encode_ns);
  encode.reads = Bit(v);
  encode.makes_encoded = bit;
  DeviceJob decode;
  decode.ns = static_cast<double>(codec.decode_ns);
  decode.reads_encoded = bit;
  decode.makes = Bit(v);
  jobs_.push_back(encode);
  jobs_.push_back(decode);
}

std::vector<DeviceState> DeviceRules::Begins() const {
  std::vector<DeviceState> begins;
  std::vector<int> persistent;
  DeviceState base;
  for (size_t v = 0; v < problem_.values.size(); ++v) {
    const int value = static_cast<int>(v);
    if (index_.producer[v] >= 0) continue;
    if (problem_.values[v].persistent) {
      persistent.push_back(value);
    } else if (!index_.consumers[v].empty() || index_.is_output[v]) {
      base.device |= Bit(value);
    }
  }
  for (uint32_t choice = 0; choice < Bit(static_cast<int>(persistent.size()));
       ++choice) {
    DeviceState state = base;
    bool allowed = true;
    for (size_t i = 0; i < persistent.size(); ++i) {
      const bool on_host = (choice & Bit(static_cast<int>(i))) != 0;
      allowed = allowed && (!on_host || MayLiveOnHost(persistent[i]));
      (on_host ? state.host : state.device) |= Bit(persistent[i]);
    }
    if (!allowed) continue;
    state.homes = state.host;
    for (int value : persistent) state.initial |= Bit(value) & ~state.host;
    begins.push_back(state);
  }
  return begins;
}

bool DeviceRules::MayLiveOnHost(int v) const {
  return problem_.values[v].offload && problem_.machine &&
         problem_.machine->host_bytes > 0;
}

int DeviceRules::LastVersion(int v) const {
  while (index_.next_version[v] != kNoValue) {
    v = static_cast<int>(index_.next_version[v]);
  }
  return v;
}

int DeviceRules::FirstOfLast(int v) const {
  if (index_.next_version[v] != kNoValue ||
      index_.previous_version[v] == kNoValue) {
    return -1;
  }
  while (index_.previous_version[v] != kNoValue) {
    v = static_cast<int>(index_.previous_version[v]);
  }
  return v;
}

bool DeviceRules::Finished(const DeviceState& state) const {
  if (state.done != all_) return false;
  for (const Running& lane : state.lanes) {
    if (lane.id >= 0) return false;
  }
  for (size_t v = 0; v < problem_.values.size(); ++v) {
    const int value = static_cast<int>(v);
    if (index_.is_output[v] && (state.device & Bit(value)) == 0) return false;
    if (!problem_.values[v].persistent || index_.producer[v] >= 0) continue;
    const bool on_host = (state.homes & Bit(value)) != 0;
    const uint32_t where = on_host ? state.host : state.device;
    if ((where & Bit(LastVersion(value))) == 0) return false;
  }
  return true;
}

double DeviceRules::LeastLeftNs(const DeviceState& state) const {
  double left = 0;
  if (state.lanes[0].id >= 0) left += state.lanes[0].fixed_ns;
  for (size_t n = 0; n < least_ns_.size(); ++n) {
    if ((state.done & Bit(static_cast<int>(n))) == 0) left += least_ns_[n];
  }
  return left;
}

int64_t DeviceRules::LiveBytes(const DeviceState& state) const {
  int64_t bytes = state.extra_bytes;
  for (size_t v = 0; v < problem_.values.size(); ++v) {
    if ((state.device & Bit(static_cast<int>(v))) != 0) {
      bytes += problem_.values[v].bytes;
    }
  }
  for (size_t c = 0; c < codec_bytes_.size(); ++c) {
    if ((state.encoded & Bit(static_cast<int>(c))) != 0) {
      bytes += codec_bytes_[c];
    }
  }
  return bytes;
}

uint32_t DeviceRules::Idle(const DeviceState& state) const {
  if (state.lanes[0].id < 0) return state.encoded;
  const DeviceJob& job = jobs_[state.lanes[0].id];
  return state.encoded & ~job.reads_encoded & ~job.makes_encoded;
}

uint32_t DeviceRules::Wanted(const DeviceState& state) const {
  uint32_t wanted = 0;
  for (size_t v = 0; v < problem_.values.size(); ++v) {
    const int value = static_cast<int>(v);
    if (index_.is_output[v]) wanted |= Bit(value);
    if (problem_.values[v].persistent && index_.producer[v] < 0) {
      wanted |= Bit(LastVersion(value));
    }
  }
  for (int n = static_cast<int>(problem_.nodes.size()) - 1; n >= 0; --n) {
    const bool first = (state.done & Bit(n)) == 0;
    const bool again = problem_.nodes[n].recompute && (makes_[n] & wanted) != 0;
    if (first || again) wanted |= reads_[n];
  }
  return wanted;
}

void DeviceRules::End(int l, DeviceState& state) const {
  const int id = state.lanes[l].id;
  if (l == 0) {
    state.arriving &= ~jobs_[id].makes;
    state.in_use = 0;
    state.extra_bytes = 0;
  } else if (l == 1) {
    state.host |= Bit(id);
  } else {
    state.arriving &= ~Bit(id);
  }
  state.lanes[l] = Running();
}

}  // namespace loadline::planner
