// A plan refers to values and nodes by number, and in another graph the same
// numbers mean other tensors. So the problem is made again from the graph,
// without times, and everything that the executor relies on must agree. Tested
// in tests/passes/check_plan_matches_test.cc.
#include "passes/check_plan_matches.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/make_problem.h"
#include "passes/structure.h"
#include "planner/base/status_macros.h"
#include "planner/verify/verify.h"

namespace loadline::passes {
namespace {

using planner::Problem;

absl::Status Differs(absl::string_view what, absl::string_view in_plan,
                     absl::string_view in_model) {
  return absl::FailedPreconditionError(absl::StrCat(
      "this plan was made for another model, batch or option: ", what, " is ",
      in_plan, " in the plan's problem and ", in_model, " here"));
}

std::string FileIds(const Problem& problem,
                    const std::vector<planner::ValueId>& ids) {
  return absl::StrCat("[",
                      absl::StrJoin(ids, ", ",
                                    [&](std::string* out, planner::ValueId id) {
                                      absl::StrAppend(
                                          out, problem.value(id).file_id);
                                    }),
                      "]");
}

absl::Status CompareValues(const Problem& theirs, const Problem& ours) {
  for (size_t i = 0; i < std::min(theirs.values.size(), ours.values.size());
       ++i) {
    const planner::Value& a = theirs.values[i];
    const planner::Value& b = ours.values[i];
    if (a.file_id != b.file_id) {
      return Differs(absl::StrCat("the id of value ", i, " ('", b.name, "')"),
                     absl::StrCat(a.file_id), absl::StrCat(b.file_id));
    }
    const std::string what =
        absl::StrCat("value ", b.file_id, " ('", b.name, "')");
    if (a.bytes != b.bytes) {
      return Differs(what, absl::StrCat(a.bytes, " bytes"),
                     absl::StrCat(b.bytes, " bytes"));
    }
    if (a.persistent != b.persistent) {
      return Differs(what, a.persistent ? "persistent" : "not persistent",
                     b.persistent ? "persistent" : "not persistent");
    }
  }
  if (theirs.values.size() != ours.values.size()) {
    return Differs("the number of values", absl::StrCat(theirs.values.size()),
                   absl::StrCat(ours.values.size()));
  }
  return absl::OkStatus();
}

// Requires equal ids of values, so that positions can be compared.
absl::Status CompareNode(const Problem& theirs, const Problem& ours,
                         const planner::Node& a, const planner::Node& b) {
  const std::string what =
      absl::StrCat("node ", b.file_id, " ('", b.name, "')");
  if (a.inputs != b.inputs) {
    return Differs(absl::StrCat("the inputs of ", what),
                   FileIds(theirs, a.inputs), FileIds(ours, b.inputs));
  }
  if (a.outputs != b.outputs) {
    return Differs(absl::StrCat("the outputs of ", what),
                   FileIds(theirs, a.outputs), FileIds(ours, b.outputs));
  }
  for (const auto& pair : a.inplace) {
    if (std::find(b.inplace.begin(), b.inplace.end(), pair) ==
        b.inplace.end()) {
      return Differs(
          absl::StrCat(what, " writing '", ours.value(pair.second).name,
                       "' over '", ours.value(pair.first).name, "'"),
          "allowed", "not allowed");
    }
  }
  for (const auto& pair : b.inplace) {
    // An update that is not in place would leave the old contents in memory.
    if (ours.value(pair.first).persistent &&
        std::find(a.inplace.begin(), a.inplace.end(), pair) ==
            a.inplace.end()) {
      return Differs(absl::StrCat("the update of '",
                                  ours.value(pair.first).name, "' by ", what),
                     "missing", "present");
    }
  }
  if (a.recompute && !b.recompute) {
    return Differs(absl::StrCat("running ", what, " again"), "allowed",
                   "not allowed");
  }
  return absl::OkStatus();
}

absl::Status CompareNodes(const Problem& theirs, const Problem& ours) {
  for (size_t i = 0; i < std::min(theirs.nodes.size(), ours.nodes.size());
       ++i) {
    if (theirs.nodes[i].file_id != ours.nodes[i].file_id) {
      return Differs(
          absl::StrCat("the id of node ", i, " ('", ours.nodes[i].name, "')"),
          absl::StrCat(theirs.nodes[i].file_id),
          absl::StrCat(ours.nodes[i].file_id));
    }
    LOADLINE_RETURN_IF_ERROR(
        CompareNode(theirs, ours, theirs.nodes[i], ours.nodes[i]));
  }
  if (theirs.nodes.size() != ours.nodes.size()) {
    return Differs("the number of nodes", absl::StrCat(theirs.nodes.size()),
                   absl::StrCat(ours.nodes.size()));
  }
  return absl::OkStatus();
}

absl::Status Compare(const Problem& theirs, const Problem& ours) {
  LOADLINE_RETURN_IF_ERROR(CompareValues(theirs, ours));
  LOADLINE_RETURN_IF_ERROR(CompareNodes(theirs, ours));
  if (theirs.outputs == ours.outputs) return absl::OkStatus();
  return Differs("the list of outputs", FileIds(theirs, theirs.outputs),
                 FileIds(ours, ours.outputs));
}

}  // namespace

absl::Status CheckPlanMatches(const models::Graph& graph,
                              const Problem& problem,
                              const planner::Plan& plan) {
  MakeProblemOptions options;
  options.cost = [](const models::Graph&, const models::Node&) {
    return NodeCost{};
  };
  LOADLINE_ASSIGN_OR_RETURN(const Problem ours, MakeProblem(graph, options));
  const absl::Status same = Compare(problem, ours);
  if (!same.ok()) {
    // The likeliest reason first.
    LOADLINE_RETURN_IF_ERROR(CheckNamedStructure(problem.name, graph));
    return same;
  }
  return planner::Verify(problem, plan);
}

}  // namespace loadline::passes
