# The libraries we stand on. Whatever find_package finds serves: Debian's
# packages, the prefix that tools/loadline builds, or a user's own. Nothing is
# downloaded here.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_library(LOADLINE_STATIC_CRYPTO libcrypto.a)
if(LOADLINE_STATIC_CRYPTO)  # of which one object file is needed
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(highs QUIET)
if(NOT highs_FOUND)
  message(FATAL_ERROR "HiGHS is missing: run tools/loadline once, which builds it into "
    "build/deps, or name its prefix in CMAKE_PREFIX_PATH")
endif()
if(LOADLINE_PLUGIN_ONLY)
  return()
endif()

# ONNX asks for Protobuf's own package file, which Debian's lacks: answer with
# what CMake's module found.
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf MODULE REQUIRED)
  file(WRITE ${CMAKE_FIND_PACKAGE_REDIRECTS_DIR}/protobuf-config.cmake
    "set(Protobuf_FOUND TRUE)\n")
endif()
find_package(ONNX REQUIRED)

find_package(dnnl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)

# oneDNN here runs on libgomp. Clang brings another OpenMP runtime, and two in
# one process fight over the cores: built by clang, our own kernels run on one
# thread.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_package(OpenMP REQUIRED)
endif()

# What the report's page is made of; it is assembled with Python.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(part ECHARTS=echarts.min.js TABULATOR=tabulator.min.js
             TABULATOR_STYLE=tabulator.min.css)
  string(REPLACE "=" ";" part ${part})
  list(GET part 0 name)
  list(GET part 1 file)
  find_file(LOADLINE_${name} ${file} PATHS ${CMAKE_PREFIX_PATH} /usr
    PATH_SUFFIXES share/javascript REQUIRED)
endforeach()

# Debian's package file for libzip demands programs of other packages.
find_path(LIBZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LIBZIP_LIBRARY zip REQUIRED)
add_library(loadline_zip INTERFACE)
target_include_directories(loadline_zip SYSTEM INTERFACE ${LIBZIP_INCLUDE_DIR})
target_link_libraries(loadline_zip INTERFACE ${LIBZIP_LIBRARY})
