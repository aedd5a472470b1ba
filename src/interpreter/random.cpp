// Philox4x32-10, as published with Random123.
#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

namespace {

struct words {
  u32 w[4];
};

words philox(u64 key, words c) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    u64 const p = u64{0xD2511F53} * c.w[0], q = u64{0xCD9E8D57} * c.w[2];
    c = {{static_cast<u32>(q >> 32) ^ c.w[1] ^ k0, static_cast<u32>(q), static_cast<u32>(p >> 32) ^ c.w[3] ^ k1, static_cast<u32>(p)}};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c;
}

} // namespace

void body<op::philox>::run(agent& a, int i) {
  data const &key = a.in(i, 0), &low = a.in(i, 1), &high = a.in(i, 2);
  data& d = a.fresh(i);
  auto const word = a.graph.attribute(i, 0);
  for (std::size_t e = 0; e < d.bits.size(); ++e) {
    words const counter{{static_cast<u32>(low.bits[e]), static_cast<u32>(low.bits[e] >> 32), static_cast<u32>(high.bits[e]),
                         static_cast<u32>(high.bits[e] >> 32)}};
    d.bits[e] = philox(key.bits[e], counter).w[word];
  }
}

} // namespace kiln::interpreter
