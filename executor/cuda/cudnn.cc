// Each operation is a graph of one node. cuDNN's heuristics propose engines.
// Nondeterministic ones are excluded, and for f32 also those that use tensor
// cores (which would round operands to TF32) or reduce the operands' precision.
// The engine requested by name is used, otherwise the first that builds and
// whose workspace is in proportion to its operands. So the choice depends on
// the shapes, the GPU and cuDNN's version only.
//
// cudnn-frontend throws; only statuses leave this file. Tested in tests/gpu.
#include "executor/cuda/cudnn.h"

#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cuda/libraries.h"
#include "planner/base/status_macros.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace loadline::executor::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using models::Ints;

// Engines are measured one by one, and those far down the list are rarely the
// fastest.
constexpr size_t kMostAlgorithms = 4;
// Workspace counts against the budget: an engine may reorder its operands and
// keep partial sums, but not fill the device.
constexpr int64_t kMostPartialSumBytes = int64_t{32} << 20;

absl::Status ToStatus(const char* what, const fe::error_t& error) {
  if (error.is_good()) return absl::OkStatus();
  const std::string message =
      absl::StrCat("cuDNN, ", what, ": ", error.err_msg);
  return absl::InternalError(message);
}

// Errors before engines are known mean that cuDNN lacks the operation; it has
// many codes for that.
absl::Status HasIt(const char* what, const fe::error_t& error) {
  const absl::Status status = ToStatus(what, error);
  return status.ok() ? status : absl::UnimplementedError(status.message());
}

// The process's handle, created at the first operation.
absl::StatusOr<cudnnHandle_t> Handle() {
  static std::mutex mutex;
  static cudnnHandle_t handle = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (handle != nullptr) return handle;
  const std::vector<std::string> folders = LibraryFolders(ProcessEnvironment);
  // cuDNN and its frontend open these by name; if they are missing, cuDNN
  // reports it. Without the compiler cuDNN lacks engines specialized to a shape
  // and, on Hopper, attention.
  const int major = CUDART_VERSION / 1000;
  for (const char* name : {"libcublasLt.so.", "libnvrtc.so."}) {
    OpenLibrary(absl::StrCat(name, major), folders).IgnoreError();
  }
  // With two runtimes present, the frontend would use the older one.
  const std::string runtime = absl::StrCat("libcudart.so.", major);
  if (OpenLibrary(runtime, folders).ok()) {
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), /*replace=*/0);
  }
  LOADLINE_ASSIGN_OR_RETURN(fe::cudnn_dlhandle,
                            OpenLibrary("libcudnn.so.9", folders));
  const cudnnStatus_t status = fe::detail::create_handle(&handle);
  if (status == CUDNN_STATUS_SUCCESS) return handle;
  handle = nullptr;
  return absl::UnavailableError(
      absl::StrCat("cudnnCreate: ", fe::detail::get_error_string(status)));
}

// Dense strides; dimensions later in `order` are closer together in memory.
Ints StridesIn(const std::vector<size_t>& order, const Ints& dims) {
  Ints strides(dims.size());
  int64_t elements = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = elements;
    elements *= dims[order[i]];
  }
  return strides;
}

// A graph under construction. A tensor's number is its position in the spec's
// list, counted from 1.
struct Draft {
  fe::graph::Graph graph;
  std::vector<fe::NumericalNote_t> struck_out;
  // A preference: an engine that needs more is better than none.
  int64_t most_workspace_bytes = std::numeric_limits<int64_t>::max();

  explicit Draft(models::DType dtype) {
    graph
        .set_io_data_type(dtype == models::DType::kF32
                              ? fe::DataType_t::FLOAT
                              : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  Tensor Input(int64_t number, const Ints& dims, const Ints& strides) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(absl::StrCat("t", number))
                            .set_uid(number)
                            .set_dim(dims)
                            .set_stride(strides));
  }
  static void Output(int64_t number, const Ints& dims, const Ints& strides,
                     const Tensor& tensor) {
    tensor->set_output(true).set_uid(number).set_dim(dims).set_stride(strides);
  }
};

template <typename Attributes>
Attributes Geometry(const ConvSpec& spec) {
  return Attributes()
      .set_pre_padding(spec.pads)
      .set_post_padding(spec.pads)
      .set_stride(spec.strides)
      .set_dilation(spec.dilations);
}

std::unique_ptr<Draft> MakeDraft(const ConvSpec& spec) {
  auto draft = std::make_unique<Draft>(spec.dtype);
  const auto strides = [&](const Ints& dims) {
    if (spec.channels_last) return StridesIn({0, 2, 3, 1}, dims);
    return dims.size() == 5 ? StridesIn({0, 1, 2, 3, 4}, dims)
                            : StridesIn({0, 1, 2, 3}, dims);
  };
  const auto input = [&](int64_t number, const Ints& dims) {
    return draft->Input(number, dims, strides(dims));
  };
  Tensor out;
  // Dimensions that the operands do not determine.
  Ints dims;
  if (spec.kind == ConvKind::kForward) {
    dims = spec.y;
    out = draft->graph.conv_fprop(
        input(1, spec.x), input(2, spec.w),
        Geometry<fe::graph::Conv_fprop_attributes>(spec));
  } else if (spec.kind == ConvKind::kInputGrad) {
    dims = spec.x;
    out = draft->graph.conv_dgrad(
        input(1, spec.y), input(2, spec.w),
        Geometry<fe::graph::Conv_dgrad_attributes>(spec));
  } else {
    dims = spec.w;
    out = draft->graph.conv_wgrad(
        input(1, spec.y), input(2, spec.x),
        Geometry<fe::graph::Conv_wgrad_attributes>(spec));
  }
  Draft::Output(3, dims, strides(dims), out);
  draft->most_workspace_bytes = kMostPartialSumBytes;
  for (const Ints* of : {&spec.x, &spec.w, &spec.y}) {
    draft->most_workspace_bytes += models::TensorType{spec.dtype, *of}.bytes();
  }
  draft->struck_out = {fe::NumericalNote_t::NONDETERMINISTIC};
  if (spec.dtype == models::DType::kF32) {
    draft->struck_out.push_back(fe::NumericalNote_t::TENSOR_CORE);
    draft->struck_out.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  return draft;
}

// A tensor of an attention, with dimensions in cuDNN's order [batch, heads,
// rows, width], stored as [batch, rows, heads, width].
struct HeadTensor {
  Ints dims, strides;

  HeadTensor(const AttentionSpec& s, int64_t rows, int64_t width)
      : dims{s.batch, s.heads, rows, width},
        strides(StridesIn({0, 2, 1, 3}, dims)) {}
};

std::unique_ptr<Draft> MakeDraft(const AttentionSpec& spec) {
  auto draft = std::make_unique<Draft>(models::DType::kBF16);
  fe::graph::Graph& graph = draft->graph;
  const HeadTensor q(spec, spec.rows, spec.width);
  const HeadTensor k(spec, spec.columns, spec.width);
  const HeadTensor v(spec, spec.columns, spec.value_width);
  const HeadTensor y(spec, spec.rows, spec.value_width);
  const Ints lse = {spec.batch, spec.heads, spec.rows, 1};
  const Ints lse_strides = StridesIn({0, 1, 2, 3}, lse);
  const auto input = [&](int64_t number, const HeadTensor& tensor) {
    return draft->Input(number, tensor.dims, tensor.strides);
  };
  const auto output = [](int64_t number, const HeadTensor& tensor,
                         const Tensor& made) {
    Draft::Output(number, tensor.dims, tensor.strides, made);
  };
  if (!spec.backward) {
    const auto [made, statistic] =
        graph.sdpa(input(1, q), input(2, k), input(3, v),
                   fe::graph::SDPA_attributes()
                       .set_generate_stats(true)
                       .set_causal_mask(spec.causal)
                       .set_attn_scale(spec.scale));
    output(4, y, made);
    Draft::Output(5, lse, lse_strides, statistic);
    statistic->set_data_type(fe::DataType_t::FLOAT);
    return draft;
  }
  const Tensor dy = input(1, y);
  const Tensor statistic = draft->Input(6, lse, lse_strides);
  statistic->set_data_type(fe::DataType_t::FLOAT);
  const auto [dq, dk, dv] = graph.sdpa_backward(
      input(2, q), input(3, k), input(4, v), input(5, y), dy, statistic,
      fe::graph::SDPA_backward_attributes()
          .set_causal_mask(spec.causal)
          .set_attn_scale(spec.scale)
          .set_deterministic_algorithm(true));
  output(7, q, dq);
  output(8, k, dk);
  output(9, v, dv);
  return draft;
}

// Builds the graph up to its list of engines.
absl::Status Propose(cudnnHandle_t handle, Draft& draft) {
  fe::graph::Graph& graph = draft.graph;
  LOADLINE_RETURN_IF_ERROR(HasIt("validating", graph.validate()));
  LOADLINE_RETURN_IF_ERROR(
      HasIt("building", graph.build_operation_graph(handle)));
  LOADLINE_RETURN_IF_ERROR(
      HasIt("looking for engines",
            graph.create_execution_plans(
                {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})));
  graph.deselect_numeric_notes(draft.struck_out);
  return HasIt("looking for an engine", graph.check_support());
}

struct Engine {
  int64_t place = 0;  // index in cuDNN's list
  std::string name;
  int64_t workspace_bytes = 0;
};

// Builds the engine at that index; none if it fails.
std::optional<Engine> Build(fe::graph::Graph& graph, int64_t place) {
  Engine engine = {.place = place};
  if (graph.get_plan_name_at_index(place, engine.name).is_bad() ||
      graph.build_plan_at_index(place).is_bad() ||
      std::as_const(graph)
          .get_workspace_size_plan_at_index(place, engine.workspace_bytes)
          .is_bad()) {
    return std::nullopt;
  }
  return engine;
}

// The first `most` engines that build and respect the workspace limit; if none
// does, the first that builds at all.
std::vector<Engine> FirstEngines(Draft& draft, size_t most) {
  std::vector<Engine> engines;
  std::optional<Engine> larger;
  const int64_t count = draft.graph.get_execution_plan_count();
  for (int64_t i = 0; i < count && engines.size() < most; ++i) {
    std::optional<Engine> engine = Build(draft.graph, i);
    if (!engine.has_value()) continue;
    if (engine->workspace_bytes <= draft.most_workspace_bytes) {
      engines.push_back(*std::move(engine));
    } else if (!larger.has_value()) {
      larger = std::move(engine);
    }
  }
  if (engines.empty() && larger.has_value()) engines.push_back(*larger);
  return engines;
}

std::optional<Engine> EngineOfName(Draft& draft, const std::string& name) {
  const int64_t count = draft.graph.get_execution_plan_count();
  for (int64_t i = 0; i < count && !name.empty(); ++i) {
    std::string here;
    if (draft.graph.get_plan_name_at_index(i, here).is_good() && here == name) {
      return Build(draft.graph, i);
    }
  }
  return std::nullopt;
}

class Operation final : public CudnnOperation {
 public:
  static absl::StatusOr<std::unique_ptr<CudnnOperation>> Make(
      cudnnHandle_t handle, std::unique_ptr<Draft> draft,
      const std::string& algorithm) {
    LOADLINE_RETURN_IF_ERROR(Propose(handle, *draft));
    std::unique_ptr<Operation> operation(
        new Operation(handle, std::move(draft)));
    LOADLINE_RETURN_IF_ERROR(operation->SelectAlgorithm(algorithm));
    return operation;
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Enqueue(absl::Span<const std::byte* const> tensors,
                       std::byte* workspace, Stream stream) const override {
    // cuDNN's interface takes inputs as non-const but does not write them.
    std::unordered_map<int64_t, void*> numbered;
    for (size_t i = 0; i < tensors.size(); ++i) {
      numbered[static_cast<int64_t>(i) + 1] =
          const_cast<std::byte*>(tensors[i]);
    }
    const cudnnStatus_t status = fe::detail::set_stream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) {
      return absl::InternalError(absl::StrCat(
          "cudnnSetStream: ", fe::detail::get_error_string(status)));
    }
    return ToStatus("enqueuing",
                    draft_->graph.execute(handle_, numbered, workspace));
  }

 private:
  Operation(cudnnHandle_t handle, std::unique_ptr<Draft> draft)
      : handle_(handle), draft_(std::move(draft)) {}

  absl::Status SelectAlgorithm(const std::string& algorithm) {
    std::optional<Engine> engine = EngineOfName(*draft_, algorithm);
    if (!engine.has_value()) {
      const std::vector<Engine> first = FirstEngines(*draft_, 1);
      if (first.empty()) {
        return absl::UnimplementedError("cuDNN: no engine builds");
      }
      engine = first[0];
    }
    workspace_bytes_ = engine->workspace_bytes;
    // The engine that is built last is the one that runs.
    return ToStatus("building an engine",
                    draft_->graph.build_plan_at_index(engine->place));
  }

  cudnnHandle_t handle_;
  std::unique_ptr<Draft> draft_;
  int64_t workspace_bytes_ = 0;
};

template <typename Spec>
absl::StatusOr<std::unique_ptr<CudnnOperation>> Make(const Spec& spec) {
  try {
    // First, because a draft queries the library for its version.
    LOADLINE_ASSIGN_OR_RETURN(const cudnnHandle_t handle, Handle());
    return Operation::Make(handle, MakeDraft(spec), spec.algorithm);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cuDNN: ", error.what()));
  }
}

template <typename Spec>
std::vector<std::string> Algorithms(const Spec& spec) {
  std::vector<std::string> names;
  try {
    const absl::StatusOr<cudnnHandle_t> handle = Handle();
    if (!handle.ok()) return names;
    const std::unique_ptr<Draft> draft = MakeDraft(spec);
    if (!Propose(*handle, *draft).ok()) return names;
    for (Engine& engine : FirstEngines(*draft, kMostAlgorithms)) {
      names.push_back(std::move(engine.name));
    }
  } catch (const std::exception&) {
    names.clear();
  }
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(
    const ConvSpec& spec) {
  return Make(spec);
}

absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(
    const AttentionSpec& spec) {
  return Make(spec);
}

std::vector<std::string> CudnnAlgorithms(const ConvSpec& spec) {
  return Algorithms(spec);
}

std::vector<std::string> CudnnAlgorithms(const AttentionSpec& spec) {
  return Algorithms(spec);
}

}  // namespace loadline::executor::cuda
