# Configure and build one preset in build/PRESET.
# Sourced by tools/loadline and tools/test.

# configure PRESET: only when the presets or the dependency prefix changed;
# ninja itself notices changed CMakeLists.txt and new source files.
configure() {
  local folder=$root/build/$1 key
  key=$(sha256sum <"$root/CMakePresets.json")$(readlink "$root/build/deps")
  [[ -e $folder/build.ninja && $(cat "$folder/configured" 2>/dev/null) == "$key" ]] &&
    return 0
  rm -f "$folder/CMakeCache.txt"
  step "configure $1" "$folder/configure.log" \
    "see the log; a package that CMake cannot find is named in it" \
    cmake -S "$root" --preset "$1"
  printf '%s\n' "$key" >"$folder/configured"
}

# The hint when our own build fails.
build_hint="fix the first error in the log; after a change of compiler or \
system, delete the build folder and run again"
