#!/usr/bin/env python3
"""Debugging and profiling tools name the lines of a kernel's lambda: compute-sanitizer that of an access to nowhere, ncu that
of every instruction.

    gpu_lines.py PROGRAM PROGRAM.CPP

Skips (77) where there is no GPU, or neither tool.
"""
import os
import shutil
import subprocess
import sys

program, source = sys.argv[1], sys.argv[2]
lines = open(source).read().splitlines()
number = next(i for i, text in enumerate(lines, 1) if "// the line of the store" in text)
name = os.path.basename(source)


def run(*command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, env={**os.environ, "KILN_CACHE": "off"})
    return r.returncode, r.stdout


def tool(what):
    return shutil.which(what) or shutil.which(what, path="/usr/local/cuda/bin")


if run(program)[0] == 77:
    print("SKIP: no CUDA device here")
    sys.exit(77)
checked, failures = [], []

if sanitizer := tool("compute-sanitizer"):
    _, text = run(sanitizer, "--tool", "memcheck", program, "fault")
    checked.append("compute-sanitizer")
    if f"{name}:{number}" not in text:
        failures.append(f"compute-sanitizer does not name {name}:{number}:\n{text[:4000]}")

if ncu := tool("ncu"):
    _, text = run(ncu, "--section", "SourceCounters", "--import-source", "yes", "--source-folders", os.path.dirname(os.path.abspath(source)),
                  "--kernel-name", "kiln_scale_rows", "--page", "source", "--print-source", "cuda", "--csv", program)
    if "ERR_NVGPUCTRPERM" in text:
        print("ncu may not read the counters here")
    else:
        checked.append("ncu")
        if "the line of the store" not in text:
            failures.append(f"ncu's source page does not show line {number} of {name}:\n{text[:4000]}")

for f in failures:
    print(f)
if failures:
    sys.exit(1)
if not checked:
    print("SKIP: neither compute-sanitizer nor ncu is there (or may be used)")
    sys.exit(77)
print("lines are named by", " and ".join(checked))
