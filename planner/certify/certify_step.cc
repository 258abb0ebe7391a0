// A tree of branchings per part, the leaf with the least bound first. A leaf's
// multipliers are the duals of its linear program, rounded to integers, and its
// bound is what the checker makes of these. Tested in
// tests/planner/certify/certify_step_test.cc.
#include "planner/certify/certify_step.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/base/check.h"
#include "planner/certificate/check_certificate.h"
#include "planner/certify/part_program.h"

namespace loadline::planner {
namespace {

class TreeMaker {
 public:
  TreeMaker(const PartFacts& part, bool free_nodes,
            const CertifyOptions& options)
      : part_(part),
        options_(options),
        program_(part, options.budget_bytes, free_nodes),
        solver_(program_.program()) {}

  // Stops at `enough_ticks`, or when `work` or `multipliers` are used up.
  void Grow(int64_t enough_ticks, int64_t& work, int64_t& multipliers) {
    nodes_.push_back({});
    SolveLeaf(0, work);
    int leaves = 1;
    while (leaves < options_.most_leaves && work > 0 && !options_.stop.Now()) {
      const int least = LeastLeaf();
      if (nodes_[least].ticks >= enough_ticks || nodes_[least].branch < 0)
        break;
      const auto rows = static_cast<int64_t>(nodes_[least].rows.size());
      if (leaves * rows > multipliers) break;
      Split(least, work);
      ++leaves;
    }
    for (const CertificateTreeNode& node : Tree()) {
      multipliers -= static_cast<int64_t>(node.rows.size());
    }
  }

  std::vector<CertificateTreeNode> Tree() const {
    std::vector<CertificateTreeNode> tree;
    Append(0, nodes_[LeastLeaf()].ticks, tree);
    return tree;
  }

 private:
  struct Node {
    int parent = -1;
    int fixed_column = -1;  // of the program
    int fixed_value = 0;
    int children[2] = {-1, -1};
    int branch = -1;  // the column to branch on; -1: none is left
    int64_t ticks = 0;
    std::vector<CertificateRow> rows;
  };

  bool IsLeaf(int node) const { return nodes_[node].children[0] < 0; }

  int LeastLeaf() const {
    int least = -1;
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
      if (IsLeaf(n) && (least < 0 || nodes_[n].ticks < nodes_[least].ticks)) {
        least = n;
      }
    }
    return least;
  }

  void Split(int parent, int64_t& work) {
    for (int value : {0, 1}) {
      Node child;
      child.parent = parent;
      child.fixed_column = nodes_[parent].branch;
      child.fixed_value = value;
      nodes_[parent].children[value] = static_cast<int>(nodes_.size());
      nodes_.push_back(std::move(child));
      SolveLeaf(nodes_[parent].children[value], work);
    }
  }

  void SolveLeaf(int leaf, int64_t& work) {
    std::vector<FixedColumn> fixed;
    for (int column : fixed_columns_) solver_.SetLimits(column, 0, 1);
    fixed_columns_.clear();
    for (int n = leaf; nodes_[n].parent >= 0; n = nodes_[n].parent) {
      const int value = nodes_[n].fixed_value;
      solver_.SetLimits(nodes_[n].fixed_column, value, value);
      fixed_columns_.push_back(nodes_[n].fixed_column);
      fixed.push_back({program_.column(nodes_[n].fixed_column), value});
    }
    const MipBound bound =
        solver_.Solve({std::max<int64_t>(work, 1), options_.stop});
    work -= bound.iterations + kSolveWork;
    Node& node = nodes_[leaf];
    if (!bound.row_duals.empty()) {
      node.rows = program_.Multipliers(bound.row_duals);
    }
    const absl::StatusOr<int64_t> ticks =
        ProvenTicks(part_, options_.budget_bytes, node.rows, fixed);
    // Multipliers that overflow prove nothing.
    if (!ticks.ok()) node.rows.clear();
    node.ticks = ticks.value_or(0);
    // A leaf is inside its parent.
    if (node.parent >= 0 && node.ticks < nodes_[node.parent].ticks) {
      const absl::StatusOr<int64_t> inherited = ProvenTicks(
          part_, options_.budget_bytes, nodes_[node.parent].rows, fixed);
      if (inherited.ok() && *inherited > node.ticks) {
        node.ticks = *inherited;
        node.rows = nodes_[node.parent].rows;
      }
    }
    node.branch = MostFractional(bound.x);
  }

  int MostFractional(const std::vector<double>& x) const {
    constexpr double kIntegral = 1e-6;
    int best = -1;
    double best_distance = kIntegral;
    for (int c = 0; c < static_cast<int>(x.size()); ++c) {
      if (!program_.Branches(c)) continue;
      const double distance = std::min(x[c], 1 - x[c]);
      if (distance > best_distance) {
        best = c;
        best_distance = distance;
      }
    }
    return best;
  }

  // A node that proves the least of all leaves needs no branches.
  void Append(int n, int64_t least_ticks,
              std::vector<CertificateTreeNode>& tree) const {
    const Node& node = nodes_[n];
    CertificateTreeNode out;
    if (IsLeaf(n) || node.ticks >= least_ticks) {
      out.rows = node.rows;
      tree.push_back(std::move(out));
      return;
    }
    out.branch = true;
    out.column = program_.column(node.branch);
    tree.push_back(std::move(out));
    Append(node.children[0], least_ticks, tree);
    Append(node.children[1], least_ticks, tree);
  }

  // Reading and rounding duals costs as much as so many iterations.
  static constexpr int64_t kSolveWork = 20;

  const PartFacts& part_;
  const CertifyOptions& options_;
  PartProgram program_;
  LpSolver solver_;
  std::vector<int> fixed_columns_;
  std::vector<Node> nodes_;
};

}  // namespace

CertifiedBound CertifyStep(const Problem& problem, const StepBound& bound,
                           const CertifyOptions& options) {
  const ProblemFacts facts(problem);
  CertifiedBound certified;
  certified.step_ns = facts.compute_ns;
  if (bound.cuts.empty() || facts.compute_ns > kMostCertifiedNs) {
    return certified;
  }
  std::vector<CertificatePart> parts;
  if (bound.spans) {
    for (size_t p = 0; p < bound.cuts.size(); ++p) {
      parts.push_back(
          {{NodeId{bound.cuts[p]}},
           NodeId{p + 1 < bound.cuts.size() ? bound.cuts[p + 1] : -1},
           {}});
    }
  } else {
    CertificatePart part;
    for (int cut : bound.cuts) part.cuts.push_back(NodeId{cut});
    parts.push_back(std::move(part));
  }
  int64_t work = options.work_limit;
  int64_t multipliers =
      std::max(options.most_multipliers,
               options.multipliers_per_node *
                   (int64_t{facts.nodes} + int64_t{facts.values}));
  const int64_t enough_ns = bound.step_ns - facts.compute_ns;
  for (size_t p = 0; p < parts.size(); ++p) {
    const absl::StatusOr<PartFacts> part_facts =
        PartFacts::Make(facts, parts[p]);
    LOADLINE_CHECK(part_facts.ok());
    TreeMaker maker(*part_facts, bound.free_nodes || bound.spans, options);
    const auto left = static_cast<int64_t>(parts.size() - p);
    int64_t part_work = work / left;
    const int64_t given = part_work;
    maker.Grow(bound.spans ? INT64_MAX
                           : (enough_ns > INT64_MAX / kTicksPerNs
                                  ? INT64_MAX
                                  : enough_ns * kTicksPerNs),
               part_work, multipliers);
    work -= given - part_work;
    parts[p].tree = maker.Tree();
  }
  Certificate certificate;
  certificate.parts = std::move(parts);
  const absl::StatusOr<int64_t> step_ns =
      CertifiedStepNs(problem, options.budget_bytes, certificate);
  LOADLINE_CHECK(step_ns.ok());
  if (*step_ns <= facts.compute_ns) return certified;
  return {*step_ns, std::move(certificate)};
}

}  // namespace loadline::planner
