// Conversions between element types. Where an instruction exists and is exact it is used; the rest is integer
// arithmetic on the bits that vectorises: fptrunc to bfloat, for one, flushes denormals on CPUs with AVX512_BF16 and is
// a call on those without.
#include "convert.hpp"

#include <cmath>

namespace kiln::emit {

using detail::strict_math;
using llvm::Value;

namespace {

Value* as_float(emitter& e, Value* bits) { return e.from_bits(bits, e.b.getFloatTy()); }

// A narrow IEEE-like format of `exponent` and `mantissa` bits inside f32.
struct narrow_format {
  int exponent;
  int mantissa;
  bool infinity; // false: the all-ones pattern alone is NaN
  bool saturating;
  unsigned width() const { return 1 + exponent + mantissa; }
  uint32_t bias() const { return (1u << (exponent - 1)) - 1; }
  int drop() const { return 23 - mantissa; }
  uint32_t top() const { return ((1u << exponent) - 1) << mantissa; } // infinity, or the top binade
  uint32_t largest() const { return infinity ? top() - 1 : (1u << (exponent + mantissa)) - 2; }
  uint32_t quiet() const { return infinity ? top() | 1u << (mantissa - 1) : (1u << (exponent + mantissa)) - 1; }
};

constexpr narrow_format half_format{5, 10, true, false};
constexpr narrow_format e4m3_format{4, 3, false, true};
constexpr narrow_format e5m2_format{5, 2, true, true};

Value* narrow(emitter& e, Value* x, const narrow_format& f) {
  auto& b = e.b;
  auto* bits = e.to_bits(x);
  auto* type = bits->getType();
  auto k = [&](uint32_t v) { return e.integer(type, v); };
  auto* a = b.CreateAnd(bits, k(0x7fffffff));
  // Normal results: move the exponent, round at the last kept bit; a carry runs into the exponent by itself.
  auto* last = b.CreateAnd(b.CreateLShr(a, f.drop()), k(1));
  const uint32_t rebias = (127 - f.bias()) << 23;
  auto* rounded = b.CreateAdd(a, b.CreateAdd(last, k((1u << (f.drop() - 1)) - 1 - rebias)));
  auto* normal = b.CreateLShr(rounded, f.drop());
  auto* limit = k(f.saturating ? f.largest() : f.top());
  normal = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, normal, limit);
  // Denormal results: adding 2^(23 + the exponent of the last place) makes the adder round there.
  const uint32_t step = (127 + 23 - (f.bias() - 1) - f.mantissa) << 23;
  auto* sum = b.CreateFAdd(as_float(e, a), as_float(e, k(step)));
  auto* denormal = b.CreateSub(e.to_bits(sum), k(step));
  auto* is_normal = b.CreateICmpUGE(a, k((127 - f.bias() + 1) << 23));
  Value* result = b.CreateSelect(is_normal, normal, denormal);
  Value* quiet = k(f.quiet());
  if (f.infinity) {
    auto* payload = b.CreateLShr(b.CreateAnd(a, k(0x7fffff)), f.drop());
    quiet = b.CreateOr(quiet, payload);
  }
  result = b.CreateSelect(b.CreateICmpUGT(a, k(0x7f800000)), quiet, result);
  auto* sign = b.CreateAnd(b.CreateLShr(bits, 32 - f.width()), k(1u << (f.width() - 1)));
  return b.CreateTrunc(b.CreateOr(result, sign), e.int_type(f.width(), type));
}

Value* widen(emitter& e, Value* x, const narrow_format& f) {
  auto& b = e.b;
  auto* type = e.int_type(32, x->getType());
  auto k = [&](uint32_t v) { return e.integer(type, v); };
  auto* bits = b.CreateZExt(x, type);
  auto* a = b.CreateAnd(bits, k((1u << (f.width() - 1)) - 1));
  auto* sign = b.CreateShl(b.CreateXor(bits, a), 32 - f.width());
  auto* moved = b.CreateShl(a, f.drop());
  const uint32_t rebias = (127 - f.bias()) << 23;
  Value* result = b.CreateAdd(moved, k(rebias));
  // Denormals: with the exponent of the smallest normal they read as that number plus their value.
  const uint32_t smallest = rebias + (1u << 23);
  auto* plus = as_float(e, b.CreateAdd(moved, k(smallest)));
  auto* denormal = e.to_bits(b.CreateFSub(plus, as_float(e, k(smallest))));
  result = b.CreateSelect(b.CreateICmpULT(a, k(1u << f.mantissa)), denormal, result);
  if (f.infinity) {
    auto* special = b.CreateOr(moved, k(0x7f800000));
    // A signalling NaN becomes quiet, as the conversion instructions have it.
    special = b.CreateSelect(b.CreateICmpUGT(a, k(f.top())), b.CreateOr(special, k(0x400000)), special);
    result = b.CreateSelect(b.CreateICmpUGE(a, k(f.top())), special, result);
  } else {
    result = b.CreateSelect(b.CreateICmpEQ(a, k(f.quiet())), k(0x7fc00000), result);
  }
  return as_float(e, b.CreateOr(result, sign));
}

} // namespace

llvm::Type* carrier(llvm::LLVMContext& context, dtype t, unsigned lanes) {
  llvm::Type* scalar = t == dtype::f32   ? llvm::Type::getFloatTy(context)
                       : t == dtype::f64 ? llvm::Type::getDoubleTy(context)
                                         : static_cast<llvm::Type*>(llvm::Type::getIntNTy(context, bits_of(t)));
  return lanes == 0 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

Value* f16_to_f32(emitter& e, Value* bits) {
  const strict_math strict(e);
  if (!e.caps.half_convert) return widen(e, bits, half_format);
  auto* half = e.from_bits(bits, e.b.getHalfTy());
  return e.b.CreateFPExt(half, e.shaped(e.b.getFloatTy(), bits->getType()));
}

Value* bf16_to_f32(emitter& e, Value* bits) {
  return as_float(e, e.b.CreateShl(e.b.CreateZExt(bits, e.int_type(32, bits->getType())), 16));
}

Value* f8e4m3_to_f32(emitter& e, Value* bits) {
  const strict_math strict(e);
  return widen(e, bits, e4m3_format);
}

Value* f8e5m2_to_f32(emitter& e, Value* bits) {
  // The upper half of an f16.
  return f16_to_f32(e, e.b.CreateShl(e.b.CreateZExt(bits, e.int_type(16, bits->getType())), 8));
}

Value* f32_to_f16(emitter& e, Value* x) {
  const strict_math strict(e);
  if (!e.caps.half_convert) return narrow(e, x, half_format);
  return e.to_bits(e.b.CreateFPTrunc(x, e.shaped(e.b.getHalfTy(), x->getType())));
}

Value* f32_to_bf16(emitter& e, Value* x) {
  auto& b = e.b;
  auto* bits = e.to_bits(x);
  auto k = [&](uint32_t v) { return e.integer(bits->getType(), v); };
  auto* upper = b.CreateLShr(bits, 16);
  auto* bump = b.CreateAdd(b.CreateAnd(upper, k(1)), k(0x7fff));
  auto* rounded = b.CreateLShr(b.CreateAdd(bits, bump), 16);
  auto* result = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(upper, k(0x40)), rounded);
  return b.CreateTrunc(result, e.int_type(16, bits->getType()));
}

Value* f32_to_f8e4m3(emitter& e, Value* x) {
  const strict_math strict(e);
  return narrow(e, x, e4m3_format);
}

Value* f32_to_f8e5m2(emitter& e, Value* x) {
  const strict_math strict(e);
  return narrow(e, x, e5m2_format);
}

Value* f64_to_f32_odd(emitter& e, Value* x) {
  const strict_math strict(e);
  auto& b = e.b;
  auto* nearest = b.CreateFPTrunc(x, e.shaped(b.getFloatTy(), x->getType()));
  auto* back = b.CreateFPExt(nearest, x->getType());
  auto* bits = e.to_bits(nearest);
  auto k = [&](uint32_t v) { return e.integer(bits->getType(), v); };
  auto* too_large = b.CreateFCmpOGT(e.magnitude(back), e.magnitude(x));
  auto* other = b.CreateAdd(bits, b.CreateSelect(too_large, k(~0u), k(1))); // the neighbour on the other side of x
  auto* even = b.CreateICmpEQ(b.CreateAnd(bits, k(1)), k(0));
  auto* replace = b.CreateAnd(b.CreateFCmpONE(back, x), even);
  return as_float(e, b.CreateSelect(replace, other, bits));
}

Value* float_to_int(emitter& e, Value* x, unsigned width, bool is_signed) {
  const strict_math strict(e);
  auto& b = e.b;
  auto* type = x->getType();
  auto* target = e.int_type(width, type);
  const int digits = static_cast<int>(width) - (is_signed ? 1 : 0);
  const int precision = type->getScalarType()->isDoubleTy() ? 53 : 24;
  const double low = is_signed ? -std::ldexp(1.0, digits) : 0;
  Value* ordered = b.CreateSelect(b.CreateFCmpUNO(x, x), e.number(type, 0), x);
  Value* inside = e.at_least(ordered, low);
  if (digits <= precision) {
    // The largest integer is a float: clamping is enough. Up to 31 bits go through i32, which has vector instructions.
    inside = e.at_most(inside, std::ldexp(1.0, digits) - 1);
    if (digits < 32 && width < 32) return b.CreateTrunc(b.CreateFPToSI(inside, e.int_type(32, type)), target);
    return is_signed ? b.CreateFPToSI(inside, target) : b.CreateFPToUI(inside, target);
  }
  auto* large = b.CreateFCmpOGE(ordered, e.number(type, std::ldexp(1.0, digits)));
  inside = b.CreateSelect(large, e.number(type, 0), inside);
  auto* converted = is_signed ? b.CreateFPToSI(inside, target) : b.CreateFPToUI(inside, target);
  const uint64_t top = digits == 64 ? ~uint64_t{0} : (uint64_t{1} << digits) - 1;
  return b.CreateSelect(large, e.integer(target, top), converted);
}

namespace {

Value* to_f32(emitter& e, Value* x, dtype from) {
  switch (from) {
  case dtype::f16: return f16_to_f32(e, x);
  case dtype::bf16: return bf16_to_f32(e, x);
  case dtype::f8e4m3: return f8e4m3_to_f32(e, x);
  case dtype::f8e5m2: return f8e5m2_to_f32(e, x);
  default: return x;
  }
}

Value* f32_to_narrow(emitter& e, Value* x, dtype to) {
  switch (to) {
  case dtype::f16: return f32_to_f16(e, x);
  case dtype::bf16: return f32_to_bf16(e, x);
  case dtype::f8e4m3: return f32_to_f8e4m3(e, x);
  case dtype::f8e5m2: return f32_to_f8e5m2(e, x);
  default: return x;
  }
}

Value* float_to_float(emitter& e, Value* x, dtype from, dtype to) {
  if (from == dtype::f64) {
    if (to == dtype::f32) return e.b.CreateFPTrunc(x, e.shaped(e.b.getFloatTy(), x->getType()));
    return f32_to_narrow(e, f64_to_f32_odd(e, x), to);
  }
  auto* wide = to_f32(e, x, from);
  if (to == dtype::f64) return e.b.CreateFPExt(wide, e.shaped(e.b.getDoubleTy(), x->getType()));
  return f32_to_narrow(e, wide, to);
}

Value* int_to_wide(emitter& e, Value* x, dtype from, llvm::Type* element) {
  auto* target = e.shaped(element, x->getType());
  return is_signed_int(from) ? e.b.CreateSIToFP(x, target) : e.b.CreateUIToFP(x, target);
}

Value* int_to_float(emitter& e, Value* x, dtype from, dtype to) {
  auto& b = e.b;
  if (to == dtype::f32) return int_to_wide(e, x, from, b.getFloatTy());
  if (to == dtype::f64) return int_to_wide(e, x, from, b.getDoubleTy());
  if (bits_of(from) <= 16) return f32_to_narrow(e, int_to_wide(e, x, from, b.getFloatTy()), to);
  if (bits_of(from) == 64) {
    // More digits than f64 holds: fold the low 16 bits into one sticky bit, far below what any narrow float keeps.
    // Small numbers must keep theirs.
    auto k = [&](uint64_t v) { return e.integer(x->getType(), v); };
    auto* low = b.CreateAnd(x, k(0xffff));
    auto* sticky = b.CreateSelect(b.CreateICmpNE(low, k(0)), k(0x10000), k(0));
    auto* folded = b.CreateOr(b.CreateAnd(x, k(~uint64_t{0xffff})), sticky);
    auto* limit = k(uint64_t{1} << 50);
    auto* small =
        is_signed_int(from) ? b.CreateICmpULT(b.CreateAdd(x, limit), k(uint64_t{1} << 51)) : b.CreateICmpULT(x, limit);
    x = b.CreateSelect(small, x, folded);
  }
  return f32_to_narrow(e, f64_to_f32_odd(e, int_to_wide(e, x, from, b.getDoubleTy())), to);
}

} // namespace

Value* convert(emitter& e, Value* x, dtype from, dtype to) {
  if (from == to) return x;
  const strict_math strict(e);
  auto& b = e.b;
  if (is_bool(to)) {
    if (!is_float(from)) return b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
    auto* wide = to_f32(e, x, from);
    return b.CreateFCmpUNE(wide, llvm::Constant::getNullValue(wide->getType()));
  }
  if (is_float(from)) {
    if (is_float(to)) return float_to_float(e, x, from, to);
    return float_to_int(e, to_f32(e, x, from), bits_of(to), is_signed_int(to));
  }
  if (is_float(to)) {
    if (!is_bool(from)) return int_to_float(e, x, from, to);
    // One and zero by selection.
    auto* one = e.number(e.shaped(b.getFloatTy(), x->getType()), 1);
    auto* wide = b.CreateSelect(x, one, e.number(one->getType(), 0));
    return float_to_float(e, wide, dtype::f32, to);
  }
  return is_signed_int(from) ? b.CreateSExtOrTrunc(x, e.int_type(bits_of(to), x->getType()))
                             : b.CreateZExtOrTrunc(x, e.int_type(bits_of(to), x->getType()));
}

} // namespace kiln::emit
