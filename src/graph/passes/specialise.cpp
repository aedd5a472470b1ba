// Facts about arguments become constants and promises.
#include "src/graph/passes/specialise.hpp"

#include "src/graph/rewrite.hpp"

#include <stdexcept>

namespace kiln {

namespace {

class specialiser {
public:
  specialiser(graph_view const& g, pass_options const& options) : g_(g), options_(options), r_(g) {
    if (options.facts && options.facts->params.size() != g.params.size())
      throw std::invalid_argument("specialise: facts about " + std::to_string(options.facts->params.size()) + " parameters for kernel '" +
                                  std::string(g.name) + "', which has " + std::to_string(g.params.size()));
  }

  graph run() {
    int const parameters = static_cast<int>(g_.params.size());
    for (int i = 0; i < g_.size(); ++i) {
      r_.copy(i);
      // Parameters come first; what is said about them follows the last one.
      if (i == parameters - 1)
        for (int p = 0; p < parameters; ++p) parameter(p);
      else if (g_[i].code == op::extent || g_[i].code == op::stride)
        of_array(i);
      else if (g_[i].code == op::array_data)
        aligned(i, facts_of(g_.operand(i, 0)));
      else if (options_.grid && (g_[i].code == op::num_programs || g_[i].code == op::program_id))
        grid(i);
    }
    return r_.finish();
  }

private:
  param_facts const* facts_of(int param) const {
    return options_.facts ? &options_.facts->params[static_cast<std::size_t>(g_.attribute(param, 0))] : nullptr;
  }
  void parameter(int i) {
    param_facts const* f = facts_of(i);
    if (!f) return;
    if (g_[i].kind == node_kind::pointer) return aligned(i, f);
    if (g_[i].kind != node_kind::value) return;
    if (f->scalar.constant)
      r_.replace(i, r_.add_constant(scalar_from_bits(g_[i].type, static_cast<u64>(f->scalar.value)), {}, i));
    else if (is_int(g_[i].type))
      multiple(i, f->scalar.divisor);
  }
  void of_array(int i) {
    param_facts const* f = facts_of(g_.operand(i, 0));
    if (!f) return;
    auto const axis = g_.attribute(i, 0);
    integer_fact const& known = g_[i].code == op::extent ? f->extent[axis] : f->stride[axis];
    if (known.constant)
      r_.replace(i, r_.add_constant(make_i64(known.value), {}, i));
    else
      multiple(i, known.divisor);
  }
  static scalar make_i64(std::int64_t x) { return {dtype::i64, static_cast<u64>(x)}; }
  void aligned(int i, param_facts const* f) {
    if (f && f->alignment > bytes_of(g_[i].type)) multiple(i, f->alignment);
  }
  void multiple(int i, std::int64_t n) {
    if (n > 1) r_.replace(i, r_.add(op::multiple_of, {g_[i].type, g_[i].kind, {}}, {r_.mapped(i)}, {n}, i));
  }
  void grid(int i) {
    auto const axis = g_.attribute(i, 0);
    std::int64_t const n = axis == 0 ? options_.grid->x : axis == 1 ? options_.grid->y : options_.grid->z;
    scalar const v = scalar_from_bits(g_[i].type, static_cast<u64>(n));
    if (g_[i].code == op::num_programs)
      r_.replace(i, r_.add_constant(v, {}, i));
    else if (n == 1)
      r_.replace(i, r_.add_constant({g_[i].type, 0}, {}, i));
  }

  graph_view const& g_;
  pass_options const& options_;
  detail::rewriter r_;
};

} // namespace

graph specialise(graph_view const& g, pass_options const& options) { return specialiser(g, options).run(); }

} // namespace kiln
