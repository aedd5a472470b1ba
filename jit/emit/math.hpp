// Elementary functions as arithmetic: no libm, no library calls, the same code for scalars and vectors, f32 and f64.
// Arguments and results are `float`, `double` or fixed vectors of them; f16 and bf16 go through f32 (convert.hpp).
//
// Largest errors in units in the last place, measured with and without hardware fma (f32: every 64th bit pattern; f64:
// 65536 arguments of all magnitudes):
//        exp   exp2  log   log2  sin   cos   tanh  erf   rsqrt
//   f32  1.00  1.19  0.84  0.76  1.54  1.54  1.29  1.09  1.48
//   f64  0.96  1.17  0.77  0.74  0.78  0.76  1.24  1.04  1.49
// The tests hold exp, exp2, log, log2 and rsqrt to 2 and the others to 4. Denormal arguments and results, infinities,
// NaN and signs of zero are right everywhere.
#pragma once

#include "emitter.hpp"

namespace kiln::emit {

/// e^x and 2^x. Results below the normal range are rounded denormals; x beyond the range gives infinity or 0.
llvm::Value* exp(emitter& e, llvm::Value* x);
llvm::Value* exp2(emitter& e, llvm::Value* x);

/// Natural and binary logarithm. 0 gives -infinity, negative numbers give NaN. log2 of a power of two is exact.
llvm::Value* log(emitter& e, llvm::Value* x);
llvm::Value* log2(emitter& e, llvm::Value* x);

/// Sine and cosine of x in radians, for every finite x: beyond 2^16 the argument is reduced in integers, in a branch
/// that is taken when any lane needs it, so that the builder may stand in another block afterwards. Infinity gives NaN.
llvm::Value* sin(emitter& e, llvm::Value* x);
llvm::Value* cos(emitter& e, llvm::Value* x);

/// Hyperbolic tangent and error function; both saturate to +-1 and keep the sign of zero.
llvm::Value* tanh(emitter& e, llvm::Value* x);
llvm::Value* erf(emitter& e, llvm::Value* x);

/// Correctly rounded square root; 1 / sqrt(x) with two roundings (rsqrt(+-0) is +-infinity).
llvm::Value* sqrt(emitter& e, llvm::Value* x);
llvm::Value* rsqrt(emitter& e, llvm::Value* x);

/// Rounding to an integral value: down, up, toward zero, to nearest with ties away from zero, with ties to even. The
/// sign of zero is kept, so ceil(-0.5) is -0.
llvm::Value* floor(emitter& e, llvm::Value* x);
llvm::Value* ceil(emitter& e, llvm::Value* x);
llvm::Value* trunc(emitter& e, llvm::Value* x);
llvm::Value* round(emitter& e, llvm::Value* x);
llvm::Value* round_even(emitter& e, llvm::Value* x);

/// x * y + z with exactly one rounding on every target: the instruction, or an error-free sum rounded to odd.
llvm::Value* fma(emitter& e, llvm::Value* x, llvm::Value* y, llvm::Value* z);

} // namespace kiln::emit
