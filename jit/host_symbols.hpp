// What compiled host code may call. Anything else that code generation reaches for is an error that names it.
#pragma once

#include "engine.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::jit {

/// Functions that LLVM calls by itself and that kiln allows: those whose result is exact or prescribed bit by bit, so
/// that they cannot differ between machines (memory, remainders, integer division, conversions, roundings, fused
/// multiply-add). Transcendental functions are not here: kiln has its own, the same on every target.
std::vector<host_symbol> exact_library();

/// Why a kernel must not call `name`, and what to do instead; one line.
std::string why_not(std::string_view name);

} // namespace kiln::jit
