// Packing: boxes of memory into panels, converted on the way. Three ways, by where memory and panel are dense:
//   rows        memory along k, panel [row][k]: rows are copied side by side
//   by k        memory along rows, panel [k][row]: likewise, k after k
//   transposed  memory along k, panel [k][row]: square blocks through registers
// and a plain loop over elements for boxes whose memory is dense along neither axis, and for edges.
#include "dot_kernel.hpp"

#include "jit/emit/convert.hpp"
#include "jit/emit/loop.hpp"

namespace kiln::jit::host {

using llvm::Type;
using llvm::Value;

namespace {

class packer {
public:
  packer(dot_pack const& pack, dot_recipe const& recipe, llvm::Module& module, emit::capabilities caps, llvm::StringRef name)
      : p(pack), r(recipe), b(module.getContext()), e{b, caps} {
    Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
    std::vector<Type*> types{ptr, ptr};
    types.insert(types.end(), 7, i64);
    f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false), llvm::Function::InternalLinkage, name, module);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addParamAttr(0, llvm::Attribute::NoAlias);
    f->addParamAttr(1, llvm::Attribute::NoAlias);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", f));
    panel_ = f->getArg(0), source_ = f->getArg(1), row_stride_ = f->getArg(2), k_stride_ = f->getArg(3);
    row_low_ = f->getArg(4), row_high_ = f->getArg(5), k_low_ = f->getArg(6), k_high_ = f->getArg(7), k_ = f->getArg(8);
    in_ = p.source->types.front();
    in_bytes_ = static_cast<int>(bytes_of(in_));
    out_bytes_ = r.pairs ? 2 : r.element_bytes;
  }

  llvm::Function* emit() {
    auto* full = all({b.CreateICmpEQ(row_low_, number(0)), b.CreateICmpEQ(row_high_, number(p.rows)),
                      b.CreateICmpEQ(k_low_, number(0)), b.CreateICmpEQ(k_high_, k_)});
    if (p.by_k && p.rows % r.lanes != 0) clear_padding();
    emit::when(b, b.CreateNot(full), [&] { fill(); });
    auto* unit = p.unit_k ? k_stride_ : row_stride_;
    const auto dense = [&] {
      if (!p.by_k) copy_rows();
      else if (!p.unit_k) copy_by_k();
      else transpose();
    };
    if (p.other_is_dense) {
      dense();
    } else {
      emit::branch(b, b.CreateICmpEQ(unit, number(1)),
                   [&] { dense(); return emit::values{}; },
                   [&] { one_by_one(row_low_, row_high_, k_low_, k_high_); return emit::values{}; });
    }
    b.CreateRetVoid();
    return f;
  }

private:
  Value* number(std::int64_t n) { return b.getInt64(static_cast<std::uint64_t>(n)); }
  Value* all(std::initializer_list<Value*> x) {
    Value* v = nullptr;
    for (Value* i : x) v = v ? b.CreateAnd(v, i) : i;
    return v;
  }
  void loop(Value* low, Value* high, std::int64_t step, llvm::function_ref<void(Value*)> body) {
    emit::loop(b, low, high, number(step), body);
  }
  Value* bytes(Value* base, Value* offset) { return b.CreateGEP(b.getInt8Ty(), base, offset); }

  // Address of an element in memory.
  Value* source(Value* row, Value* k) {
    auto* at = b.CreateAdd(p.unit_k ? b.CreateMul(row, row_stride_) : scaled_unit(row, row_stride_, false),
                           p.unit_k ? scaled_unit(k, k_stride_, false) : b.CreateMul(k, k_stride_));
    return bytes(source_, b.CreateMul(at, number(in_bytes_)));
  }
  Value* dense_source(Value* row, Value* k) {
    auto* at = p.unit_k ? b.CreateAdd(b.CreateMul(row, row_stride_), k) : b.CreateAdd(row, b.CreateMul(k, k_stride_));
    return bytes(source_, b.CreateMul(at, number(in_bytes_)));
  }
  Value* scaled_unit(Value* x, Value* stride, bool is_one) { return is_one || p.other_is_dense ? x : b.CreateMul(x, stride); }

  // Address of an element in the panel.
  Value* panel(Value* row, Value* k) {
    auto* unit = r.pairs ? b.CreateLShr(k, 1) : k;
    Value* at;
    if (!p.by_k) {
      at = b.CreateAdd(b.CreateMul(row, number(p.strip)), unit);
    } else {
      auto *strip = b.CreateUDiv(row, number(p.width)), *within = b.CreateURem(row, number(p.width));
      at = b.CreateAdd(b.CreateAdd(b.CreateMul(strip, number(p.strip)), b.CreateMul(unit, number(p.width))), within);
    }
    auto* offset = b.CreateMul(at, number(r.element_bytes));
    if (r.pairs) offset = b.CreateAdd(offset, b.CreateShl(b.CreateAnd(k, number(1)), 1));
    return bytes(panel_, offset);
  }

  // From memory's type, through the casts of the kernel, to the panel's.
  Value* converted(Value* x) {
    auto const& types = p.source->types;
    for (std::size_t i = 1; i < types.size(); ++i) x = emit::convert(e, x, types[i - 1], types[i]);
    if (r.pairs) return b.CreateSExt(x, emit::emitter::shaped(b.getInt16Ty(), x->getType()));
    return emit::convert(e, x, types.back(), r.compute);
  }
  Value* load(Value* from, unsigned lanes) {
    auto* type = is_bool(in_) ? emit::emitter::shaped(b.getInt8Ty(), emit::carrier(b.getContext(), in_, lanes))
                              : emit::carrier(b.getContext(), in_, lanes);
    Value* x = b.CreateAlignedLoad(type, from, llvm::Align(static_cast<std::uint64_t>(in_bytes_)));
    return is_bool(in_) ? b.CreateICmpNE(x, llvm::Constant::getNullValue(type)) : x;
  }
  void store(Value* x, Value* to, bool aligned) {
    const int align = aligned ? r.lanes * r.element_bytes : out_bytes_;
    b.CreateAlignedStore(x, to, llvm::Align(static_cast<std::uint64_t>(align)));
  }

  // In the order in which memory is expected to lie.
  void one_by_one(Value* row_low, Value* row_high, Value* k_low, Value* k_high) {
    const auto move = [&](Value* row, Value* k) { store(converted(load(source(row, k), 0)), panel(row, k), false); };
    if (p.unit_k) loop(row_low, row_high, 1, [&](Value* row) { loop(k_low, k_high, 1, [&](Value* k) { move(row, k); }); });
    else loop(k_low, k_high, 1, [&](Value* k) { loop(row_low, row_high, 1, [&](Value* row) { move(row, k); }); });
  }

  void fill() {
    auto* type = emit::carrier(b.getContext(), in_);
    Value* other = is_bool(in_) ? static_cast<Value*>(b.getInt1(p.source->other != 0)) : nullptr;
    if (!other) {
      auto* bits = b.getIntN(type->getPrimitiveSizeInBits(), p.source->other & (bits_of(in_) >= 64 ? ~0ull : (1ull << bits_of(in_)) - 1));
      other = b.CreateBitCast(bits, type);
    }
    // Whole vectors; what they write beyond this box is packed later, or is padding.
    Value* one = converted(other);
    Value* x = b.CreateVectorSplat(static_cast<unsigned>(r.lanes * (r.pairs ? 2 : 1)), one);
    auto* units = r.pairs ? b.CreateLShr(b.CreateAdd(k_, number(1)), 1) : k_;
    const std::int64_t bytes_of_vector = r.lanes * r.element_bytes;
    const auto fill_run = [&](Value* to, Value* elements) {
      loop(number(0), b.CreateMul(elements, number(r.element_bytes)), bytes_of_vector, [&](Value* i) { store(x, bytes(to, i), p.by_k); });
    };
    if (p.by_k)
      loop(number(0), number(p.rows), p.width, [&](Value* row) { fill_run(panel(row, number(0)), b.CreateMul(units, number(p.width))); });
    else
      loop(number(0), number(p.rows), 1, [&](Value* row) { fill_run(panel(row, number(0)), units); });
  }

  // The last vector of each k is only partly used: its rest must not be numbers that are slow to multiply.
  void clear_padding() {
    const std::int64_t last = p.rows / r.lanes * r.lanes;
    auto* zero = llvm::Constant::getNullValue(llvm::FixedVectorType::get(b.getIntNTy(static_cast<unsigned>(r.element_bytes) * 8), static_cast<unsigned>(r.lanes)));
    loop(number(0), k_, r.pairs ? 2 : 1, [&](Value* k) { store(zero, panel(number(last), k), true); });
  }

  void copy_rows() {
    loop(row_low_, row_high_, 1, [&](Value* row) {
      auto* from = dense_source(row, number(0));
      auto* to = panel(row, number(0));
      const auto move = [&](Value* k, unsigned lanes) {
        store(converted(load(bytes(from, b.CreateMul(k, number(in_bytes_))), lanes)), bytes(to, b.CreateMul(k, number(out_bytes_))), false);
      };
      const std::int64_t step = r.pairs ? 2 * r.lanes : r.lanes;
      auto* vectors = b.CreateAdd(k_low_, b.CreateAnd(b.CreateSub(k_high_, k_low_), number(-step)));
      loop(k_low_, vectors, step, [&](Value* k) { move(k, static_cast<unsigned>(step)); });
      loop(vectors, k_high_, 1, [&](Value* k) { move(k, 0); });
    });
  }

  void copy_by_k() {
    // Whole vectors from row 0 on; where the box starts later, element by element.
    const std::int64_t pair = r.pairs ? 2 : 1;
    auto* ok = b.CreateICmpEQ(row_low_, number(0));
    if (r.pairs) ok = all({ok, b.CreateICmpEQ(k_low_, number(0)), b.CreateICmpSGT(row_high_, number(0)), b.CreateICmpSGT(k_high_, number(0))});
    auto* rows = b.CreateSelect(ok, b.CreateAnd(row_high_, number(-r.lanes)), row_low_);
    Value* ks = r.pairs ? b.CreateSelect(ok, b.CreateAnd(k_high_, number(-pair)), k_low_) : k_high_;
    loop(k_low_, ks, pair, [&](Value* k) {
      loop(row_low_, rows, r.lanes, [&](Value* row) {
        Value* x = converted(load(dense_source(row, k), static_cast<unsigned>(r.lanes)));
        if (r.pairs) {
          Value* y = converted(load(dense_source(row, b.CreateAdd(k, number(1))), static_cast<unsigned>(r.lanes)));
          std::vector<int> mix;
          for (int i = 0; i < r.lanes; ++i) mix.insert(mix.end(), {i, i + r.lanes});
          x = b.CreateShuffleVector(x, y, mix);
        }
        store(x, panel(row, k), true);
      });
    });
    one_by_one(rows, row_high_, k_low_, ks);
    if (r.pairs) one_by_one(row_low_, row_high_, ks, k_high_);
  }

  void transpose() {
    const std::int64_t pair = r.pairs ? 2 : 1, deep = r.lanes * pair;
    auto* ok = all({b.CreateICmpEQ(row_low_, number(0)), b.CreateICmpEQ(k_low_, number(0)), b.CreateICmpSGT(row_high_, number(0)),
                    b.CreateICmpSGT(k_high_, number(0))});
    auto* rows = b.CreateSelect(ok, b.CreateAnd(row_high_, number(-r.lanes)), row_low_);
    auto* ks = b.CreateSelect(ok, b.CreateAnd(k_high_, number(-deep)), k_low_);
    loop(row_low_, rows, r.lanes, [&](Value* row) {
      loop(k_low_, ks, deep, [&](Value* k) {
        std::vector<Value*> block;
        auto* unit = llvm::FixedVectorType::get(r.pairs ? b.getInt32Ty() : emit::carrier(b.getContext(), r.compute), static_cast<unsigned>(r.lanes));
        for (int i = 0; i < r.lanes; ++i)
          block.push_back(b.CreateBitCast(converted(load(dense_source(b.CreateAdd(row, number(i)), k), static_cast<unsigned>(deep))), unit));
        for (int s = 1; s < r.lanes; s *= 2)
          for (int i = 0; i < r.lanes; ++i) {
            if (i & s) continue;
            std::vector<int> low, high;
            for (int j = 0; j < r.lanes; ++j) {
              low.push_back(j & s ? r.lanes + j - s : j);
              high.push_back(j & s ? r.lanes + j : j + s);
            }
            Value *x = block[static_cast<std::size_t>(i)], *y = block[static_cast<std::size_t>(i + s)];
            block[static_cast<std::size_t>(i)] = b.CreateShuffleVector(x, y, low);
            block[static_cast<std::size_t>(i + s)] = b.CreateShuffleVector(x, y, high);
          }
        auto* to = panel(row, k);
        for (int i = 0; i < r.lanes; ++i)
          store(block[static_cast<std::size_t>(i)], bytes(to, number(i * p.width * r.element_bytes)), true);
      });
    });
    one_by_one(rows, row_high_, k_low_, ks);
    one_by_one(row_low_, row_high_, ks, k_high_);
  }

  dot_pack const& p;
  dot_recipe const& r;
  llvm::IRBuilder<> b;
  emit::emitter e;
  llvm::Function* f;
  Value *panel_, *source_, *row_stride_, *k_stride_, *row_low_, *row_high_, *k_low_, *k_high_, *k_;
  dtype in_{};
  int in_bytes_ = 0, out_bytes_ = 0;
};

} // namespace

llvm::Function* emit_dot_pack(dot_pack const& p, dot_recipe const& r, llvm::Module& module, emit::capabilities caps, llvm::StringRef name) {
  return packer(p, r, module, caps, name).emit();
}

} // namespace kiln::jit::host
