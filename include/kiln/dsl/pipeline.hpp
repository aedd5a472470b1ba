// The two ends of a pipeline whose stages and barriers a phase allocator placed, and what it hands to the resources of a kernel.
//
//   smem_allocation<f32, 3, 128> ring{.name = "ring"};            // 3 stages
//   pipeline_config p{.kind = pipe::tma_async, .num_stages = 3, .num_bytes = 512};
//   ...
//   al.add_resource(r);  al.compute_layout();  al.allocate(k);  al.assign_barrier_ptrs();
//   k.async_tasks(
//       k.task_default({}, [&] {
//         pipeline_consumer in(k, p);
//         for (auto i : k.range(0, n)) { auto s = in.wait();  use(k.local_load(al.get(k, ring)[s]));  in.release(); }
//       }),
//       k.task({.num_warps = 1}, [&] {
//         pipeline_producer out(k, p);
//         for (auto i : k.range(0, n)) { auto s = out.acquire();  k.async_load_bulk(x + i * 128, al.get(k, ring)[s], out.full());  out.commit(); }
//       }));
//
// An end is made by the agent that uses it, and counts its rounds in a variable of that agent. Rounds may be taken in a loop or in
// a row; work between acquire and commit, or wait and release, is the stage's.
#pragma once
#include <kiln/dsl/allocator.hpp>

namespace kiln {

namespace detail {

/// What an allocator makes in a kernel beside its block.
template <class Kernel>
struct pipeline_tools {
  constexpr explicit pipeline_tools(smem_allocator& al) : al_(al), recorder_(al.recorder_) {}

  constexpr void make(site at) {
    // Barriers lie behind all data of a kernel: the block keeps its data only.
    std::int64_t const data = al_.barrier_base() > 0 ? al_.barrier_base() : 1;
    if (al_.barrier_smem_bytes() > 0) resize_storage(*recorder_, static_cast<int>(recorder_->attribute(al_.arena_, 0)), data, al_.layout_.alignment);
    for (int i = 0; i < al_.pipelines_; ++i) {
      pipeline_config& p = *al_.pipeline_[i];
      if (al_.group_of_[i] || p.full_node >= 0) continue;
      p.full_node = barriers(p, p.producer_threads, true, at);
      p.empty_node = barriers(p, p.consumer_threads, false, at);
    }
    for (int i = 0; i < al_.groups_; ++i) make_group_barriers(*al_.group_[i], at);
  }
  /// The whole block as bytes, and the slot for the base of tensor memory. Errors: R-PA04 where there is none.
  constexpr view_ref block(context& k, site at) {
    recorder& r = *k.recorder_for_library();
    if (al_.arena_ < 0) {
      r.fail(at) << "kiln[R-PA04] smem_base before allocate; the allocator has no block";
      return {};
    }
    int const zero = r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
    view_ref v;
    v.node = r.push(op::view_index, {dtype::u8, node_kind::view, r.nodes[al_.arena_].shape}, {al_.arena_, zero}, {}, at);
    return v;
  }
  constexpr view<u32, 1> tmem_slot(context& k, site at) {
    if (!al_.tmem_ptr_) {
      recorder& r = *k.recorder_for_library();
      r.fail(at) << "kiln[R-PA04] the allocator has no slot for the base of tensor memory; add_tmem_ptr one";
      return {&r, r.push(op::constant, type_of<view<u32, 1>>(r, node_kind::view), {}, {0}, at)};
    }
    return al_.template view_of<u32, 1>(k, al_.tmem_ptr_, "the slot for the base of tensor memory", "tmem_ptr", at);
  }

private:
  /// Barriers of one side of a pipeline, one a stage.
  constexpr int barriers(pipeline_config const& p, int arrivals, bool full, site at) {
    bool const copies = full && producer_of(p.kind) == 0;
    if (arrivals < 1 || arrivals > 1024 || (arrivals > 31 && (copies || arrivals % 32 != 0))) {
      recorder_->fail(at) << "kiln[R-PA08] " << (full ? ".producer_threads = " : ".consumer_threads = ") << arrivals << (copies ? "; a producer of copies arrives once an agent: at most 31" : "; arrivals of agents are 1..31, of threads whole warps");
      arrivals = 1;
    }
    return recorder_->push(op::alloc_barriers, {dtype::b1, node_kind::barriers, 0}, {}, {p.num_stages, arrivals, arrivals > 31, recorder_->add_string(full ? "full" : "empty")}, at);
  }
  constexpr void make_group_barriers(pipeline_group& g, site at) {
    using form = pipeline_group::form;
    pipeline_config& first = *g.members[0];
    int sum = 0;
    for (int i = 0; i < g.count; ++i) sum += g.members[i]->producer_threads;
    int const full = g.kind == form::fork ? barriers(first, first.producer_threads, true, at) : g.kind == form::fused_merge ? barriers(first, sum, true, at) : -1;
    for (int i = 0; i < g.count; ++i) g.members[i]->full_node = full >= 0 ? full : barriers(*g.members[i], g.members[i]->producer_threads, true, at);
    int const empty = g.kind != form::fork ? barriers(first, first.consumer_threads, false, at) : -1;
    for (int i = 0; i < g.count; ++i) {
      g.members[i]->empty_node = empty >= 0 ? empty : barriers(*g.members[i], g.members[i]->consumer_threads, false, at);
      if (g.members[i]->barrier_ptr < 0) g.members[i]->barrier_ptr = g.barrier_ptr;
    }
  }
  smem_allocator& al_;
  recorder* recorder_; ///< null before allocate
};

/// The barriers of one or several pipelines, and which round this end is in.
class pipeline_end {
protected:
  constexpr pipeline_end(context& k, pipeline_config const* const* members, int count, site at)
      : k_(&k), count_(count < pipeline_group::most_members ? count : pipeline_group::most_members), stages_(members[0]->num_stages),
        round_(k.var(k.let(0, at), at)) {
    recorder& r = *k.recorder_for_library();
    for (int i = 0; i < count_; ++i) member_[i] = members[i];
    for (int i = 0; i < count_; ++i)
      if (member_[i]->full_node < 0) {
        r.fail(at) << "kiln[R-PA10] a pipeline is used before assign_barrier_ptrs; its barriers do not exist";
        usable_ = false;
        return;
      }
  }
  pipeline_end(pipeline_end const&) = delete;

  /// Barrier `stage` of those at a node; any barrier after a mistake.
  constexpr mbar at_stage(std::int32_t node, val<i32> const& stage, site at) const {
    recorder& r = *k_->recorder_for_library();
    return {&r, r.push(op::barrier_index, {dtype::b1, node_kind::barrier, 0}, {node < 0 ? stage.node_ : node, stage.node_}, {}, at)};
  }
  /// Waits for the full (or empty) barrier of every pipeline, each barrier once; the stage.
  constexpr val<i32> wait_for(bool full, site at) {
    auto [stage, phase] = k_->buf_phase(round_, stages_, at);
    if (!usable_) return stage;
    auto parity = full ? phase : binary<op::bit_xor>(phase, 1, at);
    for (int i = 0; i < count_; ++i) {
      bool again = false; // barriers that members share
      for (int j = 0; j < i; ++j) again = again || (full ? member_[j]->full_node == member_[i]->full_node : member_[j]->empty_node == member_[i]->empty_node);
      if (!again) k_->barrier_wait(at_stage(full ? member_[i]->full_node : member_[i]->empty_node, stage, at), parity, {}, at);
    }
    return stage;
  }
  constexpr void next(site at) { round_.set(binary<op::add>(round_, 1, at).node_, at); }

public:
  /// The stage of the present round: what acquire or wait returned.
  constexpr val<i32> stage(site at = {}) { return k_->buf_phase(round_, stages_, at).slot; }

protected:
  context* k_;
  pipeline_config const* member_[pipeline_group::most_members]{};
  int count_, stages_;
  bool usable_ = true;
  var<val<i32>> round_;
};
template <class R>
concept has_pipeline = requires(R& r) { r.pipeline(); };

} // namespace detail

/// The end that fills stages, of a pipeline, a resource that has one, or a fork. Rules: R-PA10, R-PA08; a stage that is touched outside
/// of acquire and commit is R-HZ13 or R-HZ03, bytes that copies do not bring R-BR01.
class pipeline_producer : public detail::pipeline_end {
public:
  constexpr pipeline_producer(context& k, pipeline_config const& p, site at = {}) : pipeline_producer(k, &p, at) {}
  template <detail::has_pipeline R>
  constexpr pipeline_producer(context& k, R& resource, site at = {}) : pipeline_producer(k, &resource.pipeline(), at) {}
  /// Of a fork: one producer for all members. A merge has a producer for each member.
  constexpr pipeline_producer(context& k, pipeline_group const& g, site at = {}) : pipeline_end(k, g.members, g.count, at) {
    if (g.kind != pipeline_group::form::fork)
      k.recorder_for_library()->fail(at) << "kiln[R-PA08] pipeline group " << g.name << " merges its producers; make one for each member";
  }
  /// Waits until the stage is empty; which it is. The first round over the stages never waits.
  constexpr val<i32> acquire(site at = {}) { return wait_for(false, at); }
  /// The barrier that copies into the present stage signal.
  constexpr mbar full(site at = {}) { return at_stage(member_[0]->full_node, stage(at), at); }
  /// Says that the stage is full: an arrival, or for kinds with `.num_bytes` those bytes, which copies bring. The next round begins.
  constexpr void commit(site at = {}) {
    auto const b = full(at);
    if (detail::producer_of(member_[0]->kind) == 0)
      k_->barrier_expect_bytes(b, static_cast<int>(member_[0]->num_bytes), {}, at);
    else
      k_->barrier_arrive(b, {}, at);
    next(at);
  }

private:
  constexpr pipeline_producer(context& k, pipeline_config const* p, site at) : pipeline_end(k, &p, 1, at) {}
};

/// The end that empties stages, of a pipeline, a resource that has one, or a merge.
class pipeline_consumer : public detail::pipeline_end {
public:
  constexpr pipeline_consumer(context& k, pipeline_config const& p, site at = {}) : pipeline_consumer(k, &p, at) {}
  template <detail::has_pipeline R>
  constexpr pipeline_consumer(context& k, R& resource, site at = {}) : pipeline_consumer(k, &resource.pipeline(), at) {}
  /// Of a merge: waits for every member, and releases all at once. A fork has a consumer for each member.
  constexpr pipeline_consumer(context& k, pipeline_group const& g, site at = {}) : pipeline_end(k, g.members, g.count, at) {
    if (g.kind == pipeline_group::form::fork)
      k.recorder_for_library()->fail(at) << "kiln[R-PA08] pipeline group " << g.name << " forks to its consumers; make one for each member";
  }
  /// Waits until the stage is full; which it is.
  constexpr val<i32> wait(site at = {}) { return wait_for(true, at); }
  /// Gives the stage back. The next round begins.
  constexpr void release(site at = {}) {
    k_->barrier_arrive(at_stage(member_[0]->empty_node, stage(at), at), {}, at);
    next(at);
  }

private:
  constexpr pipeline_consumer(context& k, pipeline_config const* p, site at) : pipeline_end(k, &p, 1, at) {}
};

/// What an allocator hands to a resource: its memory, and the slot that holds where tensor memory begins. Errors: R-PA04 a part that
/// is not there.
class resource_context {
public:
  constexpr resource_context(context& k, smem_allocator& al) : k_(&k), allocator_(&al) {}
  /// The start of the allocator's block, for `k.decl_buffer<T, D...>({.data = c.smem_base(), .byte_offset = a.offset})`.
  constexpr detail::view_ref smem_base(site at = {}) const { return detail::pipeline_tools<context>(*allocator_).block(*k_, at); }
  /// As `smem_allocator::get`.
  template <int... E, class A>
  constexpr auto get(A const& a, site at = {}) const {
    return allocator_->template get<E...>(*k_, a, at);
  }
  /// Column `offset` of what was allocated in tensor memory, as an address: the slot's content plus the offset.
  constexpr val<u32> tmem_address(int offset = 0, site at = {}) const {
    view<u32, 1> const slot = detail::pipeline_tools<context>(*allocator_).tmem_slot(*k_, at);
    recorder& r = *k_->recorder_for_library();
    int const x = r.push(op::local_load, detail::type_of<tile<u32, 1>>(r), {slot.node_, -1}, {0}, at);
    val<u32> const base{&r, r.push(op::reshape, {dtype::u32, node_kind::value, 0}, {x}, {}, at)};
    return offset == 0 ? base : detail::binary<op::add>(base, offset, at);
  }

private:
  context* k_;
  smem_allocator* allocator_;
};

} // namespace kiln
