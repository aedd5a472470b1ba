#!/usr/bin/env bash
# The command line tools from outside: what they print, and their exit codes (0 done, 1 no, 2 wrong input).
#   tools.sh KILN KILN_OPT GRAPH.kg
set -euo pipefail
kiln=$1 opt=$2 graph=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export KILN_CACHE_DIR=$scratch/cache

fail() {
  echo "FAILED: $*"
  exit 1
}
# expect CODE PATTERN COMMAND...: the exit code, and an extended regular expression that stdout and stderr contain.
expect() {
  local code=$1 pattern=$2 status=0
  shift 2
  "$@" >"$scratch/out" 2>&1 </dev/null || status=$?
  [[ $status == "$code" ]] || { cat "$scratch/out"; fail "exit code $status, expected $code: $*"; }
  grep -Eq -- "$pattern" "$scratch/out" || { cat "$scratch/out"; fail "no line like '$pattern': $*"; }
}
# One line, and on stderr.
one_line() {
  "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null && fail "succeeded: $*"
  [[ ! -s $scratch/stdout && $(wc -l <"$scratch/stderr") == 1 ]] || { cat "$scratch/stdout" "$scratch/stderr"; fail "not one line on stderr: $*"; }
}

expect 0 '^kiln [0-9.]+, LLVM 22\.' "$kiln" version
expect 0 '^host +host .* threads ' "$kiln" devices
expect 0 '^sm_90a +nvptx .*bulk copies' "$kiln" targets
expect 0 'kiln compile|compile ' "$kiln" --help
expect 2 'subcommand is required' "$kiln"
expect 2 'not expected|required' "$kiln" frobnicate

expect 0 '^entries +0' "$kiln" cache stats
expect 0 '^0 entries, 0 bad' "$kiln" cache verify
expect 0 '^removed 0 files' "$kiln" cache clear

expect 0 '^kernel "copy" num_warps=8 \{' "$kiln" graph "$graph"
expect 0 '^<svg ' "$kiln" graph "$graph" --svg
expect 0 '^digraph "copy" \{' "$kiln" graph "$graph" --dot
expect 0 '^[0-9a-f]{32}  "copy"' "$kiln" graph "$graph" --hash
expect 0 '"copy"  [0-9]+ nodes  3 parameters' "$kiln" graph "$graph" --list
expect 2 'excludes|at most|allowed|between' "$kiln" graph "$graph" --svg --dot
"$kiln" graph "$graph" -o "$scratch/copy.kg"
cmp -s "$scratch/copy.kg" <("$kiln" graph "$scratch/copy.kg") || fail "text is not a fixed point"
cat "$scratch/copy.kg" "$scratch/copy.kg" >"$scratch/two.kg"
expect 2 'several kernels; choose one with --kernel' "$kiln" graph "$scratch/two.kg" --svg
expect 0 '^"copy": .* 0 faults$' "$kiln" check "$scratch/two.kg"
[[ $(grep -c ' 0 faults$' "$scratch/out") == 2 ]] || fail "check of every kernel of a file"
expect 2 'no kernel is called "add"; there are "copy"' "$kiln" graph "$graph" --kernel add
"$kiln" graph - <"$graph" >/dev/null || fail "standard input"

expect 2 'none.kg: cannot be opened' "$kiln" graph "$scratch/none.kg"
echo 'kernel "x" {' >"$scratch/bad.kg"
echo '  %1 = neg %0 : f32' >>"$scratch/bad.kg"
one_line "$kiln" graph "$scratch/bad.kg"
grep -q "^$scratch/bad.kg:2:12: %0 is not defined above" "$scratch/stderr" || fail "place of a mistake"
printf 'kernel "x" num_warps=1 {\n  %%1 = constant {bits=1} : i32\n  %%2 = exp %%1 : i32   @k.cpp:5\n}\n' >"$scratch/wrong.kg"
one_line "$opt" "$scratch/wrong.kg"
grep -q 'node %1 (k.cpp:5): kiln\[' "$scratch/stderr" || fail "rule and line of a graph that is wrong: $(cat "$scratch/stderr")"
: >"$scratch/empty.kg"
expect 2 'no kernel in this file' "$kiln" graph "$scratch/empty.kg"

# A lesson's name: the program is run, and its graphs are read.
mkdir "$scratch/lessons"
printf '#!/bin/sh\ncp "%s" "$KILN_DUMP_GRAPHS/a.kg"\necho "$@"\n' "$graph" >"$scratch/lessons/lesson_07_copying"
printf '#!/bin/sh\necho started; echo no device; exit 3\n' >"$scratch/lessons/lesson_08_broken"
chmod +x "$scratch/lessons/"*
export KILN_LESSONS_DIR=$scratch/lessons
for name in copying 07 07_copying; do expect 0 '^kernel "copy"' "$kiln" graph "$name"; done
expect 2 'lesson lesson_08_broken failed: no device' "$kiln" graph broken
expect 2 "'nothing' is neither a file nor a lesson in " "$kiln" graph nothing

expect 0 '^decide +comparisons' "$opt" --list
expect 0 'load %[0-9]+, _, _' "$opt" "$graph" -s -f 2=1024
expect 0 'fold +[0-9.]+ ms' "$opt" "$graph" -p fold,cse --time
expect 2 "no pass is called 'optimise'; there are cse, dce" "$opt" "$graph" -p optimise
expect 2 "fact '9=1': the kernel has arguments 0 to 2" "$opt" "$graph" -s -f 9=1
expect 2 "fact '2%3': a divisor is a power of two" "$opt" "$graph" -s -f 2%3
expect 2 "fact '0=3': argument 0 is not a value" "$opt" "$graph" -s -f 0=3
KILN_LOG=passes "$opt" "$graph" -s 2>&1 >/dev/null | grep '^kiln: pass cse .* ms ' >/dev/null || fail "KILN_LOG=passes"

expect 0 '^kernel "copy"' "$kiln" compile "$graph" --emit graph
expect 0 '^define ' "$kiln" compile "$graph" --emit ir-before
expect 0 'ret' "$kiln" compile "$graph" --target host --emit asm
"$kiln" compile "$graph" --emit obj -o "$scratch/copy.o"
[[ $(head -c 4 "$scratch/copy.o") == $'\x7fELF' ]] || fail "an object"
expect 2 "unknown target 'sm_12'; kiln knows: host" "$kiln" compile "$graph" --target sm_12
expect 2 'ir-before' "$kiln" compile "$graph" --emit wasm

expect 0 'kernel copy: local memory' "$kiln" memory-map "$graph" --svg
expect 2 'none.kg: cannot be opened' "$kiln" memory-map "$scratch/none.kg"
expect 0 '"name":"the kernel"' "$kiln" timeline "$graph" --arg 2=1024
expect 2 'early' "$kiln" timeline "$graph" --policy sometimes
echo "ok"
