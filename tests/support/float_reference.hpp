// A second implementation of small floating formats, for tests: every finite value is written down in a sorted table
// with ldexp, and rounding is a search for the nearest entry. It shares no code and no idea with kiln's own bit
// shifting.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kiln_test {

/// One sign bit, then `exponent_bits` and `mantissa_bits`; `fn`: no infinity, only the all-ones pattern is NaN.
class float_reference {
public:
  float_reference(int exponent_bits, int mantissa_bits, bool fn, bool saturating)
      : sign_(1u << (exponent_bits + mantissa_bits)), saturating_(saturating) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const unsigned top = (1u << exponent_bits) - 1, steps = 1u << mantissa_bits;
    for (unsigned field = 0; field <= top; ++field)
      for (unsigned mantissa = 0; mantissa < steps; ++mantissa) {
        const bool is_nan = fn ? field == top && mantissa == steps - 1 : field == top && mantissa != 0;
        const bool is_infinity = !fn && field == top && mantissa == 0;
        if (is_nan || is_infinity) continue;
        // A denormal (field 0) has the exponent of field 1 and no leading one.
        const int exponent = static_cast<int>(field == 0 ? 1 : field) - bias - mantissa_bits;
        values_.push_back(std::ldexp(static_cast<long double>(field == 0 ? mantissa : mantissa + steps), exponent));
      }
    infinity_ = fn ? 0 : top << mantissa_bits;
    // The value that would come next decides where overflow begins.
    beyond_ = 2 * values_.back() - values_[values_.size() - 2];
  }

  /// Values of the non-negative finite patterns 0, 1, 2, ..., in order.
  const std::vector<long double>& values() const { return values_; }
  unsigned sign() const { return sign_; }
  /// Pattern of +infinity, 0 for formats without.
  unsigned infinity() const { return infinity_; }

  bool is_nan(unsigned bits) const {
    const unsigned magnitude = bits & (sign_ - 1);
    return magnitude >= values_.size() && (infinity_ == 0 || magnitude != infinity_);
  }

  long double decode(unsigned bits) const {
    const unsigned magnitude = bits & (sign_ - 1);
    const long double value = is_nan(bits)                               ? std::numeric_limits<long double>::quiet_NaN()
                              : magnitude == infinity_ && infinity_ != 0 ? std::numeric_limits<long double>::infinity()
                                                                         : values_[magnitude];
    return bits & sign_ ? -value : value;
  }

  /// Pattern of the value nearest to x, the even pattern in a tie. x is no NaN.
  unsigned encode(long double x) const {
    const unsigned sign = std::signbit(x) ? sign_ : 0;
    const long double magnitude = std::fabs(x);
    const unsigned largest = static_cast<unsigned>(values_.size()) - 1;
    if (magnitude >= values_.back()) {
      const bool over = saturating_ ? false : magnitude >= (values_.back() + beyond_) / 2;
      return sign | (over ? infinity_ : largest);
    }
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const unsigned high = static_cast<unsigned>(above - values_.begin()), low = high - 1;
    const long double middle = (values_[low] + values_[high]) / 2; // exact: long double has bits to spare
    if (magnitude == middle) return sign | (low % 2 == 0 ? low : high);
    return sign | (magnitude < middle ? low : high);
  }

private:
  std::vector<long double> values_;
  unsigned sign_;
  unsigned infinity_ = 0;
  long double beyond_ = 0;
  bool saturating_;
};

inline const float_reference& reference_f16() {
  static const float_reference r(5, 10, false, false);
  return r;
}
inline const float_reference& reference_bf16() {
  static const float_reference r(8, 7, false, false);
  return r;
}
inline const float_reference& reference_f8e4m3() {
  static const float_reference r(4, 3, true, true);
  return r;
}
inline const float_reference& reference_f8e5m2() {
  static const float_reference r(5, 2, false, true);
  return r;
}

} // namespace kiln_test
