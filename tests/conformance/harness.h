// Runs a node's kernel in guarded memory, or a small graph node by node.
#ifndef LOADLINE_TESTS_CONFORMANCE_HARNESS_H_
#define LOADLINE_TESTS_CONFORMANCE_HARNESS_H_

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/kernel.h"
#include "executor/reference/reference.h"
#include "models/graph.h"
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {

using reference::Array;
using reference::Call;
using reference::References;

// Bytes between two canaries; the address is 64-byte aligned plus `shift`.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes, int64_t shift = 0);
  std::byte* data() { return data_; }
  int64_t bytes() const { return bytes_; }
  // Whether both canaries are unchanged.
  bool Intact() const;

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  int64_t bytes_;
};

// A graph of one node, made from a case, and its input data.
struct CaseGraph {
  models::Graph graph;
  models::NodeId node;
  std::vector<Array> inputs;  // by graph.inputs

  const models::Node& the_node() const { return graph.node(node); }
  // The node's inputs in order; null if absent.
  std::vector<const Array*> NodeInputs() const;
};
absl::StatusOr<CaseGraph> MakeCaseGraph(const OperatorCase& c, uint64_t seed);

void ExpectClose(const Array& got, const Array& want, double tolerance);

std::vector<std::byte> ToBytes(const Array& a);
Array ToArray(const models::TensorType& type, const std::byte* bytes);

// The case in bf16, in every form that kernels support: types and data are bf16
// except where kernels require f32 (statistics, parameters, losses). Empty if
// the operator does not support bf16.
std::vector<CaseGraph> Bf16Forms(const CaseGraph& c);

// How kernels are prepared and run.
struct Backend {
  absl::StatusOr<std::unique_ptr<executor::Kernel>> (*prepare)(
      const models::Graph& graph, const models::Node& node);
  absl::Status (*run)(executor::Kernel& kernel,
                      const executor::KernelArgs& args);
};
extern const Backend kCpu;

// One case per algorithm that the backend's kernel offers; the case itself if
// it offers none.
absl::StatusOr<std::vector<CaseGraph>> WithEachAlgorithm(
    const CaseGraph& c, const Backend& backend);
// The algorithm of a case from WithEachAlgorithm, for messages.
std::string AlgorithmOf(const CaseGraph& c);

// Heap use of a call, on all threads.
struct HeapUse {
  int64_t allocations = 0;
  int64_t peak_bytes = 0;  // most bytes held at once
};
// Zeros in sanitizer builds, which have their own heap.
HeapUse MeasureHeap(const std::function<void()>& body);
bool HeapIsCounted();

struct RunOptions {
  int64_t shift = 0;  // of every buffer's address, in bytes
  // (input, output) pairs that share memory.
  std::vector<std::pair<int, int>> inplace;
  int repeats = 1;
  const Backend* backend = &kCpu;
};
struct RunResult {
  std::vector<std::vector<std::byte>> outputs;
  bool intact = true;            // all canaries are unchanged
  bool inputs_unchanged = true;  // except inputs of in-place pairs
  HeapUse heap;                  // during the last repeat
  int64_t workspace_bytes = 0;
};
// The in-place pairs that the case's operator allows.
std::vector<std::pair<int, int>> InplacePairs(const CaseGraph& c);
// Prepares and runs the case's kernel. Every repeat starts with the same
// inputs.
absl::StatusOr<RunResult> RunCase(const CaseGraph& c,
                                  const RunOptions& options);

executor::StepScalars TestScalars();

// Outputs of the reference for the case's node, given `inputs`.
std::vector<Array> ReferenceOutputs(const CaseGraph& c,
                                    const std::vector<const Array*>& inputs);

// Runs every node of a graph in order, with separate memory for every value,
// and returns all values. `given`: the graph's inputs.
absl::StatusOr<std::vector<Array>> RunGraph(const models::Graph& graph,
                                            const std::vector<Array>& given,
                                            const Backend& backend = kCpu);

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_HARNESS_H_
