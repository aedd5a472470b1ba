// The state of one lowering and its parts: every .cpp of this folder defines some members of `writer`. Private to jit/.
//
// Code is pulled: a nest asks for the value of its roots' operands at a strip of coordinates, which asks for theirs.
// `lanes` is such a value. It knows more than an llvm::Value: whether all lanes are equal (then it is a scalar), or an
// integer that counts along lanes (then it is symbolic, and addresses made from it stay contiguous). Every value lies
// at a level: 0 is in front of the nest, d inside the d-th open loop. What does not depend on an inner loop is emitted
// at its own level, in front of that loop, so nothing has to be hoisted later.
#pragma once
#include "hooks.hpp"
#include "plan.hpp"

#include "jit/emit/convert.hpp"
#include "jit/emit/emitter.hpp"
#include "jit/emit/loop.hpp"
#include "jit/engine.hpp"

#include <kiln/graph/specialisation.hpp>

#include <functional>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kiln::jit::host {

struct dot_loop;

using llvm::Type;
using llvm::Value;

/// A loop index times a constant.
struct term {
  Value* index; // i64
  int level;
  std::int64_t scale;
};

/// The value of a node at one strip: v + sum of terms + add + lane * step, where v is a scalar (or absent), or a vector
/// without the rest. Terms, add and step are for integers only; the sum wraps in the value's type.
struct lanes {
  Value* v = nullptr;
  int level = 0;
  bool vector = false;
  llvm::SmallVector<term, 3> terms;
  std::int64_t add = 0, step = 0;

  bool affine() const { return !terms.empty() || add != 0 || step != 0 || v == nullptr; }
  bool uniform() const { return !vector && step == 0; }
  int deepest() const {
    int l = v ? level : 0;
    for (const term& t : terms) l = std::max(l, t.level);
    return l;
  }
};
using coordinates = llvm::SmallVector<lanes, 6>;

/// Where a strip of elements lies in memory: base + offset bytes. Without base the offset is an address.
struct address {
  Value* base = nullptr;
  int level = 0;
  lanes offset;
  int align = 1; // of the elements
};

/// An address with what guards it.
struct guarded {
  address where;
  bool has_mask = false;
  lanes mask; // of i1
};

class writer {
public:
  writer(graph_view view, specialisation const& facts, host_cpu const& cpu, module_builder& builder);
  host_code run();
  /// The same for the rest of a kernel whose K loop was taken out: the loop over CTAs is the blocked product's
  /// (dot_kernel.hpp), which leaves what the loop would have summed in `buffer`.
  host_code run_after(graph_view const& whole, dot_loop const& d, int buffer);

private:
  // -- lower.cpp: the function, the walk, scalars, control -----------------------------------------------------------
  void open_function(llvm::Function* f);
  llvm::Function* make_entry();
  void set_program(Value* cta);
  void open_ctas();
  void close_ctas();
  void walk();
  void emit_structure(int n);
  void emit_scalar(int n);
  Value* scalar_value(int n);
  Value* slot(int index);
  Value* constant_of(dtype t, std::int64_t bits);
  void close_function();
  void fence_streams();
  void locate(int n); // debug location
  llvm::AllocaInst* cell(Type* t, const llvm::Twine& name = "");
  [[noreturn]] void refuse(int n, std::string const& why) const;

  // -- strip.cpp: levels, lanes, pulling -----------------------------------------------------------------------------
  template <class F> auto on(int level, F f) {
    levels_[static_cast<std::size_t>(here_)].tail = b.GetInsertBlock();
    const int was = here_;
    here_ = level;
    b.SetInsertPoint(levels_[static_cast<std::size_t>(level)].tail);
    auto r = f();
    levels_[static_cast<std::size_t>(level)].tail = b.GetInsertBlock();
    here_ = was;
    b.SetInsertPoint(levels_[static_cast<std::size_t>(was)].tail);
    return r;
  }
  int deepest() const { return static_cast<int>(levels_.size()) - 1; }
  void begin_levels();
  void end_levels();
  lanes open_loop(std::int64_t trip, std::int64_t step = 1);
  void close_loop();

  lanes pull(int n, coordinates const& x, bool index = false);
  lanes pull_fresh(int n, coordinates const& x, bool index);
  lanes pull_elementwise(int n, coordinates const& x, bool index);
  coordinates through_broadcast(shape const& from, shape const& to, coordinates const& x);
  coordinates through_squeeze(shape const& from, shape const& to, coordinates const& x);
  coordinates through_reshape(shape const& from, shape const& to, coordinates const& x);
  lanes pull_pointer_value(int n, coordinates const& x); // i64
  void remember(int n, coordinates const& x, lanes const& value);

  Value* scalar_of(lanes const& l, Type* t); // requires l.uniform()
  Value* vector_of(lanes const& l, Type* t); // <width_ x t>, a scalar where width_ is 1
  lanes sum(lanes const& a, lanes const& b2, Type* t, bool negative = false);
  lanes scaled(lanes const& a, std::int64_t factor, Type* t);
  lanes widened(lanes const& a, dtype from, bool assume_no_wrap); // to i64
  static lanes number(std::int64_t k) {
    lanes l;
    l.add = k;
    return l;
  }
  static lanes of(Value* v, int level, bool vector) {
    lanes l;
    l.v = v;
    l.level = level;
    l.vector = vector;
    return l;
  }
  Type* carrier(dtype t, unsigned n = 0) { return emit::carrier(c, t, n); }
  Type* vector_type(Type* t, unsigned n) { return n == 1 ? t : llvm::FixedVectorType::get(t, n); }
  Type* memory_type(dtype t) { return is_bool(t) ? b.getInt8Ty() : carrier(t); }
  Value* splat(Value* v) { return width_ == 1 ? v : b.CreateVectorSplat(width_, v); }

  // -- elementwise.cpp -----------------------------------------------------------------------------------------------
  Value* apply(int n, llvm::ArrayRef<Value*> operands);
  Value* widen_float(Value* x, dtype t) { return emit::convert(e, x, t, emit::compute_type(t)); }
  Value* narrow_float(Value* x, dtype t) { return emit::convert(e, x, emit::compute_type(t), t); }

  // -- memory.cpp: addresses, masks, loads and stores, views
  // ------------------------------------------------------------
  address pull_address(int n, coordinates const& x);
  guarded pull_access(int address_node, int mask_node, coordinates const& x);
  guarded pull_region(int n, coordinates const& x);
  Value* pointer_of(address const& a);  // requires a uniform or stepped offset: the address of lane 0
  Value* pointers_of(address const& a); // vector of pointers
  lanes read(address const& a, dtype t, bool is_volatile = false, bool padded = false);
  lanes read_guarded(guarded const& a, dtype t, lanes const* other, bool is_volatile);
  void write(guarded const& a, dtype t, lanes const& value, bool output = false);
  void write_held();
  Value* load_known(Type* type, Value* p, bool contiguous, llvm::Align align, llvm::Constant* mask, Value* otherwise);
  void store_known(Value* v, Value* p, bool contiguous, llvm::Align align, llvm::Constant* mask);
  lanes from_memory(lanes const& raw, dtype t);
  Value* to_memory(Value* v, dtype t) {
    return is_bool(t) ? b.CreateZExt(v, emit::emitter::shaped(b.getInt8Ty(), v->getType())) : v;
  }
  address slice_address(int slice, shape const& s, coordinates const& x);
  lanes placed(lanes const& number, slot_layout const& l);
  lanes read_slice(int slice, shape const& s, coordinates const& x);
  void write_slice(int slice, shape const& s, coordinates const& x, lanes const& value);
  address view_address(int n, coordinates x);
  Value* buffer_base(int buffer);
  lanes both(guarded const& a, lanes const& more); // conjunction of masks

  // Conditions under which the fast version of a nest is right (see bounds.cpp).
  struct interval {
    Value *low = nullptr, *high = nullptr; // i64
    Value* valid = nullptr;                // i1 or null: nothing can wrap
  };
  bool bounds(int n, interval& out);
  Value* all_true(int mask, bool& known);
  void conditions_of(int address_node, int mask_node, std::vector<Value*>& all);
  void collect_accesses(nest const& it, std::vector<std::pair<int, int>>& out);
  Value* conjunction(std::vector<Value*> const& all);
  Value* streaming_condition(nest const& it);
  bool is_affine(int n) const;
  static std::int64_t streaming_bytes();
  Value* checked_add(Value* x, Value* y, dtype t, Value*& valid);
  Value* and_of(Value* x, Value* y) { return !x ? y : !y ? x : b.CreateAnd(x, y); }

  // -- nest.cpp: loop nests and their roots
  // ------------------------------------------------------------------------------
  void emit_nest(nest const& it);
  void emit_loops(nest const& it, bool fast);
  struct strip {
    lanes at;
    unsigned width;
  };
  void for_strips(std::int64_t extent, unsigned width, unsigned unroll,
                  llvm::function_ref<void(llvm::ArrayRef<strip>)> body);
  void emit_strip(nest const& it, coordinates const& x, unsigned strip_index);
  struct accumulator {
    int node = -1;
    int axis = -1;
    std::vector<llvm::AllocaInst*> cells, more; // per unrolled strip; more: seen flags, or indices
  };
  void reset(accumulator& a, unsigned strips, unsigned width);
  void accumulate(accumulator& a, lanes const& value, coordinates const& x, unsigned strip_index);
  void finish_lanes(accumulator& a, coordinates const& x);                        // across lanes, to one value
  void finish_column(accumulator& a, coordinates const& x, unsigned strip_index); // lane by lane
  Value* finished(int n, Value* v, Value* more);
  std::pair<Value*, Value*> better(reduce_op o, dtype t, Value* x, Value* x_at, Value* y, Value* y_at);
  void deliver(int n, lanes const& value, coordinates const& x);
  Value* combine(reduce_op o, nan_mode mode, dtype t, Value* x, Value* y);
  Value* identity(reduce_op o, dtype t);
  coordinates reduced_coordinates(int n, coordinates const& x);
  Value* pad(Value* v, unsigned width, Value* scalar_identity);
  Value* fold(Value* v, llvm::function_ref<Value*(Value*, Value*)> combine);
  unsigned lanes_for(int bits, std::int64_t extent) const;

  // -- own.cpp, order.cpp, atomic.cpp, dot.cpp: operations with loops of their own
  // -------------------------------------------------------
  void emit_own(int n, nest const& it);
  void emit_scan(int n);
  void emit_custom_reduce(int n);
  void emit_join(int n);
  void emit_scatter(int n);
  void emit_print(int n);
  void emit_histogram(int n); // order.cpp
  void emit_sort(int n);
  void emit_atomic(int n);
  void emit_private_counters(int n, private_counters const& few);
  Value* atomic(int n, Value* pointer, llvm::ArrayRef<Value*> operands);
  void emit_dot(int n);
  std::vector<Value*> run_combine(int body, llvm::ArrayRef<Value*> left, llvm::ArrayRef<Value*> right);
  void call_assert(int n);
  void for_each_outer(shape const& s, llvm::ArrayRef<int> skip, coordinates& x, llvm::function_ref<void()> body);

  graph_view g;
  specialisation const& facts_;
  host_cpu const& cpu_;
  module_builder& out_;
  plan plan_;
  llvm::LLVMContext& c;
  llvm::IRBuilder<> b;
  emit::emitter e;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BasicBlock* cta_exit_ = nullptr;
  llvm::PHINode* cta_ = nullptr;
  std::vector<Value*> slot_values_;
  Value *slots_ = nullptr, *grid_[3]{}, *program_[3]{}, *arena_ = nullptr, *runtime_ = nullptr;
  std::vector<Value*> scalar_;                            // by node: scalar values and pointers
  std::vector<llvm::AllocaInst*> cells_;                  // by node: scalar vars, reductions to scalars (index 0)
  std::unordered_map<int, llvm::AllocaInst*> more_cells_; // results 1.. of reductions: node * 8 + index
  struct level {
    llvm::BasicBlock* tail = nullptr;
    llvm::BasicBlock* head = nullptr;
    llvm::PHINode* counter = nullptr;
    std::int64_t trip = 0, step = 1;
    std::unordered_map<std::string, lanes> memo;
  };
  std::vector<level> levels_;
  int here_ = 0;
  int filled_buffer_ = -1; // local buffer that lies elsewhere, and where
  Value* filled_ = nullptr;
  unsigned width_ = 1; // lanes of the present strip
  unsigned natural_width_ = 1;
  std::unordered_set<int> assumed_; // masks and regions known to be all true; see conditions_of
  // Stores that may go around the cache, if `stream_` (i1) holds; they are held back to the end of a round of strips, so
  // that one branch decides for all of them.
  struct held_store {
    Value *value, *pointer;
    llvm::Align plain, around;
  };
  Value* stream_ = nullptr;
  std::vector<held_store> held_;
  bool any_streaming_ = false;
  std::vector<accumulator> accumulators_;
  std::vector<llvm::AllocaInst*> failed_; // of device_assert roots in the nest
  struct region_state {
    int begin;
    llvm::BasicBlock *head, *body, *other, *exit;
    llvm::PHINode* counter;
    Value *trip, *index, *low, *step;
  };
  std::vector<region_state> open_;
  std::unique_ptr<llvm::DIBuilder> debug_;
  llvm::DISubprogram* debug_function_ = nullptr;
  std::vector<llvm::DIScope*> debug_scopes_;
};

} // namespace kiln::jit::host
