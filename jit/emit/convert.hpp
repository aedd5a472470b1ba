// Conversions between element types, without library calls. Values are carried in registers as: b1 as i1, integers as
// iN, f16 and bf16 as their bits in i16, f8e4m3 and f8e5m2 as their bits in i8, f32 as float, f64 as double; scalar or
// vector.
//
// Rules. Between floats: to nearest, ties to even, once; denormals kept; beyond the range infinity, or the largest
// finite number for the f8 types (infinity included). NaN stays NaN; narrowing keeps sign and leading payload and makes
// it quiet. Float to integer: toward zero, saturating, NaN gives 0. Integer to float: to nearest, ties to even, once
// (to f8: saturating). Integer to integer: modulo 2^N. To b1: x != 0, true for NaN. From b1: 0 or 1.
#pragma once

#include "emitter.hpp"

#include <kiln/dtype/dtype.hpp>

namespace kiln::emit {

/// The type that carries values of `t`: `lanes` of them, or a scalar where lanes is 0.
llvm::Type* carrier(llvm::LLVMContext& context, dtype t, unsigned lanes = 0);

/// Converts x, carried as `from`, to the carrier of `to`.
llvm::Value* convert(emitter& e, llvm::Value* x, dtype from, dtype to);

/// The type in which arithmetic on `t` is done, one rounding to `t` after each operation: f32 for the narrow floats.
constexpr dtype compute_type(dtype t) { return is_float(t) && bits_of(t) < 32 ? dtype::f32 : t; }

/// The steps `convert` is made of, for lowerings that know what they have.
llvm::Value* f16_to_f32(emitter& e, llvm::Value* bits);
llvm::Value* bf16_to_f32(emitter& e, llvm::Value* bits);
llvm::Value* f8e4m3_to_f32(emitter& e, llvm::Value* bits);
llvm::Value* f8e5m2_to_f32(emitter& e, llvm::Value* bits);
llvm::Value* f32_to_f16(emitter& e, llvm::Value* x);
llvm::Value* f32_to_bf16(emitter& e, llvm::Value* x);
llvm::Value* f32_to_f8e4m3(emitter& e, llvm::Value* x);
llvm::Value* f32_to_f8e5m2(emitter& e, llvm::Value* x);

/// f64 to f32 rounded to odd: inexact results get the neighbour with an odd last bit, so that rounding them again to
/// any format of at most 22 bits of significand gives what rounding x once would have given.
llvm::Value* f64_to_f32_odd(emitter& e, llvm::Value* x);

/// float or double (or vectors) to an integer of `width` bits: toward zero, saturating, NaN gives 0.
llvm::Value* float_to_int(emitter& e, llvm::Value* x, unsigned width, bool is_signed);

} // namespace kiln::emit
