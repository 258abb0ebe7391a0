// cuBLASLt's matrices are column-major: our [rows, columns] is its [columns,
// rows]. So y = a b is requested as y' = b' a', with the operands exchanged and
// no data moved. Its bias, one number per row of y', is one row of ours, and a
// is its matrix B. Tested in tests/gpu.
#include "executor/cuda/cublas_lt.h"

#include <cublasLt.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/cuda/libraries.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

// NVIDIA's recommendation for its largest GPUs; the heuristic uses less where
// more does not help.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;
// How many to measure: the heuristic's order is good.
constexpr int kMostAlgorithms = 8;

// The functions used, from the library opened at run time.
struct CublasLt {
  decltype(&cublasLtCreate) Create;
  decltype(&cublasLtGetStatusString) GetStatusString;
  decltype(&cublasLtMatmul) Matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) AlgoGetHeuristic;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) AlgoGet;
  decltype(&cublasLtMatmulDescCreate) DescCreate;
  decltype(&cublasLtMatmulDescDestroy) DescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) DescSet;
  decltype(&cublasLtMatrixLayoutCreate) LayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) LayoutDestroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) LayoutSet;
  decltype(&cublasLtMatmulPreferenceCreate) PreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) PreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) PreferenceSet;
  cublasLtHandle_t handle;
};

absl::Status Check(const CublasLt& lt, const char* call,
                   cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(call, ": ", lt.GetStatusString(status));
  return status == CUBLAS_STATUS_NOT_SUPPORTED
             ? absl::UnimplementedError(message)
             : absl::InternalError(message);
}

absl::StatusOr<CublasLt> Load() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  LOADLINE_ASSIGN_OR_RETURN(
      void* const library,
      OpenLibrary(name, LibraryFolders(ProcessEnvironment)));
  CublasLt lt = {};
  absl::Status status;
  const auto find = [&](const char* function, auto* to) {
    const absl::StatusOr<void*> found = FindFunction(library, name, function);
    status.Update(found.status());
    if (found.ok()) {
      *to = reinterpret_cast<std::remove_pointer_t<decltype(to)>>(*found);
    }
  };
  find("cublasLtCreate", &lt.Create);
  find("cublasLtGetStatusString", &lt.GetStatusString);
  find("cublasLtMatmul", &lt.Matmul);
  find("cublasLtMatmulAlgoGetHeuristic", &lt.AlgoGetHeuristic);
  find("cublasLtMatmulAlgoConfigGetAttribute", &lt.AlgoGet);
  find("cublasLtMatmulDescCreate", &lt.DescCreate);
  find("cublasLtMatmulDescDestroy", &lt.DescDestroy);
  find("cublasLtMatmulDescSetAttribute", &lt.DescSet);
  find("cublasLtMatrixLayoutCreate", &lt.LayoutCreate);
  find("cublasLtMatrixLayoutDestroy", &lt.LayoutDestroy);
  find("cublasLtMatrixLayoutSetAttribute", &lt.LayoutSet);
  find("cublasLtMatmulPreferenceCreate", &lt.PreferenceCreate);
  find("cublasLtMatmulPreferenceDestroy", &lt.PreferenceDestroy);
  find("cublasLtMatmulPreferenceSetAttribute", &lt.PreferenceSet);
  LOADLINE_RETURN_IF_ERROR(status);
  LOADLINE_RETURN_IF_ERROR(Check(lt, "cublasLtCreate", lt.Create(&lt.handle)));
  return lt;
}

// The process's library and handle, opened at the first product; retried after
// a failure.
absl::StatusOr<const CublasLt*> Library() {
  static std::mutex mutex;
  static const CublasLt* library = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (library == nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(const CublasLt loaded, Load());
    library = new CublasLt(loaded);
  }
  return library;
}

cudaDataType TypeOf(models::DType dtype) {
  return dtype == models::DType::kF32 ? CUDA_R_32F : CUDA_R_16BF;
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kSumA:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kSumB:
      return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::kGeluTanhGrad:
      return CUBLASLT_EPILOGUE_DGELU;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// The algorithm's number and all of its settings: "67.20.11.1.0.0.0.0.2".
std::string NameOf(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm) {
  static constexpr cublasLtMatmulAlgoConfigAttributes_t kSettings[] = {
      CUBLASLT_ALGO_CONFIG_ID,
      CUBLASLT_ALGO_CONFIG_TILE_ID,
      CUBLASLT_ALGO_CONFIG_STAGES_ID,
      CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
      CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
      CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
      CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
      CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID,
      CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID};
  std::vector<uint32_t> values;
  for (cublasLtMatmulAlgoConfigAttributes_t setting : kSettings) {
    // Settings have two or four bytes, little-endian; one that an algorithm
    // does not have stays 0.
    uint32_t value = 0;
    size_t written = 0;
    for (size_t bytes : {sizeof(uint32_t), sizeof(uint16_t)}) {
      if (lt.AlgoGet(&algorithm, setting, &value, bytes, &written) ==
          CUBLAS_STATUS_SUCCESS) {
        break;
      }
    }
    values.push_back(value);
  }
  return absl::StrJoin(values, ".");
}

class LtProduct final : public Product {
 public:
  explicit LtProduct(const CublasLt& lt, const ProductSpec& spec)
      : lt_(lt), spec_(spec) {}

  ~LtProduct() override {
    if (desc_ != nullptr) lt_.DescDestroy(desc_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, y_}) {
      if (layout != nullptr) lt_.LayoutDestroy(layout);
    }
  }

  absl::Status Prepare() {
    LOADLINE_RETURN_IF_ERROR(MakeDesc());
    // In cuBLASLt's view, with rows and columns exchanged.
    const int64_t m = spec_.columns;
    const int64_t n = spec_.rows;
    const int64_t k = spec_.inner;
    LOADLINE_RETURN_IF_ERROR(
        MakeLayout(spec_.transpose_b ? k : m, spec_.transpose_b ? m : k,
                   spec_.batch_stride_b, spec_.dtype, &b_));
    LOADLINE_RETURN_IF_ERROR(
        MakeLayout(spec_.transpose_a ? n : k, spec_.transpose_a ? k : n,
                   spec_.batch_stride_a, spec_.dtype, &a_));
    LOADLINE_RETURN_IF_ERROR(MakeLayout(m, n, m * n, spec_.result, &y_));
    return SelectAlgorithm();
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(chosen_.workspaceSize);
  }

  std::vector<std::string> algorithms() const override {
    std::vector<std::string> names;
    for (const auto& proposal : proposals_) {
      names.push_back(NameOf(lt_, proposal.algo));
    }
    return names;
  }

  absl::Status Enqueue(const std::byte* a, const std::byte* b,
                       const std::byte* c, const std::byte* auxiliary,
                       std::byte* y, std::byte* workspace,
                       Stream stream) const override {
    if (spec_.epilogue != Epilogue::kNone) {
      LOADLINE_RETURN_IF_ERROR(SetAuxiliary(auxiliary));
    }
    return Check(
        lt_, "cublasLtMatmul",
        lt_.Matmul(lt_.handle, desc_, &spec_.alpha, b, b_, a, a_, &spec_.beta,
                   spec_.beta == 0 ? y : c, y_, y, y_, &chosen_.algo, workspace,
                   chosen_.workspaceSize, stream));
  }

 private:
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute,
                   const T& value) const {
    return Check(lt_, "cublasLtMatmulDescSetAttribute",
                 lt_.DescSet(desc_, attribute, &value, sizeof(value)));
  }

  absl::Status MakeDesc() {
    LOADLINE_RETURN_IF_ERROR(
        Check(lt_, "cublasLtMatmulDescCreate",
              lt_.DescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    const auto op = [](bool transposed) -> int32_t {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    LOADLINE_RETURN_IF_ERROR(
        Set(CUBLASLT_MATMUL_DESC_TRANSA, op(spec_.transpose_b)));
    LOADLINE_RETURN_IF_ERROR(
        Set(CUBLASLT_MATMUL_DESC_TRANSB, op(spec_.transpose_a)));
    if (spec_.epilogue == Epilogue::kNone) return absl::OkStatus();
    const auto epilogue = static_cast<uint32_t>(EpilogueOf(spec_.epilogue));
    LOADLINE_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    // The heuristic derives the alignment of the data from the pointer.
    LOADLINE_RETURN_IF_ERROR(SetAuxiliary(
        reinterpret_cast<const std::byte*>(planner::kBufferAlignmentBytes)));
    if (spec_.epilogue == Epilogue::kGeluTanhGrad) {
      return Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec_.columns);
    }
    return Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
               static_cast<int32_t>(TypeOf(spec_.dtype)));
  }

  absl::Status SetAuxiliary(const std::byte* auxiliary) const {
    return Set(spec_.epilogue == Epilogue::kGeluTanhGrad
                   ? CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
                   : CUBLASLT_MATMUL_DESC_BIAS_POINTER,
               auxiliary);
  }

  absl::Status MakeLayout(int64_t rows, int64_t columns, int64_t stride,
                          models::DType dtype,
                          cublasLtMatrixLayout_t* layout) const {
    LOADLINE_RETURN_IF_ERROR(
        Check(lt_, "cublasLtMatrixLayoutCreate",
              lt_.LayoutCreate(layout, TypeOf(dtype), rows, columns, rows)));
    if (spec_.batch == 1) return absl::OkStatus();
    const auto count = static_cast<int32_t>(spec_.batch);
    LOADLINE_RETURN_IF_ERROR(
        Check(lt_, "cublasLtMatrixLayoutSetAttribute",
              lt_.LayoutSet(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                            sizeof(count))));
    return Check(
        lt_, "cublasLtMatrixLayoutSetAttribute",
        lt_.LayoutSet(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                      &stride, sizeof(stride)));
  }

  absl::Status SelectAlgorithm() {
    cublasLtMatmulPreference_t preference = nullptr;
    LOADLINE_RETURN_IF_ERROR(Check(lt_, "cublasLtMatmulPreferenceCreate",
                                   lt_.PreferenceCreate(&preference)));
    const absl::Status status = QueryHeuristic(preference);
    lt_.PreferenceDestroy(preference);
    LOADLINE_RETURN_IF_ERROR(status);
    if (proposals_.empty()) {
      return absl::UnimplementedError("cuBLASLt has no algorithm for it");
    }
    const auto wanted = std::find_if(
        proposals_.begin(), proposals_.end(), [&](const auto& proposal) {
          return !spec_.algorithm.empty() &&
                 NameOf(lt_, proposal.algo) == spec_.algorithm;
        });
    chosen_ = wanted == proposals_.end() ? proposals_[0] : *wanted;
    return absl::OkStatus();
  }

  absl::Status QueryHeuristic(cublasLtMatmulPreference_t preference) {
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                            const auto& value) {
      return Check(
          lt_, "cublasLtMatmulPreferenceSetAttribute",
          lt_.PreferenceSet(preference, attribute, &value, sizeof(value)));
    };
    LOADLINE_RETURN_IF_ERROR(
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes));
    // Partial sums are added in a fixed order only if they are stored
    // separately.
    const uint32_t reductions =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    LOADLINE_RETURN_IF_ERROR(
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
    const auto alignment = static_cast<uint32_t>(spec_.alignment_bytes);
    for (auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      LOADLINE_RETURN_IF_ERROR(prefer(attribute, alignment));
    }
    proposals_.resize(kMostAlgorithms);
    int found = 0;
    const absl::Status status = Check(
        lt_, "cublasLtMatmulAlgoGetHeuristic",
        lt_.AlgoGetHeuristic(lt_.handle, desc_, b_, a_, y_, y_, preference,
                             kMostAlgorithms, proposals_.data(), &found));
    proposals_.resize(static_cast<size_t>(std::max(found, 0)));
    proposals_.erase(std::remove_if(proposals_.begin(), proposals_.end(),
                                    [](const auto& proposal) {
                                      return proposal.state !=
                                             CUBLAS_STATUS_SUCCESS;
                                    }),
                     proposals_.end());
    return status;
  }

  const CublasLt& lt_;
  ProductSpec spec_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t y_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> proposals_;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Product>> MakeProduct(const ProductSpec& spec) {
  LOADLINE_ASSIGN_OR_RETURN(const CublasLt* const lt, Library());
  auto product = std::make_unique<LtProduct>(*lt, spec);
  LOADLINE_RETURN_IF_ERROR(product->Prepare());
  return product;
}

}  // namespace loadline::executor::cuda
