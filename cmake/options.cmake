# How our own code is compiled: warnings, sanitizers, the level of the kernels.
# GCC asks for every field even of a designated initializer; we leave defaults
# to the struct.
# Warnings are errors with the compilers of CI; others have warnings of their own.
# nvcc has its own word for -Werror; the others it hands to the host compiler.
add_compile_options(-Wall -Wextra)
if("${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" MATCHES "^(GNU 12|Clang 14)\\.")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()
add_compile_options(-Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of this in std::optional wherever it optimizes less than -O2.
  add_compile_options("$<$<CONFIG:Debug>:-Wno-maybe-uninitialized>")
endif()

if(LOADLINE_SANITIZE)
  add_compile_options(-fsanitize=${LOADLINE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LOADLINE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumentation itself makes GCC 12 warn of these in sound code.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow
      -Wno-array-bounds -Wno-restrict)
  endif()
  if(LOADLINE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC cannot instrument stand-alone fences and says so at each.
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(LOADLINE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "LOADLINE_FUZZ needs clang++ (preset asan)")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-unknown-pragmas)  # of OpenMP
endif()
# What the fuzz targets look for new paths in: code that reads files. It slows
# every comparison down, so no other code has it.
set(loadline_fuzz_flags "")
if(LOADLINE_FUZZ)
  set(loadline_fuzz_flags -fsanitize=fuzzer-no-link)
endif()

# loadline_kernel_flags: the level of x86-64 that this machine reaches, by name
# and never -march=native, so that a compiler cache shared between machines
# keeps their objects apart.
# No trap and no errno is ever read, and believing in them keeps GCC from
# vectorizing comparisons and square roots.
set(loadline_kernel_flags -O3 -fno-trapping-math -fno-math-errno)
if(LOADLINE_NATIVE AND EXISTS /proc/cpuinfo AND
   CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  file(STRINGS /proc/cpuinfo cpu_flags LIMIT_COUNT 1 REGEX "^flags")
  set(level 4)
  foreach(flag avx2 bmi1 bmi2 fma f16c movbe abm
               avx512f avx512bw avx512cd avx512dq avx512vl)
    if(NOT cpu_flags MATCHES " ${flag}( |$)")
      if(flag MATCHES "^avx512" AND level GREATER 2)
        set(level 3)
      else()
        set(level 1)
      endif()
    endif()
  endforeach()
  if(level GREATER 1)
    list(APPEND loadline_kernel_flags -march=x86-64-v${level})
  endif()
endif()
list(JOIN loadline_kernel_flags " " printed)
message(STATUS "CPU kernels are compiled with ${printed}")

# loadline_precompile(TARGET HEADER...): parses headers that most sources of the
# target read once, instead of in each.
function(loadline_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <cstdint> <map> <memory> <optional> <string> <utility> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/types/span.h>
    ${ARGN})
endfunction()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # lets ccache see through them
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fpch-preprocess>)
endif()

# loadline_unity(TARGET UNITS): with LOADLINE_UNITY compiles the sources of TARGET
# that have no flags of their own in at most UNITS pieces, so that headers are
# parsed and templates are instantiated once for several. A source's unit follows
# from its path alone: a new source recompiles one unit. Two sources of one unit
# cannot give the same name to different things in their anonymous namespaces.
# Builds with sanitizers are compiled once and seldom changed: a third of the units
# takes half the time.
function(loadline_unity target units)
  if(NOT LOADLINE_UNITY)
    return()
  endif()
  if(LOADLINE_SANITIZE)
    math(EXPR units "(${units} + 2) / 3")
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MD5 digest "${path}")
    string(SUBSTRING ${digest} 0 7 digest)
    math(EXPR unit "0x${digest} % ${units}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${unit}")
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
