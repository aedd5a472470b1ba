// Where in the user's source an operation was written.
#pragma once

namespace kiln {

/// A source position, captured by being a defaulted last parameter of an operation. Columns are left out: the compilers
/// disagree about them.
struct site {
  int line = 0;
  char const* file = "";
  constexpr site(int l = __builtin_LINE(), char const* f = __builtin_FILE()) : line(l), file(f) {}
};

/// A value together with the place where it was converted to this type. An operator takes its left operand as
/// located<...>, and so learns the line it was written on.
template <class T>
struct located {
  T value;
  site at;
  constexpr located(T const& v, site w = {}) : value(v), at(w) {}
};

} // namespace kiln
