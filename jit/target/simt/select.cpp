// The few best of a long row, in one pass over its registers.
//
// Each thread takes the best of what it has, groups of threads the best of theirs; the k-th best of those is a bound: k elements
// at least are not worse, and seldom many more. Those, found by the few threads that have any, go into a list in shared memory,
// and one warp counts for each how many of the list come before it: that is its place. Where there are more than the list holds
// (many equal ones, say), the row is searched k times instead, each time for the best one behind the last.
#include "sorter.hpp"

#include "extremum.hpp"
#include "lowerings.hpp"

#include "jit/emit/loop.hpp"

#include <algorithm>
#include <kiln/layout/ownership.hpp>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

constexpr int list_room = 64;
constexpr std::size_t group_size = 8; ///< registers of a thread that are looked through together

class selection {
public:
  selection(lowerer& lowering, int topk, packed_form const& f, linear_layout const& layout, int of_threads)
      : k(lowering), node(topk), form(f), l(layout), from(k.g.operand(topk, 0)), axis(static_cast<int>(k.g.attribute(topk, 0))),
        s(k.g.shape_of(from)), count(k.g.shape_of(topk).extent[axis]), groups(of_threads),
        key_type(k.b.getIntNTy(std::max(32u, static_cast<unsigned>(bits_of(f.type))))), packed_type(k.b.getIntNTy(f.bits)),
        x(k.get(from, l).r) {}

  void run() {
    auto& b = k.b;
    bool const padded = !std::has_single_bit(static_cast<unsigned>(s.extent[axis]));
    extremum const best(k, form.type, form.descending, !padded);
    std::vector<Value*> of_group;
    for (std::size_t first = 0; first < x.size(); first += group_size) {
      std::vector<Value*> v(x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + group_size));
      for (std::size_t i = 0; padded && i < v.size(); ++i)
        v[i] = best.inside_or_last(v[i], k.inside(l, s, static_cast<int>(first + i)));
      of_group.push_back(best.of(v));
    }
    Value* const own = best.number(best.of_candidates(of_group));

    std::int64_t const packed_bytes = form.bits / 8, key_bytes = key_type->getIntegerBitWidth() / 8;
    std::int64_t const keys = list_room * packed_bytes, counter = keys + groups * key_bytes, places = counter + 16;
    std::int64_t const base = k.scratch(places + count * packed_bytes, "topk");
    Value* const bound = bound_of(b.CreateZExt(form.key(k, best.narrowed(own)), key_type), base + keys, base + counter);
    // The bound as a number: comparing numbers is cheaper than making keys. A NaN lets nothing pass; see `crowded`.
    emit::emitter e = k.emitter();
    Value* const worst = best.widened(emit::number_of_key(
        e, b.CreateTrunc(bound, b.getIntNTy(static_cast<unsigned>(bits_of(form.type)))), form.type, form.descending, k.carrier(form.type)));
    auto passes = [&](Value* number) { return best.not_worse(number, worst); };

    auto range = [&](std::int64_t from, std::int64_t length) {
      return byte_range{static_cast<std::uint32_t>(base + from), static_cast<std::uint32_t>(base + from + length)};
    };
    std::vector<byte_range> const list{range(0, keys), range(counter, 4)};
    k.touch(local_event::kind::write, list);
    k.when(passes(own), [&] {
      for (std::size_t g = 0; g < of_group.size(); ++g)
        k.when(passes(best.number(of_group[g])), [&] {
          std::vector<Value*> const again = k.made_here(llvm::ArrayRef(x).slice(g * group_size, group_size), form.type);
          for (std::size_t i = 0; i < group_size; ++i) {
            auto const r = static_cast<int>(g * group_size + i);
            Value* good = k.all_of(passes(best.widened(again[i])), k.inside(l, s, r));
            k.when(good, [&] { append(form.pack(k, form.key(k, again[i]), k.coordinate(l, axis, r)), base, base + counter); });
          }
        });
    });

    k.touch(local_event::kind::read, list);
    Value* const listed = b.CreateAlignedLoad(b.getInt32Ty(), k.arena(base + counter), llvm::Align(4));
    llvm::BasicBlock *many = k.block("many"), *few = k.block("few"), *after = k.block("selected");
    Value* const crowded = b.CreateOr(b.CreateICmpUGT(listed, k.i32(list_room)), b.CreateICmpEQ(bound, last_of(key_type)));
    b.CreateCondBr(crowded, many, few);
    b.SetInsertPoint(many);
    k.structure({.what = local_event::kind::branch_begin});
    std::vector<Value*> const searched = one_by_one();
    llvm::BasicBlock* const many_end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(few);
    k.structure({.what = local_event::kind::branch_else});
    std::vector<Value*> const sorted = sorted_list(listed, base, base + places);
    llvm::BasicBlock* const few_end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    k.structure({.what = local_event::kind::branch_end});
    registers values, indices;
    for (std::size_t r = 0; r < sorted.size(); ++r) {
      llvm::PHINode* phi = b.CreatePHI(packed_type, 2);
      phi->addIncoming(searched[r], many_end);
      phi->addIncoming(sorted[r], few_end);
      values.r.push_back(phi);
    }
    // What is rarely done must not take the registers that let a second row be loaded meanwhile.
    auto const words = static_cast<int>(x.size()) * std::max(16, static_cast<int>(bits_of(form.type))) / 32;
    if (!k.parent && (words + 32) * k.cta.threads() * 2 <= 65536) k.hw->run_together(*k.function, 2);
    for (Value*& v : values.r) indices.r.push_back(form.index(k, v)), v = form.value(k, v);
    k.define(node, indices, 1);
    k.define(node, values, 0);
  }

private:
  lowerer& k;
  int node;
  packed_form form;
  linear_layout l;
  int from, axis;
  shape const& s;
  int count, groups;
  llvm::IntegerType *key_type, *packed_type;
  std::vector<Value*> x;

  Value* least(Value* p, Value* q) { return k.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, p, q); }
  Value* last_of(llvm::Type* t) { return llvm::Constant::getAllOnesValue(t); }
  Value* place(llvm::Type* t, std::int64_t at, Value* index) { return k.b.CreateInBoundsGEP(t, k.arena(at), index); }
  llvm::Align align(llvm::IntegerType* t) { return llvm::Align(t->getBitWidth() / 8); }
  int lanes() const { return k.cta.warp_size; }

  /// The count-th of the keys that groups of threads have as their best, in every thread. Clears the counter besides.
  Value* bound_of(Value* own, std::int64_t keys, std::int64_t counter) {
    auto& b = k.b;
    int const together = k.cta.threads() / groups;
    own = least_of(own, together);
    k.touch(local_event::kind::write, keys, counter + 4 - keys);
    Value* leads = together > 1 ? b.CreateICmpEQ(b.CreateAnd(k.lane, k.i32(together - 1)), k.i32(0)) : nullptr;
    k.when(leads, [&] {
      Value* group = b.CreateLShr(k.thread, static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(together))));
      b.CreateAlignedStore(own, place(key_type, keys, group), align(key_type));
    });
    k.when(b.CreateICmpEQ(k.thread, k.i32(0)), [&] { b.CreateAlignedStore(k.i32(0), k.arena(counter), llvm::Align(4)); });
    k.touch(local_event::kind::read, keys, counter - keys);
    // Each lane has one of them, and counts those that are not behind it.
    Value* key = b.CreateAlignedLoad(key_type, place(key_type, keys, b.CreateAnd(k.lane, k.i32(groups - 1))), align(key_type));
    std::vector<Value*> before;
    for (int i = 0; i < groups; ++i) {
      Value* other = b.CreateAlignedLoad(key_type, place(key_type, keys, k.i32(i)), align(key_type));
      before.push_back(b.CreateZExt(b.CreateICmpULE(other, key), b.getInt32Ty()));
    }
    return least_of(b.CreateSelect(b.CreateICmpUGE(sum(std::move(before)), k.i32(count)), key, last_of(key_type)), lanes());
  }

  /// The least of as many lanes, a power of two, in all of them.
  Value* least_of(Value* v, int of_lanes) {
    if (of_lanes == lanes() && v->getType()->isIntegerTy(32))
      if (Value* all = k.hw->least_of_lanes(v)) return all;
    for (int d = 1; d < of_lanes; d *= 2) v = least(v, k.shuffle(v, static_cast<unsigned>(d)));
    return v;
  }
  /// Of independent terms, without a chain of additions.
  Value* sum(std::vector<Value*> terms) {
    while (terms.size() > 1) {
      std::vector<Value*> next;
      for (std::size_t i = 0; i + 1 < terms.size(); i += 2) next.push_back(k.b.CreateAdd(terms[i], terms[i + 1]));
      if (terms.size() % 2) next.push_back(terms.back());
      terms = std::move(next);
    }
    return terms[0];
  }

  void append(Value* packed, std::int64_t list, std::int64_t counter) {
    auto& b = k.b;
    llvm::SyncScope::ID const scope = k.context.getOrInsertSyncScopeID(k.hw->scope_name(memory_scope::cta));
    Value* at = b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, k.arena(counter), k.i32(1), llvm::Align(4),
                                  llvm::AtomicOrdering::Monotonic, scope);
    k.when(b.CreateICmpULT(at, k.i32(list_room)),
           [&] { b.CreateAlignedStore(packed, place(packed_type, list, at), align(packed_type)); });
  }

  /// The list's first elements in order, for the registers of the result's layout.
  std::vector<Value*> sorted_list(Value* listed, std::int64_t list, std::int64_t places) {
    auto& b = k.b;
    std::int64_t const bytes = count * form.bits / 8;
    auto element = [&](Value* at) { return b.CreateAlignedLoad(packed_type, place(packed_type, list, at), align(packed_type)); };
    k.touch(local_event::kind::write, places, bytes);
    k.when(b.CreateICmpEQ(k.warp, k.i32(0)), [&] {
      std::vector<Value*> at, own;
      emit::values before;
      for (int first = 0; first < list_room; first += lanes()) {
        at.push_back(first ? b.CreateAdd(k.lane, k.i32(first)) : k.lane);
        own.push_back(element(at.back()));
        before.push_back(k.i32(0));
      }
      constexpr int step = 8; // that many are read at once; what lies behind the list's end does not count
      before = emit::loop(
          b, k.i32(0), listed, k.i32(step), before,
          [&](Value* first, emit::values const& carried) {
            std::vector<std::vector<Value*>> terms;
            for (Value* c : carried) terms.push_back({c});
            for (int i = 0; i < step; ++i) {
              Value* j = b.CreateAdd(first, k.i32(i));
              Value *other = element(j), *there = b.CreateICmpULT(j, listed);
              for (std::size_t c = 0; c < own.size(); ++c)
                terms[c].push_back(b.CreateZExt(b.CreateAnd(there, b.CreateICmpULT(other, own[c])), b.getInt32Ty()));
            }
            emit::values next;
            for (std::vector<Value*>& t : terms) next.push_back(sum(std::move(t)));
            return next;
          },
          {.at_least_once = true, .is_signed = false});
      for (std::size_t c = 0; c < own.size(); ++c)
        k.when(b.CreateAnd(b.CreateICmpULT(at[c], listed), b.CreateICmpULT(before[c], k.i32(count))),
               [&] { b.CreateAlignedStore(own[c], place(packed_type, places, before[c]), align(packed_type)); });
    });
    k.touch(local_event::kind::read, places, bytes);
    linear_layout const& out = k.plan.of(node);
    std::vector<Value*> r;
    for (int i = 0; i < 1 << out.in.bits(reg); ++i) {
      Value* at = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, k.coordinate(out, axis, i), k.i32(count - 1));
      r.push_back(b.CreateAlignedLoad(packed_type, place(packed_type, places, at), align(packed_type)));
    }
    return r;
  }

  /// The same by `count` searches through all elements.
  std::vector<Value*> one_by_one() {
    auto& b = k.b;
    linear_layout const& out = k.plan.of(node);
    std::vector<Value*> initial(1 + (std::size_t{1} << out.in.bits(reg)), llvm::Constant::getNullValue(packed_type));
    std::int64_t const warps = k.cta.num_warps, bytes = warps * form.bits / 8;
    k.structure({.what = local_event::kind::loop_begin});
    emit::values found = emit::loop(
        b, k.i32(0), k.i32(count), k.i32(1), initial,
        [&](Value* i, emit::values const& carried) {
          std::vector<Value*> const again = k.made_here(x, form.type);
          Value* best = last_of(packed_type);
          for (std::size_t r = 0; r < again.size(); ++r) {
            Value* packed = form.pack(k, form.key(k, again[r]), k.coordinate(l, axis, static_cast<int>(r)));
            Value* open = k.all_of(b.CreateICmpUGE(packed, carried[0]), k.inside(l, s, static_cast<int>(r)));
            best = least(best, b.CreateSelect(open, packed, last_of(packed_type)));
          }
          for (int d = 1; d < lanes(); d *= 2) best = least(best, k.shuffle(best, static_cast<unsigned>(d)));
          if (warps > 1) {
            std::int64_t const base = k.scratch(bytes, "topk");
            k.touch(local_event::kind::write, base, bytes);
            k.when(b.CreateICmpEQ(k.lane, k.i32(0)), [&] { b.CreateAlignedStore(best, place(packed_type, base, k.warp), align(packed_type)); });
            k.touch(local_event::kind::read, base, bytes);
            best = b.CreateAlignedLoad(packed_type, place(packed_type, base, b.CreateAnd(k.lane, k.i32(warps - 1))), align(packed_type));
            for (int d = 1; d < warps; d *= 2) best = least(best, k.shuffle(best, static_cast<unsigned>(d)));
          }
          emit::values next{b.CreateAdd(best, llvm::ConstantInt::get(packed_type, 1))};
          for (std::size_t r = 1; r < carried.size(); ++r)
            next.push_back(b.CreateSelect(b.CreateICmpEQ(k.coordinate(out, axis, static_cast<int>(r - 1)), i), best, carried[r]));
          return next;
        },
        {.at_least_once = true});
    k.structure({.what = local_event::kind::loop_exit});
    k.structure({.what = local_event::kind::loop_end});
    found.erase(found.begin());
    return found;
  }
};

} // namespace

bool best_of_long_row(lowerer& k, int node, packed_form const& form) {
  int const from = k.g.operand(node, 0), axis = static_cast<int>(k.g.attribute(node, 0));
  shape const& s = k.g.shape_of(from);
  if (s.elements() != s.extent[axis]) return false; // one row
  linear_layout const l = k.layout_of_use(from);
  if (l.in.bits(reg) < 4 || !owners(l).unique() || l.in.total() != l.out.total()) return false;
  // As many groups as lanes at most, and twice as many as results, so that the bound lets few pass.
  int const count = k.g.shape_of(node).extent[axis];
  if (count > k.cta.warp_size || list_room % k.cta.warp_size != 0) return false;
  int const wanted = static_cast<int>(std::bit_ceil(static_cast<unsigned>(2 * count)));
  int const groups = std::max(k.cta.num_warps, std::min(k.cta.warp_size, wanted));
  if (groups > k.cta.warp_size || groups < count) return false;
  selection(k, node, form, l, groups).run();
  return true;
}

} // namespace kiln::jit::simt
