// Inside of random_graph.cpp: a recorder with a pool of values and what is known about each of them.
#pragma once
#include "random_graph.hpp"

#include <kiln/graph/recorder.hpp>

#include <random>

namespace kiln_test {

using namespace kiln;

/// A recorded value and what may be done with it.
struct value {
  int node = -1;
  dtype type{};
  std::int32_t shape = 0;
  bool approximate = false; ///< not fixed to the bit: may only be moved
  bool maybe_nan = false;   ///< may be NaN, whose bits are not fixed
  bool loose_zero = false;  ///< may be a zero of either sign
  bool small = false;       ///< a whole number of at most 8: sums of them are exact
  bool moderate = false;    ///< within +-100
  bool used = false;        ///< has been stored or used
};

/// What an operation needs of an operand beyond type and shape.
enum need : unsigned { anything = 0, no_nan = 1, signed_zero = 2, small_numbers = 4, moderate_numbers = 8, may_approximate = 16 };

class generator {
public:
  generator(std::uint64_t seed, generator_options const& options);

  /// Records something around one operation. `variant` chooses among its forms (see variants). False: not possible here.
  bool emit(op o, dtype t, int variant);
  /// How many forms `emit` knows of an operation.
  static int variants(op o);
  /// A step of a random graph.
  void step();
  generated finish(std::string name);

private:
  // -- random numbers ----------------------------------------------------------------------------------------------------
  std::uint64_t bits() { return random_(); }
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  int between(int lo, int hi) { return lo + below(hi - lo + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
  bool may(op o, dtype t) const { return accepts(o, t) && (!options_.allow || options_.allow(o, t)); }

  // -- shapes ------------------------------------------------------------------------------------------------------------
  shape const& shape_at(std::int32_t s) const { return r_.shapes[s]; }
  shape const& shape_of(value const& v) const { return r_.shapes[v.shape]; }
  shape random_shape(int rank);
  std::int32_t tile_shape(int least_rank = 1); ///< one of the shapes of this graph
  std::int32_t any_shape() { return chance(15) ? 0 : tile_shape(); }
  int extent();

  // -- nodes -------------------------------------------------------------------------------------------------------------
  int push(op o, dtype t, node_kind k, std::int32_t s, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes = {});
  int node(op o, dtype t, std::int32_t s, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes = {}) {
    return push(o, t, node_kind::value, s, operands, attributes);
  }
  int constant(dtype t, std::int32_t s, std::int64_t number); ///< a small whole number
  int constant_bits(dtype t, std::int32_t s, scalar v);
  int pid() { return pid_; }
  int linear(std::int32_t s);         ///< i32: the row-major index of each element
  int spread(int scalar_node, dtype t, std::int32_t s); ///< broadcast of a scalar
  value keep(value v);                ///< puts a value into the pool

  // -- arguments ---------------------------------------------------------------------------------------------------------
  /// Parameters come before all nodes, and are not known before the end: until then parameter i is node -2 - i.
  int parameter(argument a);
  int integer_argument(int number, dtype t = dtype::i32);
  std::int64_t part(std::int32_t s) const { return shape_at(s).elements(); }
  struct place {
    int address;   ///< pointers of the shape, to this CTA's part
    int mask = -1; ///< where the buffer has an element
  };
  place buffer(argument a, std::int32_t s, bool masked);
  place array(dtype t, std::int32_t s, contents c, bool output, bool approximate);
  contents random_contents(dtype t, unsigned needs);
  value described(int node, dtype t, std::int32_t s, contents c);

  // -- values ------------------------------------------------------------------------------------------------------------
  value want(dtype t, std::int32_t s, unsigned needs = anything);
  value fresh(dtype t, std::int32_t s, unsigned needs);
  value loaded(dtype t, std::int32_t s, unsigned needs);
  value random_constant(dtype t, std::int32_t s, unsigned needs);
  static bool fits(value const& v, unsigned needs);
  void store(value const& v);
  int index_into(int extent, std::int32_t s); ///< i32 or u32 in [0, extent)
  int uniform_condition();
  value clamped(value v); ///< to -1..1, so that products stay exact

  // -- recipes, by section of ops.def ------------------------------------------------------------------------------------
  bool structure(op o, dtype t, int variant);
  bool loop(dtype t, int variant);
  bool conditional(int variant);
  bool repeat(int variant);
  bool cell(dtype t, int variant);
  bool custom_combine(dtype t, int variant);
  bool elementwise(op o, dtype t, int variant);
  bool reshaping(op o, dtype t, int variant);
  bool across(op o, dtype t, int variant);
  bool dot_fallback(dtype t, int variant);
  bool product(dtype t, dtype to, std::int32_t a, std::int32_t b, std::int32_t c, int variant);
  int allocate(dtype t, std::int32_t s, int slots, bool shares = false);
  kiln::slot_layout random_layout(kiln::shape const& s);
  int shared_storage();
  static constexpr int storage_bytes = 32768; ///< with what lies beside it, small enough for every target
  int storage_ = -1; ///< node of an allocation in which others lie; -1: none yet
  int slot(int buffers, dtype t, std::int32_t s, int index);
  int filled_view(dtype t, std::int32_t s, int content);
  bool global(op o, dtype t, int variant);
  bool atomic(op o, dtype t, int variant);
  bool local(op o, dtype t, int variant);
  bool asynchronous(op o, dtype t, int variant);
  bool checks(op o, dtype t, int variant);
  void body(int steps);
  void change_cells();

  struct scope_mark {
    std::size_t values, cells;
  };
  scope_mark enter() const { return {values_.size(), cells_.size()}; }
  void leave(scope_mark m) {
    values_.resize(m.values);
    cells_.resize(m.cells);
  }
  struct cell_info {
    int node;
    value holds;
  };

  generator_options options_;
  std::mt19937_64 random_;
  recorder r_;
  std::vector<argument> arguments_;
  std::vector<param_info> params_;
  std::vector<value> values_;
  std::vector<cell_info> cells_;
  std::vector<std::int32_t> shapes_;
  dims grid_;
  int pid_ = -1, depth_ = 0, line_ = 0;
  std::uint64_t seed_;
};

} // namespace kiln_test
