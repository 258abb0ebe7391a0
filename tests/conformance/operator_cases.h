// The table of operator cases: shapes, attributes and ranges. Every conformance
// check runs over all of it.
#ifndef LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_
#define LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "models/attributes.h"
#include "models/types.h"

namespace loadline::conformance {

// Uniformly random numbers in [low, high]; integers for integer types.
struct InputSpec {
  models::TensorType type;
  double low = -2;
  double high = 2;
};

struct OperatorCase {
  std::string op;
  std::string what;                              // what the case tests
  std::vector<std::optional<InputSpec>> inputs;  // nullopt: absent
  models::Attributes attributes;
  // Limit of |kernel - reference|, relative to 1 + |reference|.
  double tolerance = 2e-6;
  // False if the case is at a kink or a step, where finite differences fail.
  bool smooth = true;

  std::string Name() const { return op + " (" + what + ")"; }
};

std::vector<OperatorCase> OperatorCases();
// Cases with bf16 data, for the operators that the CPU computes in bf16.
std::vector<OperatorCase> LowPrecisionCases();

// Parts of the table.
void AddElementwiseCases(std::vector<OperatorCase>& cases);
void AddShapeCases(std::vector<OperatorCase>& cases);
void AddNetworkCases(std::vector<OperatorCase>& cases);
void AddWeightedLossCases(std::vector<OperatorCase>& cases);
void AddUpdateCases(std::vector<OperatorCase>& cases);
void AddAdafactorCases(std::vector<OperatorCase>& cases);
void AddQuantizeCases(std::vector<OperatorCase>& cases);
void AddCodecCases(std::vector<OperatorCase>& cases);

InputSpec F32(models::Ints dims, double low = -2, double high = 2);
InputSpec I64(models::Ints dims, double low, double high);
InputSpec U8(models::Ints dims, double low, double high);
InputSpec I32(models::Ints dims, double low, double high);
InputSpec Bool(models::Ints dims);

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_OPERATOR_CASES_H_
