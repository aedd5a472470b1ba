"""What a user's compiler pays: the header over an empty file, one 500-node kernel, fifty of them in one file.

Usage: measure.py INCLUDE_FOLDER COMPILER... [--check] [--library libkiln.so]

Prints a table of user + system seconds, the least of several runs, for each compiler, with the limits that the project
keeps. --check exits with 1 when one is exceeded. With a library, the generated program is also linked against it alone and
run. Only the compiler's front end and the objects are measured (-c -O0 for objects).
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile


def kernel(name, nodes):
    """A kernel of about `nodes` nodes, like real code: loads, arithmetic on two shapes, reductions, a loop."""
    lines = [
        f'inline constexpr auto {name} = kernel<"{name}">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) {{',
        "  auto i = k.program_id(0) * 256 + k.arange<256>();",
        "  auto m = i < n;",
        "  auto acc = k.var(k.zeros<f32, 256>());",
        "  for (auto step : k.range(0, n, 4096)) {",
    ]
    count = 16
    j = 0
    while count < nodes - 12:
        lines += [
            f"    auto v{j} = load(x + step + i + {j}, {{.mask = m, .other = 0}});",
            f"    auto w{j} = exp(v{j} - reduce<max>(v{j})) * 0.5f;",
            f"    acc = acc + w{j} / reduce<sum>(w{j});",
        ]
        count += 21
        j += 1
    lines += ["  }", "  store(y + i, acc, {.mask = m});", "});"]
    return "\n".join(lines)


def program(kernels, nodes):
    names = [f"k{i}" for i in range(kernels)]
    text = ["#include <kiln/kiln.hpp>", "using namespace kiln;"] + [kernel(name, nodes) for name in names]
    # check() is what a launch instantiates: recording, every rule, the simulation.
    text += ["int total() {", *[f"  {name}.check();" for name in names]]
    text += ["  return " + " + ".join(f"{name}.graph().size()" for name in names) + ";", "}"]
    text += ["#include <cstdio>", f'int main() {{ std::printf("%d\\n", total() / {kernels}); }}']
    return "\n".join(text) + "\n"


def seconds(command, runs):
    best = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("include")
    arguments.add_argument("compilers", nargs="+")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--library")
    arguments.add_argument("--nodes", type=int, default=546)
    arguments.add_argument("--runs", type=int, default=5)
    o = arguments.parse_args()
    exceeded = False
    with tempfile.TemporaryDirectory() as folder:

        def path(name, text):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
            return os.path.join(folder, name)

        empty = path("empty.cpp", "int main() {}\n")
        header = path("header.cpp", "#include <kiln/kiln.hpp>\nint main() {}\n")
        one = path("one.cpp", program(1, o.nodes))
        fifty = path("fifty.cpp", program(50, o.nodes))
        print(f"{'compiler':<14} {'header - empty':>16} {'one kernel more':>16} {'50 kernels, file':>17} {'nodes':>6}")
        print(f"{'limit':<14} {0.6:>16.2f} {0.3:>16.2f} {8.0:>17.2f}")
        for compiler in o.compilers:
            flags = [compiler, "-std=c++20", "-I", o.include, "-c", "-o", os.path.join(folder, "out.o")]
            base = seconds([*flags, empty], o.runs)
            with_header = seconds([*flags, header], o.runs)
            with_one = seconds([*flags, one], o.runs)
            with_fifty = seconds([*flags, fifty], max(1, o.runs // 3))
            nodes = "-"
            if o.library:
                binary = os.path.join(folder, "one")
                where = os.path.dirname(os.path.abspath(o.library))
                subprocess.run([compiler, "-std=c++20", "-I", o.include, one, o.library, f"-Wl,-rpath,{where}", "-o", binary], check=True)
                nodes = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.strip()
            row = (with_header - base, with_one - with_header, with_fifty)
            exceeded |= row[0] > 0.6 or row[1] > 0.3 or row[2] > 8
            print(f"{os.path.basename(compiler):<14} {row[0]:>16.2f} {row[1]:>16.2f} {row[2]:>17.2f} {nodes:>6}", flush=True)
    sys.exit(1 if exceeded and o.check else 0)


if __name__ == "__main__":
    main()
