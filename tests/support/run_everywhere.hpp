// A kernel of one input and one output, run by the interpreter under every policy and compiled for the host.
#pragma once
#include "host_kernel.hpp"
#include "interpret.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>

#include "src/graph/passes/sequentialise.hpp"

namespace kiln_test {

/// An address as an argument of a host kernel.
inline std::uint64_t word(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Runs a kernel of (const T*, T*) or (const T*, T*, i32) everywhere; all must give the same, which is returned. What is not written
/// stays -1. The compiled kernel goes through its text form, which must say the same.
template <class T>
std::vector<T> run_everywhere(kiln::graph_view g, std::vector<T> const& in, std::size_t out_size, kiln::i32 n = 0) {
  namespace ip = kiln::interpreter;
  EXPECT_TRUE(validate(g).ok()) << validate(g).text;
  bool const takes_n = kiln::argument_count(g.params) > 2;
  T const untouched = static_cast<T>(-1);
  std::vector<T> first;
  for (auto policy : all_policies) {
    guarded<T> x(in), y(out_size, untouched);
    std::vector<ip::host_argument> arguments{x, y};
    if (takes_n) arguments.push_back(kiln_test::val(n));
    ip::report const r = ip::run(g, {1}, arguments, {.policy = policy});
    EXPECT_TRUE(r.clean()) << (r.clean() ? "" : r.diagnostics[0].text);
    EXPECT_TRUE(y.intact());
    std::vector<T> const result(y.data(), y.data() + out_size);
    if (first.empty()) first = result;
    EXPECT_TRUE(std::memcmp(first.data(), result.data(), out_size * sizeof(T)) == 0);
  }
  kiln::graph const again = std::move(kiln::parse_graphs(kiln::print(g), "test.kg").at(0));
  EXPECT_EQ(to_string(kiln::semantic_hash(again)), to_string(kiln::semantic_hash(g)));
  std::vector<T> host(out_size + 64, untouched);
  host_kernel const f(kiln::sequentialise_tasks(again));
  std::vector<std::uint64_t> words{word(in.data()), word(host.data())};
  if (takes_n) words.push_back(static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)));
  f.run(words, {1});
  for (std::size_t i = 0; i < host.size(); ++i) {
    EXPECT_EQ(host[i], i < out_size ? first[i] : untouched) << i;
    if (!(host[i] == (i < out_size ? first[i] : untouched))) break;
  }
  return first;
}

} // namespace kiln_test
