// A kernel of one input and one output, run by the interpreter under every policy and compiled for the host.
#pragma once
#include "host_kernel.hpp"
#include "interpret.hpp"

namespace kiln_test {

/// An address as an argument of a host kernel.
inline std::uint64_t word(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Runs a kernel of (const T*, T*) everywhere; all must give the same, which is returned.
template <class T>
std::vector<T> run_everywhere(kiln::graph_view g, std::vector<T> const& in, std::size_t out_size) {
  namespace ip = kiln::interpreter;
  EXPECT_TRUE(validate(g).ok()) << validate(g).text;
  std::vector<T> host(out_size + 64);
  host_kernel const f(g);
  f.run({word(in.data()), word(host.data())}, {1});
  host.resize(out_size);
  for (auto policy : all_policies) {
    guarded<T> x(in), y(out_size);
    ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{x, y}, {.policy = policy});
    EXPECT_TRUE(r.clean()) << (r.clean() ? "" : r.diagnostics[0].text);
    EXPECT_EQ(std::vector<T>(y.data(), y.data() + out_size), host);
  }
  return host;
}

} // namespace kiln_test
