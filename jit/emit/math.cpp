// Exponentials, logarithms, tanh, erf, square roots, rounding to integers and fma. The polynomials are minimax fits of
// the forms stated beside them (weighted for relative error, iteratively reweighted least squares in 260-bit
// arithmetic); their error is below a sixteenth of an ulp, what remains is rounding.
#include "math.hpp"

#include "float_shape.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace kiln::emit {

using detail::float_shape;
using detail::strict_math;
using llvm::ArrayRef;
using llvm::Value;

namespace {

ArrayRef<double> pick(const float_shape& s, ArrayRef<double> narrow, ArrayRef<double> wide) {
  return s.wide ? wide : narrow;
}

// p * 2^n through vscalefps/pd on one legal register, or on each of several; null if the shape does not allow it.
Value* scale_by_instruction(emitter& e, const float_shape& s, Value* p, Value* n) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(s.type);
  if (!vector) return nullptr;
  const unsigned lanes = vector->getNumElements();
  const unsigned width = lanes * (s.wide ? 64 : 32);
  const unsigned part = width % 512 == 0 ? 512 : width;
  if (!(part == 512 ? e.caps.scale512 : e.caps.scale_any && (part == 256 || part == 128))) return nullptr;
  const auto id =
      part == 512
          ? (s.wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512)
      : part == 256
          ? (s.wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256)
          : (s.wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_128 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128);
  const unsigned each = lanes * part / width;
  auto scaled = [&](Value* a, Value* by) -> Value* {
    auto* mask = e.b.getIntN(each <= 8 ? 8 : 16, ~0u & ((1u << (each <= 8 ? 8 : 16)) - 1));
    if (part == 512) return e.b.CreateIntrinsic(id, {}, {a, by, a, mask, e.b.getInt32(4)}); // 4: current rounding
    return e.b.CreateIntrinsic(id, {}, {a, by, a, mask});
  };
  if (each == lanes) return scaled(p, n);
  Value* result = llvm::PoisonValue::get(s.type);
  auto* part_type = llvm::FixedVectorType::get(vector->getElementType(), each);
  for (unsigned i = 0; i < lanes; i += each) {
    auto* a = e.b.CreateExtractVector(part_type, p, uint64_t{i});
    auto* by = e.b.CreateExtractVector(part_type, n, uint64_t{i});
    result = e.b.CreateInsertVector(s.type, result, scaled(a, by), uint64_t{i});
  }
  return result;
}

// p * 2^n for p near 1 and n from rounding with the magic number. Two exact halves of 2^n: the one rounding is that of
// the last product, so denormal results and overflow come out right.
Value* scale(emitter& e, const float_shape& s, Value* p, const detail::nearest& n) {
  if (Value* done = scale_by_instruction(e, s, p, n.number)) return done;
  auto& b = e.b;
  auto* both = b.CreateAdd(n.bits, e.integer(s.bits, 2 * s.bias - s.magic_bits())); // n + 2 bias, positive
  auto* half = b.CreateLShr(both, 1);
  auto power = [&](Value* field) { return e.from_bits(b.CreateShl(field, s.mantissa), s.type->getScalarType()); };
  return b.CreateFMul(b.CreateFMul(p, power(half)), power(b.CreateSub(both, half)));
}

Value* scale_normal(emitter& e, const float_shape& s, Value* p, const detail::nearest& n) {
  // The low bits of n + magic hold n; shifting them to the exponent field drops the rest.
  auto* field = e.b.CreateShl(e.b.CreateAdd(n.bits, e.integer(s.bits, s.bias)), s.mantissa);
  return e.b.CreateFMul(p, e.from_bits(field, s.type->getScalarType()));
}

// e^r = 1 + r + r^2 Q(r) for |r| <= ln2/2.
constexpr double exp_q32[] = {0.4999999343, 0.1666652039, 0.04166839157, 0.008368745188, 0.001381449874};
constexpr double exp_q64[] = {0.5000000000000010671,     0.1666666666666641211,   0.04166666666652970787,
                              0.008333333333494562833,   0.001388888894376443949, 0.0001984126950671236092,
                              0.00002480149294591347824, 2.755758593606849815e-6, 2.763030729754597149e-7,
                              2.500030126084881274e-8};

struct exp_parts {
  Value* mantissa;
  detail::nearest exponent;
};

// x = n ln2 + r; the high part of ln2 is short enough for n * high to be exact without fma.
exp_parts exp_reduced(emitter& e, const float_shape& s, Value* x) {
  const auto n = detail::round_to_integer(e, s, x, 1.4426950408889634074);
  const double high = s.wide ? 0x1.62e42fee00000p-1 : 0x1.62ep-1;
  const double low = s.wide ? 0x1.a39ef35793c76p-33 : 0x1.0bfbe8p-15;
  auto* r = e.mad(n.number, e.number(s.type, -low), e.mad(n.number, e.number(s.type, -high), x));
  auto* one = e.number(s.type, 1);
  auto* q = e.polynomial(r, pick(s, exp_q32, exp_q64));
  return {e.b.CreateFAdd(e.mad(e.b.CreateFMul(r, r), q, r), one), n};
}

} // namespace

Value* detail::exp_normal(emitter& e, Value* x) {
  const float_shape s(e, x);
  const exp_parts parts = exp_reduced(e, s, x);
  return scale_normal(e, s, parts.mantissa, parts.exponent);
}

Value* exp(emitter& e, Value* x) {
  const strict_math strict(e);
  const float_shape s(e, x);
  // Half the smallest denormal is e^-103.97 and e^-745.13; infinity starts at 88.72 and 709.78.
  const exp_parts parts = exp_reduced(e, s, e.at_most(e.at_least(x, s.wide ? -746 : -104), s.wide ? 710 : 89));
  return scale(e, s, parts.mantissa, parts.exponent);
}

Value* exp2(emitter& e, Value* x) {
  // 2^r = 1 + r P(r) for |r| <= 1/2.
  static constexpr double p32[] = {0.6931472029,   0.2402264791,   0.05550332472,
                                   0.009618437175, 0.001339887417, 0.0001535341653};
  static constexpr double p64[] = {0.6931471805599453258,     0.2402265069591013126,   0.05550410866482008371,
                                   0.00961812910759411862,    0.001333355814677452618, 0.000154035304571145959,
                                   0.00001525273349319383346, 1.321543528101855506e-6, 1.017819955349462217e-7,
                                   7.073783456616030887e-9,   4.434772890370951971e-10};
  const strict_math strict(e);
  const float_shape s(e, x);
  auto* inside = e.at_most(e.at_least(x, s.wide ? -1076 : -151), s.wide ? 1025 : 129);
  const auto n = detail::round_to_integer(e, s, inside, 1);
  auto* r = e.b.CreateFSub(inside, n.number); // exact
  auto* p = e.mad(r, e.polynomial(r, pick(s, p32, p64)), e.number(s.type, 1));
  return scale(e, s, p, n);
}

namespace {

// x = 2^exponent (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - half_square + tail.
struct log_parts {
  Value* exponent;
  Value* f;
  Value* half_square;
  Value* tail;
};

log_parts log_reduced(emitter& e, const float_shape& s, Value* x) {
  auto& b = e.b;
  const int lift = s.mantissa + 1; // denormals are scaled up first
  auto* small = b.CreateFCmpOLT(x, e.number(s.type, s.wide ? 0x1p-1022 : 0x1p-126));
  auto* normal = b.CreateSelect(small, b.CreateFMul(x, e.number(s.type, s.wide ? 0x1p53 : 0x1p24)), x);
  // Counting exponents from sqrt(1/2) instead of 1: add the distance of the two, then the field steps at sqrt(2).
  const uint64_t root = s.wide ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;
  const uint64_t one = static_cast<uint64_t>(s.bias) << s.mantissa;
  auto* moved = b.CreateAdd(e.to_bits(normal), e.integer(s.bits, one - root));
  auto* field = b.CreateLShr(moved, s.mantissa);
  auto* rest = b.CreateAdd(b.CreateAnd(moved, e.integer(s.bits, s.mantissa_mask())), e.integer(s.bits, root));
  // The field as a number: put it below the leading one of 2^mantissa, then subtract that.
  const double base = s.wide ? 0x1p52 : 0x1p23;
  const uint64_t base_bits = static_cast<uint64_t>(s.bias + s.mantissa) << s.mantissa;
  auto* counted = e.from_bits(b.CreateOr(field, e.integer(s.bits, base_bits)), s.type->getScalarType());
  auto* zero_at = b.CreateSelect(small, e.number(s.type, base + s.bias + lift), e.number(s.type, base + s.bias));
  log_parts p;
  p.exponent = b.CreateFSub(counted, zero_at);
  p.f = b.CreateFSub(e.from_bits(rest, s.type->getScalarType()), e.number(s.type, 1));
  p.half_square = b.CreateFMul(b.CreateFMul(p.f, e.number(s.type, 0.5)), p.f);
  if (s.wide) {
    // log(1 + f) = 2 atanh(q) with q = f / (2 + f) = f - half_square + q (half_square + z R(z)), z = q^2.
    static constexpr double r[] = {0.666666666666673442,  0.3999999999941463036, 0.2857142874239649753,
                                   0.2222219857240830514, 0.1818356436163424543, 0.1531404973317828943,
                                   0.1479595718857209546};
    auto* q = b.CreateFDiv(p.f, b.CreateFAdd(p.f, e.number(s.type, 2)));
    auto* z = b.CreateFMul(q, q);
    p.tail = b.CreateFMul(q, e.mad(z, e.polynomial(z, r), p.half_square));
  } else {
    // log(1 + f) = f - half_square + f^3 P(f): no division.
    static constexpr double c[] = {0.333333126,   -0.2500000964, 0.2000211853,  -0.1666799273, 0.1421955373,
                                   -0.1240565307, 0.1188821382,  -0.1167526567, 0.06746051398};
    p.tail = b.CreateFMul(b.CreateFMul(b.CreateFMul(p.f, p.f), p.f), e.polynomial(p.f, c));
  }
  return p;
}

// Replaces the results of arguments that are not positive finite numbers.
Value* log_special(emitter& e, const float_shape& s, Value* x, Value* result) {
  auto& b = e.b;
  auto* zero = e.number(s.type, 0);
  auto* infinity = llvm::ConstantFP::getInfinity(s.type);
  auto* not_positive = b.CreateSelect(b.CreateFCmpOEQ(x, zero), llvm::ConstantFP::getInfinity(s.type, true),
                                      llvm::ConstantFP::getNaN(s.type));
  result = b.CreateSelect(b.CreateFCmpULT(x, infinity), result, x); // false for +infinity only
  result = b.CreateSelect(b.CreateFCmpOLE(x, zero), not_positive, result);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

} // namespace

Value* log(emitter& e, Value* x) {
  const strict_math strict(e);
  const float_shape s(e, x);
  auto& b = e.b;
  const log_parts p = log_reduced(e, s, x);
  const double high = s.wide ? 0x1.62e42fee00000p-1 : 0x1.62ep-1; // times an exponent: exact
  const double low = s.wide ? 0x1.a39ef35793c76p-33 : 0x1.0bfbe8p-15;
  auto* small = b.CreateFSub(p.half_square, e.mad(p.exponent, e.number(s.type, low), p.tail));
  auto* sum = b.CreateFSub(p.f, small);
  return log_special(e, s, x, e.mad(p.exponent, e.number(s.type, high), sum));
}

Value* log2(emitter& e, Value* x) {
  const strict_math strict(e);
  const float_shape s(e, x);
  auto& b = e.b;
  const log_parts p = log_reduced(e, s, x);
  // log(1 + f) = high + low with a short high, times 1/ln2 = head + rest with a short head: high * head is exact.
  const double head = s.wide ? 0x1.7154765200000p+0 : 0x1.714p+0;
  const double rest = s.wide ? 0x1.705fc2eefa200p-33 : 0x1.47652cp-12;
  const uint64_t kept = s.wide ? ~uint64_t{0xffffffff} : ~uint64_t{0xfff};
  auto* rough = b.CreateFSub(p.f, p.half_square);
  auto* high = e.from_bits(b.CreateAnd(e.to_bits(rough), e.integer(s.bits, kept)), s.type->getScalarType());
  auto* low = b.CreateFAdd(b.CreateFSub(b.CreateFSub(p.f, high), p.half_square), p.tail);
  auto* main = b.CreateFMul(high, e.number(s.type, head));
  auto* error = e.mad(low, e.number(s.type, head), b.CreateFMul(b.CreateFAdd(low, high), e.number(s.type, rest)));
  auto* sum = b.CreateFAdd(p.exponent, main); // its rounding error is recovered: |exponent| >= |main| or exponent = 0
  error = b.CreateFAdd(error, b.CreateFAdd(b.CreateFSub(p.exponent, sum), main));
  return log_special(e, s, x, b.CreateFAdd(sum, error));
}

Value* tanh(emitter& e, Value* x) {
  // tanh x = x + x^3 T(x^2) up to 0.63, and 1 - 2 / (e^2x + 1) above.
  static constexpr double t32[] = {-0.3333327814, 0.1333133235, -0.0537300654, 0.02060624757, -0.005666969426};
  static constexpr double t64[] = {-0.3333333333333330885,    0.13333333333329117,        -0.05396825396571690581,
                                   0.02186948845943331851,    -0.008863234166738172924,   0.003592112563606214921,
                                   -0.001455716708149486038,  0.0005894123695228717017,   -0.0002369010883471972666,
                                   0.00009136223468460044704, -0.00002998800604616675984, 5.954191857203709719e-6};
  const strict_math strict(e);
  const float_shape s(e, x);
  auto& b = e.b;
  auto* a = e.magnitude(x);
  auto* z = b.CreateFMul(x, x);
  auto* near = e.mad(b.CreateFMul(z, a), e.polynomial(z, pick(s, t32, t64)), a);
  auto* one = e.number(s.type, 1);
  auto* two = e.number(s.type, 2);
  auto* clamped = e.at_most(a, s.wide ? 20 : 10); // the result is 1 from 19.1 and 9.02 on
  auto* far =
      b.CreateFSub(one, b.CreateFDiv(two, b.CreateFAdd(detail::exp_normal(e, b.CreateFMul(clamped, two)), one)));
  return e.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(a, e.number(s.type, 0.625)), near, far), x);
}

Value* erf(emitter& e, Value* x) {
  // erf x = x + x E(x^2) up to `split`, and 1 - e^P(x - split) above, with P a fit of log erfc: expanded about the end
  // where the exponential is largest, so that its terms do not cancel there.
  static constexpr double e32[] = {0.1283791666,   -0.3761263317,    0.1128368698,  -0.02685893117,
                                   0.005199883861, -0.0008129780397, 8.315887212e-5};
  static constexpr double e64[] = {0.1283791670955125724,    -0.3761263890318370307,     0.1128379167095243845,
                                   -0.02686617064455693514,  0.005223977619083805943,    -0.0008548326607007530998,
                                   0.0001205531564124090942, -0.00001492517335436420185, 1.645331770239811207e-6,
                                   -1.625784045527634245e-7, 1.395350103144715962e-8,    -8.272422832247306424e-10};
  static constexpr double p32[] = {-1.648561894,    -2.508012545,    -0.8329887976,   -0.04482472049, 0.01084986365,
                                   -0.002137983627, 0.0002922838733, -1.829379647e-5, -5.016952266e-7};
  static constexpr double p64[] = {
      -1.64856189372146888,       -2.508012522377545773,     -0.8329893621347474883,   -0.04481961454991667642,
      0.01082765863165876164,     -0.002085010038461739763,  0.0002179174297405732574, 0.00004546361013274008577,
      -0.00003445673275752132496, 0.00001121080343088058692, -2.09299077608062022e-6,  -7.628526050261964963e-9,
      1.769666763040501249e-7,    -7.766412550466285149e-8,  2.081508389214120101e-8,  -3.844375332630989552e-9,
      4.802579010509938515e-10,   -3.669740920398983977e-11, 1.295986918332879359e-12};
  constexpr double split = 0.921875;
  const strict_math strict(e);
  const float_shape s(e, x);
  auto& b = e.b;
  auto* a = e.magnitude(x);
  auto* z = b.CreateFMul(x, x);
  auto* near = e.mad(a, e.polynomial(z, pick(s, e32, e64)), a);
  auto* t = b.CreateFSub(e.at_most(a, s.wide ? 6 : 4), e.number(s.type, split));
  auto* far = b.CreateFSub(e.number(s.type, 1), detail::exp_normal(e, e.polynomial(t, pick(s, p32, p64))));
  return e.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(a, e.number(s.type, split)), near, far), x);
}

Value* sqrt(emitter& e, Value* x) {
  const strict_math strict(e);
  return e.b.CreateIntrinsic(llvm::Intrinsic::sqrt, {x->getType()}, {x});
}

Value* rsqrt(emitter& e, Value* x) {
  const strict_math strict(e);
  return e.b.CreateFDiv(e.number(x->getType(), 1), sqrt(e, x));
}

namespace {

// Rounds |x| to nearest even by adding 2^mantissa; numbers that large, infinity and NaN are left alone by `settle`.
struct rounding {
  emitter& e;
  float_shape s;
  Value* x;
  Value* a;
  Value* nearest;

  rounding(emitter& em, Value* v) : e(em), s(em, v), x(v), a(em.magnitude(v)) {
    auto* base = e.number(s.type, s.wide ? 0x1p52 : 0x1p23);
    nearest = e.b.CreateFSub(e.b.CreateFAdd(a, base), base);
  }
  Value* one() const { return e.number(s.type, 1); }
  Value* truncated() const {
    return e.b.CreateSelect(e.b.CreateFCmpOGT(nearest, a), e.b.CreateFSub(nearest, one()), nearest);
  }
  Value* settle(Value* rounded) const {
    auto* fractional = e.b.CreateFCmpOLT(a, e.number(s.type, s.wide ? 0x1p52 : 0x1p23));
    return e.b.CreateSelect(fractional, e.with_sign_of(rounded, x), x);
  }
};

Value* instruction(emitter& e, llvm::Intrinsic::ID id, Value* x) {
  return e.b.CreateIntrinsic(id, {x->getType()}, {x});
}

} // namespace

Value* floor(emitter& e, Value* x) {
  const strict_math strict(e);
  if (e.caps.rounding) return instruction(e, llvm::Intrinsic::floor, x);
  const rounding r(e, x);
  auto* signed_nearest = e.with_sign_of(r.nearest, x);
  auto* above = e.b.CreateFCmpOGT(signed_nearest, x);
  return r.settle(e.b.CreateSelect(above, e.b.CreateFSub(signed_nearest, r.one()), signed_nearest));
}

Value* ceil(emitter& e, Value* x) {
  const strict_math strict(e);
  if (e.caps.rounding) return instruction(e, llvm::Intrinsic::ceil, x);
  const rounding r(e, x);
  auto* signed_nearest = e.with_sign_of(r.nearest, x);
  auto* below = e.b.CreateFCmpOLT(signed_nearest, x);
  return r.settle(e.b.CreateSelect(below, e.b.CreateFAdd(signed_nearest, r.one()), signed_nearest));
}

Value* trunc(emitter& e, Value* x) {
  const strict_math strict(e);
  if (e.caps.rounding) return instruction(e, llvm::Intrinsic::trunc, x);
  const rounding r(e, x);
  return r.settle(r.truncated());
}

Value* round(emitter& e, Value* x) {
  const strict_math strict(e);
  if (e.caps.rounding) {
    // Not llvm.round, which some targets expand to a call: truncate, and step away from zero from a half on.
    auto* whole = instruction(e, llvm::Intrinsic::trunc, x);
    auto* rest = e.magnitude(e.b.CreateFSub(x, whole)); // exact; NaN for infinity, which then stays as it is
    auto* up = e.b.CreateFCmpOGE(rest, e.number(x->getType(), 0.5));
    auto* step = e.b.CreateSelect(up, e.number(x->getType(), 1), e.number(x->getType(), 0));
    return e.b.CreateFAdd(whole, e.with_sign_of(step, x));
  }
  const rounding r(e, x);
  auto* whole = r.truncated();
  auto* up = e.b.CreateFCmpOGE(e.b.CreateFSub(r.a, whole), e.number(r.s.type, 0.5));
  return r.settle(e.b.CreateSelect(up, e.b.CreateFAdd(whole, r.one()), whole));
}

Value* round_even(emitter& e, Value* x) {
  const strict_math strict(e);
  if (e.caps.rounding) return instruction(e, llvm::Intrinsic::roundeven, x);
  const rounding r(e, x);
  return r.settle(r.nearest);
}

} // namespace kiln::emit
