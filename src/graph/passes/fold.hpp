// Computes what is constant and drops what changes nothing, by the rules of docs/numerics.md and only where they fix every
// bit: integers and b1 freely, floats where the result is exact or correctly rounded (+ - * / sqrt fma, min, max,
// comparisons, rounding, conversions). Functions with a tolerance stay. x * 1 and x + 0 stay for floats: a NaN's bits or
// a zero's sign could change. Constant conditions lose their branch, loops without trips go, loops of one trip become
// straight code, masks that are constant leave their access.
// After: constants stand on the right of commutative operations. Runs alone or after specialise, which makes constants;
// dce removes what is no longer used.
//
//   %2 = constant {bits=2} : i32         %2 = constant {bits=2} : i32
//   %3 = constant {bits=3} : i32         %3 = constant {bits=3} : i32
//   %4 = mul %2, %3 : i32                %4 = constant {bits=6} : i32
//   %5 = add %1, %4 : i32                %5 = add %1, %4 : i32
#pragma once
#include <kiln/dtype/scalar.hpp>
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

#include <optional>

namespace kiln {

KILN_INTERNAL_API graph fold(graph_view const& g);

/// An element-wise operation on scalars; nothing when it is not one, or its result is not fixed to the bit.
/// `attribute` is the operation's first attribute (nan, fast), 0 without one; `to` the result's type.
KILN_INTERNAL_API std::optional<scalar> fold_scalar(op o, dtype to, scalar const* operands, std::int64_t attribute);

} // namespace kiln
