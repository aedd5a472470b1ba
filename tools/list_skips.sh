#!/usr/bin/env bash
# list_skips.sh JUNIT.xml: the skipped tests of a CTest run, grouped by reason. A test gives its reason in a line "SKIP: ...".
set -euo pipefail
awk '
  /<testcase / {
    name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name)
    skipped = ($0 ~ /status="notrun"/); disabled = ($0 ~ /status="disabled"/); reason = ""
    total++
  }
  /<skipped message=/ { skipped = 1 }
  /SKIP: / && reason == "" { reason = $0; sub(/.*SKIP: /, "", reason); sub(/<.*/, "", reason) }
  /<\/testcase>/ && (skipped || disabled) {
    if (disabled) reason = "disabled"
    if (reason == "") reason = "no reason given"
    if (!(reason in count)) order[++reasons] = reason
    count[reason]++
    if (count[reason] <= 3) names[reason] = names[reason] (count[reason] > 1 ? ", " : "") name
    skips++
  }
  END {
    if (skips == 0) { printf "No test of %d was skipped.\n", total; exit }
    printf "%d of %d tests were skipped:\n", skips, total
    for (i = 1; i <= reasons; i++)
      printf "  %s: %d (%s%s)\n", order[i], count[order[i]], names[order[i]], (count[order[i]] > 3 ? ", ..." : "")
  }' "$1"
