// Tasks: the CTA has more warps than the kernel's own ones. Those run the program outside the tasks and the default task;
// the others wait at the CTA's barrier until a region of tasks begins, call their task, and meet the rest at its end. Each task
// is lowered by a lowerer of its own, with layouts for its own number of warps, and with a hardware barrier of its own.
//
//   kernel's warps:  ... program ... | bar 0 | default task | bar 0 | ... program ... | ret
//   other warps:                       bar 0 | their task   | bar 0 |                   ret
//
// Where a region stands in a loop or a branch, the others do not know when it comes: they stand at the barrier in a loop, and a
// word in shared memory tells them behind it which region begins, or that the kernel ends.
//
// What a task uses of the program before: values that follow from parameters are computed again; others the kernel's warps
// leave in shared memory in front of the first barrier, tiles row by row.
#include "lowerings.hpp"

#include <algorithm>
#include <kiln/graph/cluster.hpp>
#include <llvm/Transforms/Utils/Cloning.h>

namespace kiln::jit::simt {

namespace {

constexpr int task_warps = 0, task_registers = 1, task_replicas = 2, task_first = 3, task_end_attribute = 5;

/// Computed from parameters and constants alone, without memory: as cheap as a load from shared memory.
bool computed_again(op o) {
  return has(o, trait::elementwise) || o == op::param || o == op::constant || o == op::program_id || o == op::num_programs ||
         o == op::extent || o == op::stride || o == op::array_data || o == op::cluster_rank;
}

} // namespace

void lowerer::plan_tasks() {
  int depth = 0, task = -1;
  std::uint32_t taken = 1; // the CTA's
  bool any = false;
  for (int i = 0; i < g.size(); ++i) {
    op const o = g[i].code;
    if (o == op::named_barrier_wait || o == op::named_barrier_arrive) taken |= 1u << (g.attribute(i, 0) & 15);
    nested_regions |= (o == op::tasks_begin || o == op::cluster_barrier) && depth > 0;
    if (o == op::task_begin) task = i;
    if (o == op::task_end) task = -1;
    if (o == op::cluster_barrier && task >= 0) fail(i, "kiln[R-TK07] cluster_barrier in a task: the warps of the other tasks are not there; use barriers in memory");
    if (o == op::device_assert) assert_node = i;
    any |= o == op::tasks_begin;
    if (has(o, trait::opens)) ++depth;
    if (has(o, trait::closes)) --depth;
  }
  all_warps = cta.num_warps;
  nested_regions &= any;
  if (!any) return;
  if (!hw->has_memory_barriers()) fail(-1, "kiln[R-TG01] async_tasks: " + std::string(target.name()) + " has no barrier for a part of a CTA; run the kernel on the host");
  if (assert_node >= 0)
    fail(assert_node, "kiln[R-TG01] device_assert in a kernel with tasks: a CTA that ends early would leave the other tasks waiting; kiln::check tests it on the host");
  for (int region = 0; region < g.size(); ++region) {
    if (g[region].code != op::tasks_begin) continue;
    std::vector<agent> mine;
    int next = cta.num_warps;
    for (int t = region + 1; g[t].code == op::task_begin; t = static_cast<int>(g.attribute(t, task_end_attribute)) + 1) {
      agent a;
      a.task = t;
      a.region = region;
      bool const is_default = g.attribute(t, task_warps) == 0;
      a.warps = is_default ? g.attrs.num_warps : static_cast<int>(g.attribute(t, task_warps));
      a.first_replica = is_default; // the kernel's warps run replica 0 of the default task
      a.replicas = static_cast<int>(g.attribute(t, task_replicas)) - a.first_replica;
      a.first_warp = is_default ? next : static_cast<int>(g.attribute(t, task_first));
      if (a.replicas > 0) mine.push_back(a);
    }
    // The widest first, so that groups of warps start where hardware groups them.
    std::sort(mine.begin(), mine.end(), [](agent const& x, agent const& y) { return x.warps != y.warps ? x.warps > y.warps : x.task < y.task; });
    for (agent const& a : mine)
      if (a.first_warp >= 0) next = std::max(next, a.first_warp + a.warps * a.replicas);
    if (!mine.empty()) next = (next + std::min(4, mine[0].warps) - 1) / std::min(4, mine[0].warps) * std::min(4, mine[0].warps);
    for (agent& a : mine) {
      if (a.first_warp < 0) {
        a.first_warp = next;
        next += a.warps * a.replicas;
      }
      all_warps = std::max(all_warps, a.first_warp + a.warps * a.replicas);
      agents.push_back(a);
    }
  }
  // Hardware barriers from 15 down: one for the kernel's warps, one for each replica of several warps.
  auto take = [&](int count) {
    for (int first = 16 - count; first > 0; --first) {
      std::uint32_t const wanted = ((1u << count) - 1) << first;
      if (taken & wanted) continue;
      taken |= wanted;
      return first;
    }
    fail(-1, "kiln[R-BR08] more agents of several warps than the hardware has barriers for (15, without those that the kernel names); use fewer replicas");
  };
  if (cta.num_warps > 1) self.barrier = take(1);
  for (int region = 0; region < g.size(); ++region) {
    std::uint32_t const outside = taken; // regions follow each other, and may use the same ones
    for (agent& a : agents)
      if (a.region == region && a.warps > 1) a.barrier = take(a.replicas);
    taken = outside;
  }
  plan_registers();
  if (all_warps * cta.warp_size > 1024)
    fail(-1, "kiln[R-CP08] " + std::to_string(all_warps) + " warps = " + std::to_string(all_warps * cta.warp_size) + " threads > 1024; use fewer or smaller tasks");
}

// Registers move between groups of four warps only, so that a group has one budget: the largest that one of its tasks asks for. What
// the CTA starts with is shared out exactly: a group that asked for more than is left would wait for ever.
void lowerer::plan_registers() {
  constexpr int group = 4, all = 65536, least = 24, most = 256;
  int regions = 0, fallback = 0; // registers of the default task
  bool asked = false;
  for (int i = 0; i < g.size(); ++i) {
    regions += g[i].code == op::tasks_begin;
    if (g[i].code != op::task_begin) continue;
    asked |= g.attribute(i, task_registers) != 0;
    if (g.attribute(i, task_warps) == 0) fallback = static_cast<int>(g.attribute(i, task_registers));
  }
  if (!asked) return;
  if (!hw->has_register_budgets() || regions > 1 || nested_regions || cta.num_warps % group != 0) {
    result.notes.push_back(std::string(".num_regs has no effect ") + (!hw->has_register_budgets() ? "on " + std::string(target.name())
                                                                      : regions > 1               ? std::string("in a kernel with several async_tasks")
                                                                      : nested_regions            ? std::string("where async_tasks is in a loop or a branch")
                                                                                                  : std::string("where the kernel's warps are no multiple of 4")));
    return;
  }
  all_warps = (all_warps + group - 1) / group * group;
  int const threads = all_warps * cta.warp_size, groups = all_warps / group;
  if (threads > 1024) return; // refused below
  launch_registers = std::min(all / threads, 248) / 8 * 8;
  group_registers.assign(static_cast<std::size_t>(groups), 0);
  for (int w = 0; w < cta.num_warps; w += group) group_registers[static_cast<std::size_t>(w / group)] = fallback;
  for (agent const& a : agents)
    for (int w = a.first_warp; w < a.first_warp + a.warps * a.replicas; ++w) {
      int& r = group_registers[static_cast<std::size_t>(w / group)];
      r = std::max(r, static_cast<int>(g.attribute(a.task, task_registers)));
    }
  int const pool = launch_registers * threads, each = group * cta.warp_size;
  int given = 0, open = 0;
  for (int r : group_registers) given += r * each, open += r == 0;
  int const rest = open ? std::min(most, (pool - given) / (open * each) / 8 * 8) : 0;
  if (given > pool || (open && rest < least))
    fail(-1, "kiln[R-CP09] registers: the tasks ask for " + std::to_string(given) + (open ? " and leave less than 24 a thread to the others" : "") + ", a CTA of " +
                 std::to_string(threads) + " threads starts with " + std::to_string(pool) + " (" + std::to_string(launch_registers) + " each); lower .num_regs");
  for (int& r : group_registers)
    if (r == 0) r = rest;
}

/// The present warps' budget; `first` is a warp of theirs.
void lowerer::take_registers(int first) {
  int const r = group_registers[static_cast<std::size_t>(first / 4)];
  if (r != launch_registers) hw->set_registers(r, r > launch_registers);
}

cta_shape lowerer::cta_at(int node) const {
  cta_shape c = cta;
  for (agent const& a : agents)
    if (node > a.task && node < g.attribute(a.task, task_end_attribute)) c.num_warps = a.warps;
  return c;
}

lowerer::lowerer(lowerer& kernel, agent const& a)
    : g(kernel.g), spec(kernel.spec), target(kernel.target), mb(kernel.mb), context(kernel.context), b(context),
      hw(target.is_nvptx() ? make_nvptx(b, target) : make_amdgpu(b, target)), cta(kernel.cta), facts(g, {.facts = spec, .grid = {}}), parent(&kernel), self(a) {
  hw->waits_for_cluster = kernel.hw->waits_for_cluster;
  cta.num_warps = a.warps;
  all_warps = kernel.all_warps;
  buffer_swizzled = kernel.buffer_swizzled;
  buffer_offset = kernel.buffer_offset;
  static_arrays = kernel.static_arrays;
  barrier_offset = kernel.barrier_offset;
  commits = kernel.commits;
  data_bytes = kernel.data_bytes;
  arena_variable = kernel.arena_variable;
  debug = kernel.debug;
  debug_files = kernel.debug_files;
}

/// The task as a function of the kernel's parameters.
llvm::Function* lowerer::run_task() {
  plan = assign_layouts(g, facts, cta);
  make_function();
  push_scope();
  walk(self.task + 1, static_cast<int>(g.attribute(self.task, task_end_attribute)));
  pop_scope();
  if (b.GetInsertBlock()->getTerminator() == nullptr) b.CreateBr(leave);
  b.SetInsertPoint(leave);
  b.CreateRetVoid();
  finish();
  return function;
}

void lowerer::agent_barrier(bool all_memory) {
  if (all_warps == cta.num_warps) hw->barrier(all_memory);
  else if (cta.num_warps == 1) hw->warp_barrier();
  else hw->named_barrier(barrier_id, cta.threads(), true);
}

/// Where the kernel's warps and the others meet. They come from different places of the program, which tools that look for races
/// only follow where the barrier names its number of threads.
void lowerer::meet_all(bool cluster) {
  if (cluster) return hw->cluster_barrier();
  hw->named_barrier(i32(0), all_warps * cta.warp_size, true);
}

void lowerer::fork(int region) {
  published.clear();
  handed.clear();
  // All leave here the tiles that tasks ask for, and thread 0 the rest.
  tile_point = b.CreateCall(marker_function);
  when(b.CreateICmpEQ(thread, i32(0)), [&] {
    fork_point = b.CreateCall(marker_function);
    if (nested_regions) b.CreateStore(i32(region + 1), arena(command_at));
  });
  meet_all();
  structure({.what = local_event::kind::barrier});
  std::vector<std::pair<agent, llvm::Function*>> all;
  for (agent const& a : agents)
    if (a.region == region) {
      lowerer task(*this, a);
      all.push_back({a, task.run_task()});
      result.barriers += task.result.barriers;
      result.notes.insert(result.notes.end(), task.result.notes.begin(), task.result.notes.end());
      scratch_of_tasks.push_back({task.scratch_variable, a.replicas * ((task.scratch_bytes + 127) / 128 * 128)});
    }
  fork_point->eraseFromParent();
  tile_point->eraseFromParent();
  if (!group_registers.empty()) take_registers(0);
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  if (nested_regions) {
    llvm::BasicBlock* mine = block("region");
    dispatch()->addCase(b.getInt32(static_cast<std::uint32_t>(region) + 1), mine);
    b.SetInsertPoint(mine);
    debug_location(-1);
  } else {
    b.SetInsertPoint(workers);
    debug_location(-1);
    meet_all();
  }
  for (int w = cta.num_warps; w < all_warps && !group_registers.empty(); w += 4) // those that have nothing to do, too
    when(b.CreateICmpEQ(b.CreateLShr(warp_of_cta, 2), i32(w / 4)), [&] { take_registers(w); });
  std::vector<Value*> arguments(slots.begin(), slots.end());
  for (auto const& [a, f] : all) {
    // The branch takes whole warps.
    Value* from = b.CreateSub(warp_of_cta, i32(a.first_warp));
    when(b.CreateICmpULT(from, i32(a.warps * a.replicas)), [&, f = f] { calls.push_back(b.CreateCall(f, arguments)); });
  }
  meet_all(joins_cluster(g, region));
  if (nested_regions) b.CreateBr(next_region->getParent());
  else workers = b.GetInsertBlock();
}

/// Where the other warps wait for a region, or for the end.
llvm::SwitchInst* lowerer::dispatch() {
  if (next_region) return next_region;
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(workers);
  llvm::BasicBlock *wait = block("regions"), *end = block("no_region");
  b.CreateBr(wait);
  b.SetInsertPoint(wait);
  debug_location(-1);
  meet_all();
  next_region = b.CreateSwitch(hw->warp_uniform(b.CreateLoad(b.getInt32Ty(), arena(command_at))), end);
  workers = end;
  return next_region;
}
void lowerer::end_regions() {
  if (!next_region) return;
  when(b.CreateICmpEQ(thread, i32(0)), [&] { b.CreateStore(i32(0), arena(command_at)); });
  meet_all();
}

void lowerer::join(int region) {
  meet_all(joins_cluster(g, region));
  structure({.what = local_event::kind::barrier});
}

// -- what a task uses of the program before it ---------------------------------------------------------------------------------

std::int64_t lowerer::publish(int node) {
  auto const [at, fresh] = published.try_emplace(node, captures_at + 8 * static_cast<std::int64_t>(published.size()));
  if (!fresh) return at->second;
  bool const cell = g[node].kind == node_kind::cell;
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(fork_point);
  Value* v = nullptr;
  if (cell) {
    llvm::AllocaInst* const a = cells.at(node).slot.at(0);
    v = b.CreateLoad(a->getAllocatedType(), a);
  } else {
    v = scalar(node);
  }
  if (!v->getType()->isPointerTy()) v = to_memory(v, g[node].type);
  b.CreateAlignedStore(v, arena(at->second), llvm::Align(8));
  return at->second;
}

view_value lowerer::publish_tile(int node) {
  auto const [known, fresh] = handed.try_emplace(node);
  view_value& v = known->second;
  if (!fresh) return v;
  v.type = type(node);
  v.extents = g.shape_of(node);
  std::int64_t elements = 1;
  for (int d = v.extents.rank - 1; d >= 0; --d) v.stride[d] = elements, elements *= v.extents.extent[d];
  v.align = 16;
  llvm::GlobalVariable* const room = shared_array("kiln_handed");
  scratch_of_tasks.push_back({room, (bytes_of(v.type, elements) + 15) / 16 * 16});
  v.pointer = room;
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  llvm::BasicBlock *head = tile_point->getParent(), *tail = head->splitBasicBlock(tile_point, "handed");
  head->getTerminator()->eraseFromParent();
  b.SetInsertPoint(head);
  linear_layout l;
  registers x;
  if (g[node].kind == node_kind::cell) {
    l = plan.of(node);
    for (llvm::AllocaInst* a : cells.at(node).slot) x.r.push_back(b.CreateLoad(a->getAllocatedType(), a));
  } else {
    l = layout_of_use(node);
    x = get(node, l);
  }
  without_barriers([&] { write_view(v, l, x.r); }); // those of the region are enough
  b.CreateBr(tail);
  return v;
}

registers lowerer::handed_tile(int node) {
  if (g[g[node].kind == node_kind::cell ? g.operand(node, 0) : node].kind != node_kind::value)
    fail(current, "kiln[R-TG01] this task uses the tile of pointers that line " + std::to_string(g[node].line) + " makes, which other warps hold; make it inside the task");
  registers r;
  view_value const v = parent->publish_tile(node);
  without_barriers([&] { r.r = read_view(v, plan.of(node)); });
  return r;
}

void lowerer::without_barriers(std::function<void()> const& access) {
  std::size_t const before = events.size();
  access();
  for (std::size_t i = before; i < events.size(); ++i)
    if (events[i].marker) events[i].marker->eraseFromParent();
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(before), events.end());
}

registers lowerer::capture(int node) {
  bool const cell = g[node].kind == node_kind::cell;
  if (cell && g[node].shape != 0) return handed_tile(node);
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_end);
  // It stands at the top and serves the whole task.
  std::vector<std::map<key, registers>> inner = std::move(scopes);
  scopes.clear();
  scopes.push_back(std::move(inner.front()));
  registers r;
  if (!cell && computed_again(g[node].code)) {
    int const at = current;
    r = emit_node(node);
    current = at;
  } else {
    std::int64_t const at = parent->publish(node);
    bool const pointer = g[g[node].kind == node_kind::cell ? g.operand(node, 0) : node].kind == node_kind::pointer;
    llvm::Type* const t = pointer ? static_cast<llvm::Type*>(b.getPtrTy(1)) : memory_type(g[node].type);
    Value* v = b.CreateAlignedLoad(t, arena(at), llvm::Align(8));
    r.r.push_back(pointer ? v : from_memory(v, g[node].type));
  }
  if (cell) scopes.back()[{node, -1}] = r;
  else define(node, r);
  inner.front() = std::move(scopes.front());
  scopes = std::move(inner);
  return r;
}

registers lowerer::outer_cell(int cell) {
  if (registers const* r = look_up(cell, -1)) return *r;
  return capture(cell);
}

registers lowerer::outer_tile(int node) {
  registers r;
  switch (op const o = g[node].code) {
  case op::constant: case op::iota: case op::broadcast: case op::reshape: case op::trans: r = compute(node, plan.of(node)); break;
  default:
    r = has(o, trait::elementwise) ? element_wise(node, plan.of(node)) : handed_tile(node);
  }
  define(node, r);
  return r;
}

registers lowering<op::tasks_begin>::emit(lowerer& k, int node) {
  k.fork(node);
  return {};
}
registers lowering<op::tasks_end>::emit(lowerer& k, int node) {
  k.join(static_cast<int>(k.g.attribute(node, 0)));
  return {};
}
// Only the default task is met here, and its values may be used after it: no scope of its own.
registers lowering<op::task_begin>::emit(lowerer&, int) { return {}; }
registers lowering<op::task_end>::emit(lowerer&, int) { return {}; }
registers lowering<op::replica_id>::emit(lowerer& k, int) {
  return {{k.replica ? k.b.CreateAdd(k.replica, k.i32(k.self.first_replica)) : k.i32(k.self.first_replica)}};
}

void lowerer::inline_tasks() {
  for (llvm::CallInst* c : calls) {
    llvm::Function* f = c->getCalledFunction();
    llvm::InlineFunctionInfo info;
    if (!llvm::InlineFunction(*c, info).isSuccess()) fail(-1, "internal: a task does not become a part of the kernel");
    f->eraseFromParent();
  }
}

} // namespace kiln::jit::simt
