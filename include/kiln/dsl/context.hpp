// `context`: the first parameter of every kernel lambda. One concrete class, so that kernels are not templates and no
// `k.template f<>()` is ever needed.
#pragma once
#include <kiln/dsl/cluster_calls.hpp>

namespace kiln {

namespace detail {
/// `{t0, t1}`: tokens of a commit or wait.
struct token_list {
  static constexpr int most = 16;
  int count = 0; ///< may exceed `most`: then they are refused
  std::int32_t nodes[most]{};
  constexpr token_list() = default;
  constexpr token_list(std::initializer_list<token> tokens) {
    for (token const& t : tokens)
      if (++count <= most) nodes[count - 1] = t.node_;
  }
};
template <class T>
struct tile_coordinates {
  T m, n;
};
/// The loop over output tiles of a persistent kernel.
template <class T>
class tile_loop {
public:
  constexpr tile_loop(recorder* r, int lo, int hi, int step, int columns, int rows, int bm, int bn, int group, site at)
      : loop_(r, lo, hi, step, at), recorder_(r), columns_(columns), rows_(rows), bm_(bm), bn_(bn), group_(group), at_(at) {}
  class iterator {
  public:
    constexpr iterator(tile_loop* t, typename loop<i32>::iterator i) : tiles_(t), i_(i) {}
    constexpr tile_coordinates<val<i64>> operator*() const { return tiles_->locate(*i_); }
    constexpr iterator& operator++() {
      ++i_;
      return *this;
    }
    constexpr bool operator!=(iterator const& o) const { return i_ != o.i_; }

  private:
    tile_loop* tiles_;
    typename loop<i32>::iterator i_;
  };
  constexpr iterator begin() { return {this, loop_.begin()}; }
  constexpr iterator end() { return {this, loop_.end()}; }
  constexpr tile_coordinates<val<i64>> locate(tile<T> linear) const;

private:
  loop<i32> loop_;
  recorder* recorder_;
  int columns_, rows_, bm_, bn_, group_;
  site at_;
};
} // namespace detail

/// Records the kernel. Everything a kernel may do beyond arithmetic on values starts from here.
// Functions that check their template arguments return `auto`: a compiler must then look into them where they are called, and
// names the user's line. With a spelled-out result g++ would look only when the recording runs, and name this library.
class context : public cluster_calls {
public:
  constexpr explicit context(recorder& r) : cluster_calls(r) {}
  context(context const&) = delete;
  constexpr recorder* recorder_for_library() const { return r_; }

  // -- indices and constants ---------------------------------------------------------------------------------------------

  /// Index of this CTA in the grid along `axis` (0..2): i32 unless asked. CTA-uniform.
  template <integer_element T = i32>
  constexpr val<T> program_id(int axis, site at = {}) {
    return grid_query<T>(op::program_id, axis, at);
  }
  /// Extent of the grid along `axis` (0..2).
  template <integer_element T = i32>
  constexpr val<T> num_programs(int axis, site at = {}) {
    return grid_query<T>(op::num_programs, axis, at);
  }
  /// start, start+1, .. start+N-1.
  template <int N, element T = i32>
  constexpr auto arange(std::int64_t start = 0, site at = {}) {
    static_assert(is_int(dtype_of<T>), "kiln[T-06] arange needs an integer type; cast<f32>(k.arange<N>()) for numbers");
    static_assert(N >= 1, "kiln[T-02] arange<N>: N is at least 1");
    if constexpr (N >= 1) return tile<T, N>{r_, r_->push(op::iota, detail::type_of<tile<T, N>>(*r_), {}, {0, start}, at)};
  }
  /// A tile of the coordinate along `Axis`: k.iota<1, 64, 32>() counts along the columns.
  template <int Axis, int... D>
  constexpr auto iota(site at = {}) {
    static_assert(Axis >= 0 && Axis < static_cast<int>(sizeof...(D)), "kiln[T-11] iota: no such axis");
    return tile<i32, D...>{r_, r_->push(op::iota, detail::type_of<tile<i32, D...>>(*r_), {}, {Axis, 0}, at)};
  }
  /// A tile of one value; without extents a scalar.
  template <element T, int... D, literal S>
  constexpr auto full(S value, site at = {}) {
    static_assert(is_f8(dtype_of<T>) || weak_promotable<T, S> || std::same_as<T, S>,
                  "kiln[T-04] full: a floating number for an integer or b1 tile; write an integer");
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    if constexpr (((D >= 1) && ...)) {
      detail::check_literal<T>(*r_, value);
      return tile<T, D...>{r_, r_->push(op::constant, detail::type_of<tile<T, D...>>(*r_), {}, {detail::literal_bits<T>(value)}, at)};
    }
  }
  /// A tile of zeros (b1: false); without extents a scalar. Errors: T-02.
  template <element T, int... D>
  constexpr auto zeros(site at = {}) {
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    static_assert(sizeof...(D) <= max_rank, "kiln[T-02] a tile has at most 6 axes");
    if constexpr (((D >= 1) && ...) && sizeof...(D) <= max_rank) return tile<T, D...>{r_, r_->push(op::constant, detail::type_of<tile<T, D...>>(*r_), {}, {0}, at)};
  }
  /// Binds a value: a C++ number becomes an i32 (f32) scalar, a var is read, a value is itself.
  template <int = 0, operand X> // so that let<i32>(3) means the other one
  constexpr auto let(X const& x, site at = {}) {
    if constexpr (std::same_as<X, bool>)
      return detail::scalar_constant<bool>(*r_, x, at);
    else if constexpr (literal<X> && std::is_integral_v<X>)
      return detail::scalar_constant<std::conditional_t<(sizeof(X) > 4), i64, i32>>(*r_, static_cast<std::int64_t>(x), at);
    else if constexpr (literal<X>)
      return detail::scalar_constant<X>(*r_, detail::literal_bits<X>(x), at);
    else
      return detail::read(x, at);
  }
  /// The same as element type T: a C++ number becomes a T, which must hold it; a value is cast. Errors: T-04.
  template <element T, operand X>
  constexpr auto let(X const& x, site at = {}) {
    if constexpr (literal<X>) {
      detail::check_literal<T>(*r_, x);
      return detail::scalar_constant<T>(*r_, detail::literal_bits<T>(x), at);
    } else {
      return cast<T>(x, at);
    }
  }
  /// The present content of a var that holds a pointer or a token; a pointer or token is itself.
  template <class X>
    requires(pointer_like<X> || std::same_as<detail::read_t<X>, token>)
  constexpr auto let(X const& x, site at = {}) {
    return detail::read(x, at);
  }
  /// One mutable element: `k.var` under the name that it has elsewhere. Without a value nothing may be read before the first
  /// assignment (R-HZ15); compiled code starts it as 0.
  template <element T>
  constexpr kiln::var<val<T>> alloc_var(site at = {}) {
    return unset<T>(at);
  }
  template <element T, operand X>
  constexpr kiln::var<val<T>> alloc_var(X const& x, site at = {}) {
    return var(let<T>(x, at), at);
  }
  /// The same: `s = e`, `s += e`; a read sees the latest assignment.
  template <element T>
  constexpr kiln::var<val<T>> scalar(site at = {}) {
    return unset<T>(at);
  }
  template <element T, operand X>
  constexpr kiln::var<val<T>> scalar(X const& x, site at = {}) {
    return var(let<T>(x, at), at);
  }
  /// A mutable tile in registers, spread over the CTA's threads by a layout that its uses decide. Nothing may be read before the
  /// first assignment (R-HZ15).
  template <element T, int... D>
  constexpr auto alloc_fragment(alloc_fragment_options o = {}, site at = {}) {
    static_assert(sizeof...(D) >= 1, "kiln[T-02] a fragment has extents; alloc_var is one element");
    if constexpr (sizeof...(D) >= 1) return unset<T, D...>(at, o.layout);
  }
  /// A thread's own array, `r[i]` or `r(i, j)`, in registers. Nothing may be read before its first assignment (R-HZ15). Errors:
  /// R-BD01 a constant index outside; T-02 more than 256 elements. (dsl/buffer.hpp)
  template <element T, int... D>
  constexpr auto alloc_local(alloc_local_options o = {}, site at = {}) {
    static_assert(detail::included<detail::buffer_header<T>>, "kiln: k.alloc_local is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<T>>) return make_local<T, D...>(o.name, at);
  }
  /// One element of shared memory for each CTA: assigned and read like a variable, ordered like any shared memory.
  template <element T>
  constexpr auto shared_scalar(alloc_shared_options o = {}, site at = {}) {
    static_assert(detail::included<detail::buffer_header<T>>, "kiln: k.shared_scalar is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<T>>) return make_shared_scalar<T>(o, at);
  }
  /// A scalar where `Scope` says: local (a variable), shared_dyn, shared_static or global (one element of workspace for each CTA).
  template <element T, scope Scope>
  constexpr auto alloc_scalar(site at = {}) {
    static_assert(detail::included<detail::buffer_header<T>>, "kiln: k.alloc_scalar is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<T>>) return make_scalar<T, Scope>(at);
  }
  /// Gives a pointer parameter a shape and strides: `auto A = k.match_buffer(a, {m, n});`, then `A(i, j)`, `A.region(...)`,
  /// `A.vload<4>(i, j)`. Row-major unless `.strides` says otherwise. Errors: R-LY01, R-BD08. (dsl/buffer.hpp)
  template <class P, std::size_t N>
  constexpr auto match_buffer(P const& pointer, detail::any_value const (&extents)[N], match_buffer_options o = {}, site at = {}) {
    static_assert(detail::included<detail::buffer_header<P>>, "kiln: k.match_buffer is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<P>>) return make_matched(pointer, extents, o, at);
  }
  /// A mutable cell that starts as `x`: a value, a pointer or a token.
  template <class X>
  constexpr auto var(X const& x, site at = {}) {
    if constexpr (literal<X>) {
      return var(let(x, at), at);
    } else {
      auto v = detail::read(x, at);
      using V = decltype(v);
      node const n = r_->nodes[v.node_];
      return kiln::var<V>{r_, r_->push(op::var, {n.type, node_kind::cell, n.shape}, {v.node_}, {}, at)};
    }
  }

  // -- control -----------------------------------------------------------------------------------------------------------

  /// `for (auto i : k.range(lo, hi, step))`: the body is recorded once. hi is exclusive, step may be negative, a range
  /// with nothing in it runs zero times. Bounds: C++ integers or integer scalars; the index has their promoted type (i32
  /// for C++ integers). Errors: K-05 the loop is left early; K-06 a constant step of 0.
  template <class A, class B, class C = int>
  constexpr auto range(A const& lo, B const& hi, C const& step = 1, site at = {}) {
    static_assert(detail::is_integer_scalar<A>() && detail::is_integer_scalar<B>() && detail::is_integer_scalar<C>(),
                  "kiln[T-07] the bounds of a range must be integer scalars; reduce or cast<i32> them");
    using T = detail::index_t<A, B, C>;
    if constexpr (literal<C>)
      if (step == 0) r_->fail() << "kiln[K-06] a range with step 0 never ends; give a step of 1 or more, or -1 or less";
    int a = detail::conform<T, detail::extents{}>(*r_, lo, at).node_;
    int b = detail::conform<T, detail::extents{}>(*r_, hi, at).node_;
    int c = detail::conform<T, detail::extents{}>(*r_, step, at).node_;
    return detail::loop<T>(r_, a, b, c, at);
  }
  /// 0, 1, .. hi - 1.
  template <class B>
  constexpr auto range(B const& hi, site at = {}) {
    return range(0, hi, 1, at);
  }
  /// `for (int i : k.unrolled(4))`: plain C++ integers; the body is recorded once per integer.
  constexpr detail::counting unrolled(int n) { return detail::counting(n); }

  /// Runs `then` where the CTA-uniform condition holds, `otherwise` (if given) where it does not. Values leave a branch
  /// through vars only.
  template <tile_like C, class Then>
  constexpr auto when(C const& condition, Then&& then, site at = {}) {
    static_assert(std::same_as<detail::read_t<C>, val<bool>>, "kiln[T-03] when needs a b1 scalar; compare, or reduce<any>(...) a tile");
    int begin = begin_when(condition, at);
    then();
    end_when(begin, -1, at);
  }
  template <tile_like C, class Then, class Else>
    requires std::invocable<Else&>
  constexpr auto when(C const& condition, Then&& then, Else&& otherwise, site at = {}) {
    static_assert(std::same_as<detail::read_t<C>, val<bool>>, "kiln[T-03] when needs a b1 scalar; compare, or reduce<any>(...) a tile");
    int begin = begin_when(condition, at);
    then();
    int middle = r_->push(op::if_else, {}, {}, {begin}, at);
    otherwise();
    end_when(begin, middle, at);
  }
  template <literal C, class... Branch>
  constexpr void when(C, Branch&&...) {
    static_assert(detail::never<C>, "kiln[T-03] when needs a recorded b1 scalar; a condition that C++ knows is an `if constexpr`");
  }
  /// Repeats `body` while `condition()`, evaluated before each pass, is true.
  template <class Condition, class Body>
  constexpr auto loop_while(Condition&& condition, Body&& body, site at = {}) {
    int begin = r_->push(op::while_begin, {}, {}, {-1, -1}, at);
    r_->open(begin);
    auto c = detail::read(condition(), at);
    static_assert(std::same_as<decltype(c), val<bool>>, "kiln[T-03] the condition of loop_while must return a b1 scalar; compare, or reduce<any>(...)");
    r_->attribute(begin, 0) = r_->push(op::while_test, {}, {c.node_}, {begin}, at);
    body();
    int end = r_->push(op::while_end, {}, {}, {begin}, at);
    r_->close();
    r_->attribute(begin, 1) = end;
  }

  // -- which tile of the output this CTA makes -----------------------------------------------------------------------------

  /// Start of this CTA's tile in an output of the given runtime shape, from program_id(0): `auto [m, n] =
  /// k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});`. Tiles are numbered along rows of `group` tile rows.
  template <int BM, int BN>
  constexpr detail::tile_coordinates<val<i64>> program_tile(runtime_shape<2> const& output, detail::extent_list<BM, BN>, program_tile_options o = {}, site at = {}) {
    auto t = tiling<BM, BN>(output, o, at);
    return t.locate(program_id(0, at));
  }
  /// The tiles of an output that this CTA makes in a persistent kernel: tile numbers program_id(0), + num_programs(0), ...
  /// `for (auto tile : k.tiles(c.shape(), tile_size<BM, BN>, {.group = 8}))` with `tile.m`, `tile.n`.
  template <int BM, int BN>
  constexpr auto tiles(runtime_shape<2> const& output, detail::extent_list<BM, BN>, program_tile_options o = {}, site at = {}) {
    return tiling<BM, BN>(output, o, at);
  }

  // -- local memory --------------------------------------------------------------------------------------------------------

  /// `num` buffers of extents `D...` in local memory; `b[i]` is one. Contents are undefined until written. Buffers start
  /// at multiples of `.align` bytes. Errors: R-BD08 align not a power of two; num < 1; R-CP01 more than the target has.
  template <element T, int... D>
  constexpr auto local_alloc(int num = 1, local_alloc_options o = {}, site at = {}) {
    static_assert(sizeof...(D) >= 1 && sizeof...(D) <= 5, "kiln[T-02] a local buffer has 1 to 5 axes");
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    if (num < 1) r_->fail() << "kiln[T-02] local_alloc of " << num << " buffers; at least 1 is needed";
    return bufs<T, D...>{r_, allocate<T, D...>({.where = o.storage, .slots = num, .alignment = o.align}, o.name, at, o.reuse, &o.layout, o.backing.node)};
  }
  /// Storage for several allocations that take turns in it; they name it in `.reuse`. It cannot be indexed, and is as large as
  /// they need, or `.buffer_size_bytes`. Errors: R-AL01, R-AL02; R-AL04 too small.
  constexpr alias_spec storage_alias_spec(storage_alias_options o = {}, site at = {}) {
    char const* name = o.name ? o.name : "storage_alias_spec";
    if (o.storage != storage::smem && o.storage != storage::tmem)
      r_->fail() << "kiln[R-AL01] " << name << ": storage smem_cluster cannot be aliased; use smem or tmem";
    if (o.buffer_size_bytes < 0 || o.buffer_size_bytes > 0x7fffffff)
      r_->fail() << "kiln[R-AL02] " << name << ": buffer_size_bytes is " << o.buffer_size_bytes << "; give a positive size or 0 for computed";
    bool const tensor = o.storage == storage::tmem;
    std::int32_t const one = r_->intern(tensor ? shape{2, {detail::tensor_lanes, 1}} : shape{1, {1}}); // grows with what is allocated
    int const node = allocate({.where = o.storage, .role = buffer_role::spec}, {tensor ? dtype::i32 : dtype::u8, node_kind::buffers, one}, o.name, at, {});
    detail::alias_state& s = r_->specs.add();
    s.buffer = r_->buffers.size() - 1;
    s.given = o.buffer_size_bytes;
    s.pun = o.allow_pun;
    return {r_, node, r_->specs.size() - 1};
  }
  /// One buffer, used without an index.
  template <element T, int... D>
  constexpr auto alloc_shared(alloc_shared_options o = {}, site at = {}) {
    static_assert(sizeof...(D) >= 1 && sizeof...(D) <= 5, "kiln[T-02] a local buffer has 1 to 5 axes");
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    if (o.scope != scope::shared_dyn && o.scope != scope::shared_static)
      r_->fail() << "kiln[T-15] alloc_shared takes scope::shared_dyn or scope::shared_static";
    int b = allocate<T, D...>({.placement = o.scope, .has_slots = false, .slots = 1, .alignment = o.align}, o.name, at, {}, &o.layout, o.backing.node);
    int zero = r_->push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
    return view<T, D...>{r_, r_->push(op::view_index, {dtype_of<T>, node_kind::view, r_->nodes[b].shape}, {b, zero}, {}, at)};
  }

  /// A buffer where `Scope` says: shared_static and shared_dyn are views, local is `alloc_local`, global workspace of the grid. With
  /// shared_dyn it is *the* dynamic shared memory of the kernel: everything else in it must be declared over it, or come from a
  /// pool with `.backing`. Errors: R-CP06 a second one, or shared memory beside it.
  template <element T, kiln::scope Scope, int... D>
  constexpr auto alloc_buffer(alloc_buffer_options o = {}, site at = {}) {
    if constexpr (Scope == scope::local) {
      return alloc_local<T, D...>({.name = o.name}, at);
    } else if constexpr (Scope == scope::global) {
      return alloc_global<T, D...>({}, at);
    } else {
      auto v = alloc_shared<T, D...>({.scope = Scope, .align = o.align, .layout = o.layout, .name = o.name}, at);
      if (Scope == scope::shared_dyn) claim_arena(r_->view().buffer_of(v.node_), at);
      return v;
    }
  }
  /// Shared memory from a cursor: `pool.alloc<T, D...>()`, `pool.move_base_to(n)`, and `pool.commit()` at the end (dsl/pool.hpp).
  /// Errors: R-CP06 a second one; R-PA12 never committed.
  constexpr smem_pool_handle smem_pool(smem_pool_options o = {}, site at = {});
  /// Another view of bytes that exist: `D...` elements of T from `.data` on, row-major. Allocates nothing; reads and writes through
  /// both are meant. With `.scope = storage::tmem` columns of tensor memory from `.allocated_addr` on. Errors: R-BD07 leaves its
  /// storage, R-BD08 not aligned, or `.data` at a runtime place that may be no multiple of the size.
  template <element T, int... D>
  constexpr auto decl_buffer(decl_buffer_options o, site at = {});
  /// The same bytes as another element type, and shape. Not a conversion. Of a slot `b[i]` with any index, or of a part at a
  /// constant place. Errors: R-BD08 another number of bytes.
  template <element U, int... E, class T, int... D>
  constexpr auto local_reinterpret(view<T, D...> const& v, local_reinterpret_options o = {}, site at = {});
  template <element, int..., class B>
    requires(std::same_as<B, mbars> || std::same_as<B, mbar>)
  constexpr auto local_reinterpret(B const&) {
    static_assert(!sizeof(B), KILN_OPAQUE_BARRIERS);
  }
  /// Tensor memory from a cursor of columns: `tp.alloc<f32, 128, 64>()`, `tp.commit()` before the first use and `tp.dealloc()` after the
  /// last. `pool` gives the 4 bytes that hold its address. Simulated on the host; targets without tensor memory refuse it.
  /// Errors: R-CP04, R-PA16, R-PA17. (dsl/tensor_pool.hpp)
  template <class Pool>
  constexpr auto tmem_pool(Pool& pool, tmem_pool_options o = {}, site at = {}) {
    static_assert(detail::included<detail::tensor_header<Pool>>, "kiln: k.tmem_pool is in a header of its own; #include <kiln/dsl/tensor_pool.hpp>");
    if constexpr (detail::included<detail::tensor_header<Pool>>) return make_tensor_pool(pool, o, at);
  }

  // -- layouts (dsl/layout_tools.hpp) -----------------------------------------------------------------------------------------

  /// The same values in this register layout: nothing later changes it. With `.pin = false` a wish. Errors: R-LY05, R-LY07.
  template <tile_like X, class L>
  constexpr auto require_layout(X const& x, L const& layout, require_layout_options o = {}, site at = {}) {
    static_assert(detail::included<detail::layout_header<X>>, "kiln: k.require_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>");
    if constexpr (detail::included<detail::layout_header<X>>) return record_requirement(x, layout, o, at);
  }
  /// Ends a requirement: what follows may lie anywhere. Errors: R-LY03 `x` has none.
  template <tile_like X>
  constexpr auto release_layout(X const& x, site at = {}) {
    static_assert(detail::included<detail::layout_header<X>>, "kiln: k.release_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>");
    if constexpr (detail::included<detail::layout_header<X>>) return record_release(x, at);
  }
  /// Two tiles, a tile and a layout, two views, or a view and a layout, lie in the same way once all layouts are chosen.
  /// Errors: R-LY04, with both.
  template <class X, class Y>
  constexpr auto assert_same_layout(X const& x, Y const& y, site at = {}) {
    static_assert(detail::included<detail::layout_header<X>>, "kiln: k.assert_same_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>");
    if constexpr (detail::included<detail::layout_header<X>>) return record_equality(x, y, at);
  }
  /// Writes the layout of a tile or view, as one line of shape:stride, into the notes of what is compiled. No code.
  template <class X>
  constexpr auto dump_layout(X const& x, char const* name = "", site at = {}) {
    static_assert(detail::included<detail::layout_header<X>>, "kiln: k.dump_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>");
    if constexpr (detail::included<detail::layout_header<X>>) return record_dump(x, name, at);
  }
  /// The same as `.layout` where it was allocated; before its first use. Errors: R-LY03 late or twice.
  template <class X>
  constexpr auto annotate_layout(X const& buffer, buffer_layout const& layout, site at = {}) {
    static_assert(detail::included<detail::layout_header<X>>, "kiln: k.annotate_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>");
    if constexpr (detail::included<detail::layout_header<X>>) return annotate(buffer, layout, at);
  }

  /// Checks what only the end of a kernel shows.
  constexpr void finish();

  /// Workspace in global memory that the launch brings: a pointer to its first element, row by row. It is kept per kernel and
  /// stream, so that what one launch leaves there is no promise to the next.
  template <element T, int... D>
  constexpr auto alloc_global(alloc_global_options o = {}, site at = {});

  /// `b[i]`: a slot, a view without its outermost axis, a barrier.
  template <class B>
  constexpr auto local_view(B const& b, detail::located_index i) {
    return b[i];
  }
  /// Axes permuted: extent d of the result is extent P[d]. Without P the last two are exchanged. No data moves.
  template <int... P, class T, int... D>
  constexpr auto local_trans(view<T, D...> const& v, site at = {}) {
    constexpr detail::extents from = detail::extents_of<D...>;
    static_assert(from.rank >= 2, "kiln[R-BD09] local_trans needs at least two axes");
    constexpr detail::extents p = detail::permutation_or_default<P...>(from.rank);
    constexpr bool valid = p.rank == from.rank && detail::is_permutation(p);
    if (!valid) refuse_trans(v.node_, p, from.rank, at);
    using R = typename detail::view_from<T, valid ? detail::permuted(from, p) : from>::type;
    return R{r_, r_->push(op::view_trans, detail::type_of<R>(*r_, node_kind::view), {v.node_},
                          {p.extent[0], p.extent[1], p.extent[2], p.extent[3], p.extent[4], p.extent[5]}, at)};
  }
  /// A box of a view: `k.local_slice<32, 64>(v, {32, 0})`. Along every narrowed axis the extent is a power of two that
  /// divides the source's, and the offset a multiple of it; along the others the offset is 0. A runtime offset is a
  /// promise of the same. Errors: R-BD02, R-BD03.
  template <int... E, class T, int... D>
  constexpr auto local_slice(view<T, D...> const& v, detail::coordinates<sizeof...(D)> offset, site at = {}) {
    static_assert(sizeof...(E) == sizeof...(D), "kiln[R-BD02] local_slice needs one extent per axis of the view");
    static_assert(((E >= 1) && ...), "kiln[R-BD02] a slice's extents are at least 1");
    if (!((E == D || (E < D && (E & (E - 1)) == 0 && D % E == 0)) && ...)) refuse_slice(v.node_, detail::extents_of<E...>, detail::extents_of<D...>, at);
    std::int32_t offsets[sizeof...(D)]{};
    for (int i = 0; i < static_cast<int>(sizeof...(D)); ++i)
      offsets[i] = offset.at[i].resolve_index(*r_, dtype::i32, "the offset of a slice", at);
    int n = r_->begin_node(op::view_slice, detail::type_of<view<T, E...>>(*r_, node_kind::view), at);
    r_->add_operand(v.node_);
    for (std::int32_t o : offsets) r_->add_operand(o);
    return view<T, E...>{r_, n};
  }
  /// `Size` columns of a view, from a constant offset on: what tensor memory can be cut into. Errors: R-BD02, R-BD04.
  template <int Size, class T, int... D>
  constexpr auto subslice(view<T, D...> const& v, int offset, site at = {}) {
    static_assert(sizeof...(D) >= 1 && Size >= 1, "kiln[R-BD02] subslice needs a size of at least 1");
    constexpr detail::extents e = [] {
      detail::extents x = detail::extents_of<D...>;
      x.extent[x.rank - 1] = Size;
      return x;
    }();
    constexpr int all = detail::extents_of<D...>.extent[sizeof...(D) - 1];
    if (Size > all) about("kiln[R-BD02]", "subslice of ", v.node_, at) << Size << " columns of " << all;
    using R = typename detail::view_from<T, e>::type;
    int const zero = r_->push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
    int const start = r_->push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {offset}, at);
    int n = r_->begin_node(op::view_slice, detail::type_of<R>(*r_, node_kind::view), at);
    r_->add_operand(v.node_);
    for (std::size_t i = 0; i < sizeof...(D); ++i) r_->add_operand(i + 1 < sizeof...(D) ? zero : start);
    return R{r_, n};
  }
  /// The same elements in row-major order as another shape.
  template <int... E, class T, int... D>
  constexpr auto local_reshape(view<T, D...> const& v, site at = {}) {
    constexpr std::int64_t before = detail::elements_of<D...>, after = detail::elements_of<E...>;
    if (before != after) about("kiln[R-BD08]", "local_reshape of ", v.node_, at) << before << " elements as " << after;
    return view<T, E...>{r_, r_->push(op::view_reshape, detail::type_of<view<T, E...>>(*r_, node_kind::view), {v.node_}, {}, at)};
  }

  /// Reads a view into registers. Orders itself after this CTA's earlier stores; never after asynchronous loads: those
  /// need `async_load_wait_group`.
  template <class T, int... D>
  constexpr tile<T, D...> local_load(view<T, D...> const& v, local_load_options o = {}, site at = {}) {
    if (o.remat_group < -1 || (o.remat && o.remat_group >= 0))
      r_->fail() << "kiln[T-15] local_load with .remat_group = " << o.remat_group << (o.remat ? " beside .remat; one of the two" : "; -1: none, or 0 and more");
    int const n = r_->push(op::local_load, detail::type_of<tile<T, D...>>(*r_), {v.node_, o.wait.node_}, {o.relaxed}, at);
    return {r_, o.layout.apply(*r_, n, at)};
  }
  /// Writes registers to a view of the same shape and element type.
  template <class T, int... D, tile_like X>
  constexpr auto local_store(view<T, D...> const& v, X const& x, site at = {}) {
    static_assert(std::same_as<T, detail::element_of<X>>, "kiln[T-04] local_store: the value's element type differs from the view's; cast<T>(...) it");
    static_assert(detail::dims_of<X>() == detail::extents_of<D...>, "kiln[T-05] local_store: the value's shape differs from the view's");
    r_->push(op::local_store, {}, {v.node_, detail::read(x, at).node_}, {}, at);
  }
  template <class T, int... D>
  constexpr auto local_load(bufs<T, D...> const& b) {
    static_assert(detail::never<T>, "kiln[T-17] local_load takes one slot, b[i]; b is all of them");
    return tile<T, D...>{b.recorder_, b.node_};
  }
  template <class T, int... D, class X>
  constexpr void local_store(bufs<T, D...> const&, X const&) {
    static_assert(detail::never<T>, "kiln[T-17] local_store takes one slot, b[i]; b is all of them");
  }
  /// t[c] = v[c with c[axis] := idx[c]].
  template <class T, int... D, tile_like I>
  constexpr auto local_gather(view<T, D...> const& v, I const& idx, local_gather_options o = {}, site at = {}) {
    static_assert(is_int(dtype_of<detail::element_of<I>>), "kiln[T-07] local_gather needs integer indices; cast<i32>(...) them");
    static_assert(detail::dims_of<I>().rank == sizeof...(D), "kiln[T-05] local_gather needs indices of the view's rank");
    using R = typename detail::tile_from<T, detail::dims_of<I>()>::type;
    check_indexed_axis("local_gather", o.axis, detail::extents_of<D...>, detail::dims_of<I>());
    int x = detail::read(idx, at).node_;
    return R{r_, r_->push(op::local_gather, detail::type_of<R>(*r_), {v.node_, x, o.wait.node_}, {o.axis}, at)};
  }
  /// v[c with c[axis] := idx[c]] = x[c].
  template <class T, int... D, tile_like X, tile_like I>
  constexpr auto local_scatter(view<T, D...> const& v, X const& x, I const& idx, local_scatter_options o = {}, site at = {}) {
    static_assert(std::same_as<T, detail::element_of<X>>, "kiln[T-04] local_scatter: the value's element type differs from the view's; cast<T>(...) it");
    static_assert(is_int(dtype_of<detail::element_of<I>>), "kiln[T-07] local_scatter needs integer indices; cast<i32>(...) them");
    static_assert(detail::dims_of<I>().rank == sizeof...(D), "kiln[T-05] local_scatter needs indices of the view's rank");
    static_assert(detail::dims_of<I>() == detail::dims_of<X>(), "kiln[T-05] local_scatter needs indices and values of one shape");
    check_indexed_axis("local_scatter", o.axis, detail::extents_of<D...>, detail::dims_of<I>());
    int a = detail::read(x, at).node_, b = detail::read(idx, at).node_;
    r_->push(op::local_scatter, {}, {v.node_, a, b}, {o.axis, o.unique}, at);
  }

  // -- asynchronous copies ---------------------------------------------------------------------------------------------------

  template <address_like A, class T, int... D>
  constexpr void async_load(A const&, bufs<T, D...> const&, async_load_options = {}) {
    static_assert(detail::never<T>, "kiln[T-17] async_load takes one slot, b[i]; b is all of them");
  }
  /// Starts a copy from global memory into a view. Nothing of it may be read before the group it is committed to has been
  /// waited for. Masked-off elements become `.other`; without `.other` they are unspecified.
  /// Errors: T-04, T-05, T-13; R-HZ01, 02, 03, 06, 12.
  template <address_like A, class T, int... D>
  constexpr auto async_load(A const& source, view<T, D...> const& destination, async_load_options o = {}, site at = {}) {
    using P = decltype(detail::read_address(source, at));
    static_assert(std::same_as<typename P::value_type, T>, "kiln[T-04] async_load: source and view have different element types");
    static_assert(P::dims == detail::extents_of<D...>, "kiln[T-05] async_load: source and view have different shapes");
    auto p = detail::read_address(source, at);
    auto x = detail::resolve_access(*r_, p.node_, detail::is_region<A>, o.mask, o.other, at);
    if (o.cache != cache::none && o.cache != cache::ca && o.cache != cache::cg)
      r_->fail() << "kiln[T-15] async_load takes cache::none, cache::ca or cache::cg";
    return token{r_, r_->push(op::async_load, {dtype::b1, node_kind::token, 0}, {p.node_, destination.node_, x.mask, x.other},
                         {static_cast<int>(o.cache), static_cast<int>(o.evict), o.is_volatile, o.require_async}, at)};
  }
  /// Closes all loads not yet committed into one group. Groups complete in order; an empty one is legal.
  constexpr token async_load_commit_group(detail::token_list loads = {}, site at = {}) {
    return tokens(op::async_commit, loads, {}, at);
  }
  /// Waits until at most the `pending` latest groups, and none of those named, are incomplete.
  constexpr token async_load_wait_group(int pending, detail::token_list groups = {}, site at = {}) {
    if (pending < 0) r_->fail() << "kiln[T-15] async_load_wait_group(" << pending << "): the number of groups that may be pending is 0 or more";
    return tokens(op::async_wait, groups, {pending}, at);
  }
  /// Barrier of the CTA. Synchronous accesses to local memory never need it: kiln inserts their barriers itself.
  constexpr detail::no_task sync(site at = {}) {
    if (r_->task >= 0)
      r_->fail() << "kiln[R-TK07] CTA-wide sync inside " << (r_->task == 0 ? "the default task" : "a task") << " would wait for the other tasks; use k.agent_sync()";
    r_->push(op::sync, {}, {}, {}, at);
    return {};
  }

  // -- matrix product ----------------------------------------------------------------------------------------------------------

  /// a [m,k] x b [k,n] + acc [m,n]. Operands: tiles or local views of f16, bf16, f32, f64 or f8 (acc f32; f64 for f64), or
  /// i8 (acc i32). Products are exact in the accumulator's type up to its rounding; the order of summation is unspecified.
  template <class A, class B, tile_like C>
  constexpr auto dot(A const& a, B const& b, C const& acc, dot_options o = {}, site at = {}) {
    static_assert(dot_types<A, B>(), "kiln[T-04] dot needs two operands of one type: f16, bf16, f32, f64, f8e4m3, f8e5m2 or i8");
    static_assert(dot_shapes<A, B>(), "kiln[T-16] dot needs a of [m,k] and b of [k,n] with one k; trans or reshape an operand");
    if constexpr (dot_types<A, B>() && dot_shapes<A, B>()) {
      constexpr bool rows = detail::dims_of<C>() == product_extents<A, B>();
      constexpr bool type = std::same_as<detail::element_of<C>, dot_accumulator<typename detail::read_t<A>::element_type>>;
      static_assert(rows, "kiln[T-16] dot needs an accumulator of a's rows by b's columns");
      static_assert(type, "kiln[T-04] the accumulator of dot must be f32 (f64 for f64 operands, i32 for i8); cast<f32>(...) it");
      if constexpr (rows && type) return record_dot(a, b, detail::read(acc, at).node_, detail::element_of<C>{}, o, at);
    }
  }
  template <class A, class B>
  constexpr auto dot(A const& a, B const& b, dot_options o = {}, site at = {}) {
    static_assert(dot_types<A, B>(), "kiln[T-04] dot needs two operands of one type: f16, bf16, f32, f64, f8e4m3, f8e5m2 or i8");
    static_assert(dot_shapes<A, B>(), "kiln[T-16] dot needs a of [m,k] and b of [k,n] with one k; trans or reshape an operand");
    if constexpr (dot_types<A, B>() && dot_shapes<A, B>())
      return record_dot(a, b, -1, dot_accumulator<typename detail::read_t<A>::element_type>{}, o, at);
  }

  // -- checks ------------------------------------------------------------------------------------------------------------------

  /// Stops the launch with `text` and this line when an element of `condition` is false; the error is thrown where the
  /// stream is waited for.
  template <tile_like C>
  constexpr auto device_assert(C const& condition, char const* text = "", site at = {}) {
    static_assert(std::same_as<detail::element_of<C>, bool>, "kiln[T-03] device_assert needs a b1 condition; compare first");
    r_->push(op::device_assert, {}, {detail::read(condition, at).node_}, {r_->add_string(text)}, at);
  }
  /// Prints `text` and the values, one line per CTA.
  template <class... X>
    requires(tile_like<X> && ...)
  constexpr void device_print(char const* text, X const&... x) {
    std::int32_t nodes[sizeof...(X) + 1]{detail::read(x, {}).node_...};
    int n = r_->begin_node(op::device_print, {}, detail::last_site(*r_));
    for (std::size_t i = 0; i < sizeof...(X); ++i) r_->add_operand(nodes[i]);
    r_->add_attribute(r_->add_string(text));
    (void)n;
  }
  /// A promise that `condition` holds: analyses may use it. The checker verifies it.
  template <tile_like C>
  constexpr auto assume(C const& condition, site at = {}) {
    static_assert(std::same_as<detail::read_t<C>, val<bool>>, "kiln[T-03] assume needs a b1 scalar; reduce<all>(...) a tile");
    r_->push(op::assume, {}, {detail::read(condition, at).node_}, {}, at);
  }

  /// Asks for memory that will be used soon: `k.prefetch(rows)`. Values never depend on it, and targets without such an
  /// instruction leave it out. It pays where atomics or scattered reads go to memory that no cache holds.
  template <address_like A>
  constexpr void prefetch(A const& address, prefetch_options o = {}, site at = {}) {
    auto p = detail::read_address(address, at);
    int mask = o.mask.resolve(*r_, dtype::b1, r_->nodes[p.node_].shape, ".mask", at);
    r_->push(op::prefetch, {}, {p.node_, mask}, {static_cast<int>(o.level)}, at);
  }

private:
  /// A broken rule of one view: "kiln[RULE] WHAT a: " so far.
  constexpr detail::message about(char const* rule, char const* what, int view, site at) {
    detail::message m = r_->fail(at);
    m << rule << " " << what;
    detail::put_buffer_name(m, *r_, r_->view().buffer_of(view));
    m << ": ";
    return m;
  }
  constexpr void refuse_trans(int view, detail::extents const& p, int rank, site at) {
    detail::message m = about("kiln[R-BD09]", "local_trans of ", view, at);
    for (int i = 0; i < p.rank; ++i) m << (i == 0 ? "{" : ",") << p.extent[i];
    m << "} is not a permutation of 0.." << rank - 1;
  }
  constexpr void refuse_slice(int view, detail::extents const& e, detail::extents const& d, site at) {
    for (int i = 0; i < e.rank; ++i) {
      int const n = e.extent[i], of = d.extent[i];
      if (n > of)
        return void(about("kiln[R-BD02]", "a slice of ", view, at) << n << " elements of " << of << " (axis " << i << ")");
      if (n != of && ((n & (n - 1)) != 0 || of % n != 0))
        return void(about("kiln[R-BD03]", "a slice of ", view, at) << "extent " << n << " of " << of << " (axis " << i << "); a narrowed axis needs a power of two that divides it");
    }
  }
  constexpr void claim_arena(int buffer, site at) {
    if (arena_ >= 0)
      r_->fail(at) << "kiln[R-CP06] second dynamic arena at line " << at.line << "; one exists since line " << r_->nodes[r_->buffers[arena_].node].line << ", declare a view of it";
    arena_ = buffer;
  }
  // Defined by dsl/buffer.hpp, dsl/tensor_pool.hpp and dsl/layout_tools.hpp.
  template <element T, int... D>
  constexpr auto make_tensor_window(decl_buffer_options const& o, site at);
  template <element T, int... D>
  constexpr auto make_local(char const* name, site at);
  template <element T>
  constexpr auto make_shared_scalar(alloc_shared_options const& o, site at);
  template <element T, scope Scope>
  constexpr auto make_scalar(site at);
  template <class P, std::size_t N>
  constexpr auto make_matched(P const& pointer, detail::any_value const (&extents)[N], match_buffer_options const& o, site at);
  template <class Pool>
  constexpr auto make_tensor_pool(Pool& pool, tmem_pool_options const& o, site at);
  template <class X, class L>
  constexpr auto record_requirement(X const& x, L const& layout, require_layout_options const& o, site at);
  template <class X>
  constexpr auto record_release(X const& x, site at);
  template <class X, class Y>
  constexpr auto record_equality(X const& x, Y const& y, site at);
  template <class X>
  constexpr auto record_dump(X const& x, char const* name, site at);
  template <class X>
  constexpr auto annotate(X const& buffer, buffer_layout const& layout, site at);

  template <element T, int... D>
  constexpr kiln::var<tile<T, D...>> unset(site at, detail::register_pin const& pin = {}) {
    result_type t = detail::type_of<tile<T, D...>>(*r_);
    int const nothing = pin.apply(*r_, r_->push(op::unset, t, {}, {}, at), at);
    t.kind = node_kind::cell;
    return {r_, r_->push(op::var, t, {nothing}, {}, at)};
  }
  template <class T>
  constexpr val<T> grid_query(op code, int axis, site at) {
    if (axis < 0 || axis > 2) r_->fail() << "kiln[R-BD01] grid axis " << axis << ", valid 0..2";
    return {r_, r_->push(code, {dtype_of<T>, node_kind::value, 0}, {}, {axis}, at)};
  }
  template <class C>
  constexpr int begin_when(C const& condition, site at) {
    int begin = r_->push(op::if_begin, {}, {detail::read(condition, at).node_}, {-1, -1}, at);
    r_->open(begin);
    return begin;
  }
  constexpr void end_when(int begin, int middle, site at) {
    int end = r_->push(op::if_end, {}, {}, {begin}, at);
    r_->close();
    r_->attribute(begin, 0) = middle;
    r_->attribute(begin, 1) = end;
  }
  template <class T, int... D>
  constexpr int allocate(buffer_info b, char const* name, site at, detail::reuse_target const& reuse = {}, buffer_layout const* layout = nullptr, int backing = -1) {
    return allocate(b, detail::type_of<tile<T, D...>>(*r_, node_kind::buffers), name, at, reuse, layout, backing);
  }
  constexpr int allocate(buffer_info b, result_type type, char const* name, site at, detail::reuse_target const& reuse, buffer_layout const* layout = nullptr, int backing = -1) {
    if (b.alignment < 0 || (b.alignment & (b.alignment - 1)) != 0)
      r_->fail() << "kiln[R-BD08] " << (name ? name : "a local buffer") << ": .align = " << b.alignment << " is not a power of two";
    b.type = type.type;
    b.shape = type.shape;
    b.name = name ? r_->add_string(name) : -1;
    b.node = r_->begin_node(op::alloc, type, at);
    if (reuse.node >= 0) {
      int storage = reuse.node; // what lies over a buffer that lies over another has the first one's storage
      if (reuse.state < 0 && r_->nodes[storage].operand_count > 0) storage = r_->operand(storage, 0);
      r_->add_operand(storage);
    } else if (backing >= 0 && arena_ >= 0) {
      r_->add_operand(r_->buffers[arena_].node);
      b.role = buffer_role::pooled;
    }
    r_->add_attribute(r_->buffers.size());
    r_->buffers.add() = b;
    if (layout) {
      detail::lay_out(*r_, r_->buffers.size() - 1, *layout, at);
      b.alignment = r_->buffers.back().alignment;
    }
    if (b.alignment > 1024 && b.placement == scope::shared_dyn) {
      auto m = r_->fail(at);
      m << "kiln[R-AL15] ";
      detail::put_buffer_name(m, *r_, r_->buffers.size() - 1);
      m << " wants " << b.alignment << "-byte alignment, the arena guarantees 1024";
    }
    if (backing >= 0) place_in_arena(backing, at);
    if (b.where != storage::smem && b.role != buffer_role::spec) check_tensor_buffer(at);
    if (reuse.node >= 0 && r_->error.ok()) detail::share_storage(*r_, r_->buffers.size() - 1, reuse, at);
    return b.node;
  }
  constexpr void place_in_arena(int backing, site at) {
    buffer_info& f = r_->buffers.back();
    if (arena_ < 0 || r_->view().buffer_of(backing) != arena_ || f.where != storage::smem) {
      r_->fail(at) << "kiln[R-CP06] .backing names the arena that alloc_buffer<T, scope::shared_dyn, ...> gave, for shared memory";
      return;
    }
    buffer_info& arena = r_->buffers[arena_];
    std::int64_t const align = detail::buffer_alignment(f), has = detail::slot_bytes(r_->view(), arena);
    f.place.offset = static_cast<std::int32_t>(detail::round_up(arena_used_, align));
    arena_used_ = detail::slots_end(r_->view(), f);
    if (align > arena.alignment) arena.alignment = static_cast<std::int32_t>(align);
    if (arena_used_ <= has) return;
    auto m = r_->fail(at);
    m << "kiln[R-BD07] ";
    detail::put_buffer_name(m, *r_, r_->buffers.size() - 1);
    m << " ends at byte " << arena_used_ << " of its arena, which has " << has;
  }
  constexpr void check_tensor_buffer(site at) {
    buffer_info& b = r_->buffers.back();
    shape const& s = r_->shapes[b.shape];
    bool const factors = b.where == storage::tmem && s.rank >= 2 && (b.type == dtype::i8 || b.type == dtype::u8); // of block-scaled operands
    if (factors && s.extent[s.rank - 2] % 32 == 0) {
      int const rows = s.extent[s.rank - 2], columns = s.extent[s.rank - 1];
      b.layout = detail::scale_layout(s.elements() / rows / columns, rows, columns);
      if (b.slots == 1) return;
    } else if (b.where == storage::tmem && !factors && detail::tensor_columns(b.type, s) > 0) {
      return;
    }
    auto m = r_->fail(at);
    m << "kiln[R-AL19] ";
    detail::put_buffer_name(m, *r_, r_->buffers.size() - 1);
    if (b.where == storage::smem_cluster)
      m << ": storage smem_cluster is the shared memory of another CTA and cannot be allocated; use smem or tmem";
    else if (s.rank < 2)
      m << ": a buffer in tensor memory has rows and columns; give two extents or more";
    else if (!b.layout.plain())
      m << ": " << b.slots << " buffers of 8-bit scale factors; they cannot be multi-buffered, give one a leading extent";
    else
      m << ": " << s.extent[s.rank - 2] << " rows in tensor memory; rows must be " << (factors ? "a multiple of 32 for 8-bit scale factors" : "64 or 128 (8-bit scale factors: a multiple of 32)");
  }
  constexpr void check_indexed_axis(char const* what, int axis, detail::extents const& v, detail::extents const& i) {
    if (axis < 0 || axis >= v.rank) {
      r_->fail() << "kiln[T-11] " << what << " along axis " << axis << " of " << v.rank;
      return;
    }
    for (int d = 0; d < v.rank; ++d)
      if (d != axis && i.extent[d] > v.extent[d])
        r_->fail() << "kiln[T-05] " << what << ": extent " << i.extent[d] << " of the indices exceeds " << v.extent[d] << " of the view on axis " << d;
  }
  constexpr token tokens(op code, detail::token_list const& list, std::initializer_list<std::int64_t> attributes, site at) {
    int n = r_->begin_node(code, {dtype::b1, node_kind::token, 0}, at);
    if (list.count > list.most) r_->fail(at) << "kiln[K-13] " << list.count << " tokens in one list; there is room for " << list.most << ": without a list, all are meant";
    for (int i = 0; i < list.count && i < list.most; ++i) r_->add_operand(list.nodes[i]);
    for (std::int64_t a : attributes) r_->add_attribute(a);
    return {r_, n};
  }
  template <class X>
  static constexpr auto operand_of(X const& x, site at) {
    if constexpr (detail::is_view<X>)
      return x;
    else
      return detail::read(x, at);
  }
  template <class A, class B>
  static constexpr detail::extents product_extents() {
    return {2, {detail::read_t<A>::dims.extent[0], detail::read_t<B>::dims.extent[1]}};
  }
  template <class A, class B>
  static constexpr bool dot_types() {
    using T = typename detail::read_t<A>::element_type;
    return std::same_as<T, typename detail::read_t<B>::element_type> && (is_float(dtype_of<T>) || std::same_as<T, i8>);
  }
  template <class A, class B>
  static constexpr bool dot_shapes() {
    constexpr detail::extents a = detail::read_t<A>::dims, b = detail::read_t<B>::dims;
    return a.rank == 2 && b.rank == 2 && a.extent[1] == b.extent[0];
  }
  template <class T>
  using dot_accumulator = std::conditional_t<std::same_as<T, f64>, f64, std::conditional_t<std::same_as<T, i8>, i32, f32>>;
  template <class A, class B, class Acc>
  constexpr auto record_dot(A const& a, B const& b, int acc, Acc, dot_options o, site at) {
    auto x = operand_of(a, at);
    auto y = operand_of(b, at);
    using X = decltype(x);
    using Y = decltype(y);
    using R = typename detail::tile_from<Acc, product_extents<X, Y>()>::type;
    return R{r_, r_->push(op::dot, detail::type_of<R>(*r_), {x.node_, y.node_, acc}, {o.fast}, at)};
  }

  /// rows x columns of tiles, and the loop over this CTA's share of them. `Index` is a parameter so that only kernels that have
  /// tiles make a compiler instantiate the arithmetic.
  template <int BM, int BN, class Index = i64>
  constexpr detail::tile_loop<i32> tiling(runtime_shape<2> const& output, program_tile_options o, site at) {
    static_assert(BM >= 1 && BN >= 1, "kiln[T-02] extents are at least 1");
    if (o.group < 1) r_->fail() << "kiln[T-15] .group = " << o.group << "; at least 1 is needed";
    tile<Index> m{r_, r_->push(op::extent, {dtype::i64, node_kind::value, 0}, {output.node_}, {0}, at)};
    tile<Index> n{r_, r_->push(op::extent, {dtype::i64, node_kind::value, 0}, {output.node_}, {1}, at)};
    auto rows = cast<i32>(ceil_div(m, BM, at), at);
    auto columns = cast<i32>(ceil_div(n, BN, at), at);
    auto count = detail::binary<op::mul>(rows, columns, at);
    return {r_, program_id(0, at).node_, count.node_, num_programs(0, at).node_, columns.node_, rows.node_, BM, BN, o.group, at};
  }

  static constexpr int most_pools = 4;
  detail::pool_state pools_[most_pools]{};
  int pools_used_ = 0;
  int arena_ = -1; ///< the buffer that claims the kernel's dynamic shared memory
  std::int64_t arena_used_ = 0; ///< bytes of it that went to allocations with .backing
  detail::tensor_pool_state tensor_pool_{};
};

/// Tile number -> start. Worked example, 3 x 4 tiles, group 2: numbers 0 1 2 3.. walk (0,0) (1,0) (0,1) (1,1) (0,2) ..
/// (1,3), then the last row alone: (2,0) (2,1) ..
template <class T>
constexpr detail::tile_coordinates<val<i64>> detail::tile_loop<T>::locate(tile<T> linear) const {
  recorder& r = *recorder_;
  tile<T> columns{&r, columns_}, rows{&r, rows_};
  auto start = [&](tile<T> row, tile<T> column) {
    return tile_coordinates<val<i64>>{binary<op::mul>(cast<i64>(row, at_), bm_, at_), binary<op::mul>(cast<i64>(column, at_), bn_, at_)};
  };
  if (group_ == 1) {
    auto row = binary<op::div>(linear, columns, at_);
    auto column = binary<op::rem>(linear, columns, at_);
    return start(row, column);
  }
  auto in_group = binary<op::mul>(columns, group_, at_);
  auto group = binary<op::div>(linear, in_group, at_);
  auto first = binary<op::mul>(group, group_, at_);
  auto height = kiln::min(binary<op::sub>(rows, first, at_), group_, {}, at_);
  auto within = binary<op::rem>(linear, in_group, at_);
  auto row = binary<op::add>(first, binary<op::rem>(within, height, at_), at_);
  auto column = binary<op::div>(within, height, at_);
  return start(row, column);
}

template <element T, int... D>
constexpr auto context::alloc_global(alloc_global_options o, site at) {
  static_assert(sizeof...(D) >= 1 && ((D >= 1) && ...), "kiln[T-02] alloc_global takes extents of at least 1");
  constexpr std::int64_t elements = (std::int64_t{1} * ... * D);
  param_info p{.kind = node_kind::pointer, .type = dtype_of<T>, .workspace = elements, .per_cta = o.per == per::cta, .zero = o.zero};
  p.node = r_->push(op::param, {dtype_of<T>, node_kind::pointer, 0}, {}, {r_->params.size()}, at);
  r_->params.add() = p;
  ptr<T> const base{r_, p.node};
  if (!p.per_cta) return base;
  auto const cta = program_id<i64>(0, at) + num_programs<i64>(0, at) * (program_id<i64>(1, at) + num_programs<i64>(1, at) * program_id<i64>(2, at));
  return base + cta * elements;
}

} // namespace kiln
