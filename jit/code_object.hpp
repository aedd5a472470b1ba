// AMDGPU: a relocatable object becomes a code object that HIP loads, through the lld library, in this process.
#pragma once

#include <string>
#include <string_view>

namespace kiln::jit {

/// Links one relocatable AMDGPU object. Callable from any thread and any number of times; links take turns, because lld
/// keeps global state. Touches no directory.
///
/// Errors: `std::runtime_error` with lld's message, for instance an undefined device function.
std::string link_code_object(std::string_view object);

} // namespace kiln::jit
