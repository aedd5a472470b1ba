"""What the simulation of local memory costs while a C++ compiler runs.

Usage: simulation.py REPOSITORY COMPILER... [--runs N] [--copies N]

For each pipeline: nodes, events of the simulation, and for each compiler the milliseconds of processor time that validating one
kernel takes beyond recording it (the least of several runs, over several copies), and the steps of constant evaluation of a file
with that one kernel, found by bisecting the compiler's limit. Defaults: 1,048,576 steps (clang), 33,554,432 operations (g++).
"""
import argparse
import os
import subprocess
import tempfile

from measure import seconds


def least_limit(command, flag):
    low, high = 0, 1
    works = lambda n: subprocess.run([*command, f"{flag}={n}"], capture_output=True).returncode == 0
    while not works(high * 1000):
        low, high = high, high * 2
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        if works(middle * 1000):
            high = middle
        else:
            low = middle
    return high


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("repository")
    arguments.add_argument("compilers", nargs="+")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--copies", type=int, default=8)
    o = arguments.parse_args()
    source = os.path.join(o.repository, "bench/compile_time/simulation.cpp")
    base = ["-std=c++20", "-I", o.repository, "-I", os.path.join(o.repository, "include")]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "events")
        subprocess.run([o.compilers[0], *base, "-O1", source, "-o", program], check=True)
        counts = [line.split() for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()]
    print(f"{'kernel':<16} {'nodes':>6} {'events':>7} {'runs':>5}", *(f"{os.path.basename(c) + ' ms':>14} {'steps / 1000':>13}" for c in o.compilers))
    for name, nodes, events, runs, *_ in counts:
        row = f"{name:<16} {nodes:>6} {events:>7} {runs:>5}"
        for compiler in o.compilers:
            flags = [compiler, *base, "-fsyntax-only", f"-DKERNEL={name}"]
            recorded, validated = (seconds([*flags, f"-DCOPIES={o.copies}", *more, source], o.runs) for more in ([], ["-DVALIDATED"]))
            limit = "-fconstexpr-steps" if "clang" in os.path.basename(compiler) else "-fconstexpr-ops-limit"
            steps = least_limit([*flags, "-DCOPIES=1", "-DVALIDATED", source], limit)
            row += f" {1000 * (validated - recorded) / o.copies:>14.1f} {steps:>13}"
        print(row, flush=True)


main()
