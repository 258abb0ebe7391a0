# Whether the CUDA device is compiled: LOADLINE_HAS_CUDA. `auto` takes it where
# CMake finds the toolkit, cuDNN 9 and the headers of its C++ interface; `on`
# demands them. Nothing here needs a GPU, and the command starts without any of
# CUDA's shared libraries: the runtime is linked statically, cuBLASLt and cuDNN
# are opened when a GPU is asked for (executor/cuda/libraries.cc).
#
# Under sanitizers there are no kernels, and the device is tested with the fake
# driver, as on a machine without a toolkit.
if(NOT LOADLINE_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "LOADLINE_CUDA is '${LOADLINE_CUDA}': want auto, on or off")
endif()

set(LOADLINE_HAS_CUDA OFF)
set(lacking "")
if(LOADLINE_CUDA STREQUAL "off")
  set(lacking "LOADLINE_CUDA is off")
elseif(LOADLINE_SANITIZE)
  set(lacking "a build with sanitizers")
else()
  find_package(CUDAToolkit QUIET)
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_PATH PATH_SUFFIXES include)
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h)
  if(NOT CUDAToolkit_FOUND)
    set(lacking "no CUDA Toolkit found")
  elseif(NOT TARGET CUDA::cudart_static OR
         NOT EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}")
    set(lacking "the toolkit lacks nvcc or the static runtime")
  elseif(NOT EXISTS "${CUDAToolkit_INCLUDE_DIRS}/cublasLt.h")
    set(lacking "no cuBLASLt headers (cublasLt.h)")
  elseif(NOT CUDNN_INCLUDE_DIR)
    set(lacking "no cuDNN 9 headers (cudnn_graph.h)")
  elseif(NOT CUDNN_FRONTEND_INCLUDE_DIR)
    set(lacking "no cudnn_frontend.h (run tools/loadline once)")
  endif()
endif()

if(NOT lacking)
  set(LOADLINE_HAS_CUDA ON)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}" CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}" CACHE FILEPATH
    "What nvcc hands host code to")
  # Machine code for two generations, and PTX for those to come. `auto` makes PTX
  # alone where it sees no GPU, in half the time; a driver compiles it when the
  # command first starts there.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
  if(LOADLINE_CUDA STREQUAL "auto" AND NOT EXISTS /dev/nvidiactl)
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
  endif()
  if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know how nvcc is told of C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " printed)
  message(STATUS "CUDA: compiled for ${printed} with Toolkit "
    "${CUDAToolkit_VERSION}; needs a GPU only to run")
elseif(LOADLINE_CUDA STREQUAL "on")
  message(FATAL_ERROR "LOADLINE_CUDA is on, but: ${lacking}")
else()
  message(STATUS "CUDA: not compiled (${lacking})")
endif()
