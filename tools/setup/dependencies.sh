# The dependency prefix: what Debian lacks, pinned in requirements.txt, built
# once per recipe into CACHE/deps-HASH and reached through build/deps.
#   onnx      the C++ library, from its source distribution (needs CMake 3.26)
#   cmake     a newer CMake than Debian's, only to build onnx
#   onednn-*  CPU kernels: the library and its headers, ready built
# Sourced by tools/loadline and tools/test.

# recipe_hash: names the prefix after all that its content depends on.
recipe_hash() {
  {
    cat "$root/tools/setup/requirements.txt" "$root/tools/setup/dependencies.sh"
    uname -m
    c++ -dumpfullversion -dumpversion
    protoc --version
  } | sha256sum | cut -c 1-16
}

# find_pip: sets pip to a command; a private environment where Python has none.
find_pip() {
  pip=(python3 -m pip)
  "${pip[@]}" --version && return 0
  python3 -m venv "$work/venv"
  pip=("$work/venv/bin/python" -m pip)
}

# The source distribution of onnx must be named: asking for every source would
# build CMake itself. pip checks the hashes before it opens a file.
download() {
  find_pip
  local try
  for try in 1 2 3; do
    if "${pip[@]}" --disable-pip-version-check --no-input download \
        --require-hashes --no-deps --progress-bar off \
        --no-binary onnx --dest "$work/downloads" \
        -r "$root/tools/setup/requirements.txt"; then
      return 0
    fi
    echo "download failed (try $try of 3)"
    ((try == 3)) || sleep $((5 * try))
  done
  return 1
}

# unpack: a wheel is a zip archive; its *.data/data folder is what it installs.
# Wheels cannot hold links, so the shared library comes three times.
unpack() {
  python3 - "$work/downloads" "$work" <<'PYTHON'
import pathlib, sys, tarfile, zipfile
downloads, work = map(pathlib.Path, sys.argv[1:])
for wheel in sorted(downloads.glob("*.whl")):
    zipfile.ZipFile(wheel).extractall(work / "wheels" / wheel.name.split("-")[0])
(source,) = downloads.glob("onnx-*.tar.gz")
with tarfile.open(source) as archive:
    archive.extractall(work / "onnx")
PYTHON
  chmod +x "$work"/wheels/cmake/cmake/data/bin/*
  local data
  for data in "$work"/wheels/onednn*/*.data/data; do
    cp -r "$data/." "$prefix.new/"
  done
  local library="$prefix.new/lib/libdnnl.so"
  local real
  real=$(basename "$(ls "$library".*.*)")
  ln -sf "$real" "$library.${real:11:1}"
  ln -sf "$real" "$library"
}

build_onnx() {
  local source
  source=$(echo "$work"/onnx/onnx-*)
  "$work/wheels/cmake/cmake/data/bin/cmake" -S "$source" -B "$work/build" \
    -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix.new" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DONNX_BUILD_PYTHON=OFF -DONNX_USE_LITE_PROTO=OFF
  ninja -C "$work/build" install
}

# provide_dependencies: leaves build/deps pointing at a complete prefix.
provide_dependencies() {
  prefix=$cache/deps-$(recipe_hash)
  if [[ ! -e $prefix/complete ]]; then
    [[ $(uname -m) == x86_64 ]] || {
      say "the pinned oneDNN is for x86_64; this machine is $(uname -m)"
      exit 2
    }
    work=$cache/work-${prefix##*-}
    rm -rf "$work" "$prefix" "$prefix.new"
    mkdir -p "$work" "$prefix.new"
    local logs=$cache/logs
    step "download pinned packages" "$logs/download.log" \
      "check the network (pip must reach its package index), then run again" \
      download
    step "unpack" "$logs/unpack.log" \
      "check the free space of $cache, then run again" unpack
    step "build onnx (about 2 minutes on 2 cores)" "$logs/onnx.log" \
      "see the log; is a C++20 compiler with 2 GiB of memory there?" build_onnx
    touch "$prefix.new/complete"
    mv "$prefix.new" "$prefix"
    rm -rf "$work"
  fi
  mkdir -p "$root/build"
  [[ $(readlink "$root/build/deps") == "$prefix" ]] ||
    ln -sfn "$prefix" "$root/build/deps"
}
