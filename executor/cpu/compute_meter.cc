// Buffers are allocated and touched once, so that no measurement includes it.
// Tested in tests/executor/measure/measure_test.cc.
#include "executor/cpu/compute_meter.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "dnnl.hpp"

namespace loadline::executor {
namespace {

constexpr int64_t kMatmulSize = 1024;
static_assert(3 * kMatmulSize * kMatmulSize * sizeof(float) ==
              ComputeMeter::kMatricesBytes);

}  // namespace

struct ComputeMeter::State {
  explicit State(int64_t buffer_bytes)
      : engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        shape({kMatmulSize, kMatmulSize}, dnnl::memory::data_type::f32,
              dnnl::memory::format_tag::ab),
        matmul(dnnl::matmul::primitive_desc(engine, shape, shape, shape)),
        matrices(3, std::vector<float>(kMatmulSize * kMatmulSize, 1.0f)),
        lines(3,
              std::vector<float>(
                  std::max<int64_t>(buffer_bytes / sizeof(float), 1), 1.0f)) {
    for (std::vector<float>& matrix : matrices) {
      operands.emplace_back(shape, engine, matrix.data());
    }
  }

  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::memory::desc shape;
  dnnl::matmul matmul;
  std::vector<std::vector<float>> matrices;
  std::vector<std::vector<float>> lines;
  std::vector<dnnl::memory> operands;
};

ComputeMeter::ComputeMeter(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
ComputeMeter::ComputeMeter(ComputeMeter&&) = default;
ComputeMeter::~ComputeMeter() = default;

absl::StatusOr<ComputeMeter> ComputeMeter::Create(int64_t buffer_bytes) {
  try {
    ComputeMeter meter(std::make_unique<State>(buffer_bytes));
    meter.Matmul();  // reports errors here rather than in a measurement
    return meter;
  } catch (const dnnl::error& e) {
    return absl::InternalError(e.what());
  }
}

void ComputeMeter::Matmul() {
  state_->matmul.execute(state_->stream,
                         {{DNNL_ARG_SRC, state_->operands[0]},
                          {DNNL_ARG_WEIGHTS, state_->operands[1]},
                          {DNNL_ARG_DST, state_->operands[2]}});
  state_->stream.wait();
}

void ComputeMeter::Triad() { TriadOf(std::numeric_limits<int64_t>::max()); }

void ComputeMeter::TriadOf(int64_t bytes) {
  float* a = state_->lines[0].data();
  const float* b = state_->lines[1].data();
  const float* c = state_->lines[2].data();
  const auto count = std::min(static_cast<int64_t>(state_->lines[0].size()),
                              bytes / static_cast<int64_t>(sizeof(float)));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] + 0.5f * c[i];
}

double ComputeMeter::matmul_flop() const {
  return 2.0 * kMatmulSize * kMatmulSize * kMatmulSize;
}

double ComputeMeter::triad_bytes() const {
  return 3.0 * static_cast<double>(state_->lines[0].size()) * sizeof(float);
}

}  // namespace loadline::executor
