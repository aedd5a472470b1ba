#!/usr/bin/env bash
# Runs the `RUN:` lines of one golden file, in order; the test passes when each of them does.
#   run_golden.sh FILE FILECHECK [name=program ...]
# In a line, %s is the file, %t a scratch path, `FileCheck` the program given, and each %name (say %kiln-opt) its program.
# A line `REQUIRES: tool` skips the file (exit 77) where that tool is not on the PATH.
set -euo pipefail
file=$1 filecheck=$2
shift 2
if [[ $filecheck == *NOTFOUND || ! -x $filecheck ]]; then
  echo "SKIP: FileCheck is not installed (package llvm-22-tools)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

while read -r tool; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIP: needs $tool, which is not on the PATH"
    exit 77
  fi
done < <(sed -nE 's/^.*REQUIRES:[[:space:]]*([^[:space:]]+).*$/\1/p' "$file")

runs=0
while IFS= read -r line; do
  for pair in "$@"; do line=${line//%${pair%%=*} /${pair#*=} }; done
  line=${line//%s/$file}
  line=${line//%t/$scratch/t}
  line=${line//FileCheck/$filecheck --dump-input=fail}
  if [[ $line =~ %(kiln[a-z-]*) ]]; then
    echo "this build has no ${BASH_REMATCH[1]} (KILN_BUILD_TOOLS=OFF?)"
    exit 1
  fi
  runs=$((runs + 1))
  if ! bash -o pipefail -c "$line"; then
    echo "failed: $line"
    exit 1
  fi
done < <(sed -nE 's/^.*RUN:[[:space:]]*(.*)$/\1/p' "$file")
if ((runs == 0)); then
  echo "$file has no RUN: line"
  exit 1
fi
