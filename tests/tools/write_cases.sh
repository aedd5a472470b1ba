#!/bin/sh
# A few cases of write_cases: the graphs compile for a GPU, the files have the sizes that case.txt says, outputs change.
set -eu
write_cases=$1 kiln=$2 graph=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "write_cases.sh: $*" >&2; exit 1; }

"$write_cases" "$folder" --seed 3 --set every --only every/add_
"$write_cases" "$folder" --set random --random 1 --only random/short
"$write_cases" "$folder" --kernel "$graph" --grid 2 --arg 0=90x70 --arg 1=90x70 --holds values
"$write_cases" "$folder" --kernel "$graph" --arg 0=90x70 2>/dev/null && fail "a missing argument is no error"
count=0
for case in "$folder"/*/*; do
  count=$((count + 1))
  "$kiln" compile "$case/graph.kg" --target gfx942 --emit obj -o "$folder/object" || fail "$case does not compile"
  grep -q '^grid ' "$case/case.txt" && grep -q '^warps ' "$case/case.txt" || fail "$case: no grid or no warps"
  outputs=0
  while read -r what index kind type elements use rest; do
    [ "$what" = argument ] && [ "$kind" != value ] || continue
    case $type in *64) bytes=8 ;; *32) bytes=4 ;; *16) bytes=2 ;; *) bytes=1 ;; esac
    [ "$(wc -c <"$case/arg$index.bin")" -eq $((elements * bytes)) ] || fail "$case: size of argument $index"
    [ "$use" = output ] || continue
    outputs=$((outputs + 1))
    [ "$(wc -c <"$case/expect$index.bin")" -eq $((elements * bytes)) ] || fail "$case: size of what argument $index is to hold"
    [ "$elements" -eq 0 ] || ! cmp -s "$case/arg$index.bin" "$case/expect$index.bin" || fail "$case: nothing is written to argument $index"
  done <"$case/case.txt"
  [ $outputs -gt 0 ] || fail "$case has no output"
done
[ $count -gt 5 ] || fail "only $count cases"
