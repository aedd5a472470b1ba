#!/usr/bin/env bash
# kiln bundle from outside: what it writes compiles as C and C++ with nothing of kiln, and runs.
#   bundle.sh KILN CC CXX KERNELS_FOLDER SUPPORT_FOLDER FAKE_CUDA_LIBRARY CUDA_INCLUDE_OR_NOTHING
set -euo pipefail
kiln=$1 cc=$2 cxx=$3 here=$4 support=$5 fake=$6 cuda=$7
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags=(-Wall -Wextra -Werror -I"$scratch/demo")
facts=(-f 'row_softmax:0.stride1=1')
fail() {
  echo "FAILED: $*"
  exit 1
}

"$kiln" bundle "$here/kernels.kg" -t host -t sm_90a -t sm_80 -t gfx942 "${facts[@]}" -o "$scratch/demo" >"$scratch/files"
for f in demo.h demo.c row_softmax.host.o below_limit.sm_90a.ptx below_limit.gfx942.hsaco; do
  grep -q "/demo/$f\$" "$scratch/files" && [[ -s $scratch/demo/$f ]] || fail "$f is missing"
done
grep -q 'ptr<bf16>, val<i8>, val<f32>, val<i64>' "$scratch/demo/demo.h" || fail "the header shows the parameters"
[[ $(head -c 4 "$scratch/demo/below_limit.gfx942.hsaco" | tail -c 3) == ELF ]] || fail "a code object is ELF"

"$cc" -std=c11 "${flags[@]}" "$here/host.c" "$scratch/demo/demo.c" "$scratch"/demo/*.host.o -lm -o "$scratch/host"
env -i "$scratch/host"
! ldd "$scratch/host" | grep -Eq 'kiln|LLVM' || fail "a bundle needs no kiln"

"$kiln" bundle "$here/pairs.kg" -t host -t sm_90a -o "$scratch/pairs" >/dev/null
grep -q 'if (gx % 2 != 0) return CUDA_ERROR_INVALID_VALUE' "$scratch/pairs/pairs.h" || fail "launches take whole clusters"
grep -q 'reqnctapercluster 2, 1, 1' "$scratch/pairs/in_pairs.sm_90a.ptx" || fail "the clusters' shape is in the code"
"$cc" -std=c11 -Wall -Wextra -Werror -I"$scratch/pairs" "$here/pairs.c" "$scratch/pairs/pairs.c" "$scratch"/pairs/*.host.o -lm -o "$scratch/in_pairs"
env -i "$scratch/in_pairs"

if [[ -n $cuda ]]; then
  "$cc" -std=c11 "${flags[@]}" -c "$scratch/demo/demo.c" -o "$scratch/data.o"
  "$cxx" -std=c++20 "${flags[@]}" -isystem "$cuda" -I"$support" "$here/cuda.cpp" "$scratch/data.o" "$scratch"/demo/*.host.o "$fake" \
    -Wl,-rpath,"$(dirname "$fake")" -o "$scratch/cuda"
  "$scratch/cuda"
fi
if ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null); then
  "$kiln" bundle "$here/kernels.kg" -t sm_90a --ptxas "$ptxas" -o "$scratch/cubins" | grep -q 'row_softmax.sm_90a.cubin$' || fail "a cubin"
  [[ $(head -c 4 "$scratch/cubins/row_softmax.sm_90a.cubin" | tail -c 3) == ELF ]] || fail "a cubin is ELF"
fi

expect_error() {
  local pattern=$1
  shift
  "$@" >"$scratch/out" 2>&1 && fail "succeeded: $*"
  grep -q -- "$pattern" "$scratch/out" || { cat "$scratch/out"; fail "no '$pattern': $*"; }
}
expect_error 'a bundle needs different names' "$kiln" bundle "$here/kernels.kg" "$here/kernels.kg" -t host -o "$scratch/twice"
expect_error 'several kernels; say KERNEL:FACT' "$kiln" bundle "$here/kernels.kg" -t host -f 0@16 -o "$scratch/x"
expect_error 'no kernel is called "softmax"' "$kiln" bundle "$here/kernels.kg" -t host -f softmax:0@16 -o "$scratch/x"
expect_error 'cannot be started' "$kiln" bundle "$here/kernels.kg" -t sm_80 --ptxas "$scratch/none" -o "$scratch/x"
printf 'kernel "p" num_warps=1 {\n  %%1 = constant {bits=1} : i32\n  device_print %%1 {text="x"}\n}\n' >"$scratch/print.kg"
expect_error 'device_print, which needs the library' "$kiln" bundle "$scratch/print.kg" -t host -o "$scratch/x"
echo "bundle: good"
