// One graph of one node per convolution. cuDNN's heuristics propose engines;
// those that are not deterministic are struck out, and for f32 those that work
// on tensor cores (which would round operands to TF32) or change the operands'
// precision. The first that builds is taken, so the choice depends on the
// shapes, the GPU and cuDNN's version only.
//
// cudnn-frontend throws; nothing leaves here but a status. Tested by the suite
// in tests/gpu.
#include "executor/cuda/cudnn_conv.h"

#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cuda/libraries.h"
#include "planner/status_macros.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace loadline::executor::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : int64_t { kA = 1, kB = 2, kOut = 3 };

absl::Status ToStatus(const char* what, const fe::error_t& error) {
  if (error.is_good()) return absl::OkStatus();
  const std::string message =
      absl::StrCat("cuDNN, ", what, ": ", error.err_msg);
  return error.code == fe::error_code_t::GRAPH_NOT_SUPPORTED
             ? absl::UnimplementedError(message)
             : absl::InternalError(message);
}

// The process's handle, made at the first convolution.
absl::StatusOr<cudnnHandle_t> Handle() {
  static std::mutex mutex;
  static cudnnHandle_t handle = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (handle != nullptr) return handle;
  const std::vector<std::string> folders = LibraryFolders(ProcessEnvironment);
  // cuDNN and its frontend look for these two by name; where they are nowhere,
  // cuDNN itself says so.
  const int major = CUDART_VERSION / 1000;
  for (const char* name : {"libcudart.so.", "libcublasLt.so."}) {
    OpenLibrary(absl::StrCat(name, major), folders).IgnoreError();
  }
  LOADLINE_ASSIGN_OR_RETURN(fe::cudnn_dlhandle,
                            OpenLibrary("libcudnn.so.9", folders));
  const cudnnStatus_t status = fe::detail::create_handle(&handle);
  if (status == CUDNN_STATUS_SUCCESS) return handle;
  handle = nullptr;
  return absl::UnavailableError(
      absl::StrCat("cudnnCreate: ", fe::detail::get_error_string(status)));
}

Tensor AddTensor(fe::graph::Graph& graph, Uid uid, const models::Ints& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) {
    strides[d] = strides[d + 1] * dims[d + 1];
  }
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(absl::StrCat("t", static_cast<int>(uid)))
                          .set_uid(uid)
                          .set_dim(dims)
                          .set_stride(strides));
}

template <typename Attributes>
Attributes Geometry(const ConvSpec& spec) {
  return Attributes()
      .set_pre_padding(spec.pads_begin)
      .set_post_padding(spec.pads_end)
      .set_stride(spec.strides)
      .set_dilation(spec.dilations);
}

// What the node computes, with the dimensions that its operands alone do not
// say.
void AddNode(fe::graph::Graph& graph, const ConvSpec& spec) {
  Tensor out;
  models::Ints dims;
  if (spec.kind == ConvKind::kForward) {
    dims = spec.y;
    out = graph.conv_fprop(AddTensor(graph, kA, spec.x),
                           AddTensor(graph, kB, spec.w),
                           Geometry<fe::graph::Conv_fprop_attributes>(spec));
  } else if (spec.kind == ConvKind::kInputGrad) {
    dims = spec.x;
    out = graph.conv_dgrad(AddTensor(graph, kA, spec.y),
                           AddTensor(graph, kB, spec.w),
                           Geometry<fe::graph::Conv_dgrad_attributes>(spec));
  } else {
    dims = spec.w;
    out = graph.conv_wgrad(AddTensor(graph, kA, spec.y),
                           AddTensor(graph, kB, spec.x),
                           Geometry<fe::graph::Conv_wgrad_attributes>(spec));
  }
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) {
    strides[d] = strides[d + 1] * dims[d + 1];
  }
  out->set_output(true).set_uid(kOut).set_dim(dims).set_stride(strides);
}

class Conv final : public CudnnConv {
 public:
  static absl::StatusOr<std::unique_ptr<CudnnConv>> Make(const ConvSpec& spec) {
    LOADLINE_ASSIGN_OR_RETURN(const cudnnHandle_t handle, Handle());
    std::unique_ptr<Conv> conv(new Conv(handle));
    fe::graph::Graph& graph = conv->graph_;
    const bool f32 = spec.dtype == models::DType::kF32;
    graph
        .set_io_data_type(f32 ? fe::DataType_t::FLOAT
                              : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    AddNode(graph, spec);
    LOADLINE_RETURN_IF_ERROR(ToStatus("validating", graph.validate()));
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("building", graph.build_operation_graph(handle)));
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("looking for engines",
                 graph.create_execution_plans(
                     {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})));
    std::vector<fe::NumericalNote_t> struck_out = {
        fe::NumericalNote_t::NONDETERMINISTIC};
    if (f32) {
      struck_out.push_back(fe::NumericalNote_t::TENSOR_CORE);
      struck_out.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
    }
    graph.deselect_numeric_notes(struck_out);
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("looking for an engine", graph.check_support()));
    LOADLINE_RETURN_IF_ERROR(ToStatus(
        "building an engine",
        graph.build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE)));
    LOADLINE_RETURN_IF_ERROR(ToStatus(
        "asking for workspace",
        std::as_const(graph).get_workspace_size(conv->workspace_bytes_)));
    return conv;
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Enqueue(const std::byte* a, const std::byte* b, std::byte* out,
                       std::byte* workspace, Stream stream) const override {
    // cuDNN takes inputs without const and leaves them alone.
    std::unordered_map<int64_t, void*> tensors = {
        {kA, const_cast<std::byte*>(a)},
        {kB, const_cast<std::byte*>(b)},
        {kOut, out}};
    const cudnnStatus_t status = fe::detail::set_stream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) {
      return absl::InternalError(absl::StrCat(
          "cudnnSetStream: ", fe::detail::get_error_string(status)));
    }
    return ToStatus("enqueuing", graph_.execute(handle_, tensors, workspace));
  }

 private:
  explicit Conv(cudnnHandle_t handle) : handle_(handle) {}

  cudnnHandle_t handle_;
  fe::graph::Graph graph_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudnnConv>> MakeCudnnConv(const ConvSpec& spec) {
  try {
    return Conv::Make(spec);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cuDNN: ", error.what()));
  }
}

}  // namespace loadline::executor::cuda
