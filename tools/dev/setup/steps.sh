# Steps of the set-up: one line each on stderr with the elapsed time, a log for
# each, and on failure the step, its log, the last lines and what to do. stdout
# stays free for the result of the command that follows.
# Sourced by tools/loadline and tools/test; tested by running those.

export LC_ALL=C  # EPOCHREALTIME with a point, tools' messages in one language
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# Not LOADLINE_CACHE: that moves the machine's profile, and whoever moves it does
# not want to build the dependencies again.
cache=${LOADLINE_BUILD_CACHE:-${XDG_CACHE_HOME:-~/.cache}/loadline}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
# Precompiled headers are cached too; they contain no macro that differs by file.
export CCACHE_SLOPPINESS=pch_defines,time_macros
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
# Objects do not depend on the checkout's path.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf 'loadline: %s\n' "$*" >&2; }

# seconds_since START: with one decimal; START is an EPOCHREALTIME.
seconds_since() {
  local us=$((${EPOCHREALTIME/./} - ${1/./}))
  printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# show_progress TITLE LOG START: rewrites the step's line with the time and the
# build's own count, e.g. [12/90], until it is killed.
show_progress() {
  local count
  while sleep 0.3; do
    count=$(tail -c 4000 "$2" 2>/dev/null | grep -aoE '\[ *[0-9]+/[0-9]+\]' |
      tail -n 1 || true)
    printf '\r\033[Kloadline: %s ... %s %s s' "$1" "$count" \
      "$(seconds_since "$3")" >&2
  done
}

# attempt TITLE LOG COMMAND...: runs the command as a step and returns its
# status. The command may be a function; `set -e` holds inside it.
attempt() {
  local title=$1 log=$2 start=$EPOCHREALTIME status ticker=
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  printf 'loadline: %s ... ' "$title" >&2
  if [[ -t 2 ]]; then
    show_progress "$title" "$log" "$start" &
    ticker=$!
  fi
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null 9>&-
  status=$?
  set -e
  if [[ -n $ticker ]]; then
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    printf '\r\033[Kloadline: %s ... ' "$title" >&2
  fi
  step_seconds=$(seconds_since "$start")
  if ((status == 0)); then
    printf '%s s\n' "$step_seconds" >&2
  else
    printf 'failed after %s s (exit status %d)\n' "$step_seconds" "$status" >&2
  fi
  return "$status"
}

# explain_failure TITLE LOG HINT
explain_failure() {
  {
    printf 'loadline: step failed: %s\n' "$1"
    printf '  log:        %s\n' "$2"
    printf '  what to do: %s\n' "$3"
    printf '  the last lines of the log:\n'
    tail -n 20 "$2" | sed 's/^/    /'
  } >&2
}

# step TITLE LOG HINT COMMAND...: an attempt that must succeed.
step() {
  local title=$1 log=$2 hint=$3 status=0
  shift 3
  attempt "$title" "$log" "$@" || status=$?
  if ((status != 0)); then
    explain_failure "$title" "$log" "$hint"
    exit 1
  fi
}

# lock FILE: holds FILE's lock on descriptor 9 until unlock or exit, so that
# two runs at once do the work once.
lock() {
  mkdir -p "$(dirname "$1")"
  exec 9>"$1"
  if ! flock -n 9; then
    say "another run is setting up; waiting for it ($1)"
    flock 9
  fi
}

unlock() { exec 9>&-; }
