// The rules of a problem that are not syntax, and what is derived from it.
// Tested in tests/planner/problem/problem_json_test.cc.
#include "planner/problem/problem.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "planner/problem/ids.h"
#include "planner/problem/machine_json.h"

namespace loadline::planner {
namespace {

std::string Name(const Value& value) {
  return absl::StrCat("value ", value.file_id, " '", value.name, "'");
}
std::string Name(const Node& node) {
  return absl::StrCat("node ", node.file_id, " '", node.name, "'");
}

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Adds without overflow; false where the sum leaves int64.
bool AddTo(int64_t& sum, int64_t term) {
  return !__builtin_add_overflow(sum, term, &sum);
}

// Node lists as positions that exist; names and numbers in range.
class Validator {
 public:
  explicit Validator(const Problem& problem) : problem_(problem) {}

  absl::Status Run() {
    LOADLINE_RETURN_IF_ERROR(CheckHeader());
    LOADLINE_RETURN_IF_ERROR(CheckValues());
    LOADLINE_RETURN_IF_ERROR(CheckNodes());
    LOADLINE_RETURN_IF_ERROR(CheckProducers());
    LOADLINE_RETURN_IF_ERROR(CheckOrder());
    LOADLINE_RETURN_IF_ERROR(CheckVersions());
    LOADLINE_RETURN_IF_ERROR(CheckOutputs());
    return CheckSums();
  }

 private:
  bool Exists(ValueId id) const {
    return Index(id) < problem_.values.size();  // a negative id wraps around
  }

  absl::Status CheckHeader() {
    constexpr size_t kMost = INT32_MAX;
    if (problem_.values.size() > kMost || problem_.nodes.size() > kMost) {
      return Bad("problem: more than 2^31 - 1 values or nodes");
    }
    if (problem_.alignment_bytes < 1 ||
        problem_.alignment_bytes > (int64_t{1} << 40)) {
      return Bad("problem: field \"alignment_bytes\" must be from 1 to 2^40: ",
                 problem_.alignment_bytes);
    }
    return problem_.machine.has_value() ? ValidateMachine(*problem_.machine)
                                        : absl::OkStatus();
  }

  absl::Status CheckValues() {
    absl::flat_hash_set<int64_t> ids;
    for (const Value& value : problem_.values) {
      if (value.file_id < 0 || !ids.insert(value.file_id).second) {
        return Bad(Name(value), ": field \"id\" is negative or not unique");
      }
      if (value.bytes < 0) {
        return Bad(Name(value), ": field \"bytes\" is negative");
      }
      absl::flat_hash_set<std::string> codecs;
      for (const Codec& codec : value.stash) {
        if (codec.name.empty() || !codecs.insert(codec.name).second) {
          return Bad(Name(value), ": field \"stash\": codec '", codec.name,
                     "' has no name or one already used");
        }
        if (codec.bytes < 0 || codec.encode_ns < 0 || codec.decode_ns < 0 ||
            !(codec.error >= 0)) {
          return Bad(Name(value), ": field \"stash\": codec '", codec.name,
                     "' has a negative number");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckNodes() {
    absl::flat_hash_set<int64_t> ids;
    for (const Node& node : problem_.nodes) {
      if (node.file_id < 0 || !ids.insert(node.file_id).second) {
        return Bad(Name(node), ": field \"id\" is negative or not unique");
      }
      if (node.time_ns < 0 || node.workspace_bytes < 0) {
        return Bad(Name(node), ": field \"time_ns\" or \"workspace_bytes\" ",
                   "is negative");
      }
      for (ValueId id : node.inputs) {
        if (!Exists(id)) return Bad(Name(node), ": an input is no value");
      }
      for (ValueId id : node.outputs) {
        if (!Exists(id)) return Bad(Name(node), ": an output is no value");
      }
      LOADLINE_RETURN_IF_ERROR(CheckInplace(node));
      LOADLINE_RETURN_IF_ERROR(CheckVariants(node));
    }
    return absl::OkStatus();
  }

  absl::Status CheckInplace(const Node& node) {
    const absl::flat_hash_set<ValueId> inputs(node.inputs.begin(),
                                              node.inputs.end());
    const absl::flat_hash_set<ValueId> outputs(node.outputs.begin(),
                                               node.outputs.end());
    absl::flat_hash_set<std::pair<ValueId, ValueId>> seen;
    for (const auto& pair : node.inplace) {
      if (!inputs.contains(pair.first) || !outputs.contains(pair.second)) {
        return Bad(Name(node), ": field \"inplace\" pairs something that is ",
                   "not its input with its output");
      }
      if (!seen.insert(pair).second) {
        return Bad(Name(node), ": field \"inplace\" holds one pair twice");
      }
      const Value& in = problem_.value(pair.first);
      const Value& out = problem_.value(pair.second);
      if (in.bytes != out.bytes) {
        return Bad(Name(node), ": field \"inplace\" pairs ", Name(in), " of ",
                   in.bytes, " bytes with ", Name(out), " of ", out.bytes);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckVariants(const Node& node) {
    absl::flat_hash_set<std::string> names;
    for (const Variant& variant : node.variants) {
      if (variant.name.empty() || !names.insert(variant.name).second) {
        return Bad(Name(node), ": field \"variants\": '", variant.name,
                   "' is empty or already used");
      }
      if (variant.time_ns < 0 || variant.workspace_bytes < 0) {
        return Bad(Name(node), ": field \"variants\": '", variant.name,
                   "' has a negative number");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckProducers() {
    producer_.assign(problem_.values.size(), -1);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      for (ValueId id : problem_.nodes[n].outputs) {
        int32_t& producer = producer_[Index(id)];
        if (producer >= 0) {
          return Bad(Name(problem_.nodes[n]),
                     ": field \"outputs\": ", Name(problem_.value(id)),
                     " is already made by ",
                     Name(problem_.nodes[static_cast<size_t>(producer)]));
        }
        producer = static_cast<int32_t>(n);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckOrder() {
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      for (ValueId id : problem_.nodes[n].inputs) {
        if (producer_[Index(id)] >= static_cast<int32_t>(n)) {
          return Misorder(n, id);
        }
      }
    }
    return absl::OkStatus();
  }

  // Node `reader` reads `id` before its producer has run. The message says
  // whether the producer depends on the reader: then no order is valid.
  absl::Status Misorder(size_t reader, ValueId id) {
    const size_t maker = static_cast<size_t>(producer_[Index(id)]);
    const Node& from = problem_.nodes[reader];
    const Node& to = problem_.nodes[maker];
    std::vector<bool> seen(problem_.nodes.size(), false);
    std::vector<size_t> open = {maker};
    seen[maker] = true;
    while (!open.empty() && !seen[reader]) {
      const size_t node = open.back();
      open.pop_back();
      for (ValueId input : problem_.nodes[node].inputs) {
        const int32_t next = producer_[Index(input)];
        if (next >= 0 && !seen[static_cast<size_t>(next)]) {
          seen[static_cast<size_t>(next)] = true;
          open.push_back(static_cast<size_t>(next));
        }
      }
    }
    if (seen[reader]) {
      return Bad("nodes form a cycle: ", Name(from), " reads ",
                 Name(problem_.value(id)), ", which ", Name(to),
                 " makes from what comes of ", Name(from));
    }
    return Bad("nodes are not in a valid order: ", Name(from), " reads ",
               Name(problem_.value(id)), ", which ", Name(to), " makes later");
  }

  // Every persistent value is an input or the next version of one, each
  // version is updated at most once, exactly once run, and not read later.
  absl::Status CheckVersions() {
    const size_t count = problem_.values.size();
    std::vector<bool> version(count, false);
    for (size_t v = 0; v < count; ++v) {
      version[v] = problem_.values[v].persistent && producer_[v] < 0;
    }
    std::vector<int32_t> updated_by(count, -1);
    std::vector<bool> made_from_version(count, false);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const Node& node = problem_.nodes[n];
      for (ValueId id : node.inputs) {
        if (updated_by[Index(id)] >= 0) {
          const auto updater = static_cast<size_t>(updated_by[Index(id)]);
          return Bad(Name(node), " reads ", Name(problem_.value(id)), " after ",
                     Name(problem_.nodes[updater]), " has updated it");
        }
      }
      for (const auto& [in, out] : node.inplace) {
        if (!version[Index(in)]) continue;
        if (node.recompute) {
          return Bad(Name(node), ": field \"recompute\" must be false: it ",
                     "updates ", Name(problem_.value(in)));
        }
        if (updated_by[Index(in)] >= 0 || made_from_version[Index(out)]) {
          return Bad(Name(node), ": field \"inplace\" gives a persistent ",
                     "value two next versions, or one version two origins: ",
                     Name(problem_.value(in)), ", ", Name(problem_.value(out)));
        }
        updated_by[Index(in)] = static_cast<int32_t>(n);
        made_from_version[Index(out)] = true;
        version[Index(out)] = true;
      }
    }
    for (size_t v = 0; v < count; ++v) {
      if (problem_.values[v].persistent && !version[v]) {
        return Bad(Name(problem_.values[v]), ": field \"persistent\": it is ",
                   "made by a node that does not update an earlier version ",
                   "of it in place");
      }
    }
    updated_by_ = std::move(updated_by);
    return absl::OkStatus();
  }

  absl::Status CheckOutputs() {
    absl::flat_hash_set<ValueId> seen;
    for (ValueId id : problem_.outputs) {
      if (!Exists(id)) return Bad("problem: field \"outputs\": no such value");
      if (!seen.insert(id).second) {
        return Bad("problem: field \"outputs\" lists ",
                   Name(problem_.value(id)), " twice");
      }
      if (updated_by_[Index(id)] >= 0) {
        return Bad("problem: field \"outputs\" lists ",
                   Name(problem_.value(id)),
                   ", which is updated in the step: list its last version");
      }
    }
    return absl::OkStatus();
  }

  // So that any sum over values and nodes, each rounded up to the alignment,
  // stays inside int64.
  absl::Status CheckSums() {
    int64_t bytes = 0;
    int64_t time_ns = 0;
    const int64_t pad = problem_.alignment_bytes - 1;
    for (const Value& value : problem_.values) {
      bool fits = AddTo(bytes, value.bytes) && AddTo(bytes, pad);
      for (const Codec& codec : value.stash) {
        fits = fits && AddTo(bytes, codec.bytes) && AddTo(bytes, pad) &&
               AddTo(time_ns, codec.encode_ns) &&
               AddTo(time_ns, codec.decode_ns);
      }
      if (!fits) return Bad(Name(value), ": the sums overflow 64 bits");
    }
    for (const Node& node : problem_.nodes) {
      bool fits = AddTo(bytes, node.workspace_bytes) && AddTo(bytes, pad) &&
                  AddTo(time_ns, node.time_ns);
      for (const Variant& variant : node.variants) {
        fits = fits && AddTo(bytes, variant.workspace_bytes) &&
               AddTo(bytes, pad) && AddTo(time_ns, variant.time_ns);
      }
      if (!fits) return Bad(Name(node), ": the sums overflow 64 bits");
    }
    return absl::OkStatus();
  }

  const Problem& problem_;
  std::vector<int32_t> producer_;
  std::vector<int32_t> updated_by_;
};

}  // namespace

absl::Status ValidateProblem(const Problem& problem) {
  return Validator(problem).Run();
}

ProblemIndex IndexProblem(const Problem& problem) {
  const size_t count = problem.values.size();
  ProblemIndex index;
  index.producer.assign(count, -1);
  index.consumers.resize(count);
  index.next_version.assign(count, kNoValue);
  index.previous_version.assign(count, kNoValue);
  index.is_output.assign(count, false);
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    const Node& node = problem.nodes[n];
    const NodeId id{static_cast<int32_t>(n)};
    for (ValueId output : node.outputs) {
      index.producer[Index(output)] = static_cast<int32_t>(n);
    }
    for (ValueId input : node.inputs) {
      std::vector<NodeId>& consumers = index.consumers[Index(input)];
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
    for (const auto& [in, out] : node.inplace) {
      const bool first =
          problem.value(in).persistent && index.producer[Index(in)] < 0;
      if (first || index.previous_version[Index(in)] != kNoValue) {
        index.next_version[Index(in)] = out;
        index.previous_version[Index(out)] = in;
      }
    }
  }
  for (ValueId output : problem.outputs) index.is_output[Index(output)] = true;
  return index;
}

}  // namespace loadline::planner
