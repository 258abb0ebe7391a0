// Components of the union-find become channels, channels alike become groups.
// Tested in tests/passes/compress/prune_groups_test.cc, and by what
// prune_graph_test.cc removes.
#include "passes/compress/prune_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "passes/compress/axis_atoms.h"
#include "passes/compress/relate.h"
#include "passes/compress/reshape_blocks.h"
#include "passes/compress/separate_constants.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Value;
using models::ValueId;
using models::ValueKind;
using Facts = AxisAtoms::Facts;

// The part of a channel that lies on one axis: `count` indices.
struct Piece {
  int32_t axis = 0;  // position in AxisAtoms::axes
  int32_t count = 0;
  bool operator==(const Piece& o) const {
    return axis == o.axis && count == o.count;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Piece& p) {
    return H::combine(std::move(h), p.axis, p.count);
  }
};

// Channels with equal keys form a group.
struct Key {
  std::vector<Piece> pieces;
  int32_t frozen = 0, approximate = 0, maker = 0;
  bool operator==(const Key& o) const {
    return pieces == o.pieces && frozen == o.frozen &&
           approximate == o.approximate && maker == o.maker;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.pieces, k.frozen, k.approximate, k.maker);
  }
};

struct Components {
  std::vector<int32_t> of_atom;
  std::vector<int32_t> root;               // by component
  std::vector<std::vector<Piece>> pieces;  // by component
};

Components CollectComponents(AxisAtoms& atoms) {
  Components components;
  components.of_atom.resize(static_cast<size_t>(atoms.count()));
  std::vector<int32_t> of_root(static_cast<size_t>(atoms.count()), -1);
  for (int32_t atom = 0; atom < atoms.count(); ++atom) {
    const int32_t root = atoms.Root(atom);
    int32_t& component = of_root[static_cast<size_t>(root)];
    if (component < 0) {
      component = static_cast<int32_t>(components.root.size());
      components.root.push_back(root);
    }
    components.of_atom[static_cast<size_t>(atom)] = component;
  }
  components.pieces.resize(components.root.size());
  for (size_t a = 0; a < atoms.axes().size(); ++a) {
    const AxisAtoms::AxisSpan& span = atoms.axes()[a];
    if (span.first < 0 || span.long_axis) continue;
    for (int64_t i = 0; i < span.size; ++i) {
      const auto atom = static_cast<size_t>(span.first + i);
      std::vector<Piece>& pieces =
          components.pieces[static_cast<size_t>(components.of_atom[atom])];
      if (pieces.empty() || pieces.back().axis != static_cast<int32_t>(a)) {
        pieces.push_back({static_cast<int32_t>(a), 0});
      }
      ++pieces.back().count;
    }
  }
  return components;
}

class GroupBuilder {
 public:
  GroupBuilder(const Graph& graph, AxisAtoms& atoms)
      : graph_(graph), atoms_(atoms), components_(CollectComponents(atoms)) {}

  std::vector<PruneGroup> Build() {
    GroupComponents();
    AddMembers();
    AddNodes();
    std::vector<size_t> order;
    for (size_t g = 0; g < groups_.size(); ++g) order.push_back(g);
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return makers_[a] < makers_[b];
    });
    std::vector<PruneGroup> sorted;
    for (size_t g : order) {
      groups_[g].name = Name(g);
      Judge(g);
      sorted.push_back(std::move(groups_[g]));
    }
    return sorted;
  }

 private:
  const Value& ValueOf(int32_t axis) const {
    return graph_.value(atoms_.axes()[static_cast<size_t>(axis)].axis.value);
  }

  // Numbers groups by their first component, and channels by the order of
  // their first persistent index.
  void GroupComponents() {
    absl::flat_hash_map<Key, int32_t> group_of_key;
    const size_t count = components_.root.size();
    group_.assign(count, -1);
    channel_.assign(count, -1);
    for (size_t c = 0; c < count; ++c) {
      const bool trained =
          std::any_of(components_.pieces[c].begin(),
                      components_.pieces[c].end(), [this](const Piece& p) {
                        return ValueOf(p.axis).kind == ValueKind::kParameter;
                      });
      const Facts& facts = atoms_.facts(components_.root[c]);
      if (!trained || facts.maker == AxisAtoms::kNone) continue;
      Key key{std::move(components_.pieces[c]), facts.frozen, facts.approximate,
              facts.maker};
      const auto [it, added] = group_of_key.try_emplace(
          std::move(key), static_cast<int32_t>(groups_.size()));
      if (added) {
        groups_.emplace_back();
        makers_.push_back(facts.maker);
        facts_.push_back(facts);
      }
      group_[c] = it->second;
    }
  }

  void AddMembers() {
    // Persistent axes first: they number the channels.
    for (const bool persistent : {true, false}) {
      for (const AxisAtoms::AxisSpan& span : atoms_.axes()) {
        if (span.first < 0 || span.long_axis ||
            IsPersistent(graph_.value(span.axis.value).kind) != persistent) {
          continue;
        }
        AddAxis(span, persistent);
      }
    }
  }

  void AddAxis(const AxisAtoms::AxisSpan& span, bool persistent) {
    std::map<int32_t, size_t> member_of;  // groups on this axis
    for (int64_t i = 0; i < span.size; ++i) {
      const auto component = static_cast<size_t>(
          components_.of_atom[static_cast<size_t>(span.first + i)]);
      const int32_t g = group_[component];
      if (g < 0) continue;
      PruneGroup& group = groups_[static_cast<size_t>(g)];
      if (channel_[component] < 0) {
        channel_[component] = static_cast<int32_t>(group.width++);
      }
      std::vector<PruneMember>& members =
          persistent ? group.members : group.activations;
      const auto [it, added] = member_of.try_emplace(g, members.size());
      if (added) {
        members.push_back(
            {span.axis.value, span.axis.axis,
             std::vector<int32_t>(static_cast<size_t>(span.size), -1)});
      }
      members[it->second].channel_of[static_cast<size_t>(i)] =
          channel_[component];
    }
  }

  void AddNodes() {
    std::vector<std::vector<int32_t>> groups_of(graph_.values.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const auto* members :
           {&groups_[g].members, &groups_[g].activations}) {
        for (const PruneMember& member : *members) {
          std::vector<int32_t>& list = groups_of[Index(member.value)];
          if (list.empty() || list.back() != static_cast<int32_t>(g)) {
            list.push_back(static_cast<int32_t>(g));
          }
        }
      }
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::set<int32_t> touched;
      for (const auto* ids :
           {&graph_.nodes[n].inputs, &graph_.nodes[n].outputs}) {
        for (ValueId id : *ids) {
          if (id == models::kNoValue) continue;
          touched.insert(groups_of[Index(id)].begin(),
                         groups_of[Index(id)].end());
        }
      }
      for (int32_t g : touched) {
        groups_[static_cast<size_t>(g)].nodes.push_back(
            models::NodeId(static_cast<int32_t>(n)));
      }
    }
  }

  std::string Name(size_t g) {
    const std::string& base =
        graph_.nodes[static_cast<size_t>(makers_[g])].name;
    std::string name = base;
    for (int k = 2; !names_.insert(name).second; ++k) {
      name = absl::StrCat(base, "#", k);
    }
    return name;
  }

  void Judge(size_t g) {
    PruneGroup& group = groups_[g];
    const Facts& facts = facts_[g];
    group.heads = facts.head;
    if (facts.frozen != AxisAtoms::kNone) {
      group.frozen = atoms_.reason(facts.frozen);
    } else if (group.width == 1) {
      group.frozen = "one channel, which has to stay";
    }
    if (facts.approximate != AxisAtoms::kNone) {
      group.approximate = atoms_.reason(facts.approximate);
    }
  }

  const Graph& graph_;
  AxisAtoms& atoms_;
  Components components_;
  std::vector<int32_t> group_;    // by component; -1: none
  std::vector<int32_t> channel_;  // by component
  std::vector<PruneGroup> groups_;
  std::vector<int32_t> makers_;  // by group
  std::vector<Facts> facts_;     // by group
  std::set<std::string> names_;
};

}  // namespace

absl::StatusOr<std::vector<PruneGroup>> FindPruneGroups(
    const models::Graph& model) {
  const Graph graph = SeparateConstants(model);
  LOADLINE_ASSIGN_OR_RETURN(AxisAtoms atoms, AxisAtoms::Create(graph));
  ResolveReshapes(RelateAxes(graph, atoms), atoms);
  return GroupBuilder(graph, atoms).Build();
}

}  // namespace loadline::passes
