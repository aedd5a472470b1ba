#!/usr/bin/env python3
"""Runs bench_gpu and, in the same minutes on the same device, torch and Triton on the same shapes; prints one table and
writes it as JSON.

    peers.py --kiln ./bench_gpu --commit $(git rev-parse --short HEAD) --out bench/results [WORD ...]

Method on both sides: medians over runs, each after a fill of 256 MiB of zeros that flushes the L2, timed by events around the
launch alone; TB/s of the bytes that must move. Triton's row kernels are the best of 4, 8 and 16 warps.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("words", nargs="*", help="only jobs whose name or shape has one of these")
    p.add_argument("--kiln", default="./bench_gpu", help="the program bench_gpu; '' measures the peers alone")
    p.add_argument("--commit", default="", help="what the JSON says about the version")
    p.add_argument("--out", default=".", help="folder for the JSON file")
    p.add_argument("--repeat", type=int, default=24)
    a = p.parse_args()

    report = {"device": "", "driver": "", "commit": a.commit, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "torch": "", "triton": "", "results": []}
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,power.draw,temperature.gpu", "--format=csv,noheader"],
                           capture_output=True, text=True)
    if query.returncode == 0:
        report["device"], report["driver"] = [x.strip() for x in query.stdout.splitlines()[0].split(",")[:2]]
        print(query.stdout.splitlines()[0])

    ours = {}
    if a.kiln:
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "kiln.json")
            code = subprocess.run([a.kiln, "--repeat", str(a.repeat), "--commit", a.commit, "--json", path, *a.words]).returncode
            if not os.path.exists(path):
                sys.exit(f"peers.py: {a.kiln} failed with {code} and wrote no results")
            with open(path) as f:
                measured = json.load(f)
            report["device"] = report["device"] or measured["device"]
            ours = {(r["job"], r["shape"]): r for r in measured["results"]}

    try:
        import peer_jobs
        theirs = peer_jobs.measure(a.words, a.repeat, report)
    except ImportError as e:
        print(f"peers.py: no peers: {e}", file=sys.stderr)
        theirs = {}

    print(f"\n{'job':<22} {'shape':<28} {'kiln':>9} {'reach':>8} {'torch':>9} {'Triton':>9}  unit")
    for key in list(ours) + [k for k in theirs if k not in ours]:
        r = dict(ours.get(key, {"job": key[0], "shape": key[1], "unit": "", "figure": 0, "reach": 0, "note": "not measured"}))
        peers = theirs.get(key, {})
        seconds = {name: statistics.median(times) for name, times in peers.get("seconds", {}).items()}
        amount = r.get("amount") or peers.get("amount", 0)
        figures = {name: amount / s / 1e12 for name, s in seconds.items()}
        r["peers"] = {name: {"microseconds": s * 1e6, "figure": figures[name]} for name, s in seconds.items()}
        r["unit"] = r["unit"] or "TB/s"
        report["results"].append(r)
        text = lambda x: f"{x:9.2f}" if x else "        -"
        missed = r["reach"] and r["figure"] and (r["figure"] > r["reach"] if r["unit"] in ("us", "ms") else r["figure"] < r["reach"])
        print(f"{key[0]:<22} {key[1]:<28} {text(r['figure'])} {text(r['reach'])[1:]} {text(figures.get('torch', figures.get('cuBLAS', 0)))} "
              f"{text(figures.get('Triton', 0))}  {r['unit']:<8}{' BELOW' if missed else ''} {r['note'][:100]}")

    os.makedirs(a.out, exist_ok=True)
    name = (report["device"] or "gpu").replace(" ", "-").lower() + (f"-{a.commit}" if a.commit else "") + ".json"
    with open(os.path.join(a.out, name), "w") as f:
        json.dump(report, f, indent=1)
        f.write("\n")
    print(f"\nwrote {os.path.join(a.out, name)}")


if __name__ == "__main__":
    main()
