"""The lessons' .npy files against NumPy: round trips in both orders and all types, and refusals that leave nothing behind.

Usage: lesson_files.py FOLDER_OF_LESSONS
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIP: NumPy is not installed (python3-numpy)")
    sys.exit(77)

lessons = os.path.abspath(sys.argv[1])
random = np.random.default_rng(7)
faults = []


def run(lesson, *arguments, device="host"):
    program = os.path.join(lessons, "lesson_" + lesson)
    return subprocess.run([program, "--device", device, "--repeat", "1", "--brief", *arguments], capture_output=True, text=True, timeout=120)


def expect(condition, what):
    if not condition:
        faults.append(what)
        print("FAILED:", what)


def bf16(x):
    """float32 -> bf16 bits as uint16, to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_double(x):
    if x.dtype == np.uint16:
        return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return x.astype(np.float64)


def make(shape, dtype, order):
    x = random.standard_normal(shape)
    return np.asarray(bf16(x) if dtype == "bf16" else x.astype(dtype), order=order)


epsilon = {"float32": 2.0**-20, "float16": 2.0**-10, "uint16": 2.0**-7}


def good(lesson, options, out, want, what):
    """`want`: doubles to compare with to the rounding of the result's type, or the exact array."""
    r = run(lesson, *options, "--out", out)
    expect(r.returncode == 0, f"{what}: exit code {r.returncode}: {r.stderr.strip()}")
    expect(len(r.stdout.splitlines()) == 1 and r.stderr == "", f"{what}: brief mode prints one line: {r.stdout!r} {r.stderr!r}")
    if not os.path.exists(out):
        return expect(False, f"{what}: no file written")
    got = np.load(out)
    os.remove(out)
    expect(got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}")
    if got.shape != want.shape:
        return
    if want.dtype != np.float64:
        expect(got.dtype == want.dtype and np.array_equal(got, want), f"{what}: elements differ")
    elif want.size:
        error = np.max(np.abs(to_double(got) - want)) / max(1.0, np.max(np.abs(want)))
        expect(error <= epsilon[got.dtype.name], f"{what}: error {error}")


def refused(lesson, options, out, text, what):
    before = sorted(os.listdir("."))
    r = run(lesson, *options, "--out", out)
    expect(r.returncode == 2, f"{what}: exit code {r.returncode}, expected 2 ({r.stderr.strip()})")
    expect(len(r.stderr.splitlines()) == 1 and text in r.stderr, f"{what}: expected one line with {text!r}: {r.stderr!r}")
    expect(r.stdout == "", f"{what}: prints results: {r.stdout!r}")
    expect(sorted(os.listdir(".")) == before, f"{what}: leaves files behind: {sorted(os.listdir('.'))}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    types = ["float32", "float16", "bf16"]

    # matmul: every combination of orders, sizes that are no multiples of a tile, an empty product.
    for dtype in types:
        for order_a in "CF":
            for order_b in "CF":
                a, b = make((70, 45), dtype, order_a), make((45, 101), dtype, order_b)
                np.save("a.npy", a)
                np.save("b.npy", b)
                good("05_matmul", ["--a", "a.npy", "--b", "b.npy"], "c.npy", to_double(a) @ to_double(b), f"matmul {dtype} {order_a}{order_b}")
    for m, k, n in [(1, 1, 1), (3, 0, 4), (0, 5, 2)]:
        a, b = make((m, k), "float32", "C"), make((k, n), "float32", "C")
        np.save("a.npy", a)
        np.save("b.npy", b)
        good("05_matmul", ["--a", "a.npy", "--b", "b.npy"], "c.npy", to_double(a) @ to_double(b), f"matmul {m}x{k}x{n}")

    # softmax
    for dtype in types:
        for order in "CF":
            for shape in [(5, 2500), (3, 1), (0, 4), (2, 0)]:
                x = make(shape, dtype, order)
                np.save("x.npy", x)
                e = np.exp(to_double(x) - np.max(to_double(x), axis=1, keepdims=True, initial=-np.inf))
                want = e / np.sum(e, axis=1, keepdims=True) if x.size else e
                good("03_softmax", ["--in", "x.npy"], "y.npy", want, f"softmax {dtype} {order} {shape}")

    # gather: bits, exactly.
    for dtype in types + ["int32", "int64"]:
        for index in ["int32", "int64"]:
            for order in "CF":
                table = make((40, 1100), dtype, order) if dtype in types else np.asarray(random.integers(-2**31, 2**31, (40, 1100)), dtype, order=order)
                indices = random.integers(0, 40, 33).astype(index)
                np.save("t.npy", table)
                np.save("i.npy", indices)
                good("06_gather", ["--table", "t.npy", "--indices", "i.npy"], "y.npy", np.ascontiguousarray(table[indices]), f"gather {dtype} {index} {order}")

    # Products beyond the largest number are infinite, as they are in NumPy; so are sums on the way.
    for dtype, scale in [("float16", 1e3), ("float32", 1e30), ("bf16", 1e30)]:
        a, b = make((70, 45), "float32", "C") * np.float32(scale), make((45, 101), "float32", "C") * np.float32(scale)
        np.save("a.npy", bf16(a) if dtype == "bf16" else a.astype(dtype))
        np.save("b.npy", bf16(b) if dtype == "bf16" else b.astype(dtype))
        r = run("05_matmul", "--a=a.npy", "--b=b.npy", "--out=c.npy")
        expect(r.returncode == 0, f"matmul {dtype} beyond its range: {r.stderr}")
        if r.returncode == 0:
            expect(not np.all(np.isfinite(to_double(np.load("c.npy")))), f"matmul {dtype}: nothing is beyond the range")
            os.remove("c.npy")

    # An output file may be an input; NaN and infinity pass.
    x = make((2, 6), "float32", "C")
    x[0, 0], x[1, 1] = np.inf, np.nan
    np.save("x.npy", x)
    r = run("03_softmax", "--in", "x.npy", "--out", "x.npy")
    expect(r.returncode == 0 and np.isnan(np.load("x.npy")[0]).any(), f"softmax in place: {r.stderr}")

    # Refusals.
    np.save("m.npy", make((4, 6), "float32", "C"))
    np.save("half.npy", make((6, 4), "float16", "C"))
    np.save("cube.npy", np.zeros((2, 3, 4), np.float32))
    np.save("double.npy", np.zeros((6, 3)))
    np.save("big.npy", np.zeros((6, 3), ">f4"))
    np.save("vector.npy", np.zeros(3, np.float32))
    np.save("i.npy", np.array([0, 4], np.int32))
    np.save("f.npy", np.array([0.0, 1.0], np.float32))
    whole = open("m.npy", "rb").read()
    for name, content in [("short.npy", whole[:-1]), ("head.npy", whole[:40]), ("long.npy", whole + b"x"), ("text.npy", b"1,2,3\n"), ("empty.npy", b""), ("version.npy", whole[:7] + b"\1" + whole[8:])]:
        with open(name, "wb") as f:
            f.write(content)
    refused("05_matmul", ["--a", "m.npy", "--b", "m.npy"], "c.npy", "has 4 rows, but m.npy has 6 columns", "matmul: inner sizes")
    refused("05_matmul", ["--a", "m.npy", "--b", "half.npy"], "c.npy", "holds f16, but m.npy holds f32", "matmul: two types")
    refused("05_matmul", ["--a", "cube.npy", "--b", "m.npy"], "c.npy", "cube.npy: has 3 axes", "matmul: three axes")
    refused("05_matmul", ["--a", "m.npy"], "c.npy", "--b is missing", "matmul: no b")
    refused("05_matmul", ["--a", "m.npy", "--b", "absent.npy"], "c.npy", "absent.npy", "matmul: no such file")
    refused("05_matmul", ["--a", "double.npy", "--b", "double.npy"], "c.npy", "double.npy", "matmul: f64")
    refused("05_matmul", ["--a", "big.npy", "--b", "m.npy"], "c.npy", "big-endian", "matmul: byte order")
    refused("05_matmul", ["--a", "m.npy", "--b", "m.npy", "--colour", "red"], "c.npy", "--colour", "matmul: unknown option")
    refused("05_matmul", ["--a", "m.npy", "--b", "m.npy", "--brief=yes"], "c.npy", "--brief takes no value", "matmul: a flag with a value")
    refused("05_matmul", ["--a", "m.npy", "--b", "m.npy", "--size", "3"], "c.npy", "--size is for random numbers", "matmul: a size beside files")
    refused("03_softmax", ["--in", "m.npy", "--rows", "3"], "y.npy", "--rows is for random numbers", "softmax: rows beside a file")
    refused("03_softmax", ["--rows", "3000000000"], "y.npy", "--rows takes a whole number from 0 to 1000000000", "softmax: too many rows")
    for name in ["short.npy", "head.npy", "empty.npy", "text.npy", "long.npy", "version.npy", "double.npy", "vector.npy", "i.npy"]:
        refused("03_softmax", ["--in", name], "y.npy", name, f"softmax: {name}")
    refused("06_gather", ["--table", "m.npy", "--indices", "i.npy"], "y.npy", "holds the index 4; the table has rows 0 to 3", "gather: index out of range")
    refused("06_gather", ["--table", "m.npy", "--indices", "f.npy"], "y.npy", "f.npy: holds f32; indices are i32 or i64", "gather: float indices")
    refused("06_gather", ["--table", "m.npy", "--indices", "m.npy"], "y.npy", "m.npy: has 2 axes", "gather: indices of two axes")
    refused("06_gather", ["--table", "double.npy", "--indices", "i.npy"], "y.npy", "holds f64", "gather: f64 table")
    refused("03_softmax", ["--in", "m.npy"], "no/such/folder/y.npy", "no/such/folder/y.npy", "softmax: output folder")
    r = run("03_softmax", "--in", "m.npy", device="abacus")
    expect(r.returncode == 2 and len(r.stderr.splitlines()) == 1 and "abacus" in r.stderr, f"unknown device: {r.stderr}")
    os.chdir("/")

print(f"{len(faults)} faults")
sys.exit(1 if faults else 0)
