# The dependency prefix: what Debian lacks, pinned in requirements.txt. Each
# package is built once per recipe into CACHE/packages/NAME-HASH; the prefix
# CACHE/deps-HASH holds hard links to all of them and is reached through
# build/deps. So adding a package does not build the others again.
#   onednn  CPU kernels: the library and its headers, ready built
#   onnx    the C++ library and the tests of its operators, from its source
#           distribution (needs CMake 3.26, newer than Debian's, fetched only to
#           build it)
#   highs   linear and mixed-integer programs, from the source distribution of
#           its Python package
#   web     ECharts and Tabulator for the report, taken from the wheel of Panel,
#           which is not used itself
#   cudnn_frontend  headers of cuDNN's C++ interface; only where there is a CUDA
#           Toolkit to compile them with
# Sourced by tools/loadline and tools/test.

packages=(onednn onnx highs web)

# has_cuda: checks the places where CMake's FindCUDAToolkit looks first.
has_cuda() {
  command -v nvcc || [[ -x ${CUDA_PATH:-/usr/local/cuda}/bin/nvcc ]]
} >/dev/null
if has_cuda; then packages+=(cudnn_frontend); fi

# requirements_of PACKAGE: its lines of requirements.txt.
requirements_of() {
  case $1 in
    onednn) grep '^onednn-' "$root/tools/dev/setup/requirements.txt" ;;
    onnx) grep -E '^(onnx|cmake)==' "$root/tools/dev/setup/requirements.txt" ;;
    highs) grep '^highspy==' "$root/tools/dev/setup/requirements.txt" ;;
    web) grep '^panel==' "$root/tools/dev/setup/requirements.txt" ;;
    cudnn_frontend)
      grep '^nvidia-cudnn-frontend==' "$root/tools/dev/setup/requirements.txt" ;;
  esac
}

# package_hash PACKAGE: a hash of everything that its content depends on.
package_hash() {
  {
    requirements_of "$1"
    declare -f "make_$1" download unpack_wheels unpack_source
    uname -m
    c++ -dumpfullversion -dumpversion
    protoc --version
  } | sha256sum | cut -c 1-16
}

# find_pip: sets pip to a command; makes a private environment if Python has none.
find_pip() {
  pip=(python3 -m pip)
  "${pip[@]}" --version && return 0
  python3 -m venv "$work/venv"
  pip=("$work/venv/bin/python" -m pip)
}

# download: the package's lines into $work/downloads. What is built from source
# must be named: asking for every source would build CMake itself. pip checks
# the hashes before it opens a file.
download() {
  find_pip
  local try
  for try in 1 2 3; do
    if "${pip[@]}" --disable-pip-version-check --no-input download \
        --require-hashes --no-deps --progress-bar off \
        --no-binary onnx,highspy --dest "$work/downloads" \
        -r "$work/requirements.txt"; then
      return 0
    fi
    echo "download failed (try $try of 3)"
    ((try == 3)) || sleep $((5 * try))
  done
  return 1
}

# unpack_wheels: a wheel is a zip archive; its *.data/data folder is what it
# installs. They end in $work/wheels/NAME.
unpack_wheels() {
  python3 - "$work" <<'PYTHON'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
for wheel in sorted((work / "downloads").glob("*.whl")):
    zipfile.ZipFile(wheel).extractall(work / "wheels" / wheel.name.split("-")[0])
PYTHON
}

# unpack_source: the one source distribution, into $work/source.
unpack_source() {
  mkdir -p "$work/source"
  tar -xzf "$work"/downloads/*.tar.gz -C "$work/source" --strip-components 1
}

# make_PACKAGE: from $work/downloads to an installed tree in $made.

# Wheels cannot contain links, so the shared library is included three times.
make_onednn() {
  unpack_wheels
  local data
  for data in "$work"/wheels/onednn*/*.data/data; do
    cp -r "$data/." "$made/"
  done
  local library="$made/lib/libdnnl.so"
  local real
  real=$(basename "$(ls "$library".*.*)")
  ln -sf "$real" "$library.${real:11:1}"
  ln -sf "$real" "$library"
}

# A unity build parses each header less often and takes a sixth of the time.
# protoc's sources reuse names and must stay separate. The import is not
# performance-critical: -O1.
make_onnx() {
  unpack_wheels
  unpack_source
  echo 'cmake_language(DEFER CALL set_target_properties onnx_proto PROPERTIES
    UNITY_BUILD OFF)' >"$work/apart.cmake"
  chmod +x "$work"/wheels/cmake/cmake/data/bin/*
  "$work/wheels/cmake/cmake/data/bin/cmake" -S "$work/source" \
    -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_PROJECT_INCLUDE="$work/apart.cmake" \
    -DCMAKE_INSTALL_PREFIX="$made" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DONNX_BUILD_PYTHON=OFF -DONNX_USE_LITE_PROTO=OFF
  CCACHE_BASEDIR=$work ninja -C "$work/build" install
  mkdir -p "$made/share"
  cp -r "$work/source/onnx/backend/test/data/node" \
    "$made/share/onnx_node_tests"
}

# The source distribution lacks two files that its CMakeLists.txt names; empty
# ones suffice for what we install. A unity build parses each header less often.
make_highs() {
  unpack_source
  mkdir -p "$work/source/app"
  touch "$work/source/app/CMakeLists.txt" "$work/source/highs.pc.in"
  cmake -S "$work/source" -B "$work/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG' \
    -DCMAKE_C_FLAGS_RELEASE='-O2 -DNDEBUG' \
    -DCMAKE_INSTALL_PREFIX="$made" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_UNITY_BUILD=ON \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_SHARED_EXTRAS_LIB=OFF \
    -DBUILD_CXX_EXE=OFF -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF \
    -DZLIB=OFF -DHIPO=OFF
  CCACHE_BASEDIR=$work ninja -C "$work/build" install
}

# Three files out of thousands.
make_web() {
  python3 - "$work" "$made/share/javascript" <<'PYTHON'
import pathlib, sys, zipfile
work, made = map(pathlib.Path, sys.argv[1:])
made.mkdir(parents=True)
wheel = zipfile.ZipFile(next((work / "downloads").glob("*.whl")))
bundled = "panel/dist/bundled/"
for name in ("echarts/echarts@6.0.0/dist/echarts.min.js",
             "datatabulator/tabulator-tables@6.4.0/dist/js/tabulator.min.js",
             "datatabulator/tabulator-tables@6.4.0/dist/css/tabulator.min.css"):
    (made / name.split("/")[-1]).write_bytes(wheel.read(bundled + name))
PYTHON
}

# The wheel has the headers next to the Python package, which is not used.
make_cudnn_frontend() {
  unpack_wheels
  cp -r "$work/wheels/nvidia_cudnn_frontend/include" "$made/"
}

# provide_package NAME HOW_LONG: leaves it in $cache/packages/NAME-HASH.
provide_package() {
  local name=$1 tree logs=$cache/logs
  tree=$cache/packages/$name-$(package_hash "$name")
  [[ -e $tree/complete ]] && return 0
  made=$tree.new
  work=$cache/work-$name
  rm -rf "$work" "$tree" "$made"
  mkdir -p "$work" "$made"
  requirements_of "$name" >"$work/requirements.txt"
  step "download $name" "$logs/download-$name.log" \
    "check the network (pip must reach its package index), then run again" \
    download
  step "make $name$2" "$logs/$name.log" \
    "see the log; is there free space, and a C++20 compiler with 2 GiB?" \
    "make_$name"
  touch "$made/complete"
  mv "$made" "$tree"
  rm -rf "$work"
}

# link_prefix: one prefix from all packages.
link_prefix() {
  rm -rf "$prefix" "$prefix.new"
  mkdir -p "$prefix.new"
  local name
  for name in "${packages[@]}"; do
    cp -alf "$cache/packages/$name-$(package_hash "$name")/." "$prefix.new/"
  done
  mv "$prefix.new" "$prefix"
}

# provide_dependencies: leaves build/deps pointing at a complete prefix.
provide_dependencies() {
  local name prefix
  prefix=$cache/deps-$(for name in "${packages[@]}"; do
    package_hash "$name"
  done | sha256sum | cut -c 1-16)
  if [[ ! -e $prefix/complete ]]; then
    [[ $(uname -m) == x86_64 ]] || {
      say "the pinned oneDNN is for x86_64; this machine is $(uname -m)"
      exit 2
    }
    provide_package onednn ''
    provide_package onnx ' (about 2 minutes on 2 cores)'
    provide_package highs ' (about 2 minutes on 2 cores)'
    provide_package web ''
    if has_cuda; then provide_package cudnn_frontend ''; fi
    step "link the packages" "$cache/logs/link.log" \
      "check the free space of $cache, then run again" link_prefix
  fi
  mkdir -p "$root/build"
  [[ $(readlink "$root/build/deps") == "$prefix" ]] ||
    ln -sfn "$prefix" "$root/build/deps"
}
