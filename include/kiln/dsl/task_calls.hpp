// The calls of a kernel's context that make its parts meet: memory barriers, named barriers, bulk copies, tasks. A base of `context`.
#pragma once
#include <kiln/dsl/options.hpp>
#include <kiln/graph/cluster.hpp>

namespace kiln {

class task_calls {
public:
  /// `n` memory barriers. A phase of one completes when `.arrive_count` arrivals have come (each `barrier_arrive` of an
  /// agent, and each `barrier_expect_bytes`, is one) and as many bytes as were expected; then the next phase begins. Units:
  /// 8 bytes of shared memory each. Errors: R-CP10 a count below 1 or above 2^20-1; R-BR14 inside a task.
  constexpr mbars alloc_barriers(int n, alloc_barriers_options o = {}, site at = {}) { return make_barriers(n, o.arrive_count, false, o.name, at); }
  /// Barriers at which every thread arrives by itself: an arrival of an agent counts its threads (32 a warp).
  constexpr mbars alloc_warp_barrier(int n, alloc_warp_barrier_options o = {}, site at = {}) {
    if (o.num_warps < 1 || o.num_arrivals < 1 || o.num_warps > 32 || o.num_arrivals > 1024)
      r_->fail() << "kiln[R-CP10] alloc_warp_barrier: " << o.num_warps << " warps and " << o.num_arrivals << " arrivals; valid are 1..32 and 1..1024";
    return make_barriers(n, o.num_warps * 32 * o.num_arrivals, true, o.name, at);
  }
  /// Blocks until the phase of the barrier whose parity is bit 0 of `parity` is complete. A fresh barrier lets parity 1 pass at
  /// once: producers start with 1, consumers with 0, and each flips after a round over its ring (`k.buf_phase`).
  /// Errors: R-BR02, R-BR04.
  template <operand P>
  constexpr auto barrier_wait(mbar const& b, P const& parity, barrier_wait_options o = {}, site at = {}) {
    static_assert(detail::is_integer_scalar<P>(), "kiln[T-07] the parity of barrier_wait must be an integer scalar");
    own_barrier("wait on", b, at);
    int p = -1;
    if constexpr (literal<P>) {
      if (parity != 0 && parity != 1) about("kiln[R-BR04]", b, at) << ": barrier_wait with parity " << static_cast<std::int64_t>(parity) << "; valid are 0 and 1";
      p = detail::scalar_constant<i32>(*r_, static_cast<std::int64_t>(parity), at).node_;
    } else {
      p = cast<i32>(parity, at).node_;
    }
    r_->push(op::barrier_wait, {}, {b.node_, p, predicate(o.pred, at)}, {}, at);
    return detail::no_task{};
  }
  /// `.count` arrivals at a barrier, after everything that this agent did before. Errors: R-BR03, R-CP10.
  constexpr detail::no_task barrier_arrive(mbar const& b, barrier_arrive_options o = {}, site at = {}) {
    if (o.count < 1) about("kiln[R-CP10]", b, at) << ": barrier_arrive with .count = " << o.count << "; at least 1 is needed";
    r_->push(op::barrier_arrive, {}, {o.remote.present() ? remote(b, o.remote, "barrier_arrive", at).node_ : b.node_, predicate(o.pred, at)}, {o.count}, at);
    return {};
  }
  /// One arrival, and `bytes` that asynchronous copies must bring before the phase completes. Errors: R-BR01, R-BR03.
  constexpr detail::no_task barrier_expect_bytes(mbar const& b, int bytes, barrier_expect_options o = {}, site at = {}) {
    if (bytes < 0 || bytes >= 1 << 20) about("kiln[R-CP10]", b, at) << ": barrier_expect_bytes of " << bytes << " B, valid 0.." << (1 << 20) - 1;
    own_barrier("expect bytes on", b, at);
    r_->push(op::barrier_expect_bytes, {}, {b.node_, predicate(o.pred, at)}, {bytes}, at);
    return {};
  }
  /// Hardware barrier `id` (1..15): a generation completes when `threads` threads have arrived, these included; every call
  /// brings all threads of its agent. Errors: R-BR08, R-BR13.
  constexpr detail::no_task named_barrier_wait(int id, int threads, site at = {}) { return named_barrier(op::named_barrier_wait, id, threads, at); }
  /// The same without waiting.
  constexpr detail::no_task named_barrier_arrive(int id, int threads, site at = {}) { return named_barrier(op::named_barrier_arrive, id, threads, at); }
  /// Barrier of this agent's warps. Synchronous accesses never need it.
  constexpr detail::no_task agent_sync(site at = {}) {
    r_->push(op::agent_sync, {}, {}, {}, at);
    return {};
  }
  /// fence::async_shared: earlier writes of this agent to local memory become visible to bulk copies issued later. gpu, sys:
  /// orders global memory for the device, or the host too.
  constexpr detail::no_task fence(kiln::fence kind, site at = {}) {
    r_->push(op::fence, {}, {}, {static_cast<int>(kind)}, at);
    return {};
  }

  /// Copies a contiguous row of global memory into a one-axis view. Its bytes count on `b`: nothing may be read before a
  /// barrier_wait for that phase, whose bytes somebody expects. Units: bytes a multiple of 16, both sides 16-byte aligned.
  /// Errors: T-04, T-05, R-BD06, R-BR01, R-HZ01..03.
  template <pointer_like A, class T, int N>
  constexpr auto async_load_bulk(A const& source, view<T, N> const& destination, mbar const& b, async_load_bulk_options o = {}, site at = {}) {
    using P = decltype(detail::read(source, at));
    static_assert(std::same_as<typename P::value_type, T>, "kiln[T-04] async_load_bulk: source and view have different element types");
    static_assert(P::dims.rank == 0, "kiln[T-05] async_load_bulk takes one pointer: the first element of a contiguous row");
    bulk_bytes("async_load_bulk into ", destination.node_, kiln::bytes_of(dtype_of<T>, N), at);
    own_barrier("count a copy of this CTA on", b, at);
    r_->push(op::async_load_bulk, {}, {detail::read(source, at).node_, destination.node_, b.node_, predicate(o.pred, at)}, {static_cast<int>(o.evict)}, at);
    return detail::no_task{};
  }
  /// Copies a one-axis view to contiguous global memory, as a group of its own. Writes of this agent to the view need
  /// `fence(fence::async_shared)` first; the view is busy until `async_store_wait`. Units as for async_load_bulk.
  /// Errors: T-04, T-05, T-14, R-BD06, R-HZ04, R-HZ05.
  template <pointer_like A, class T, int N>
  constexpr auto async_store_bulk(A const& destination, view<T, N> const& source, site at = {}) {
    using P = decltype(detail::read(destination, at));
    static_assert(!std::is_const_v<typename P::element_type>, "kiln[T-14] async_store_bulk through a pointer to const; declare the parameter ptr<T>");
    static_assert(std::same_as<typename P::value_type, T>, "kiln[T-04] async_store_bulk: destination and view have different element types");
    static_assert(P::dims.rank == 0, "kiln[T-05] async_store_bulk takes one pointer: the first element of a contiguous row");
    bulk_bytes("async_store_bulk from ", source.node_, kiln::bytes_of(dtype_of<T>, N), at);
    r_->push(op::async_store_bulk, {}, {detail::read(destination, at).node_, source.node_}, {}, at);
    return detail::no_task{};
  }
  /// Waits until at most `pending` bulk stores of this agent still read their sources (or, `.read_only = false`, are incomplete).
  constexpr detail::no_task async_store_wait(int pending, async_store_wait_options o = {}, site at = {}) {
    if (pending < 0) r_->fail() << "kiln[T-15] async_store_wait(" << pending << "): the number of stores that may be pending is 0 or more";
    r_->push(op::async_store_wait, {}, {}, {pending, o.read_only}, at);
    return {};
  }
  /// Arrives at `b` when all asynchronous loads that this agent issued so far have landed, once for each of its threads: the
  /// barrier's arrive_count is a number of threads.
  constexpr detail::no_task async_load_arrive(mbar const& b, site at = {}) {
    own_barrier("have loads arrive at", b, at);
    r_->push(op::async_arrive, {}, {b.node_}, {}, at);
    return {};
  }

  /// Runs tasks at the same time, each by warps of its own, and waits for all: exactly one `k.task_default` (the kernel's
  /// own warps) and any number of `k.task`. What was recorded before happens before every task, and every task before what
  /// follows. Errors: R-TK01..05, R-TK06, R-TK09, R-TK10.
  template <class... Tasks>
  constexpr auto async_tasks(Tasks const&... tasks) {
    static_assert((detail::is_task<Tasks> && ...), "kiln[R-TK06] only k.task(...) and k.task_default(...) are allowed inside async_tasks; record the rest before, after or in a task");
    record_tasks(async_tasks_options{}, tasks...);
  }
  template <class... Tasks>
  constexpr auto async_tasks(async_tasks_options o, Tasks const&... tasks) {
    static_assert((detail::is_task<Tasks> && ...), "kiln[R-TK06] only k.task(...) and k.task_default(...) are allowed inside async_tasks; record the rest before, after or in a task");
    record_tasks(o, tasks...);
  }
  /// The task of the kernel's own warps. Vars made before may be changed in it, and keep the change.
  template <class F>
  constexpr detail::task_body<F> task_default(task_default_options o, F const& body, site at = {}) {
    return {body, {0, o.num_regs, o.replicate, -1, o.name}, true, at};
  }
  /// A task of `.num_warps` more warps. Values made before are captured by value; a var made before cannot be changed (R-TK08).
  template <class F>
  constexpr detail::task_body<F> task(task_options o, F const& body, site at = {}) {
    return {body, o, false, at};
  }
  /// Which replica of the task this is, 0 .. replicate-1. Errors: R-TK11 outside a task.
  constexpr val<i32> replica_id(site at = {}) {
    if (r_->task < 0) r_->fail() << "kiln[R-TK11] replica_id() outside a task; call it in the body of k.task or k.task_default";
    return {r_, r_->push(op::replica_id, {dtype::i32, node_kind::value, 0}, {}, {}, at)};
  }
  /// Slot `count % n` and parity `(count / n) & 1` of round `count` in a ring of n: `auto [s, phase] = k.buf_phase(it, S);`
  template <tile_like C>
  constexpr auto buf_phase(C const& count, int n, site at = {}) {
    static_assert(detail::is_integer_scalar<C>(), "kiln[T-07] buf_phase needs an integer scalar");
    if constexpr (detail::is_integer_scalar<C>()) {
      if (n < 1) r_->fail() << "kiln[T-15] buf_phase of a ring of " << n << "; at least 1 is needed";
      auto c = detail::read(count, at);
      auto slot = cast<i32>(detail::binary<op::rem>(c, n, at), at);
      auto phase = cast<i32>(detail::binary<op::bit_and>(detail::binary<op::div>(c, n, at), 1, at), at);
      return detail::ring_position{slot, phase};
    }
  }

protected:
  constexpr void bulk_bytes(char const* what, int view, std::int64_t bytes, site at) {
    if (bytes % 16 == 0) return;
    detail::message m = r_->fail(at);
    m << "kiln[R-BD06] " << what;
    detail::put_buffer_name(m, *r_, r_->view().buffer_of(view));
    m << ": " << bytes << " B; it moves a multiple of 16";
  }
  /// A broken rule of one barrier: its name so far.
  constexpr detail::message about(char const* rule, mbar const& b, site at) {
    detail::message m = r_->fail(at);
    int from = b.node_;
    while (r_->nodes[from].code != op::alloc_barriers) from = r_->operand(from, 0);
    char const* const name = r_->strings[static_cast<int>(r_->attribute(from, 3))];
    m << rule << " " << (*name ? name : "a barrier of line ");
    if (!*name) m << r_->nodes[from].line;
    return m;
  }
  constexpr explicit task_calls(recorder& r) : r_(&r) {}
  task_calls(task_calls const&) = delete;

  /// The rank of a CTA of the cluster as an i32 node.
  constexpr int rank_node(detail::any_value const& rank, char const* what, site at) {
    int const ctas = cluster_size(r_->attrs);
    if (rank.is_integer_literal() && (rank.integer() < 0 || rank.integer() >= ctas))
      r_->fail(at) << "kiln[R-BD01] " << what << ": rank " << rank.integer() << ", valid 0.." << ctas - 1 << (ctas == 1 ? "; attributes{.cluster = {2, 1, 1}} makes clusters of 2 CTAs" : "");
    if (int const n = rank.recorded_node(); n >= 0 && r_->nodes[n].shape != 0) {
      r_->fail(at) << "kiln[R-UN01] " << what << ": the rank varies within the CTA; it must be one integer for all";
      return -1;
    }
    int const r = rank.resolve_index(*r_, dtype::i32, "the rank", at);
    if (ctas == 1 && r >= 0 && !rank.is_literal()) { // the one there is
      int const zero = r_->push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
      r_->push(op::assume, {}, {r_->push(op::eq, {dtype::b1, node_kind::value, 0}, {r, zero}, {}, at)}, {}, at);
    }
    return r;
  }
  constexpr void own_barrier(char const* what, mbar const& b, site at) {
    if (r_->nodes[b.node_].code == op::remote_barrier)
      r_->fail(at) << "kiln[R-BR06] cannot " << what << " a remote barrier (remote_view of line " << r_->nodes[b.node_].line << "); arrive remotely, wait on the local one";
  }
  constexpr mbar remote(mbar const& b, detail::any_value const& rank, char const* what, site at) {
    if (r_->nodes[b.node_].code == op::remote_barrier) {
      r_->fail(at) << "kiln[R-BR06] " << what << " of a barrier that is remote already (line " << r_->nodes[b.node_].line << "); pass bars[i]";
      return b;
    }
    int const r = rank_node(rank, what, at);
    if (cluster_size(r_->attrs) == 1) return b;
    return {r_, r_->push(op::remote_barrier, {dtype::b1, node_kind::barrier, 0}, {b.node_, r}, {}, at)};
  }
  constexpr int predicate(detail::any_value const& p, site at) { return p.resolve(*r_, dtype::b1, 0, ".pred", at); }
  constexpr mbars make_barriers(int n, int arrivals, bool per_thread, char const* name, site at) {
    if (n < 1) r_->fail() << "kiln[R-CP10] " << (name ? name : "alloc_barriers") << ": " << n << " barriers; at least 1 is needed";
    if (arrivals < 1 || arrivals >= 1 << 20) r_->fail() << "kiln[R-CP10] " << (name ? name : "alloc_barriers") << ": arrive_count " << arrivals << ", valid 1.." << (1 << 20) - 1;
    if (r_->task >= 0) r_->fail() << "kiln[R-BR14] alloc_barriers inside a task: every agent must know them; make them before async_tasks";
    int const text = r_->add_string(name ? name : "");
    return {r_, r_->push(op::alloc_barriers, {dtype::b1, node_kind::barriers, 0}, {}, {n, arrivals, per_thread, text}, at)};
  }
  constexpr detail::no_task named_barrier(op code, int id, int threads, site at) {
    r_->push(code, {}, {}, {id, threads}, at);
    return {};
  }
  template <class... Tasks>
  constexpr auto record_tasks(async_tasks_options const& o, Tasks const&... tasks) {
    if constexpr ((detail::is_task<Tasks> && ...)) {
      site at{0, ""};
      ((at = at.line == 0 ? tasks.at : at), ...);
      if (r_->task >= 0) r_->fail() << "kiln[R-TK09] async_tasks inside a task: they cannot be nested";
      if (o.try_wait_suspend_ns < -1) r_->fail() << "kiln[T-15] .try_wait_suspend_ns = " << o.try_wait_suspend_ns << "; 0 or more";
      detail::task_check check(*r_);
      (check.add(tasks.options, tasks.is_default), ...);
      check.run();
      if (r_->exclusive_tasks >= 0 || (o.exclusive && r_->last_tasks >= 0)) {
        int const other = r_->nodes[r_->exclusive_tasks >= 0 ? r_->exclusive_tasks : r_->last_tasks].line;
        r_->fail() << "kiln[R-TK10] an exclusive async_tasks, and another on line " << other << "; drop .exclusive or merge them";
      }
      int const begin = r_->push(op::tasks_begin, {}, {}, {o.exclusive, o.no_ending_cluster_sync, o.try_wait_suspend_ns, -1}, at);
      r_->last_tasks = begin;
      if (o.exclusive) r_->exclusive_tasks = begin;
      r_->open(begin);
      (one_task(tasks), ...);
      int const end = r_->push(op::tasks_end, {}, {}, {begin}, at);
      r_->close();
      r_->attribute(begin, 3) = end;
    }
  }
  template <class F>
  constexpr void one_task(detail::task_body<F> const& t) {
    int const text = r_->add_string(t.options.name ? t.options.name : "");
    int const begin = r_->push(op::task_begin, {}, {}, {t.options.num_warps, t.options.num_regs, t.options.replicate, t.options.warp_group_start_id, text, -1}, t.at);
    r_->open(begin);
    r_->task = t.is_default ? 0 : 1;
    t.body();
    r_->task = -1;
    int const end = r_->push(op::task_end, {}, {}, {begin}, t.at);
    r_->close();
    r_->attribute(begin, 5) = end;
  }

  recorder* r_;
};

} // namespace kiln
