// What differs between the GPU families: identity of threads, barriers, shuffles, predicated access, a few
// instructions.
#pragma once

#include <kiln/graph/graph.hpp>
#include <kiln/target/target.hpp>
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

  /// Whether copies to shared memory without registers exist for this many bytes.
  virtual bool can_copy(int /*bytes*/) const { return false; }
  /// Starts one; where the mask (if not null) is false, zeros are written.
  virtual void copy(Value* shared, Value* global, int /*bytes*/, Value* mask, cache_hint hint);
  virtual void commit_copies() {}
  virtual void wait_copies(int /*pending*/) {}

  /// The synchronisation scope's name in LLVM IR.
  virtual llvm::StringRef scope_name(memory_scope s) const = 0;

  /// A conversion in one exact instruction; nullptr where there is none. Values as in emit/convert.hpp.
  virtual Value* convert(Value* /*x*/, dtype /*from*/, dtype /*to*/) { return nullptr; }
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
