// Bitonic sorting of rows that are spread over registers, lanes and warps: private to jit/target/simt.
#pragma once

#include "lowerer.hpp"

#include "jit/emit/sort_key.hpp"

namespace kiln::jit::simt {

/// The rows of a tile of unsigned integers along one axis, in ascending order. Every column of the layout is a single bit of an
/// axis, or zero.
class row_sorter {
public:
  row_sorter(lowerer& lowering, linear_layout layout, int along, std::vector<Value*> values)
      : k(lowering), l(std::move(layout)), axis(axis_dim(along)), x(std::move(values)) {}

  /// Sorts; `values` is then in `layout`, which may have changed.
  void run();
  linear_layout const& layout() const { return l; }
  std::vector<Value*> const& values() const { return x; }

private:
  lowerer& k;
  linear_layout l;
  layout_dim axis;
  std::vector<Value*> x;

  struct column {
    layout_dim where = layout_dim::none;
    int index = 0;
  };
  column column_of(int bit) const;
  void invert_between(int before, int after);
  void bring(int stage, int bit);
  void step(int stage, int bit);
};

/// Elements of a topk: the key above the index.
struct packed_form {
  dtype type;
  bool descending;
  unsigned bits, index_bits;

  packed_form(dtype t, bool largest, std::int64_t extent) : type(t), descending(largest) {
    auto const key = static_cast<unsigned>(bits_of(t));
    bits = key <= 16 && extent <= 65536 ? 32 : key <= 32 ? 64 : 128;
    index_bits = bits == 32 ? 16 : 32;
  }
  Value* key(lowerer& k, Value* x) const {
    emit::emitter e = k.emitter();
    return emit::sort_key(e, x, type, descending);
  }
  Value* pack(lowerer& k, Value* key, Value* index) const {
    llvm::Type* t = k.b.getIntNTy(bits);
    return k.b.CreateOr(k.b.CreateShl(k.b.CreateZExt(key, t), index_bits), k.b.CreateZExtOrTrunc(index, t));
  }
  Value* value(lowerer& k, Value* packed) const {
    emit::emitter e = k.emitter();
    Value* key = k.b.CreateTrunc(k.b.CreateLShr(packed, index_bits), k.b.getIntNTy(static_cast<unsigned>(bits_of(type))));
    return emit::number_of_key(e, key, type, descending, k.carrier(type));
  }
  Value* index(lowerer& k, Value* packed) const {
    Value* i = k.b.CreateTrunc(packed, k.b.getInt32Ty());
    return index_bits < 32 ? k.b.CreateAnd(i, k.i32((std::int64_t{1} << index_bits) - 1)) : i;
  }
};

/// The few best of one row that the whole CTA has in many registers; false: not such a one (select.cpp).
bool best_of_long_row(lowerer& k, int node, packed_form const& form);

} // namespace kiln::jit::simt
