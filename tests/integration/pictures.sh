#!/usr/bin/env bash
# The maps that the documentation shows are those that the tool draws today.
#   pictures.sh KILN LESSONS DOCS_PICTURES
set -euo pipefail
kiln=$1 pictures=$3
export KILN_LESSONS_DIR=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in attention1 attention3; do
  "$kiln" memory-map attention_memory -k $name --svg -o "$scratch/$name.svg"
  cmp "$scratch/$name.svg" "$pictures/$name.svg" || { echo "FAILED: look at it, then: kiln memory-map attention_memory -k $name --svg -o docs/pictures/$name.svg"; exit 1; }
done
echo "ok"
