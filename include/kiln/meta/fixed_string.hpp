// A string literal as a template argument: kernel<"name">.
#pragma once
#include <cstddef>
#include <string_view>

namespace kiln {

/// A character array of structural type, deduced from a string literal.
template <std::size_t N>
struct fixed_string {
  char text[N]{};
  constexpr fixed_string(char const (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr std::size_t size() const { return N - 1; }
  constexpr char const* c_str() const { return text; }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

} // namespace kiln
