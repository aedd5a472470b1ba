# Shared by run, run-tests and .ci/run (sourced, from the top folder): packages, progress, configure, build.
# Everything here is quiet when there is nothing to do.

# Debian packages; `a|b` is satisfied by either, and the first that can be had is installed.
packages_build=(g++ cmake ninja-build llvm-22-dev liblld-22-dev 'libboost1.81-dev|libboost-dev'
  'libboost-context1.81-dev|libboost-context-dev' libxxhash-dev libcli11-dev)
packages_test=(libgtest-dev clang-22 python3-numpy)
packages_bench=(libbenchmark-dev libopenblas-dev)
packages_ci=(libclang-rt-22-dev)

say() { printf 'kiln: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 3
}

# with_progress WHAT LOG COMMAND...: runs it with its output in LOG. Silent if it ends within a second; then a line that
# moves on a terminal, or one line each 20 s elsewhere. On failure prints the end of LOG and returns the status.
with_progress() {
  local what=$1 log=$2 start=$SECONDS pid status=0 tick=0 last
  shift 2
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM # a background command does not see the terminal's interrupt
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    tick=$((tick + 1))
    if ((tick == 10)); then say "$what (log: $log)"; fi
    if ((tick >= 10 && tick % 10 == 0)); then
      last=$(tail -c 400 "$log" | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c1-90) || last=
      if [[ -t 2 ]]; then
        printf '\r\033[K      %4d s  %s' $((SECONDS - start)) "$last" >&2
      elif ((tick % 200 == 0)); then
        printf '      %4d s  %s\n' $((SECONDS - start)) "$last" >&2
      fi
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if [[ -t 2 ]] && ((tick >= 10)); then printf '\r\033[K' >&2; fi
  if ((status != 0)); then
    if [[ -z ${quiet_failure-} ]]; then tail -n 40 "$log" >&2; fi
    say "failed: $what (status $status, whole log: $log)"
  elif ((tick >= 10)); then
    say "done: $what, $((SECONDS - start)) s"
  fi
  return "$status"
}

# Compile jobs: one per core that we may use, and 1.5 GiB of memory for each.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo)
  if ((memory < 1)); then memory=1; fi
  echo $((cores < memory ? cores : memory))
}

# dpkg-query's status says that some are unknown, which is no failure here.
installed_packages() {
  { dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } | sed -n 's/ installed$//p'
}

has_candidate() {
  local policy # not a pipe into grep -q: with pipefail its early end would count as a failure
  policy=$(apt-cache policy "$1" 2>/dev/null) && [[ $policy == *$'\n  Candidate: '[^\(]* ]]
}

run_as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo "$@"
  fi
}

explain_packages_without_apt() {
  local missing=() tool
  for tool in cmake ninja; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  command -v g++ >/dev/null || command -v clang++ >/dev/null || missing+=("a C++20 compiler (g++ 12 or clang++ 22)")
  command -v llvm-config-22 >/dev/null || [[ $(llvm-config --version 2>/dev/null) == 22.* ]] ||
    missing+=("LLVM 22 with its development files and lld's libraries")
  if ((${#missing[@]} == 0)); then return 0; fi
  say "there is no apt here; please install these yourself, then run this again:"
  printf '        %s\n' "${missing[@]}" >&2
  say "for orientation, the Debian packages are: $(printf '%s ' "$@")"
  exit 3
}

# ensure_packages PACKAGE...: installs what is missing, says what and why.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    explain_packages_without_apt "$@"
    return 0
  fi
  local entry alternative present missing=() choice install=()
  present=" $(installed_packages $(printf '%s\n' "$@" | tr '|' '\n') | tr '\n' ' ') "
  for entry in "$@"; do
    for alternative in ${entry//|/ }; do
      if [[ $present == *" $alternative "* ]]; then continue 2; fi
    done
    missing+=("$entry")
  done
  if ((${#missing[@]} == 0)); then return 0; fi

  say "missing packages, needed to build and test: ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    fail "neither root nor sudo here; as root: apt-get install ${missing[*]%%|*}"
  fi
  local update_done=0
  while :; do
    install=()
    for entry in "${missing[@]}"; do
      choice=
      for alternative in ${entry//|/ }; do
        if has_candidate "$alternative"; then
          choice=$alternative
          break
        fi
      done
      if [[ -z $choice ]]; then
        if ((update_done)); then explain_missing_candidate "$entry"; fi
        break
      fi
      install+=("$choice")
    done
    if ((${#install[@]} == ${#missing[@]})); then break; fi
    with_progress "refreshing apt's package lists" build/log/apt-update.log \
      run_as_root apt-get -q -o DPkg::Lock::Timeout=300 update || exit 3
    update_done=1
  done
  local command=(run_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends
    -o DPkg::Lock::Timeout=300 install "${install[@]}")
  if ! with_progress "installing ${install[*]}" build/log/apt-install.log "${command[@]}"; then
    # Stale package lists name files that the mirror no longer has.
    if ((update_done)); then exit 3; fi
    with_progress "refreshing apt's package lists" build/log/apt-update.log \
      run_as_root apt-get -q -o DPkg::Lock::Timeout=300 update || exit 3
    with_progress "installing ${install[*]}" build/log/apt-install.log "${command[@]}" || exit 3
  fi
}

explain_missing_candidate() {
  say "no configured apt source offers ${1//|/ or }."
  case $1 in
  *-22*) say "On Debian 12 it comes with the security suite (bookworm-security, component main); later Debian releases have it in
      main. Elsewhere, the LLVM project keeps a Debian and Ubuntu repository per release (llvm-toolchain-<release>-22).
      Enable one of these, then run this again." ;;
  *) say "It is in Debian's main component; enable that, then run this again." ;;
  esac
  exit 3
}

# configure [-DOPTION=ON ...]: configures build/release if it is new or if one of the options has another value there.
configure() {
  local cache=build/release/CMakeCache.txt option wanted=0
  if [[ ! -f $cache || ! -f build/release/build.ninja ]]; then
    wanted=1
  else
    for option in "$@"; do
      option=${option#-D}
      grep -q "^${option%%=*}:[A-Z]*=${option#*=}\$" "$cache" || wanted=1
    done
  fi
  if ((wanted)); then
    with_progress "configuring build/release" build/log/configure.log cmake --preset release "$@" || exit 1
  fi
}

# build TARGET...: in build/release.
build() {
  with_progress "building" build/log/build.log cmake --build build/release -j "$(jobs)" --target "$@" || exit 1
}

# run_ctest NAME ARGUMENTS...: runs ctest with progress and prints what failed, CTest's summary, and the skips with their
# reasons. Log and report are build/log/NAME.{log,xml}.
run_ctest() {
  local log=build/log/$1.log report=$PWD/build/log/$1.xml status=0
  shift
  rm -f "$report"
  quiet_failure=1 with_progress "running the tests" "$log" \
    ctest --parallel "$(nproc)" --output-on-failure --no-tests=error --output-junit "$report" "$@" || status=$?
  awk '/^ *[0-9]+\/[0-9]+ Test +#/ { shown = /\*\*\*/ && !/\*\*\*Skipped/ ? 60 : 0 }
       /^[0-9]+% tests passed/ { shown = 1e9 }
       /^ +Start +[0-9]+: / { next }
       shown > 0 { print; shown-- }' "$log"
  if [[ -f $report ]]; then tools/list_skips.sh "$report"; fi
  return "$status"
}
