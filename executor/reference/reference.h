// A second implementation of every operator, in double and directly from its
// definition in models/ops/operators.md: one loop per index, no code shared
// with the kernels. Slow; for small tensors only. Tested with the kernels, in
// tests/conformance/.
#ifndef LOADLINE_EXECUTOR_REFERENCE_REFERENCE_H_
#define LOADLINE_EXECUTOR_REFERENCE_REFERENCE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/device/kernel.h"
#include "models/attributes.h"
#include "models/types.h"

namespace loadline::reference {

// Numbers of any element type, stored as double.
struct Array {
  models::TensorType type;
  std::vector<double> values;
};

// One evaluation. `inputs[i]` is null if absent; `outputs` have their types and
// are zero.
struct Call {
  const models::Attributes& attributes;
  std::vector<const Array*> inputs;
  std::vector<Array>& outputs;
  const executor::StepScalars& scalars;

  const Array& in(int i) const { return *inputs[i]; }
  bool has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  Array& out(int i = 0) const { return outputs[i]; }
};

using ReferenceFunction = std::function<void(const Call&)>;
using ReferenceTable = std::map<std::string, ReferenceFunction>;

// Add references to the table, by operator family.
void AddElementwiseReferences(ReferenceTable& table);
void AddShapeReferences(ReferenceTable& table);
void AddWindowReferences(ReferenceTable& table);
void AddNormalizationReferences(ReferenceTable& table);
void AddLossReferences(ReferenceTable& table);
void AddRandomReferences(ReferenceTable& table);
void AddUpdateReferences(ReferenceTable& table);
void AddAttentionReferences(ReferenceTable& table);
void AddQuantizeReferences(ReferenceTable& table);
void AddCodecReferences(ReferenceTable& table);
const ReferenceTable& References();

// Calls body with every index of a shape, in row-major order.
void ForEachIndex(const models::Ints& dims,
                  const std::function<void(const models::Ints&)>& body);
// Row-major position of an index.
int64_t Position(const models::Ints& dims, const models::Ints& index);
// The four random words of one counter.
std::vector<uint32_t> Philox(std::vector<uint32_t> counter, uint64_t seed);
// Whether a dropout of `ratio` keeps element i.
bool DropoutKeeps(const Call& c, double ratio, int64_t i);
// The element of `a` that broadcasting puts at `index`.
double BroadcastAt(const Array& a, const models::Ints& index);

}  // namespace loadline::reference

#endif  // LOADLINE_EXECUTOR_REFERENCE_REFERENCE_H_
