# Debian packages: installs those of debian-packages.txt that are missing.
# Sourced by tools/loadline and tools/test.

# missing_packages SET...: prints the missing packages, one per line.
missing_packages() {
  local set package probe
  while read -r set package probe; do
    [[ $set == '' || $set == '#'* || " $* " != *" $set "* ]] && continue
    if [[ -n $probe ]]; then
      (eval "$probe") >/dev/null 2>&1 </dev/null && continue
    elif [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == \
            installed ]]; then
      continue
    fi
    printf '%s\n' "$package"
  done <"$root/tools/dev/setup/debian-packages.txt"
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  local options=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --no-install-recommends "$@"
}

# provide_packages SET...: on a system without dpkg CMake's find_package decides,
# so that another package manager can be used as well.
provide_packages() {
  command -v dpkg-query >/dev/null || return 0
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return 0
  local line="apt-get install --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    say "Debian packages are missing and only root can install them."
    say "what to do: sudo $line"
    exit 2
  fi
  step "install ${#missing[@]} Debian packages" "$cache/logs/debian.log" \
    "check the network and the package sources, then try: $line" \
    install_packages "${missing[@]}"
}

# provide_browser: if it cannot be installed, its tests are skipped.
provide_browser() {
  command -v dpkg-query >/dev/null || return 0
  local missing
  mapfile -t missing < <(missing_packages browser)
  ((${#missing[@]} == 0 || EUID != 0)) && return 0
  attempt "install a browser for tests" "$cache/logs/browser.log" \
    install_packages "${missing[@]}" ||
    say "no browser: tests of the report are skipped ($cache/logs/browser.log)"
}
