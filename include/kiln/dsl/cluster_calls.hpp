// The calls of a kernel's context for clusters: CTAs that reach each other's local memory and barriers. A base of `context`.
//
//   auto r = k.cluster_cta_rank();
//   auto full = k.alloc_barriers(1);
//   k.fence_mbarrier_init_cluster();
//   k.cluster_barrier();                                     // from here on every CTA may be reached
//   k.barrier_expect_bytes(full[0], bytes_of(a[0]));
//   k.async_remote_shmem_store(a[0], x, (r + 1) % k.cluster_size(), full[0]);   // into the next CTA, counted on its barrier
//   k.barrier_wait(full[0], 0);
//   store(y + i, k.local_load(a[0]));
//   k.cluster_barrier();                                     // nobody leaves while others may still reach it
//
// A rank is the linear index of a CTA in its cluster, x fastest, oneself included. In a cluster of one CTA these calls record what
// they are there: ordinary stores and arrivals, `sync`, nothing.
#pragma once
#include <kiln/dsl/task_calls.hpp>

namespace kiln {

namespace detail {
/// Elements of a row of a view.
constexpr int row_of(extents const& e) { return e.rank == 0 ? 1 : e.extent[e.rank - 1]; }
} // namespace detail

class cluster_calls : public task_calls {
public:
  /// CTAs of a cluster: `attributes{.cluster = {x, y, z}}`.
  constexpr int cluster_size() const { return kiln::cluster_size(r_->attrs); }
  /// Which of them this CTA is.
  constexpr val<i32> cluster_cta_rank(site at = {}) {
    result_type const t{dtype::i32, node_kind::value, 0};
    return {r_, cluster_size() == 1 ? r_->push(op::constant, t, {}, {0}, at) : r_->push(op::cluster_rank, t, {}, {}, at)};
  }
  /// Barrier of all threads of all CTAs of the cluster. What they did before happens before what they do after. Errors: R-TK07
  /// in a task, R-BR09 where not every CTA comes to it.
  constexpr detail::no_task cluster_barrier(site at = {}) {
    if (r_->task >= 0)
      r_->fail() << "kiln[R-TK07] cluster_barrier inside " << (r_->task == 0 ? "the default task" : "a task") << " would wait for the other tasks; signal barriers with .remote, or meet outside async_tasks";
    r_->push(cluster_size() == 1 ? op::sync : op::cluster_barrier, {}, {}, {}, at);
    return {};
  }
  /// Makes the barriers allocated so far ready for other CTAs; a `cluster_barrier` must follow before they are used from there.
  constexpr detail::no_task fence_mbarrier_init_cluster(site at = {}) {
    if (cluster_size() > 1) r_->push(op::fence_barrier_init, {}, {}, {}, at);
    return {};
  }
  /// The same barrier in CTA `rank`: to arrive at. Errors: R-BR06 a wait on it; R-BD01, R-UN01 of the rank; R-BR07 before the barriers
  /// of that CTA are ready.
  constexpr mbar remote_view(mbar const& b, detail::any_value const& rank, site at = {}) { return remote(b, rank, "remote_view", at); }
  template <int = 0, class B>
    requires(!std::same_as<B, mbar>)
  constexpr auto remote_view(B const&, detail::any_value const&) {
    static_assert(!sizeof(B), "kiln[T-17] remote_view takes one barrier, bars[i]; memory of another CTA is written with remote_shmem_store");
  }

  /// Writes registers to the place of `v` in CTA `rank`. Visible there after a cluster_barrier, or an arrival at its barriers that
  /// follows. Errors: T-04, T-05, R-CP05 tensor memory, R-BD01, R-UN01, R-HZ11, R-HZ13.
  template <class T, int... D, tile_like X>
  constexpr auto remote_shmem_store(view<T, D...> const& v, X const& x, detail::any_value const& rank, site at = {}) {
    static_assert(std::same_as<T, detail::element_of<X>>, "kiln[T-04] remote_shmem_store: the value's element type differs from the view's; cast<T>(...) it");
    static_assert(detail::dims_of<X>() == detail::extents_of<D...>, "kiln[T-05] remote_shmem_store: the value's shape differs from the view's");
    int const t = detail::read(x, at).node_, r = rank_node(rank, "remote_shmem_store", at);
    in_shared_memory("remote_shmem_store", v.node_, at);
    if (cluster_size() == 1)
      r_->push(op::local_store, {}, {v.node_, t}, {}, at);
    else
      r_->push(op::remote_store, {}, {v.node_, t, r}, {}, at);
    return detail::no_task{};
  }
  /// The same without waiting: when the bytes are there they count on barrier `b` of that CTA, which must expect them. The value is
  /// read at once. Units: the rows of the view are a multiple of 4 bytes. Errors: as above; R-BD06, R-BR01, R-BR07, R-HZ02, R-HZ03.
  template <class T, int... D, tile_like X>
  constexpr auto async_remote_shmem_store(view<T, D...> const& v, X const& x, detail::any_value const& rank, mbar const& b, site at = {}) {
    static_assert(std::same_as<T, detail::element_of<X>>, "kiln[T-04] async_remote_shmem_store: the value's element type differs from the view's; cast<T>(...) it");
    static_assert(detail::dims_of<X>() == detail::extents_of<D...>, "kiln[T-05] async_remote_shmem_store: the value's shape differs from the view's");
    static_assert(kiln::bytes_of(dtype_of<T>, detail::row_of(detail::extents_of<D...>)) % 4 == 0, "kiln[R-BD06] async_remote_shmem_store moves groups of 4 bytes; the rows of the view must be a multiple of that");
    int const t = detail::read(x, at).node_, r = rank_node(rank, "async_remote_shmem_store", at);
    local_barrier("async_remote_shmem_store", b, at);
    in_shared_memory("async_remote_shmem_store", v.node_, at);
    r_->push(op::async_remote_store, {}, {v.node_, t, r, b.node_}, {}, at);
    return detail::no_task{};
  }
  /// Copies `source`, a view of this CTA, to the place of `v` in CTA `rank`; its bytes count on barrier `b` there. Writes of this CTA to
  /// the source need `fence(fence::async_shared)` first; it is busy until the bytes are there. Units: bytes a multiple of 16, both
  /// contiguous and 16-byte aligned. Errors: T-04, T-05; R-BD06, R-HZ04, R-HZ05; as above.
  template <class T, int... D, class U, int... E>
  constexpr auto async_remote_shmem_copy(view<T, D...> const& v, view<U, E...> const& source, detail::any_value const& rank, mbar const& b, site at = {}) {
    static_assert(std::same_as<T, U>, "kiln[T-04] async_remote_shmem_copy: destination and source have different element types");
    static_assert(detail::extents_of<D...> == detail::extents_of<E...>, "kiln[T-05] async_remote_shmem_copy: destination and source have different shapes");
    static_assert(kiln::bytes_of(dtype_of<T>, detail::elements_of<D...>) % 16 == 0, "kiln[R-BD06] async_remote_shmem_copy moves a multiple of 16 bytes");
    int const r = rank_node(rank, "async_remote_shmem_copy", at);
    local_barrier("async_remote_shmem_copy", b, at);
    in_shared_memory("async_remote_shmem_copy", v.node_, at);
    in_shared_memory("async_remote_shmem_copy", source.node_, at);
    r_->push(op::async_remote_copy, {}, {v.node_, source.node_, r, b.node_}, {}, at);
    return detail::no_task{};
  }

protected:
  using task_calls::task_calls;

private:
  constexpr void in_shared_memory(char const* what, int v, site at) {
    int const b = r_->view().buffer_of(v);
    if (b < 0 || r_->buffers[b].where == storage::smem) return;
    auto m = r_->fail(at);
    m << "kiln[R-CP05] " << what << ": ";
    detail::put_buffer_name(m, *r_, b);
    m << " is in tensor memory, which other CTAs cannot reach; use storage::smem";
  }
  constexpr void local_barrier(char const* what, mbar const& b, site at) {
    if (r_->nodes[b.node_].code == op::remote_barrier)
      r_->fail(at) << "kiln[R-BR06] " << what << " takes this CTA's own name of the barrier: pass bars[i], its bytes count on the one in CTA `rank`";
  }
};

} // namespace kiln
