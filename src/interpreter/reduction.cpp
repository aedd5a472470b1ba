// Bodies of reductions, arg reductions and scans. Elements are combined from first to last.
#include <kiln/dtype/scalar_ops.hpp>

#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

namespace {

/// One of the combines that ops.def names. f16 and bf16 sums and products accumulate in f32 and are rounded by the caller.
scalar combine(reduce_op o, nan_mode mode, scalar x, scalar y) {
  switch (o) {
  case reduce_op::sum: return scalar_ops::add(x, y);
  case reduce_op::prod: return scalar_ops::mul(x, y);
  case reduce_op::max: return scalar_ops::max(x, y, mode);
  case reduce_op::min: return scalar_ops::min(x, y, mode);
  case reduce_op::any: return scalar_ops::bit_or(x, y);
  case reduce_op::all: return scalar_ops::bit_and(x, y);
  case reduce_op::bit_xor: return scalar_ops::bit_xor(x, y);
  case reduce_op::custom: break;
  }
  return x; // custom combines never come here
}

dtype accumulator(reduce_op o, dtype t) {
  bool const rounds = o == reduce_op::sum || o == reduce_op::prod;
  return rounds && (t == dtype::f16 || t == dtype::bf16) ? dtype::f32 : t;
}

/// Runs the combine body of a custom reduction: left and right tuples in, one tuple out.
class custom_combine {
public:
  custom_combine(agent& a, int begin)
      : agent_(a), begin_(begin), end_(static_cast<int>(a.graph.attribute(begin, 0))) {
    for (int i = begin_ + 1; i < end_; ++i)
      if (a.at(i).code == op::combine_arg && a.graph.operand(i, 0) == begin_) arguments_.push_back(i);
  }
  void operator()(std::vector<scalar>& left, std::vector<scalar> const& right) {
    std::size_t const n = left.size();
    for (int i : arguments_) {
      auto const k = static_cast<std::size_t>(agent_.graph.attribute(i, 0));
      data& d = agent_.fresh(i);
      d.bits[0] = (k < n ? left[k] : right[k - n]).bits;
    }
    int const next = agent_.next;
    agent_.execute(begin_ + 1, end_);
    agent_.next = next;
    for (std::size_t j = 0; j < n; ++j) left[j] = agent_.in(end_, static_cast<int>(j)).at(0);
  }

private:
  agent& agent_;
  int begin_, end_;
  std::vector<int> arguments_;
};

/// The tuple of all operands' elements at an index.
std::vector<scalar> tuple_at(agent& a, int i, std::size_t e) {
  std::vector<scalar> t;
  for (int j = 0; j < a.at(i).operand_count; ++j) t.push_back(a.in(i, j).at(e));
  return t;
}

/// Results: the first is the node's own content, the others lie beside it.
void prepare(agent& a, int i) {
  data& d = a.fresh(i);
  d.more.resize(static_cast<std::size_t>(a.at(i).operand_count - 1));
  for (std::size_t j = 0; j < d.more.size(); ++j) {
    d.more[j].type = a.in(i, static_cast<int>(j) + 1).type;
    d.more[j].bits.resize(d.bits.size());
  }
}
void put(agent& a, int i, std::size_t e, std::vector<scalar> const& t) {
  data& d = a.out(i);
  d.bits[e] = t[0].bits;
  for (std::size_t j = 1; j < t.size(); ++j) d.more[j - 1].bits[e] = t[j].bits;
}

} // namespace

void body<op::reduce>::run(agent& a, int i) {
  auto const o = static_cast<reduce_op>(a.graph.attribute(i, 0));
  auto const mode = static_cast<nan_mode>(a.graph.attribute(i, 3));
  axis_split const split(a.shape_of(a.graph.operand(i, 0)), a.graph.attribute(i, 1));
  prepare(a, i);
  std::size_t e = 0;
  if (o == reduce_op::custom) {
    custom_combine f(a, static_cast<int>(a.graph.attribute(i, 4)));
    for (i64 outer = 0; outer < split.outer; ++outer)
      for (i64 inner = 0; inner < split.inner; ++inner, ++e) {
        std::vector<scalar> t = tuple_at(a, i, split.index(outer, 0, inner));
        for (i64 k = 1; k < split.length; ++k) f(t, tuple_at(a, i, split.index(outer, k, inner)));
        put(a, i, e, t);
      }
    return;
  }
  data const& x = a.in(i, 0);
  data& d = a.out(i);
  dtype const wide = accumulator(o, x.type);
  for (i64 outer = 0; outer < split.outer; ++outer)
    for (i64 inner = 0; inner < split.inner; ++inner, ++e) {
      scalar s = convert(x.at(split.index(outer, 0, inner)), wide);
      for (i64 k = 1; k < split.length; ++k)
        s = combine(o, mode, s, convert(x.at(split.index(outer, k, inner)), wide));
      d.bits[e] = convert(s, d.type).bits;
    }
}

void body<op::arg_reduce>::run(agent& a, int i) {
  bool const largest = static_cast<reduce_op>(a.graph.attribute(i, 0)) == reduce_op::max;
  axis_split const split(a.shape_of(a.graph.operand(i, 0)), a.graph.attribute(i, 1));
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  std::size_t e = 0;
  for (i64 outer = 0; outer < split.outer; ++outer)
    for (i64 inner = 0; inner < split.inner; ++inner, ++e) {
      i64 best = 0;
      for (i64 k = 1; k < split.length; ++k) {
        scalar const candidate = x.at(split.index(outer, k, inner)), old = x.at(split.index(outer, best, inner));
        if (is_nan(candidate)) continue;
        int const order = kiln::detail::compare(candidate, old);
        if (is_nan(old) || order == (largest ? 1 : -1)) best = k;
      }
      d.bits[e] = scalar_of(static_cast<i32>(best)).bits;
    }
}

void body<op::scan>::run(agent& a, int i) {
  auto const o = static_cast<reduce_op>(a.graph.attribute(i, 0));
  bool const reverse = a.graph.attribute(i, 2) != 0;
  axis_split const split(a.shape_of(a.graph.operand(i, 0)), a.graph.attribute(i, 1));
  prepare(a, i);
  auto index = [&](i64 outer, i64 k, i64 inner) {
    return split.index(outer, reverse ? split.length - 1 - k : k, inner);
  };
  for (i64 outer = 0; outer < split.outer; ++outer)
    for (i64 inner = 0; inner < split.inner; ++inner) {
      if (o == reduce_op::custom) {
        custom_combine f(a, static_cast<int>(a.graph.attribute(i, 3)));
        std::vector<scalar> t = tuple_at(a, i, index(outer, 0, inner));
        put(a, i, index(outer, 0, inner), t);
        for (i64 k = 1; k < split.length; ++k) {
          f(t, tuple_at(a, i, index(outer, k, inner)));
          put(a, i, index(outer, k, inner), t);
        }
        continue;
      }
      data const& x = a.in(i, 0);
      data& d = a.out(i);
      dtype const wide = accumulator(o, x.type);
      scalar s = convert(x.at(index(outer, 0, inner)), wide);
      d.bits[index(outer, 0, inner)] = convert(s, d.type).bits;
      for (i64 k = 1; k < split.length; ++k) {
        s = combine(o, nan_mode::ignore, s, convert(x.at(index(outer, k, inner)), wide));
        d.bits[index(outer, k, inner)] = convert(s, d.type).bits;
      }
    }
}

} // namespace kiln::interpreter
