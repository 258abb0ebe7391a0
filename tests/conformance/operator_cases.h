// The one table of operator cases: shapes, attributes and ranges. Every check
// of conformance runs over all of it.
#ifndef LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_
#define LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "models/attributes.h"
#include "models/types.h"

namespace loadline::conformance {

// Uniform numbers in [low, high]; whole ones for integer types.
struct InputSpec {
  models::TensorType type;
  double low = -2;
  double high = 2;
};

struct OperatorCase {
  std::string op;
  std::string what;                              // what this case is about
  std::vector<std::optional<InputSpec>> inputs;  // nullopt: absent
  models::Attributes attributes;
  // Of |kernel - reference|, relative to 1 + |reference|.
  double tolerance = 2e-6;
  // Finite differences need a smooth function: false where the case sits on a
  // kink or a step.
  bool smooth = true;

  std::string Name() const { return op + " (" + what + ")"; }
};

std::vector<OperatorCase> OperatorCases();
// Those that the CPU computes in bf16, their data in bf16.
std::vector<OperatorCase> LowPrecisionCases();

// Parts of the table.
void AddElementwiseCases(std::vector<OperatorCase>& cases);
void AddShapeCases(std::vector<OperatorCase>& cases);
void AddNetworkCases(std::vector<OperatorCase>& cases);

InputSpec F32(models::Ints dims, double low = -2, double high = 2);
InputSpec I64(models::Ints dims, double low, double high);
InputSpec I32(models::Ints dims, double low, double high);
InputSpec Bool(models::Ints dims);

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_
