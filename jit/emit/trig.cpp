// Sine and cosine. x = n pi/2 + r with |r| <= pi/4: up to |x| = 2^16 by subtracting n times a pi/2 split into short
// parts; beyond, in a branch, by multiplying the significand with the right 192 bits of 2/pi in integers (Payne and
// Hanek), which is good for every finite f64. Then one polynomial each for sine and cosine, and the quadrant selects.
#include "math.hpp"

#include "float_shape.hpp"
#include "loop.hpp"

#include <llvm/IR/Module.h>

namespace kiln::emit {

using detail::float_shape;
using llvm::Value;

namespace {

// r = high + low; low only where high carries the precision of the result (f64). The quadrant is n mod 4 in its low
// bits.
struct reduced {
  Value* quadrant;
  Value* high;
  Value* low;
};

constexpr double two_over_pi = 0.63661977236758134308;

// |x| <= 2^16, f64: n times the first three parts is exact, so cancellation near multiples of pi/2 costs nothing.
reduced reduce_wide(emitter& e, const float_shape& s, Value* a) {
  auto& b = e.b;
  const auto n = detail::round_to_integer(e, s, a, two_over_pi);
  auto times = [&](double part) { return b.CreateFMul(n.number, e.number(s.type, part)); };
  auto* first = b.CreateFSub(a, times(0x1.921fb54400000p+0)); // exact
  auto* second = times(0x1.0b4611a600000p-34);
  auto* sum = b.CreateFSub(first, second);
  auto* error = b.CreateFSub(b.CreateFSub(first, sum), second);
  auto* third = b.CreateFSub(times(0x1.3198a2e000000p-69), error);
  auto* high = b.CreateFSub(sum, third);
  auto* low = b.CreateFSub(b.CreateFSub(b.CreateFSub(sum, high), third), times(0x1.b839a252049c1p-104));
  return {n.bits, high, low};
}

// |x| <= 2^16, f32 with fma: the first difference is exact, the others round once each.
reduced reduce_narrow(emitter& e, const float_shape& s, Value* a) {
  const auto n = detail::round_to_integer(e, s, a, two_over_pi);
  Value* r = a;
  for (double part : {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50}) r = e.mad(n.number, e.number(s.type, -part), r);
  return {n.bits, r, nullptr};
}

// |x| <= 2^16, f32 without fma: in f64, where n times 33 bits of pi/2 is exact.
reduced reduce_through_wide(emitter& e, const float_shape& s, Value* a) {
  auto& b = e.b;
  auto* wide = b.CreateFPExt(a, e.shaped(b.getDoubleTy(), s.type));
  const float_shape w(e, wide);
  const auto n = detail::round_to_integer(e, w, wide, two_over_pi);
  auto times = [&](double part) { return b.CreateFMul(n.number, e.number(w.type, part)); };
  auto* r = b.CreateFSub(b.CreateFSub(wide, times(0x1.921fb54400000p+0)), times(0x1.0b4611a626331p-34));
  return {b.CreateTrunc(n.bits, s.bits), b.CreateFPTrunc(r, s.type), nullptr};
}

// { double high, double low, i64 quadrant } kiln.reduce_pi(double): x >= 2^16 and finite, for one value. Internal to
// the module; made when it is first needed.
llvm::Function* reduction_function(emitter& e) {
  auto* caller = e.b.GetInsertBlock()->getParent();
  llvm::Module& module = *caller->getParent();
  if (auto* known = module.getFunction("kiln.reduce_pi")) return known;
  auto& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *f64 = b.getDoubleTy(), *i64 = b.getInt64Ty(), *i128 = b.getIntNTy(128);
  auto* result = llvm::StructType::get(f64, f64, i64);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, {f64}, false),
                                          llvm::GlobalValue::InternalLinkage, "kiln.reduce_pi", module);
  detail::inherit_target(*function, *caller);

  // Bits of 2/pi after the point, most significant first.
  static constexpr uint64_t bits[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                      0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                      0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                                      0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                                      0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
  const unsigned space = module.getDataLayout().getDefaultGlobalsAddressSpace();
  auto* data = llvm::ConstantDataArray::get(context, bits);
  auto* table = new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::InternalLinkage, data,
                                         "kiln.two_over_pi", nullptr, llvm::GlobalValue::NotThreadLocal, space);
  table->setAlignment(llvm::Align(8));

  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  auto i = [&](uint64_t v) { return b.getInt64(v); };
  auto* raw = b.CreateBitCast(function->getArg(0), i64);
  auto* field = b.CreateAnd(b.CreateLShr(raw, 52), i(0x7ff));
  auto* significand = b.CreateOr(b.CreateAnd(raw, i((uint64_t{1} << 52) - 1)), i(uint64_t{1} << 52));
  // x = significand 2^exponent. Of significand * 2/pi * 2^exponent only the value mod 4 matters, so the bits of 2/pi
  // with weight 2^(2 - exponent) and above contribute nothing: the window begins behind them, at bit exponent - 2.
  auto* exponent = b.CreateSub(field, i(1023 + 52));
  auto* start = b.CreateSub(exponent, i(2)); // x >= 2^16: >= -38; before the table there are only zeros
  auto* negative = b.CreateICmpSLT(start, i(0));
  auto* skipped = b.CreateSelect(negative, i(0), start);
  auto* word = b.CreateLShr(skipped, 6);
  auto* shift = b.CreateAnd(skipped, i(63));
  Value* w[4];
  for (int k = 0; k < 4; ++k)
    w[k] = b.CreateAlignedLoad(i64, b.CreateInBoundsGEP(i64, table, b.CreateAdd(word, i(k))), llvm::Align(8));
  Value* window[3];
  for (int k = 0; k < 3; ++k) window[k] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {w[k], w[k + 1], shift});
  // A window that begins before the point: shift the whole of it right.
  auto* right = b.CreateSelect(negative, b.CreateNeg(start), i(0));
  auto shifted = [&](Value* high, Value* low) {
    return b.CreateIntrinsic(llvm::Intrinsic::fshr, {i64}, {high, low, right});
  };
  window[2] = shifted(window[1], window[2]);
  window[1] = shifted(window[0], window[1]);
  window[0] = shifted(i(0), window[0]);
  // The product mod 2^192: its two top bits are the integral part mod 4, the other 190 the fraction.
  auto wide = [&](Value* v) { return b.CreateZExt(v, i128); };
  auto upper = [&](Value* v) { return b.CreateTrunc(b.CreateLShr(v, 64), i64); };
  auto* low = b.CreateMul(wide(significand), wide(window[2]));
  auto* middle = b.CreateAdd(b.CreateMul(wide(significand), wide(window[1])), wide(upper(low)));
  auto* top = b.CreateAdd(b.CreateMul(significand, window[0]), upper(middle));
  auto* integral = b.CreateLShr(top, 62);
  // 128 bits of fraction as a signed number around the nearest integer.
  auto* both = b.CreateOr(b.CreateShl(wide(top), 64), wide(b.CreateTrunc(middle, i64)));
  auto* low_bits = wide(b.CreateLShr(b.CreateTrunc(low, i64), 62));
  auto* fraction = b.CreateOr(b.CreateShl(both, 2), low_bits);
  auto* minus = b.CreateICmpSLT(fraction, llvm::ConstantInt::get(i128, 0));
  auto* quadrant = b.CreateAdd(integral, b.CreateZExt(minus, i64));
  auto* size = b.CreateSelect(minus, b.CreateNeg(fraction), fraction);
  // 64 significant bits, times pi/2 in 64 bits: r to 2^-62, as two doubles. The fraction of a finite f64 is never zero.
  auto* zeros = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i128}, {size, b.getFalse()});
  auto* leading = upper(b.CreateShl(size, b.CreateAnd(zeros, llvm::ConstantInt::get(i128, 127))));
  auto* product = upper(b.CreateMul(wide(leading), wide(i(0xc90fdaa22168c235)))); // r = product 2^(-63 - zeros)
  auto* scale_field = b.CreateShl(b.CreateSub(i(1023 - 63), b.CreateTrunc(zeros, i64)), 52);
  auto* sign = b.CreateShl(b.CreateZExt(minus, i64), 63);
  auto* scale = b.CreateBitCast(b.CreateOr(scale_field, sign), f64);
  auto part = [&](uint64_t mask) { return b.CreateFMul(b.CreateUIToFP(b.CreateAnd(product, i(mask)), f64), scale); };
  Value* out = llvm::PoisonValue::get(result);
  out = b.CreateInsertValue(out, part(~uint64_t{0x7ff}), 0);
  out = b.CreateInsertValue(out, part(0x7ff), 1);
  b.CreateRet(b.CreateInsertValue(out, quadrant, 2));
  return function;
}

// Replaces the reductions of lanes beyond 2^16, one lane after the other, if there are any.
reduced reduce_far(emitter& e, const float_shape& s, Value* a, reduced near) {
  auto& b = e.b;
  auto* infinity = llvm::ConstantFP::getInfinity(s.type);
  auto* far = b.CreateAnd(b.CreateFCmpOGT(a, e.number(s.type, 0x1p16)), b.CreateFCmpOLT(a, infinity));
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(s.type);
  auto* any = vector ? b.CreateOrReduce(far) : far;
  auto one = [&](Value* value, reduced r, Value* lane) {
    auto* call = b.CreateCall(reduction_function(e), {b.CreateFPExt(value, b.getDoubleTy())});
    auto put = [&](Value* into, Value* v) { return lane ? b.CreateInsertElement(into, v, lane) : v; };
    r.high = put(r.high, b.CreateFPTrunc(b.CreateExtractValue(call, 0), s.type->getScalarType()));
    if (r.low) r.low = put(r.low, b.CreateExtractValue(call, 1));
    r.quadrant = put(r.quadrant, b.CreateTrunc(b.CreateExtractValue(call, 2), s.bits->getScalarType()));
    return r;
  };
  auto pack = [](const reduced& r) {
    values v{r.quadrant, r.high};
    if (r.low) v.push_back(r.low);
    return v;
  };
  auto unpack = [](const values& v) { return reduced{v[0], v[1], v.size() > 2 ? v[2] : nullptr}; };
  auto fixed = [&]() -> values {
    if (!vector) return pack(one(a, near, nullptr));
    auto* count = b.getInt32(vector->getNumElements());
    return loop(b, b.getInt32(0), count, b.getInt32(1), pack(near),
                [&](Value* lane, const values& so_far) {
                  return branch(
                      b, b.CreateExtractElement(far, lane),
                      [&] { return pack(one(b.CreateExtractElement(a, lane), unpack(so_far), lane)); },
                      [&] { return so_far; });
                },
                {.at_least_once = true});
  };
  return unpack(branch(b, any, fixed, [&] { return pack(near); }));
}

// sin(high + low) and cos(high + low): r + r^3 S(r^2) and 1 - r^2/2 + r^4 C(r^2).
constexpr double sin32[] = {-0.1666665414, 0.008332131132, -0.0001951124069};
constexpr double cos32[] = {0.0416666449, -0.001388727754, 2.442867209e-5};
constexpr double sin64[] = {-0.1666666666666662793,  0.008333333333321403671,  -0.0001984126982900184378,
                            2.755731341231859743e-6, -2.505071425614130469e-8, 1.589424561217533664e-10};
constexpr double cos64[] = {0.04166666666666658736,   -0.001388888888887206862, 0.00002480158728822090338,
                            -2.755731399332005334e-7, 2.087567508565452799e-9,  -1.135717974152573393e-11};

Value* sine(emitter& e, const float_shape& s, const reduced& r) {
  auto& b = e.b;
  auto* z = b.CreateFMul(r.high, r.high);
  auto* cube = b.CreateFMul(z, r.high);
  auto* p = e.polynomial(z, s.wide ? llvm::ArrayRef<double>(sin64) : llvm::ArrayRef<double>(sin32));
  if (!r.low) return e.mad(cube, p, r.high);
  // low enters as low cos(high), where 1 - z/2 is enough.
  auto* tail = e.mad(e.number(s.type, -0.5), b.CreateFMul(z, r.low), r.low);
  return b.CreateFAdd(r.high, e.mad(cube, p, tail));
}

Value* cosine(emitter& e, const float_shape& s, const reduced& r) {
  auto& b = e.b;
  auto* z = b.CreateFMul(r.high, r.high);
  auto* half = b.CreateFMul(z, e.number(s.type, 0.5));
  auto* one = e.number(s.type, 1);
  auto* main = b.CreateFSub(one, half);
  auto* lost = b.CreateFSub(b.CreateFSub(one, main), half); // what rounding `main` dropped
  auto* p = e.polynomial(z, s.wide ? llvm::ArrayRef<double>(cos64) : llvm::ArrayRef<double>(cos32));
  auto* tail = e.mad(b.CreateFMul(z, z), p, lost);
  if (r.low) tail = b.CreateFSub(tail, b.CreateFMul(r.high, r.low));
  return b.CreateFAdd(main, tail);
}

Value* circular(emitter& e, Value* x, int quarter_turns) {
  const detail::strict_math strict(e);
  const float_shape s(e, x);
  auto& b = e.b;
  auto* a = e.magnitude(x);
  reduced r = s.wide ? reduce_wide(e, s, a) : e.caps.fma ? reduce_narrow(e, s, a) : reduce_through_wide(e, s, a);
  r = reduce_far(e, s, a, r);
  auto* turns = b.CreateAdd(r.quadrant, e.integer(s.bits, quarter_turns));
  auto* zero = e.integer(s.bits, 0);
  auto* crossed = b.CreateICmpNE(b.CreateAnd(turns, e.integer(s.bits, 1)), zero);
  auto* value = b.CreateSelect(crossed, cosine(e, s, r), sine(e, s, r));
  const unsigned width = s.wide ? 64 : 32;
  Value* sign = b.CreateShl(b.CreateAnd(turns, e.integer(s.bits, 2)), width - 2);
  if (quarter_turns == 0) // sine is odd; x itself was replaced by its magnitude
    sign = b.CreateXor(sign, b.CreateAnd(e.to_bits(x), e.integer(s.bits, uint64_t{1} << (width - 1))));
  return e.from_bits(b.CreateXor(e.to_bits(value), sign), s.type->getScalarType());
}

} // namespace

Value* sin(emitter& e, Value* x) { return circular(e, x, 0); }

Value* cos(emitter& e, Value* x) { return circular(e, x, 1); }

} // namespace kiln::emit
