// Factors are the common refinement of the two shapes' cumulative products. The
// choice among them never decides about correctness: whichever is chosen, a
// channel contains everything that its removal takes away. It decides how fine
// the channels are. Tested in tests/passes/compress/reshape_blocks_test.cc.
#include "passes/compress/reshape_blocks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace loadline::passes {
namespace {

// The axes of more than one index.
std::vector<std::pair<AxisRef, int64_t>> WideAxes(const models::Graph& graph,
                                                  models::ValueId value) {
  std::vector<std::pair<AxisRef, int64_t>> wide;
  const std::vector<int64_t>& dims = graph.value(value).type.dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] > 1) {
      wide.push_back({{value, static_cast<int64_t>(axis)}, dims[axis]});
    }
  }
  return wide;
}

bool SameAxis(AxisRef a, AxisRef b) {
  return a.value == b.value && a.axis == b.axis;
}

// From the innermost factor outwards.
void SetStrides(ReshapeBlock* block) {
  int64_t in_stride = 1, out_stride = 1;
  for (size_t f = block->factors.size(); f-- > 0;) {
    ReshapeFactor& factor = block->factors[f];
    if (f + 1 < block->factors.size()) {
      const ReshapeFactor& inner = block->factors[f + 1];
      if (!SameAxis(inner.in, factor.in)) in_stride = 1;
      if (!SameAxis(inner.out, factor.out)) out_stride = 1;
    }
    factor.in_stride = in_stride;
    factor.out_stride = out_stride;
    in_stride *= factor.size;
    out_stride *= factor.size;
  }
}

void FreezeAxes(const ReshapeBlock& block, const ReshapeFactor* carrier,
                AxisAtoms& atoms) {
  const std::string reason =
      block.factors.empty()
          ? absl::StrCat("Reshape ", block.node, " mixes its axes")
          : absl::StrCat("Reshape ", block.node,
                         " joins it with an axis that carries channels");
  for (const AxisRef& axis : block.in) {
    if (carrier == nullptr || !SameAxis(axis, carrier->in)) {
      atoms.Freeze(axis, reason);
    }
  }
  for (const AxisRef& axis : block.out) {
    if (carrier == nullptr || !SameAxis(axis, carrier->out)) {
      atoms.Freeze(axis, reason);
    }
  }
}

// Unites all indices that share an index of the factor.
void Carry(const ReshapeBlock& block, const ReshapeFactor& carrier,
           AxisAtoms& atoms) {
  // A block of one axis on each side: AxisAtoms compares sizes.
  if (block.factors.size() == 1) {
    atoms.UniteAxes(carrier.in, carrier.out);
    return;
  }
  const auto unite = [&](AxisRef axis, int64_t stride) {
    for (int64_t i = 0; i < atoms.size(axis); ++i) {
      const int64_t channel = (i / stride) % carrier.size;
      atoms.Unite(carrier.in, channel * carrier.in_stride, axis, i);
    }
  };
  unite(carrier.in, carrier.in_stride);
  unite(carrier.out, carrier.out_stride);
  FreezeAxes(block, &carrier, atoms);
}

std::vector<const ReshapeFactor*> Choices(const ReshapeBlock& block,
                                          AxisAtoms& atoms) {
  std::vector<const ReshapeFactor*> choices;
  for (const ReshapeFactor& factor : block.factors) {
    if (!atoms.AllFrozen(factor.in) && !atoms.AllFrozen(factor.out)) {
      choices.push_back(&factor);
    }
  }
  return choices;
}

// How many channels that are not frozen the two axes would have if this factor
// carried them: its indices, joined where the axes' present channels join them.
int64_t ChannelsWith(const ReshapeFactor& factor, AxisAtoms& atoms) {
  std::vector<int64_t> parent(static_cast<size_t>(factor.size));
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](int64_t x) {
    while (parent[static_cast<size_t>(x)] != x) {
      x = parent[static_cast<size_t>(x)] =
          parent[static_cast<size_t>(parent[static_cast<size_t>(x)])];
    }
    return x;
  };
  absl::flat_hash_map<int32_t, int64_t> index_of;  // by present channel
  const auto join = [&](AxisRef axis, int64_t stride) {
    for (int64_t i = 0; i < atoms.size(axis); ++i) {
      const int64_t index = (i / stride) % factor.size;
      const auto [it, added] =
          index_of.try_emplace(atoms.ChannelOf(axis, i), index);
      if (!added) parent[static_cast<size_t>(find(index))] = find(it->second);
    }
  };
  join(factor.in, factor.in_stride);
  join(factor.out, factor.out_stride);
  std::set<int64_t> open, frozen;
  for (const auto& [channel, index] : index_of) {
    const bool is_frozen = atoms.facts(channel).frozen != AxisAtoms::kNone;
    (is_frozen ? frozen : open).insert(find(index));
  }
  for (int64_t index : frozen) open.erase(index);
  return static_cast<int64_t>(open.size());
}

bool IsHead(const ReshapeFactor& factor, AxisAtoms& atoms) {
  return atoms.AnyHead(factor.in) || atoms.AnyHead(factor.out);
}

const ReshapeFactor& Preferred(const std::vector<const ReshapeFactor*>& choices,
                               AxisAtoms& atoms) {
  const auto rank = [&](const ReshapeFactor& f) {
    const bool exact =
        !atoms.AnyApproximate(f.in) && !atoms.AnyApproximate(f.out);
    const bool repeats = atoms.AllRepeats(f.in) || atoms.AllRepeats(f.out);
    const int64_t channels = ChannelsWith(f, atoms);
    return std::make_tuple(channels > 1, exact, !repeats, IsHead(f, atoms),
                           channels);
  };
  const ReshapeFactor* best = choices[0];
  for (const ReshapeFactor* factor : choices) {
    if (rank(*factor) > rank(*best)) best = factor;
  }
  return *best;
}

}  // namespace

std::vector<ReshapeBlock> BlocksOfReshape(const models::Graph& graph,
                                          const models::Node& node) {
  const auto in = WideAxes(graph, node.inputs[0]);
  const auto out = WideAxes(graph, node.outputs[0]);
  std::vector<ReshapeBlock> blocks;
  if (graph.value(node.inputs[0]).type.elements() == 0) {
    ReshapeBlock& block = blocks.emplace_back();
    block.node = node.name;
    for (const auto& [axis, size] : in) block.in.push_back(axis);
    for (const auto& [axis, size] : out) block.out.push_back(axis);
    return blocks;
  }
  size_t i = 0, j = 0;
  while (i < in.size() && j < out.size()) {
    ReshapeBlock block;
    block.node = node.name;
    block.in = {in[i].first};
    block.out = {out[j].first};
    // What of the two current axes no factor has taken yet; and the products of
    // all axes of the block, to find its end where no factors exist.
    int64_t in_rest = in[i].second, out_rest = out[j].second;
    int64_t in_product = in_rest, out_product = out_rest;
    bool refines = true;
    while (true) {
      const int64_t taken = in_rest < out_rest ? in_rest : out_rest;
      refines = refines && in_rest % taken == 0 && out_rest % taken == 0;
      if (refines) {
        block.factors.push_back({block.in.back(), block.out.back(), taken});
        in_rest /= taken;
        out_rest /= taken;
      }
      if (in_product == out_product) break;
      if (in_product < out_product) {
        ++i;
        block.in.push_back(in[i].first);
        in_product *= in[i].second;
        in_rest = in[i].second;
      } else {
        ++j;
        block.out.push_back(out[j].first);
        out_product *= out[j].second;
        out_rest = out[j].second;
      }
    }
    if (!refines) block.factors.clear();
    SetStrides(&block);
    blocks.push_back(std::move(block));
    ++i;
    ++j;
  }
  return blocks;
}

void ResolveReshapes(std::vector<ReshapeBlock> blocks, AxisAtoms& atoms) {
  // Without a choice, most of them.
  std::vector<ReshapeBlock> open;
  for (ReshapeBlock& block : blocks) {
    if (block.factors.empty()) {
      FreezeAxes(block, nullptr, atoms);
    } else if (block.factors.size() == 1) {
      Carry(block, block.factors[0], atoms);
    } else {
      open.push_back(std::move(block));
    }
  }
  while (!open.empty()) {
    std::vector<ReshapeBlock> left;
    for (ReshapeBlock& block : open) {
      const auto choices = Choices(block, atoms);
      if (choices.empty()) {
        FreezeAxes(block, nullptr, atoms);
      } else if (choices.size() == 1) {
        Carry(block, *choices[0], atoms);
      } else {
        left.push_back(std::move(block));
      }
    }
    if (left.size() == open.size()) {
      auto next = std::find_if(
          left.begin(), left.end(), [&atoms](const ReshapeBlock& block) {
            return std::any_of(
                block.factors.begin(), block.factors.end(),
                [&](const ReshapeFactor& f) { return IsHead(f, atoms); });
          });
      if (next == left.end()) next = left.begin();
      Carry(*next, Preferred(Choices(*next, atoms), atoms), atoms);
      left.erase(next);
    }
    open = std::move(left);
  }
}

}  // namespace loadline::passes
