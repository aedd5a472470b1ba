// What differs between the GPU families: identity of threads, barriers, shuffles, predicated access, a few
// instructions.
#pragma once

#include <kiln/graph/graph.hpp>
#include <kiln/target/target.hpp>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <memory>
#include <vector>

namespace kiln::jit::simt {

using llvm::Value;

/// How an access is to treat the caches.
struct cache_hint {
  kiln::cache cache = kiln::cache::none;
  kiln::evict evict = kiln::evict::none;
  bool is_volatile = false;
  bool read_only = false; ///< nobody writes these bytes while the kernel runs
  bool plain() const { return cache == kiln::cache::none && evict == kiln::evict::none && !is_volatile; }
};

class hardware {
public:
  hardware(llvm::IRBuilder<>& builder, kiln::target const& t) : b(builder), target(t) {}
  virtual ~hardware() = default;

  /// Calling convention and attributes of the kernel.
  virtual void prepare_kernel(llvm::Function& f, int num_threads) = 0;
  /// The kernel runs in clusters of this shape.
  virtual void set_cluster(llvm::Function& /*kernel*/, dims /*shape*/) {}

  virtual Value* thread_id(int num_threads) = 0;
  virtual Value* block_id(int axis) = 0;
  virtual Value* grid_extent(int axis) = 0;
  /// A value that is the same in the whole warp, told to the compiler.
  virtual Value* warp_uniform(Value* i32) = 0;

  /// Barrier of the CTA for shared memory, or for all memory.
  virtual void barrier(bool all_memory) = 0;

  /// The i32 of lane ^ delta, and of lane `from`. All lanes take part.
  virtual Value* shuffle_xor(Value* i32, Value* lane, unsigned delta) = 0;
  virtual Value* shuffle_index(Value* i32, Value* from) = 0;

  /// Reads `words` (a power of two) of type `word` from each address; where `mask` (if not null) is false the memory is
  /// not touched and the words are 0.
  virtual std::vector<std::vector<Value*>> load(llvm::ArrayRef<Value*> addresses, llvm::Type* word, int words,
                                                int align, Value* mask, cache_hint hint);
  /// Writes where the mask (if not null) is true.
  virtual void store(llvm::ArrayRef<Value*> addresses, llvm::ArrayRef<std::vector<Value*>> values, int align,
                     Value* mask, cache_hint hint);

  /// Whether there is a matrix unit with the fragments of mma.sync; the following need it.
  virtual bool has_matrix_unit() const { return false; }
  /// 1, 2 or 4 matrices of eight rows of 16 bytes, one i32 a lane each; lane 8j+i gives the address of row i of matrix j.
  virtual std::vector<Value*> load_matrices(Value* /*row*/, int /*count*/, bool /*transposed*/) { return {}; }
  /// sums += a * b of one fragment; words as the unit takes them. Types: f16, bf16, f32 (rounded to tf32), i8.
  virtual void multiply(dtype, llvm::ArrayRef<Value*> /*a*/, llvm::ArrayRef<Value*> /*b*/,
                        llvm::MutableArrayRef<Value*> /*sums*/) {}
  /// Bytes of two i32, low ones first, by the numbers in `selector`, four bits each.
  virtual Value* permute_bytes(Value* low, Value* /*high*/, unsigned /*selector*/) { return low; }
  virtual Value* round_to_tf32(Value* f32_bits) { return f32_bits; }
  /// Two f8 in an i16 as two f16 in an i32, exactly; nullptr where there is no instruction.
  virtual Value* widen_pair(Value* /*i16*/, dtype) { return nullptr; }

  /// Whether there is an instruction for the maximum or minimum of two pairs of f16 or bf16, numbers before NaN.
  virtual bool has_pair_extremum() const { return false; }
  virtual Value* pair_extremum(bool /*maximum*/, Value* x, Value* /*y*/, dtype) { return x; }
  /// The least unsigned i32 of all lanes in one instruction, all of which take part; nullptr where there is none.
  virtual Value* least_of_lanes(Value* /*i32*/) { return nullptr; }
  /// The same i32, made where this stands: what is computed from it is not computed earlier and kept.
  virtual Value* made_here(Value* i32) { return i32; }

  /// Whether one instruction adds up to 16 bytes of neighbouring floats to memory.
  virtual bool has_vector_adds() const { return false; }
  /// Adds `words` (i32: a float, or two of 16 bits) to memory where the mask (if not null) is true; relaxed.
  virtual void add(Value* /*address*/, llvm::ArrayRef<Value*> /*words*/, dtype, memory_scope, Value* /*mask*/) {}

  /// The most bytes that one prefetch of this alignment asks for, a power of two; 0: there is none.
  virtual int prefetch_bytes(cache_level, int /*align*/) const { return 0; }
  virtual void prefetch(Value* /*address*/, int /*bytes*/, cache_level, Value* /*mask*/) {}

  /// Whether copies to shared memory without registers exist for this many bytes.
  virtual bool can_copy(int /*bytes*/) const { return false; }
  /// Starts one; where the mask (if not null) is false, zeros are written.
  virtual void copy(Value* shared, Value* global, int /*bytes*/, Value* mask, cache_hint hint);
  virtual bool has_memory_barriers() const { return false; }
  /// Set where other CTAs arrive at barriers of this one: waits are then for what those did, too.
  bool waits_for_cluster = false;
  /// Whether four warps can hand registers to others.
  virtual bool has_register_budgets() const { return false; }
  virtual void limit_registers(llvm::Function& /*kernel*/, int /*a thread*/) {}
  /// Sets the registers of each thread of the present four warps; more are waited for.
  virtual void set_registers(int /*count*/, bool /*more*/) {}
  /// Barrier of one warp.
  virtual void warp_barrier() {}
  /// Barriers of 8 bytes in shared memory, at addresses there; counts are of threads that arrive.
  virtual void barrier_init(Value* /*at*/, int /*count*/) {}
  /// After the last of them is initialised, by the thread that did it.
  virtual void barriers_made() {}
  virtual void barrier_arrive(Value* /*at*/, int /*count*/) {}
  /// An arrival, and that many bytes more for the phase to wait for.
  virtual void barrier_expect(Value* /*at*/, std::int64_t /*bytes*/) {}
  /// Until the phase of that parity (i32, 0 or 1) is complete.
  virtual void barrier_wait(Value* /*at*/, Value* /*parity*/) {}
  /// Arrives once the copies of this thread have landed; `stores`: some of its elements were stored.
  virtual void copies_arrive(Value* /*at*/, bool /*stores*/) {}
  /// Barrier `id` of a number of threads: waits, or only arrives.
  virtual void named_barrier(Value* /*id*/, int /*threads*/, bool /*wait*/) {}
  /// This thread's writes to shared memory become visible to bulk copies.
  virtual void fence_async_shared() {}
  /// Whether an engine copies whole rows to and from shared memory.
  virtual bool has_bulk_copies() const { return false; }
  virtual void bulk_load(Value* /*shared*/, Value* /*global*/, std::int64_t /*bytes*/, Value* /*barrier*/, kiln::evict) {}
  /// One group.
  virtual void bulk_store(Value* /*global*/, Value* /*shared*/, std::int64_t /*bytes*/) {}
  virtual void bulk_wait(int /*pending*/, bool /*read*/) {}
  virtual void commit_copies() {}
  virtual void wait_copies(int /*pending*/) {}

  /// Whether CTAs form clusters that reach each other's shared memory; the following need it.
  virtual bool has_clusters() const { return false; }
  /// Of this CTA, below the cluster's number of CTAs.
  virtual Value* cluster_rank(int /*ctas*/) { return b.getInt32(0); }
  /// All threads of all CTAs of the cluster, for all memory.
  virtual void cluster_barrier() {}
  /// Where the CTA of that rank has what this one has at a place in shared memory.
  virtual Value* remote(Value* shared, Value* /*rank*/) { return shared; }
  /// Arrivals at a remote barrier, which releases what came before to the cluster.
  virtual void remote_arrive(Value* /*remote_barrier*/, int /*count*/) {}
  /// Writes words (of 4, 8 or 16 bytes together) at a remote place, some time later; the bytes count on the remote barrier.
  virtual void remote_store(Value* /*remote*/, llvm::ArrayRef<Value*> /*words*/, Value* /*remote_barrier*/) {}
  /// The same for a row of this CTA's shared memory, by the copy engine.
  virtual void remote_copy(Value* /*remote*/, Value* /*shared*/, std::int64_t /*bytes*/, Value* /*remote_barrier*/) {}
  /// The barriers that this thread has made are seen by the cluster, behind its next barrier.
  virtual void fence_barrier_init() {}

  /// The synchronisation scope's name in LLVM IR.
  virtual llvm::StringRef scope_name(memory_scope s) const = 0;

  /// The same i32, as a value that neither LLVM nor the assembler knows anything about.
  virtual bool can_hide() const { return false; }
  virtual Value* hide(Value* i32) { return i32; }
  /// Asks for code of which this many CTAs fit a multiprocessor.
  virtual void run_together(llvm::Function& /*kernel*/, int /*ctas*/) {}

  /// A conversion in one exact instruction; nullptr where there is none. Values as in emit/convert.hpp.
  virtual Value* convert(Value* /*x*/, dtype /*from*/, dtype /*to*/) { return nullptr; }
  /// Two f32 rounded to f16 or bf16, the first in the low half of an i32; nullptr where there is no instruction.
  virtual Value* narrow_pair(Value* /*low*/, Value* /*high*/, dtype) { return nullptr; }
  /// `f` of x as one statement of the target's assembly, so that LLVM does not walk over the same instructions for every element; nullptr
  /// where there is no such form. Calls `f` at most once for each operation and type, and with a value of another function.
  virtual Value* statement(op, Value* /*x*/, llvm::function_ref<Value*(Value*)> /*f*/) { return nullptr; }
  /// The approximate instruction of a fast form in f32; nullptr where there is none.
  virtual Value* fast(op, Value* /*x*/, Value* /*y*/) { return nullptr; }

  /// Shared memory whose size is set by the launch (true) or lies in the code object.
  virtual bool dynamic_shared() const = 0;

  /// printf of one line; false where the target cannot.
  virtual bool can_print() const { return false; }
  virtual void print(llvm::StringRef /*format*/, llvm::ArrayRef<Value*> /*values*/) {}

protected:
  llvm::IRBuilder<>& b;
  kiln::target const& target;

  Value* load_plain(Value* address, llvm::Type* word, int words, int align, cache_hint hint);
  void store_plain(Value* address, llvm::ArrayRef<Value*> values, int align, cache_hint hint);
};

std::unique_ptr<hardware> make_nvptx(llvm::IRBuilder<>& b, kiln::target const& t);
std::unique_ptr<hardware> make_amdgpu(llvm::IRBuilder<>& b, kiln::target const& t);

} // namespace kiln::jit::simt
