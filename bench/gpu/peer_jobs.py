"""torch and Triton on the jobs of bench_gpu: {(job, shape): {"seconds": {peer: [...]}, "amount": bytes or operations}}."""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton:

    @triton.jit
    def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        tl.store(z + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)

    @triton.jit
    def softmax_kernel(x, y, COLUMNS: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
        v = tl.load(x + i).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(y + i, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty))

    @triton.jit
    def rmsnorm_kernel(x, w, y, eps, COLUMNS: tl.constexpr):
        c = tl.arange(0, COLUMNS)
        i = tl.program_id(0).to(tl.int64) * COLUMNS + c
        v = tl.load(x + i).to(tl.float32)
        scale = tl.rsqrt(tl.sum(v * v, axis=0) / COLUMNS + eps)
        tl.store(y + i, (v * scale * tl.load(w + c).to(tl.float32)).to(y.dtype.element_ty))

    @triton.jit
    def layernorm_kernel(x, w, b, y, eps, COLUMNS: tl.constexpr):
        c = tl.arange(0, COLUMNS)
        i = tl.program_id(0).to(tl.int64) * COLUMNS + c
        v = tl.load(x + i).to(tl.float32)
        off = v - tl.sum(v, axis=0) / COLUMNS
        scale = tl.rsqrt(tl.sum(off * off, axis=0) / COLUMNS + eps)
        tl.store(y + i, (off * scale * tl.load(w + c).to(tl.float32) + tl.load(b + c).to(tl.float32)).to(y.dtype.element_ty))

    @triton.jit
    def gather_kernel(table, index, out, COLUMNS: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr):
        pieces: tl.constexpr = COLUMNS // PIECE
        r = (tl.program_id(0) // pieces).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        c = tl.program_id(0) % pieces * PIECE + tl.arange(0, PIECE)
        start = tl.load(index + r).to(tl.int64)
        tl.store(out + r[:, None] * COLUMNS + c[None, :], tl.load(table + start[:, None] * COLUMNS + c[None, :]))

    @triton.jit
    def transpose_kernel(x, y, N: tl.constexpr, TILE: tl.constexpr):
        r = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
        c = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
        v = tl.load(x + r[:, None] * N + c[None, :])
        tl.store(y + c[:, None] * N + r[None, :], tl.trans(v))

    @triton.jit
    def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
        pid = tl.program_id(0)
        tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
        per_group = GROUP * tiles_n
        first = pid // per_group * GROUP
        size = min(tiles_m - first, GROUP)
        pm, pn = first + pid % per_group % size, pid % per_group // size
        rm = (pm * BM + tl.arange(0, BM))[:, None]
        rn = (pn * BN + tl.arange(0, BN))[None, :]
        rk = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        pa, pb = a + rm * K + rk[None, :], b + rn * K + rk[:, None]
        for _ in range(0, K, BK):
            acc = tl.dot(tl.load(pa), tl.load(pb), acc)
            pa += BK
            pb += BK
        tl.store(c + rm * N + rn, acc.to(c.dtype.element_ty))


def measure(words, repeat, report):
    report["torch"] = torch.__version__
    report["triton"] = triton.__version__ if triton else ""
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    results = {}

    def wanted(job, shape):
        return not words or any(w in job or w in shape for w in words)

    def times(run, least=5):
        run()
        torch.cuda.synchronize()
        runs, once = repeat, None
        seconds = []
        while len(seconds) < runs:
            some = min(8, runs - len(seconds)) if once is not None else 1
            begin = [torch.cuda.Event(enable_timing=True) for _ in range(some)]
            end = [torch.cuda.Event(enable_timing=True) for _ in range(some)]
            for b, e in zip(begin, end):
                flush.zero_()
                b.record()
                run()
                e.record()
            torch.cuda.synchronize()
            measured = [b.elapsed_time(e) * 1e-3 for b, e in zip(begin, end)]
            if once is None:  # the first run decides how many are worth it
                once = measured[0]
                runs = repeat if once < 3e-3 else max(least, repeat // 3)
            else:
                seconds += measured
        return seconds

    def add(job, shape, amount, **runs):
        if not wanted(job, shape):
            return
        seconds = {}
        for name, candidates in runs.items():
            best = None
            for run in candidates if isinstance(candidates, list) else [candidates]:
                if run is None:
                    continue
                try:
                    t = times(run)
                except Exception as e:  # a configuration that does not compile or fit is no peer
                    print(f"{job} {shape} {name}: {str(e).splitlines()[0][:120]}")
                    continue
                if best is None or sorted(t)[len(t) // 2] < sorted(best)[len(best) // 2]:
                    best = t
            if best:
                seconds[name] = best
        results[(job, shape)] = {"seconds": seconds, "amount": amount}

    def randn(*shape, dtype=torch.float32):
        x = torch.empty(*shape, dtype=dtype, device="cuda")
        return x.normal_()

    big, n = 1 << 30, 1 << 28
    if wanted("copy", "f32 4 GiB") or wanted("fill", "f32 4 GiB"):
        x, y = randn(big), torch.empty(big, device="cuda")
        add("copy", "f32 4 GiB", 8.0 * big, torch=lambda: y.copy_(x))
        add("fill", "f32 4 GiB", 4.0 * big, torch=lambda: y.fill_(1.5))
        del x, y
    if wanted("vector add", "f32 2^28") or wanted("sum", "f32 2^28"):
        x, y, z = randn(n), randn(n), torch.empty(n, device="cuda")
        add("vector add", "f32 2^28", 12.0 * n, torch=lambda: torch.add(x, y, out=z),
            Triton=[(lambda b=b, w=w: add_kernel[(n // b,)](x, y, z, n, BLOCK=b, num_warps=w)) for b, w in ((1024, 4), (1024, 8), (2048, 8))] if triton else [])
        add("sum", "f32 2^28", 4.0 * n, torch=lambda: x.sum())
        del x, y, z

    for rows, columns in ((32768, 1024), (16384, 4096), (8192, 8192), (4096, 32768)):
        shape = f"bf16 {rows}x{columns}"
        if not any(wanted(job, shape) for job in ("softmax", "rmsnorm", "layernorm")):
            continue
        x, y = randn(rows, columns, dtype=torch.bfloat16), torch.empty(rows, columns, dtype=torch.bfloat16, device="cuda")
        w, b = randn(columns, dtype=torch.bfloat16), randn(columns, dtype=torch.bfloat16)
        amount = 4.0 * rows * columns
        each = [4, 8, 16] if triton else []
        add("softmax", shape, amount, torch=lambda: torch.softmax(x, 1),
            Triton=[(lambda k=k: softmax_kernel[(rows,)](x, y, COLUMNS=columns, num_warps=k)) for k in each])
        add("rmsnorm", shape, amount, torch=lambda: torch.nn.functional.rms_norm(x, (columns,), w, 1e-5),
            Triton=[(lambda k=k: rmsnorm_kernel[(rows,)](x, w, y, 1e-5, COLUMNS=columns, num_warps=k)) for k in each])
        add("layernorm", shape, amount, torch=lambda: torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5),
            Triton=[(lambda k=k: layernorm_kernel[(rows,)](x, w, b, y, 1e-5, COLUMNS=columns, num_warps=k)) for k in each])
        del x, y

    side = 16384
    if wanted("row cumsum", "f32 16384x16384") or wanted("transpose", "f32 16384x16384"):
        x, y = randn(side, side), torch.empty(side, side, device="cuda")
        add("row cumsum", "f32 16384x16384", 8.0 * side * side, torch=lambda: torch.cumsum(x, 1, out=y))
        add("transpose", "f32 16384x16384", 8.0 * side * side, torch=lambda: y.copy_(x.t()),
            Triton=[(lambda w=w: transpose_kernel[(side // 64, side // 64)](x, y, N=side, TILE=64, num_warps=w)) for w in (4, 8)] if triton else [])
        del x, y
    if wanted("argmax", "bf16 8192x32768"):
        x = randn(8192, 32768, dtype=torch.bfloat16)
        add("argmax", "bf16 8192x32768", 2.0 * x.numel(), torch=lambda: torch.argmax(x, 1))
        del x
    if wanted("top-8", "bf16 8192x32768"):
        x = randn(8192, 32768, dtype=torch.bfloat16)
        add("top-8", "bf16 8192x32768", 2.0 * x.numel(), torch=lambda: torch.topk(x, 8, 1))
        del x
    for shape, make in (("256 bins i32 2^28 uniform", lambda v: v),
                        ("256 bins i32 2^28 90% in one", lambda v: torch.where(torch.rand(n, device="cuda") < 0.1, v, torch.full_like(v, 7))),
                        ("256 bins i32 2^28 constant", lambda v: torch.full_like(v, 7))):
        if wanted("histogram", shape):  # torch counts floats
            x = make(torch.randint(0, 256, (n,), device="cuda", dtype=torch.int32).float())
            add("histogram", shape, 4.0 * n, torch=lambda: torch.histc(x, 256, 0, 256))
            del x

    table_bytes = 1 << 30
    for columns in (64, 128, 512, 4096):
        rows = table_bytes // 2 // columns
        if not any(wanted("gather", f"bf16 C={columns} {i}") for i in ("i64", "i32")):
            continue
        table = randn(rows, columns, dtype=torch.bfloat16)
        out = torch.empty_like(table)
        order = torch.randperm(rows, device="cuda")
        for name, index in (("i64", order), ("i32", order.to(torch.int32))):
            piece = min(columns, 4096)
            tall = max(1, 4096 // piece)
            add("gather", f"bf16 C={columns} {name}", 2.0 * table_bytes, torch=lambda: torch.index_select(table, 0, index, out=out),
                Triton=[(lambda w=w: gather_kernel[(columns // piece * (rows // tall),)](table, index, out, COLUMNS=columns, ROWS=tall, PIECE=piece, num_warps=w))
                        for w in (4, 8)] if triton else [])
        del table, out, order
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float32, "f32")):
        for columns, small in ((64, 0), (128, 0), (512, 0), (128, 16 << 20)):
            shape = f"{name} C={columns}" + (" 16 MiB target" if small else "")
            if not wanted("scatter-add", shape):
                continue
            rows = table_bytes // dtype.itemsize // columns
            targets = small // dtype.itemsize // columns if small else rows
            source, target = randn(rows, columns, dtype=dtype), torch.zeros(targets, columns, dtype=dtype, device="cuda")
            index = torch.randperm(rows, device="cuda") % targets
            add("scatter-add", shape, float(table_bytes) * (1 if small else 3), torch=lambda: target.index_add_(0, index, source))
            del source, target, index

    for size in (4096, 8192):
        shape = f"bf16 {size}x{size}x{size}"
        if not wanted("product, plain dot", shape) and not wanted("product, ring", shape):
            continue
        a, b = randn(size, size, dtype=torch.bfloat16), randn(size, size, dtype=torch.bfloat16)
        c = torch.empty(size, size, dtype=torch.bfloat16, device="cuda")
        configurations = ((128, 128, 32, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3)) if triton else ()
        runs = [(lambda m=m, n_=n_, k=k, w=w, st=st: matmul_kernel[(size // m * (size // n_),)](
            a, b, c, size, size, size, BM=m, BN=n_, BK=k, GROUP=8, num_warps=w, num_stages=st)) for m, n_, k, w, st in configurations]
        for job in ("product, plain dot", "product, ring"):
            add(job, shape, 2.0 * size**3, cuBLAS=lambda: torch.matmul(a, b.t(), out=c), Triton=runs)
        del a, b, c
    return results
