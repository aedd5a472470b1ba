// std::string and std::vector by name alone, for signatures: who calls a function that returns one includes its header. The two
// headers together would cost a compiler a third of what all of kiln costs it.
#pragma once

#include <cstddef>
#include <iosfwd> // std::string, incomplete

// libstdc++ declares its vector just so, unless it is in a debug mode or a versioned namespace. Anywhere else, the header it is.
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_DEBUG) && !_GLIBCXX_INLINE_VERSION
namespace std {
template <class T> class allocator;
template <class T, class Allocator> class vector;
} // namespace std
#else
#include <vector>
#endif

namespace kiln::detail {

template <class T> using std_vector = std::vector<T, std::allocator<T>>;

/// Whether `std::vector<T>` can be used where this is first asked.
template <class T> inline constexpr bool has_std_vector = requires { sizeof(std_vector<T>); };

} // namespace kiln::detail
