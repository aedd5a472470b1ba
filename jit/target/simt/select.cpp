// The few best of a long row, in one pass over its registers.
//
// Each thread takes the best of what it has, groups of threads the best of theirs; the k-th best of those is a bound: k elements
// at least are not worse, and seldom many more. Those, found by the few threads that have any, go into a list in shared memory,
// and one warp counts for each how many of the list come before it: that is its place. Where there are more than the list holds
// (many equal ones, or a row in order), or hardly a number, elements are compared with their indices, and the bound is the best that any
// warp has in k lanes: k elements at least, of k lanes in that warp and fewer in each other one. A row that has too many even then is searched k
// times, each time for the best one behind the last.
#include "sorter.hpp"

#include "extremum.hpp"
#include "lowerings.hpp"

#include "jit/emit/loop.hpp"

#include <algorithm>
#include <functional>
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
    std::int64_t const keys = list_room * packed_bytes, counter = keys + std::max(groups * key_bytes, k.cta.num_warps * packed_bytes),
                       places = counter + 16;
    std::int64_t const base = k.scratch(places + count * packed_bytes, "topk");
    Value* const bound = bound_of(b.CreateZExt(form.key(k, best.narrowed(own)), key_type), base + keys, base + counter);
    // The bound as a number: comparing numbers is cheaper than making keys. A NaN lets nothing pass; see `useless`.
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
      Value* open = k.i32(0);
      for (std::size_t g = 0; g < of_group.size(); ++g)
        open = b.CreateOr(open, b.CreateSelect(passes(best.number(of_group[g])), k.i32(std::int64_t{1} << g), k.i32(0)));
      list_groups(open, base, base + counter, [&](Value* v, Value*) { return passes(best.widened(v)); });
    });

    k.touch(local_event::kind::read, list);
    auto count_of_list = [&] { return b.CreateAlignedLoad(b.getInt32Ty(), k.arena(base + counter), llvm::Align(4)); };
    Value* const first_listed = count_of_list();
    // Too many, or, where the bound is a NaN, too few: one comparison of numbers that wrap.
    Value* const useless = b.CreateICmpUGT(b.CreateSub(first_listed, k.i32(count)), k.i32(list_room - count));
    llvm::BasicBlock *again = k.block("again"), *counted = k.block("counted"), *before = b.GetInsertBlock();
    b.CreateCondBr(useless, again, counted);
    b.SetInsertPoint(again);
    k.structure({.what = local_event::kind::branch_begin});
    list_by_lanes(base, base + keys, base + counter);
    k.touch(local_event::kind::read, list);
    Value* const second_listed = count_of_list();
    llvm::BasicBlock* const again_end = b.GetInsertBlock();
    b.CreateBr(counted);
    b.SetInsertPoint(counted);
    k.structure({.what = local_event::kind::branch_end});
    llvm::PHINode* const listed = b.CreatePHI(b.getInt32Ty(), 2);
    listed->addIncoming(first_listed, before);
    listed->addIncoming(second_listed, again_end);

    llvm::BasicBlock *many = k.block("many"), *few = k.block("few"), *after = k.block("selected");
    b.CreateCondBr(b.CreateICmpUGT(listed, k.i32(list_room)), many, few);
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

  /// What a register adds to the coordinate. Registers add by XOR: layouts are linear.
  std::int64_t own_part(std::size_t r) const {
    return static_cast<std::int64_t>(l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), axis_dim(axis)));
  }
  /// The elements of a group that is known at run time only; narrow ones are chosen in words.
  std::vector<Value*> elements_of(Value* group) {
    auto& b = k.b;
    int const bits = storage_bits_of(form.type);
    std::size_t const per = bits < 32 ? static_cast<std::size_t>(32 / bits) : 1;
    std::vector<Value*> r(group_size);
    for (std::size_t i = 0; i < group_size; i += per) {
      auto held = [&](std::size_t g) {
        llvm::ArrayRef<Value*> const part = llvm::ArrayRef(x).slice(g * group_size + i, per);
        return per > 1 ? k.pack(part, form.type, b.getInt32Ty()) : part[0];
      };
      Value* chosen = held(0);
      for (std::size_t g = 1; g * group_size < x.size(); ++g)
        chosen = b.CreateSelect(b.CreateICmpEQ(group, k.i32(static_cast<std::int64_t>(g))), held(g), chosen);
      if (per > 1) k.unpack({chosen}, form.type, llvm::MutableArrayRef(r).slice(i, per));
      else r[i] = chosen;
    }
    return r;
  }
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

  /// Returns how many were there.
  Value* append(Value* packed, std::int64_t list, std::int64_t counter) {
    auto& b = k.b;
    llvm::SyncScope::ID const scope = k.context.getOrInsertSyncScopeID(k.hw->scope_name(memory_scope::cta));
    Value* at = b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, k.arena(counter), k.i32(1), llvm::Align(4),
                                  llvm::AtomicOrdering::Monotonic, scope);
    k.when(b.CreateICmpULT(at, k.i32(list_room)),
           [&] { b.CreateAlignedStore(packed, place(packed_type, list, at), align(packed_type)); });
    return at;
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

  /// Elements with their indices in one number, made here; what is not there comes last.
  std::vector<Value*> packed_elements() {
    std::vector<Value*> r = k.made_here(x, form.type);
    for (std::size_t i = 0; i < r.size(); ++i) {
      Value* in = k.inside(l, s, static_cast<int>(i));
      r[i] = form.pack(k, form.key(k, r[i]), k.coordinate(l, axis, static_cast<int>(i)));
      if (in) r[i] = k.b.CreateSelect(in, r[i], last_of(packed_type));
    }
    return r;
  }
  /// The least of several values, without a chain.
  Value* least_of_all(std::vector<Value*> v) {
    while (v.size() > 1) {
      std::vector<Value*> next;
      for (std::size_t i = 0; i + 1 < v.size(); i += 2) next.push_back(least(v[i], v[i + 1]));
      if (v.size() % 2) next.push_back(v.back());
      v = std::move(next);
    }
    return v[0];
  }
  /// Lists the good elements of groups, one bit each in `open`. One loop, whose code is that of one group: what jumps over the code of
  /// all of them waits for it to be fetched. It ends where the list is full: a row of equal elements would count them all.
  void list_groups(Value* open, std::int64_t list, std::int64_t counter, std::function<Value*(Value* element, Value* index)> const& good) {
    auto& b = k.b;
    bool const padded = !std::has_single_bit(static_cast<unsigned>(s.extent[axis]));
    emit::loop_while(
        b, {open}, [&](emit::values const& left) { return b.CreateICmpNE(left[0], k.i32(0)); },
        [&](emit::values const& left) {
          Value* group = b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left[0], b.getTrue());
          std::vector<Value*> const v = elements_of(group);
          Value* start = k.i32(0); // what the group adds to the coordinate
          for (std::size_t g = 1; g * group_size < x.size(); ++g)
            start = b.CreateSelect(b.CreateICmpEQ(group, k.i32(static_cast<std::int64_t>(g))), k.i32(own_part(g * group_size)), start);
          start = b.CreateXor(start, k.thread_part(l, axis_dim(axis)));
          Value* listed = k.i32(0);
          for (std::size_t i = 0; i < group_size; ++i) {
            Value* at = b.CreateXor(start, k.i32(own_part(i)));
            Value* in = padded ? b.CreateICmpULT(at, k.i32(s.extent[axis])) : nullptr;
            Value *wanted = k.all_of(good(v[i], at), in), *count = nullptr;
            llvm::BasicBlock *before = b.GetInsertBlock(), *end = nullptr;
            k.when(wanted, [&] { count = append(form.pack(k, form.key(k, v[i]), at), list, counter), end = b.GetInsertBlock(); });
            llvm::PHINode* both = b.CreatePHI(b.getInt32Ty(), 2);
            both->addIncoming(listed, before);
            both->addIncoming(count, end);
            listed = both;
          }
          Value* rest = b.CreateAnd(left[0], b.CreateSub(left[0], k.i32(1)));
          return emit::values{b.CreateSelect(b.CreateICmpULT(listed, k.i32(list_room)), rest, k.i32(0))};
        });
  }
  /// Lists anew, with a bound that no two elements share.
  void list_by_lanes(std::int64_t list, std::int64_t bounds, std::int64_t counter) {
    auto& b = k.b;
    int const warps = k.cta.num_warps;
    std::int64_t const bytes = warps * form.bits / 8;
    std::vector<Value*> const packed = packed_elements();
    std::vector<Value*> of_group;
    for (std::size_t i = 0; i < packed.size(); i += group_size)
      of_group.push_back(least_of_all({packed.begin() + static_cast<std::ptrdiff_t>(i), packed.begin() + static_cast<std::ptrdiff_t>(i + group_size)}));
    Value* const own = least_of_all(of_group);
    std::vector<Value*> before; // lanes whose best comes before this one's
    for (int d = 1; d < lanes(); ++d)
      before.push_back(b.CreateZExt(b.CreateICmpULT(k.shuffle(own, static_cast<unsigned>(d)), own), b.getInt32Ty()));
    Value* bound = least_of(b.CreateSelect(b.CreateICmpUGE(sum(std::move(before)), k.i32(count - 1)), own, last_of(packed_type)), lanes());
    k.touch(local_event::kind::write, bounds, counter + 4 - bounds);
    k.when(b.CreateICmpEQ(k.lane, k.i32(0)), [&] { b.CreateAlignedStore(bound, place(packed_type, bounds, k.warp), align(packed_type)); });
    k.when(b.CreateICmpEQ(k.thread, k.i32(0)), [&] { b.CreateAlignedStore(k.i32(0), k.arena(counter), llvm::Align(4)); });
    k.touch(local_event::kind::read, bounds, bytes);
    std::vector<Value*> all;
    for (int w = 0; w < warps; ++w) all.push_back(b.CreateAlignedLoad(packed_type, place(packed_type, bounds, k.i32(w)), align(packed_type)));
    bound = least_of_all(std::move(all));
    k.touch(local_event::kind::write, {byte_range{static_cast<std::uint32_t>(list), static_cast<std::uint32_t>(list + list_room * form.bits / 8)},
                                       byte_range{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter + 4)}});
    k.when(b.CreateICmpULE(own, bound), [&] {
      Value* open = k.i32(0);
      for (std::size_t g = 0; g < of_group.size(); ++g)
        open = b.CreateOr(open, b.CreateSelect(b.CreateICmpULE(of_group[g], bound), k.i32(std::int64_t{1} << g), k.i32(0)));
      list_groups(open, list, counter, [&](Value* v, Value* at) { return b.CreateICmpULE(form.pack(k, form.key(k, v), at), bound); });
    });
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
          Value* best = last_of(packed_type);
          for (Value* packed : packed_elements())
            best = least(best, b.CreateSelect(b.CreateICmpUGE(packed, carried[0]), packed, last_of(packed_type)));
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
  if ((std::size_t{1} << l.in.bits(reg)) / group_size > 32) return false; // one bit each
  selection(k, node, form, l, groups).run();
  return true;
}

} // namespace kiln::jit::simt
