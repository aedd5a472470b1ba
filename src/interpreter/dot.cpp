// The body of the matrix product.
#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

namespace {

template <class T>
T as(scalar s) {
  return value_of<T>(s);
}

/// c[m,n] += a[m,k] * b[k,n], in the order of k, products and sums in Acc.
template <class Acc>
void multiply(std::vector<Acc> const& x, std::vector<Acc> const& y, std::vector<Acc>& c, int m, int n, int k) {
  for (int r = 0; r < m; ++r) {
    Acc* const row = c.data() + static_cast<std::ptrdiff_t>(r) * n;
    for (int p = 0; p < k; ++p) {
      Acc const f = x[static_cast<std::size_t>(r) * static_cast<std::size_t>(k) + static_cast<std::size_t>(p)];
      Acc const* const other = y.data() + static_cast<std::ptrdiff_t>(p) * n;
      for (int q = 0; q < n; ++q) row[q] += f * other[q]; // i8 sums are kept in u32, so that they wrap
    }
  }
}

template <class Acc>
std::vector<Acc> convert_all(std::vector<u64> const& bits, dtype t) {
  std::vector<Acc> all(bits.size());
  if (bits_of(t) <= 16) { // few patterns: convert each once
    std::vector<Acc> table(std::size_t{1} << bits_of(t));
    for (std::size_t b = 0; b < table.size(); ++b) table[b] = as<Acc>({t, b});
    for (std::size_t e = 0; e < all.size(); ++e) all[e] = table[bits[e]];
  } else {
    for (std::size_t e = 0; e < all.size(); ++e) all[e] = as<Acc>({t, bits[e]});
  }
  return all;
}

template <class Acc>
void run_as(agent& a, int i, std::vector<u64> const& x, dtype tx, std::vector<u64> const& y, dtype ty) {
  shape const &left = a.shape_of(a.graph.operand(i, 0)), &right = a.shape_of(a.graph.operand(i, 1));
  data const* start = a.optional(i, 2);
  data& d = a.fresh(i);
  std::vector<Acc> c(d.bits.size());
  if (start)
    for (std::size_t e = 0; e < c.size(); ++e) c[e] = as<Acc>(start->at(e));
  multiply(convert_all<Acc>(x, tx), convert_all<Acc>(y, ty), c, left.extent[0], right.extent[1], left.extent[1]);
  for (std::size_t e = 0; e < c.size(); ++e) {
    scalar const s = scalar_of(c[e]);
    d.bits[e] = is_nan(s) ? nan_of(s.type).bits : s.bits;
  }
}

} // namespace

void body<op::dot>::run(agent& a, int i) {
  std::vector<u64> bits[2];
  dtype types[2];
  for (int j = 0; j < 2; ++j) {
    data const& x = a.in(i, j);
    types[j] = x.type;
    if (a.at(a.graph.operand(i, j)).kind == node_kind::view) {
      types[j] = a.run.carrier(a.at(a.graph.operand(i, j)).type);
      read_view(a, i, x, bits[j]);
    } else {
      bits[j] = x.bits;
    }
  }
  dtype const acc = a.run.carrier(a.at(i).type);
  if (acc == dtype::f64) run_as<f64>(a, i, bits[0], types[0], bits[1], types[1]);
  else if (acc == dtype::f32) run_as<f32>(a, i, bits[0], types[0], bits[1], types[1]);
  else run_as<u32>(a, i, bits[0], types[0], bits[1], types[1]);
}

} // namespace kiln::interpreter
