// The linear program whose dual values become a certificate's multipliers: the
// rows of planner/certificate/ that can matter for some cuts, scaled for a
// solver.
#ifndef LOADLINE_PLANNER_CERTIFY_PART_PROGRAM_H_
#define LOADLINE_PLANNER_CERTIFY_PART_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/bound/mip.h"
#include "planner/certificate/linear_row.h"
#include "planner/certificate/part_facts.h"
#include "planner/certificate/sum_rows.h"
#include "planner/problem/certificate.h"

namespace loadline::planner {

class PartProgram {
 public:
  // `free_nodes`: with columns for nodes that may run before the cut or after
  // it; useful with one cut only. The part must outlive this.
  PartProgram(const PartFacts& part, int64_t budget_bytes, bool free_nodes);

  const MipProgram& program() const { return program_; }
  double unit_ticks() const { return unit_ticks_; }  // a cost of 1
  const CertificateColumn& column(int index) const { return columns_[index]; }
  // May a tree branch on it?
  bool Branches(int index) const { return program_.columns[index].integer; }

  // Rows with duals as integers; those that round to 0 are left out.
  std::vector<CertificateRow> Multipliers(
      const std::vector<double>& row_duals) const;

 private:
  void FindTracked();
  bool MayBeMade(int value, int i) const;
  bool MayHaveRun(int node, int i) const;
  bool Wanted(int value, int i) const;
  void AddInputsOfReruns(int i);

  void AddFactRows();
  void AddNeeds(int value);
  void AddNeedsOfFree(int value);
  void AddPlaces(int value, int i);
  void AddReruns();
  void AddOrders();
  void AddCutRows();
  void AddHomes();
  void AddSumRows();
  using Terms = std::vector<Term>;
  std::vector<Terms> AddPortions(const SumRows& sums);

  void TryRow(RowKind kind, int a = 0, int b = 0, int c = 0, int d = 0);
  // Divided by `scale`, and with further terms.
  void AddRow(const LinearRow& row, double scale, const CertificateRow& key,
              Terms terms);
  int ColumnFor(const CertificateColumn& column);

  const PartFacts& part_;
  const ProblemFacts& problem_;
  const int64_t budget_bytes_;
  const bool free_nodes_;
  double unit_ticks_ = 1;
  double unit_bytes_ = 1;
  int elastic_ = -1;  // a column of the program alone
  MipProgram program_;
  std::vector<CertificateColumn> columns_;  // of the program
  absl::flat_hash_map<CertificateColumn, int> places_;
  struct Key {
    CertificateRow row;
    double scale = 0;  // 0: a row of the program alone
  };
  std::vector<Key> keys_;                    // by row of the program
  std::vector<std::vector<char>> tracked_;   // by epoch from 1, by value
  std::vector<std::pair<int, int>> reruns_;  // (epoch, node)
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFY_PART_PROGRAM_H_
