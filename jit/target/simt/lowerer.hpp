// The state of one lowering: where the builder stands, what every node's registers are, what local memory was touched.
// The operations themselves are in lowerings.hpp and the files that it names.
#pragma once

#include "hardware.hpp"
#include "jit/emit/convert.hpp"
#include "jit/passes/assign_layouts.hpp"
#include "jit/passes/insert_barriers.hpp"
#include "jit/passes/matrix_unit.hpp"
#include "lower.hpp"

#include <functional>
#include <kiln/graph/local_layout.hpp>
#include <kiln/layout/ownership.hpp>
#include <llvm/IR/DIBuilder.h>
#include <map>
#include <optional>

namespace kiln::jit::simt {

/// A thread's part of a tile: one value per register of the layout. Pointers: with a base (one pointer for the whole
/// tile) `r` are offsets from it in elements, i64; without, pointers.
struct registers {
  std::vector<Value*> r;
  Value* base = nullptr;
  int phase = 0; ///< `lowerer::phase` when it was made
  Value* scalar() const { return r[0]; }
};

/// A part of local memory: element c is at `pointer + sum c_d * stride_d` elements. Only the pointer varies at run
/// time.
struct view_value {
  Value* pointer = nullptr;
  dtype type{};
  shape extents{};
  std::int64_t stride[max_rank]{}; ///< elements
  int align = 1;                   ///< bytes, of the pointer
  // Not row by row: `layout` maps the number of an element in its slot, where the pointer is; the view starts at number `start`.
  slot_layout layout{};
  Value* start = nullptr;       ///< i32; null: 0
  std::int64_t slot_bytes = 0;
  // What may be touched, for the barriers: a constant start and axes, where a runtime index adds an axis of its own.
  std::int64_t offset = 0;
  std::vector<byte_axis> reach;
  ring_slot slot{};
};

class lowerer {
public:
  lowerer(graph_view const& g, specialisation const& s, kiln::target const& t, module_builder& mb);
  simt_code run();

  // -- fixed for the kernel
  // ---------------------------------------------------------------------------------------------
  graph_view const& g;
  specialisation const& spec;
  kiln::target const& target;
  module_builder& mb;
  llvm::LLVMContext& context;
  llvm::IRBuilder<> b;
  std::unique_ptr<hardware> hw;
  cta_shape cta;
  graph_facts facts;
  layout_plan plan;
  llvm::Function* function = nullptr;
  Value *thread = nullptr, *lane = nullptr, *warp = nullptr;
  simt_code result;

  emit::emitter emitter() { return {b, emit::capabilities::gpu()}; }
  dtype type(int node) const { return g[node].type; }
  llvm::Type* carrier(dtype t) { return emit::carrier(context, t); }
  /// The integer that an element is in memory.
  llvm::Type* memory_type(dtype t) { return b.getIntNTy(static_cast<unsigned>(storage_bits_of(t))); }
  Value* i32(std::int64_t v) { return b.getInt32(static_cast<std::uint32_t>(v)); }
  Value* i64(std::int64_t v) { return b.getInt64(static_cast<std::uint64_t>(v)); }
  [[noreturn]] void fail(int node, std::string const& text) const;

  // -- values
  // -----------------------------------------------------------------------------------------------------------
  /// The node's tile in `want`, converted or computed there if need be; a scalar in any layout.
  registers get(int node, linear_layout const& want);
  Value* scalar(int node) { return get(node, plan.of(node)).scalar(); }
  bool is_scalar(int node) const { return g[node].shape == 0; }
  void define(int node, registers r, int index = 0);
  registers result_of(int node, int index);
  registers compute(int node, linear_layout const& want); ///< of a placeless node
  /// Reductions so far. What lives across one is kept narrow: see keeps_narrow.
  int phase = 0;
  /// Long rows decide how many CTAs fit a multiprocessor. A tile that was widened from narrow elements, or computed from
  /// such by a few cheap operations, is not kept across a reduction: its narrow elements are, and it is computed again.
  bool keeps_narrow(int node, linear_layout const& want, int depth = 0);
  registers compute_again(int node, linear_layout const& want);
  /// The layout that costs least to read a tile in.
  linear_layout layout_of_use(int node);
  /// Whether the condition holds in any thread of the CTA.
  Value* any_thread(Value* condition);
  /// All registers of an element-wise operation in a layout.
  registers element_wise(int node, linear_layout const& l);
  /// One element of it.
  Value* element(int node, llvm::ArrayRef<Value*> x);
  /// The value conversion of docs/numerics.md.
  Value* convert_type(Value* x, dtype from, dtype to);
  /// The same elements, unpacked from words where this stands (hardware::made_here).
  std::vector<Value*> made_here(llvm::ArrayRef<Value*> x, dtype t);
  /// The body of a custom combine on scalars: arguments in order, then results.
  std::vector<Value*> combine(int begin, llvm::ArrayRef<Value*> arguments);

  // -- coordinates (i32)
  // --------------------------------------------------------------------------------------------------
  /// Of a register's element along an axis; `thread_part` alone is what lane and warp add.
  Value* coordinate(linear_layout const& l, int axis, int reg);
  Value* thread_part(linear_layout const& l, layout_dim to);
  /// Coordinate bits that a register and the thread both set: XOR and addition differ there.
  static bool additive(linear_layout const& l, layout_dim to);
  /// Whether a register's element lies inside the tile; nullptr: always.
  Value* inside(linear_layout const& l, shape const& s, int reg);
  /// This thread owns its elements of the layout; nullptr: every thread does.
  Value* is_owner(linear_layout const& l);
  Value* bit_parity(Value* index, f2_word mask);
  Value* all_of(Value* x, Value* y) { return !x ? y : !y ? x : b.CreateAnd(x, y); }
  void when(Value* condition, std::function<void()> const& body);

  // -- moving data (move.cpp)
  // ---------------------------------------------------------------------------------------------
  std::vector<Value*> convert(std::vector<Value*> x, linear_layout const& from, linear_layout const& to);
  /// Any first-class value of a lane, by xor or by index.
  Value* shuffle(Value* x, unsigned delta);
  Value* shuffle_from(Value* x, Value* from);
  /// Registers of `to` that hold the same elements as registers of `from`, where only registers differ.
  static std::vector<int> register_map(linear_layout const& to, linear_layout const& from);
  /// Owners' values, given to every thread that holds the element.
  std::vector<Value*> replicate(std::vector<Value*> x, linear_layout const& l);

  // -- local memory
  // -------------------------------------------------------------------------------------------------------
  /// Room for one use, in bytes; constant offset in the arena.
  std::uint32_t scratch(std::int64_t bytes, char const* what);
  /// While it lives, uses of scratch memory do not overwrite each other.
  struct hold_scratch {
    explicit hold_scratch(lowerer& lowering) : k(lowering) { k.scratch_held = true, k.scratch_at = 0; }
    ~hold_scratch() { k.scratch_held = false; }
    hold_scratch(hold_scratch const&) = delete;
    lowerer& k;
  };
  Value* arena(std::int64_t offset);
  void touch(local_event::kind what, std::vector<byte_range> bytes, ring_slot slot = {});
  void touch(local_event::kind what, std::int64_t offset, std::int64_t bytes);
  void touch(local_event e);
  void structure(local_event e) { events.push_back({std::move(e), nullptr}); }
  view_value view(int node);
  std::vector<byte_range> bytes_of_view(view_value const& v);
  /// A tile in scratch memory as a row-major view.
  view_value stage(registers const& x, dtype t, shape const& s, linear_layout const& l, char const* what);
  std::vector<Value*> read_view(view_value const& v, linear_layout const& l);
  void write_view(view_value const& v, linear_layout const& l, llvm::ArrayRef<Value*> x, Value* mask = nullptr);
  /// The vectors that a write consists of: where each goes, and its words. Every element once, by its owner.
  using store_function = std::function<void(Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align)>;
  void each_vector(view_value const& v, linear_layout const& l, llvm::ArrayRef<Value*> x, Value* mask, store_function const& store);
  void store_words(Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align align);
  /// Bytes of those vectors.
  int vector_bytes(view_value const& v, linear_layout const& l);
  /// v[c with c[axis] := index[c]], for the registers of a tile of shape `s`.
  std::vector<Value*> gather_view(view_value const& v, std::vector<Value*> const& index, dtype index_type,
                                  shape const& s, linear_layout const& l, int axis);
  /// Whether the slots of a buffer are swizzled: all that touches it are products on a matrix unit and whole accesses.
  enum class spreading : std::uint8_t { none, rows, across };
  spreading spreads_over_banks(int buffer) const;
  /// Of a buffer's slots: the author's, or the one that spreads rows over banks.
  slot_layout buffer_layout(int buffer) const;
  /// Where the element with this number (i32) lies in its slot, in elements.
  Value* place(Value* number, slot_layout const& l);
  /// The address of an element with the given coordinates (i32 each).
  Value* element_address(view_value const& v, llvm::ArrayRef<Value*> coordinates);
  Value* to_memory(Value* x, dtype t);
  Value* from_memory(Value* x, dtype t);
  /// An element of 16 bits that is half of a word which is there already: the word, and which half.
  struct half {
    Value* word = nullptr;
    bool high = false;
  };
  static half half_of(Value* x);
  Value* pack(llvm::ArrayRef<Value*> elements, dtype t, llvm::Type* word);
  void unpack(llvm::ArrayRef<Value*> words, dtype t, llvm::MutableArrayRef<Value*> elements);
  llvm::Type* word_type(dtype t, int elements) const;

  // -- global memory
  // ------------------------------------------------------------------------------------------------------
  struct global_access {
    linear_layout layout;
    std::vector<Value*> address, mask; ///< of each register; a null mask lets everything through
  };
  /// Addresses and masks of a memory operation's elements; the mask includes bounds, padding, and `owners_only`.
  global_access address_of(int node, int mask_operand, linear_layout const& l, bool owners_only);
  Value* pointer_of(registers const& p, dtype t, int reg);
  /// The values of a load's elements: masked-off ones are 0.
  std::vector<Value*> load_global(int node, global_access const& a, int other, cache_hint hint);

  // -- control and structure
  // ----------------------------------------------------------------------------------------------
  struct open_region {
    int node;
    llvm::BasicBlock *head = nullptr, *exit = nullptr, *otherwise = nullptr;
    llvm::PHINode *index = nullptr, *remaining = nullptr;
    Value* step = nullptr;
  };
  std::vector<open_region> open;
  struct cell {
    std::vector<llvm::AllocaInst*> slot;
  };
  std::map<int, cell> cells;
  llvm::AllocaInst* alloca_in_entry(llvm::Type* t);
  llvm::BasicBlock* block(char const* name) { return llvm::BasicBlock::Create(context, name, function); }
  void push_scope() { scopes.emplace_back(); }
  void pop_scope() { scopes.pop_back(); }
  llvm::BasicBlock* leave = nullptr; ///< where the kernel returns
  std::vector<llvm::Value*> slots;   ///< kernel parameters
  int first_slot_of(int param) const { return first_slot(g, param); }
  std::vector<spreading> buffer_swizzled;
  std::vector<std::int64_t> buffer_offset; ///< of each allocation, in the arena or (static) behind `static_base`
  static constexpr std::int64_t static_base = 1 << 28;
  std::map<int, llvm::GlobalVariable*> static_arrays;
  std::map<int, int> commits; ///< how many async_commit nodes precede a node, in program order
  bool copies_in_flight = false;
  bool copies_by_store = false; ///< an async_load stores some of its elements itself
  std::map<int, std::int64_t> barrier_offset; ///< of each alloc_barriers, in the arena
  /// Barrier of the warps that run this program.
  void agent_barrier(bool all_memory);
  /// Barrier of the cluster, in which all warps of the CTA take part.
  void cluster_barrier();
  void check_cluster();
  std::int64_t cluster_ctas() const { return g.attrs.cluster.x * g.attrs.cluster.y * g.attrs.cluster.z; }

  // -- tasks (tasks.cpp)
  // -------------------------------------------------------------------------------------------------------
  /// Who runs a program: the kernel's own warps, or those of the replicas of a task.
  struct agent {
    int task = -1;   ///< task_begin; -1: the kernel
    int region = -1; ///< tasks_begin
    int warps = 0;   ///< of each replica
    int first_warp = 0;
    int first_replica = 0, replicas = 1;
    int barrier = 0; ///< hardware barrier of the first replica, the next ones count up
  };
  lowerer* parent = nullptr; ///< of a task: the kernel's
  agent self;
  int all_warps = 0;         ///< of the CTA
  Value *replica = nullptr, *barrier_id = nullptr;
  registers outer_cell(int cell);
  void fork(int region);
  void join(int region);
  void meet_all(bool cluster = false); ///< `cluster`: with those of the other CTAs
  /// The shape of the CTA's part that runs a node.
  cta_shape cta_at(int node) const;
  int narrow_words = 0; ///< registers of the largest tile that was kept narrow
  std::map<int, int> carried_words; ///< registers of each load whose tile is used behind a reduction

private:
  friend simt_code kiln::jit::lower_simt(graph_view const&, specialisation const&, kiln::target const&,
                                         module_builder&);
  lowerer(lowerer& kernel, agent const& a);
  llvm::Function* run_task();
  void plan_tasks();
  void plan_registers();
  void take_registers(int first);
  void inline_tasks();
  void walk(int begin, int end);
  registers emit_node(int node);
  /// Something of the program before a task, inside it: a scalar, or the content of a var; a tile.
  registers capture(int node);
  registers outer_tile(int node);
  /// Offset in the arena where the kernel's warps leave a scalar (or the content of a var) before the tasks begin.
  std::int64_t publish(int node);
  /// The same for a tile, or the content of a var of one: where it lies, row by row.
  view_value publish_tile(int node);
  registers handed_tile(int node);
  /// An access that needs no barrier, since those of its region order it.
  void without_barriers(std::function<void()> const& access);
  llvm::SwitchInst* dispatch();
  static constexpr std::int64_t meet_cluster = -1; ///< a command: not a region, but a barrier of the cluster
  llvm::BasicBlock* cluster_case = nullptr;
  void end_regions();
  llvm::GlobalVariable* shared_array(char const* name);
  bool is_outer(int node) const { return parent && node < self.task; }
  std::vector<agent> agents;                ///< all but the kernel's warps
  std::map<int, std::int64_t> published;    ///< of the present region
  std::map<int, view_value> handed;
  std::int64_t captures_at = 0;
  llvm::CallInst *fork_point = nullptr, *tile_point = nullptr;
  bool nested_regions = false;              ///< one is in a loop or branch
  std::int64_t command_at = 0;              ///< then: in the arena, one more than the next region's node; 0: the kernel ends
  llvm::SwitchInst* next_region = nullptr;
  llvm::BasicBlock* workers = nullptr;      ///< where the other warps are
  Value* warp_of_cta = nullptr;
  std::vector<llvm::CallInst*> calls;
  llvm::GlobalVariable* scratch_variable = nullptr; ///< of a task
  llvm::CallInst* scratch_base = nullptr;
  std::vector<std::pair<llvm::GlobalVariable*, std::int64_t>> scratch_of_tasks;
  int assert_node = -1;
  int launch_registers = 0;         ///< of a thread, when the kernel starts; 0: the assembler's choice
  std::vector<int> group_registers; ///< of each four warps, while tasks run; empty: as at the start

  using key = std::pair<int, int>; ///< node (+ result index), layout
  struct recorded_event {
    local_event event;
    llvm::Instruction* marker;
  };

  int current = -1; ///< the node that is being lowered, for messages
  int layout_id(linear_layout const& l);
  registers const* look_up(int node, int layout) const;
  void make_function();
  void place_buffers();
  void make_barriers();
  void debug_location(int node);
  void bound_registers();
  void finish();

  std::vector<std::map<key, registers>> scopes;
  std::vector<linear_layout> layouts;
  std::map<std::pair<int, layout_dim>, Value*> thread_parts;
  std::map<int, Value*> owners_;
  llvm::Instruction* entry_end = nullptr;
  std::vector<recorded_event> events;
  llvm::Function* marker_function = nullptr;
  llvm::GlobalVariable* arena_variable = nullptr;
  std::int64_t data_bytes = 0, scratch_bytes = 0, scratch_at = 0;
  bool scratch_held = false;
  std::shared_ptr<llvm::DIBuilder> debug;
  std::vector<llvm::DIFile*> debug_files;
  std::map<std::uint8_t, llvm::DISubprogram*> debug_scopes;
};

} // namespace kiln::jit::simt
