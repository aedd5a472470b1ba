#!/usr/bin/env bash
# Writes the operation tables of docs/language.md from include/kiln/graph/ops.def, between the two marks there.
#   language_reference.sh           rewrites the file
#   language_reference.sh --check   says whether it is up to date: exit code 1 and the difference when it is not
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
page=$root/docs/language.md
generated=$(mktemp)
trap 'rm -f "$generated"' EXIT

tables() {
  awk '
    /^\/\/ -- / {
      title = $0; sub(/^\/\/ -- /, "", title); sub(/ -+$/, "", title)
      printf "\n### %s%s\n\n| operation | operands | attributes | meaning |\n|---|---|---|---|\n", toupper(substr(title, 1, 1)), substr(title, 2)
    }
    /^KILN_OP\(/ {
      line = $0; sub(/^KILN_OP\(/, "", line); sub(/\)[ \t]*$/, "", line)
      n = split(line, quoted, "\"")          # ..., "attributes", "summary"
      split(quoted[1], field, ",")
      gsub(/[ \t]/, "", field[1]); gsub(/[ \t]/, "", field[2]); gsub(/[ \t]/, "", field[3])
      count = field[2] == field[3] ? field[2] : field[3] == "-1" ? field[2] " or more" : field[2] " to " field[3]
      attributes = quoted[2]; gsub(/,/, ", ", attributes)
      sub(/dim0, dim1, dim2, dim3, dim4, dim5/, "dims", attributes)
      summary = quoted[4]; gsub(/\|/, "\\|", summary); gsub(/</, "\\&lt;", summary)
      printf "| `%s` | %s | %s | %s |\n", field[1], count, attributes, summary
    }' "$root/include/kiln/graph/ops.def"
}

{
  sed '/^<!-- operations: begin/q' "$page"
  tables
  echo
  sed -n '/^<!-- operations: end/,$p' "$page"
} >"$generated"
if [[ ${1:-} == --check ]]; then
  diff -u "$page" "$generated" || {
    echo "docs/language.md is out of date: run tools/language_reference.sh"
    exit 1
  }
else
  cp "$generated" "$page"
fi
