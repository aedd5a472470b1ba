// NVPTX: PTX special registers, bar.sync, shfl.sync, predicated loads and stores, cp.async, approximate instructions.
#include "jit/passes/depth_first.hpp"
#include "jit/target/simt/hardware.hpp"
#include "straight_line.hpp"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <map>

namespace kiln::jit::simt {

namespace {

using namespace llvm::Intrinsic;

class nvptx final : public hardware {
public:
  using hardware::hardware;

  void prepare_kernel(llvm::Function& f, int num_threads) override {
    f.setCallingConv(llvm::CallingConv::PTX_Kernel);
    f.addFnAttr("nvvm.reqntid", std::to_string(num_threads) + ",1,1");
  }
  void set_cluster(llvm::Function& f, dims shape) override {
    f.addFnAttr("nvvm.cluster_dim", std::to_string(shape.x) + "," + std::to_string(shape.y) + "," + std::to_string(shape.z));
  }

  Value* thread_id(int num_threads) override {
    llvm::CallInst* c = b.CreateIntrinsic(b.getInt32Ty(), nvvm_read_ptx_sreg_tid_x, {});
    c->addRangeRetAttr(
        llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<std::uint64_t>(num_threads))));
    return c;
  }
  Value* block_id(int axis) override {
    ID const ids[] = {nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y, nvvm_read_ptx_sreg_ctaid_z};
    return b.CreateIntrinsic(b.getInt32Ty(), ids[axis], {});
  }
  Value* grid_extent(int axis) override {
    ID const ids[] = {nvvm_read_ptx_sreg_nctaid_x, nvvm_read_ptx_sreg_nctaid_y, nvvm_read_ptx_sreg_nctaid_z};
    return b.CreateIntrinsic(b.getInt32Ty(), ids[axis], {});
  }
  Value* warp_uniform(Value* x) override { return x; }

  void barrier(bool) override { b.CreateIntrinsic(b.getVoidTy(), nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)}); }

  Value* shuffle_xor(Value* x, Value*, unsigned delta) override {
    return b.CreateIntrinsic(b.getInt32Ty(), nvvm_shfl_sync_bfly_i32,
                             {b.getInt32(~0u), x, b.getInt32(delta), b.getInt32(31)});
  }
  Value* shuffle_index(Value* x, Value* from) override {
    return b.CreateIntrinsic(b.getInt32Ty(), nvvm_shfl_sync_idx_i32, {b.getInt32(~0u), x, from, b.getInt32(31)});
  }

  // A masked access is one predicated instruction: branches would keep the assembler from batching them.
  std::vector<std::vector<Value*>> load(llvm::ArrayRef<Value*> addresses, llvm::Type* word, int words, int align,
                                        Value* mask, cache_hint hint) override {
    if (!mask && hint.plain()) return hardware::load(addresses, word, words, align, mask, hint);
    form const f = form_of(word);
    std::string list, constraints, zeros;
    for (int i = 0; i < words; ++i) {
      std::string const n = "$" + std::to_string(i);
      list += (i ? ", " : "") + n;
      constraints += (i ? "," : "") + std::string(mask ? "=&" : "=") + f.constraint;
      if (mask) zeros += "mov.b" + std::to_string(f.register_bits) + " " + n + ", 0;\n\t";
    }
    if (words > 1) list = "{" + list + "}";
    std::string text = zeros;
    if (mask) text += "@$" + std::to_string(words + 1) + " ";
    text += "ld" + std::string(hint.is_volatile ? ".volatile" : "") + ".global" +
            (hint.is_volatile ? "" : load_suffix(hint)) + vector(words) + ".b" + std::to_string(f.bits) + " " + list +
            ", [$" + std::to_string(words) + "];";
    constraints += mask ? ",l,b" : ",l";
    std::vector<llvm::Type*> fields(static_cast<std::size_t>(words), b.getIntNTy(f.register_bits));
    llvm::Type* result =
        words > 1 ? static_cast<llvm::Type*>(llvm::StructType::get(b.getContext(), fields)) : fields[0];
    std::vector<llvm::Type*> types{b.getPtrTy(1)};
    if (mask) types.push_back(b.getInt1Ty());
    llvm::FunctionType* type = llvm::FunctionType::get(result, types, false);
    llvm::InlineAsm* code = llvm::InlineAsm::get(type, text, constraints, hint.is_volatile);
    std::vector<std::vector<Value*>> r;
    for (Value* a : addresses) {
      std::vector<Value*> arguments{a};
      if (mask) arguments.push_back(mask);
      llvm::CallInst* c = b.CreateCall(type, code, arguments);
      c->addFnAttr(llvm::Attribute::NoUnwind);
      // It reads what the pointer leads to, so that it stays behind earlier stores and before later ones.
      if (!hint.is_volatile)
        c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::readOnly()));
      std::vector<Value*> w;
      for (int i = 0; i < words; ++i)
        w.push_back(b.CreateTrunc(
            words > 1 ? b.CreateExtractValue(c, static_cast<unsigned>(i)) : static_cast<Value*>(c), word));
      r.push_back(std::move(w));
    }
    return r;
  }

  void store(llvm::ArrayRef<Value*> addresses, llvm::ArrayRef<std::vector<Value*>> values, int align, Value* mask,
             cache_hint hint) override {
    if (!mask && hint.plain()) return hardware::store(addresses, values, align, mask, hint);
    std::size_t const words = values[0].size();
    form const f = form_of(values[0][0]->getType());
    std::string list, constraints = "l";
    std::vector<llvm::Type*> types{b.getPtrTy(1)};
    for (std::size_t i = 0; i < words; ++i) {
      list += (i ? ", $" : "$") + std::to_string(i + 1);
      constraints += "," + f.constraint;
      types.push_back(b.getIntNTy(f.register_bits));
    }
    if (words > 1) list = "{" + list + "}";
    if (mask) constraints += ",b", types.push_back(b.getInt1Ty());
    constraints += ",~{memory}";
    std::string const text = (mask ? "@$" + std::to_string(words + 1) + " " : std::string()) + "st.global" +
                             store_suffix(hint) + vector(static_cast<int>(words)) + ".b" + std::to_string(f.bits) +
                             " [$0], " + list + ";";
    llvm::FunctionType* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
    llvm::InlineAsm* code = llvm::InlineAsm::get(type, text, constraints, true);
    for (std::size_t n = 0; n < addresses.size(); ++n) {
      std::vector<Value*> arguments{addresses[n]};
      for (Value* v : values[n]) arguments.push_back(b.CreateZExt(v, b.getIntNTy(f.register_bits)));
      if (mask) arguments.push_back(mask);
      b.CreateCall(type, code, arguments)->addFnAttr(llvm::Attribute::NoUnwind);
    }
  }

  bool has_matrix_unit() const override { return target.arch >= 80; }
  std::vector<Value*> load_matrices(Value* row, int count, bool transposed) override {
    ID const ids[2][3] = {{nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                           nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
                          {nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16, nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
                           nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
    llvm::Value* c = b.CreateIntrinsic(ids[transposed][count == 4 ? 2 : count - 1], {row->getType()}, {row});
    if (count == 1) return {c};
    std::vector<Value*> r;
    for (int i = 0; i < count; ++i) r.push_back(b.CreateExtractValue(c, static_cast<unsigned>(i)));
    return r;
  }
  Value* permute_bytes(Value* low, Value* high, unsigned selector) override {
    return b.CreateIntrinsic(b.getInt32Ty(), nvvm_prmt, {low, high, b.getInt32(selector)});
  }
  void multiply(dtype t, llvm::ArrayRef<Value*> x, llvm::ArrayRef<Value*> y, llvm::MutableArrayRef<Value*> sums) override {
    char const* form = t == dtype::f16    ? "m16n8k16.row.col.f32.f16.f16.f32"
                       : t == dtype::bf16 ? "m16n8k16.row.col.f32.bf16.bf16.f32"
                       : t == dtype::f32  ? "m16n8k8.row.col.f32.tf32.tf32.f32"
                                          : "m16n8k32.row.col.s32.s8.s8.s32";
    std::string const text = std::string("mma.sync.aligned.") + form +
                             " {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};";
    std::string const sum = t == dtype::i8 ? "r" : "f";
    std::string constraints;
    for (int i = 0; i < 4; ++i) constraints += (i ? ",=" : "=") + sum;
    constraints += ",r,r,r,r,r,r";
    for (int i = 0; i < 4; ++i) constraints += "," + sum;
    std::vector<Value*> arguments(x.begin(), x.end());
    arguments.insert(arguments.end(), y.begin(), y.end());
    arguments.insert(arguments.end(), sums.begin(), sums.end());
    std::vector<llvm::Type*> types;
    for (Value* v : arguments) types.push_back(v->getType());
    llvm::Type* const e = sums[0]->getType();
    llvm::FunctionType* f = llvm::FunctionType::get(llvm::StructType::get(b.getContext(), {e, e, e, e}), types, false);
    llvm::CallInst* c = b.CreateCall(f, llvm::InlineAsm::get(f, text, constraints, false), arguments);
    c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::none()));
    c->addFnAttr(llvm::Attribute::Convergent);
    c->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned i = 0; i < 4; ++i) sums[i] = b.CreateExtractValue(c, i);
  }
  Value* round_to_tf32(Value* x) override {
    return b.CreateIntrinsic(b.getInt32Ty(), nvvm_f2tf32_rna, {b.CreateBitCast(x, b.getFloatTy())});
  }
  Value* widen_pair(Value* x, dtype t) override {
    if (target.arch < 89) return nullptr;
    llvm::Value* c = b.CreateIntrinsic(llvm::FixedVectorType::get(b.getHalfTy(), 2),
                                       t == dtype::f8e4m3 ? nvvm_e4m3x2_to_f16x2_rn : nvvm_e5m2x2_to_f16x2_rn, {x});
    return b.CreateBitCast(c, b.getInt32Ty());
  }

  bool has_pair_extremum() const override { return target.arch >= 80; }
  Value* pair_extremum(bool maximum, Value* x, Value* y, dtype t) override {
    llvm::Type* i32 = b.getInt32Ty();
    std::string const text = std::string(maximum ? "max" : "min") + (t == dtype::f16 ? ".f16x2" : ".bf16x2") + " $0, $1, $2;";
    llvm::FunctionType* f = llvm::FunctionType::get(i32, {i32, i32}, false);
    llvm::CallInst* c = b.CreateCall(f, llvm::InlineAsm::get(f, text, "=r,r,r", false), {x, y});
    c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::none()));
    c->addFnAttr(llvm::Attribute::NoUnwind);
    return c;
  }
  Value* least_of_lanes(Value* x) override {
    if (target.arch < 80) return nullptr;
    return b.CreateIntrinsic(b.getInt32Ty(), nvvm_redux_sync_umin, {x, b.getInt32(0xffffffff)});
  }
  Value* made_here(Value* x) override {
    llvm::Type* i32 = b.getInt32Ty();
    llvm::FunctionType* f = llvm::FunctionType::get(i32, {i32}, false);
    llvm::CallInst* c = b.CreateCall(f, llvm::InlineAsm::get(f, "mov.b32 $0, $1;", "=r,r", true), {x});
    c->addFnAttr(llvm::Attribute::NoUnwind);
    return c;
  }

  bool has_vector_adds() const override { return target.arch >= 90; }
  void add(Value* address, llvm::ArrayRef<Value*> words, dtype t, memory_scope s, Value* mask) override {
    std::string list, constraints = "l";
    std::vector<llvm::Type*> types{b.getPtrTy(1)};
    std::vector<Value*> arguments{address};
    for (std::size_t i = 0; i < words.size(); ++i) {
      list += (i ? ", $" : "$") + std::to_string(i + 1);
      constraints += ",r";
      types.push_back(b.getInt32Ty());
      arguments.push_back(words[i]);
    }
    if (words.size() > 1) list = "{" + list + "}";
    if (mask) constraints += ",b", types.push_back(b.getInt1Ty()), arguments.push_back(mask);
    constraints += ",~{memory}";
    char const* scope = s == memory_scope::cta ? ".cta" : s == memory_scope::gpu ? ".gpu" : ".sys";
    char const* type = t == dtype::f32 ? ".f32" : t == dtype::f16 ? ".f16x2" : ".bf16x2";
    std::string const text = (mask ? "@$" + std::to_string(words.size() + 1) + " " : std::string()) + "red.relaxed" + scope +
                             ".global.add" + (t == dtype::f32 ? "" : ".noftz") + vector(static_cast<int>(words.size())) + type +
                             " [$0], " + list + ";";
    llvm::FunctionType* f = llvm::FunctionType::get(b.getVoidTy(), types, false);
    b.CreateCall(f, llvm::InlineAsm::get(f, text, constraints, true), arguments)->addFnAttr(llvm::Attribute::NoUnwind);
  }

  // Whole rows by one request from sm_90 on; sectors of 32 bytes before.
  int prefetch_bytes(cache_level level, int align) const override {
    return level == cache_level::l2 && target.arch >= 90 && align >= 16 ? 1 << 14 : 32;
  }
  void prefetch(Value* address, int bytes, cache_level level, Value* mask) override {
    std::string text = mask ? "@$1 " : "", constraints = mask ? "l,b" : "l";
    if (bytes > 32) text += "cp.async.bulk.prefetch.L2.global [$0], " + std::to_string(bytes) + ";";
    else text += std::string("prefetch.global.") + (level == cache_level::l2 ? "L2" : "L1") + " [$0];";
    std::vector<llvm::Type*> types{b.getPtrTy(1)};
    std::vector<Value*> arguments{address};
    if (mask) types.push_back(b.getInt1Ty()), arguments.push_back(mask);
    llvm::FunctionType* f = llvm::FunctionType::get(b.getVoidTy(), types, false);
    b.CreateCall(f, llvm::InlineAsm::get(f, text, constraints, true), arguments)->addFnAttr(llvm::Attribute::NoUnwind);
  }

  bool can_copy(int bytes) const override { return target.has_cp_async && (bytes == 4 || bytes == 8 || bytes == 16); }
  void copy(Value* shared, Value* global, int bytes, Value* mask, cache_hint hint) override {
    // 16 bytes go around the L1 cache unless the author wants them there; other sizes only exist through it.
    bool const around = bytes == 16 && hint.cache != kiln::cache::ca;
    ID const whole[] = {nvvm_cp_async_ca_shared_global_4, nvvm_cp_async_ca_shared_global_8,
                        nvvm_cp_async_ca_shared_global_16, nvvm_cp_async_cg_shared_global_16};
    ID const part[] = {nvvm_cp_async_ca_shared_global_4_s, nvvm_cp_async_ca_shared_global_8_s,
                       nvvm_cp_async_ca_shared_global_16_s, nvvm_cp_async_cg_shared_global_16_s};
    int const which = around ? 3 : bytes == 16 ? 2 : bytes == 8 ? 1 : 0;
    if (mask)
      b.CreateIntrinsic(
          b.getVoidTy(), part[which],
          {shared, global, b.CreateSelect(mask, b.getInt32(static_cast<unsigned>(bytes)), b.getInt32(0))});
    else b.CreateIntrinsic(b.getVoidTy(), whole[which], {shared, global});
  }
  void commit_copies() override { b.CreateIntrinsic(b.getVoidTy(), nvvm_cp_async_commit_group, {}); }
  void wait_copies(int pending) override {
    if (pending == 0) b.CreateIntrinsic(b.getVoidTy(), nvvm_cp_async_wait_all, {});
    else b.CreateIntrinsic(b.getVoidTy(), nvvm_cp_async_wait_group, {b.getInt32(static_cast<unsigned>(pending))});
  }

  // What follows is written as PTX that clobbers memory: the intrinsics promise to touch their operand's bytes alone, so that
  // LLVM would move ordinary accesses across an arrival or a wait.
  bool has_memory_barriers() const override { return target.arch >= 80; }
  bool has_register_budgets() const override { return target.arch >= 90; }
  void limit_registers(llvm::Function& f, int count) override { f.addFnAttr("nvvm.maxnreg", std::to_string(count)); }
  void set_registers(int count, bool more) override {
    ptx(std::string("setmaxnreg.") + (more ? "inc" : "dec") + ".sync.aligned.u32 " + std::to_string(count) + ";", "", {}, true);
  }
  void warp_barrier() override { ptx("bar.warp.sync -1;", "", {}, true); }
  void barrier_init(Value* at, int count) override {
    ptx("mbarrier.init.shared.b64 [$0], $1;", "r,r", {address(at), b.getInt32(static_cast<unsigned>(count))});
  }
  void barriers_made() override {
    if (target.arch < 90) return;
    ptx("fence.mbarrier_init.release.cluster;", "", {});
    ptx("fence.proxy.async.shared::cta;", "", {});
  }
  void barrier_arrive(Value* at, int count) override {
    if (count == 1) {
      ptx("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [$0];\n\t}", "r", {address(at)});
    } else if (target.arch >= 90) {
      ptx("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [$0], $1;\n\t}", "r,r", {address(at), b.getInt32(static_cast<unsigned>(count))});
    } else { // all but one cannot complete the phase
      ptx("{\n\t.reg .b64 state;\n\tmbarrier.arrive.noComplete.shared.b64 state, [$0], $1;\n\tmbarrier.arrive.shared.b64 state, [$0];\n\t}", "r,r",
          {address(at), b.getInt32(static_cast<unsigned>(count - 1))});
    }
  }
  void barrier_expect(Value* at, std::int64_t bytes) override {
    ptx("{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared.b64 state, [$0], $1;\n\t}", "r,r", {address(at), b.getInt32(static_cast<unsigned>(bytes))});
  }
  void barrier_wait(Value* at, Value* parity) override {
    // try_wait sleeps in hardware for a while; test_wait does not.
    bool const sleeps = target.arch >= 90;
    ptx(std::string("{\n\t.reg .pred done;\n\tagain:\n\t") + (sleeps ? "mbarrier.try_wait" : "mbarrier.test_wait") +
            ".parity" + (waits_for_cluster ? ".acquire.cluster" : "") + ".shared.b64 done, [$0], $1;\n\t@done bra ready;\n\t" + (sleeps ? "" : "nanosleep.u32 20;\n\t") + "bra again;\n\tready:\n\t}",
        "r,r", {address(at), parity});
  }
  void copies_arrive(Value* at, bool stores) override {
    if (stores) ptx("fence.acq_rel.cta;", "", {});
    ptx("cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r", {address(at)});
  }
  void named_barrier(Value* id, int threads, bool wait) override {
    std::string const what = wait ? "bar.sync " : "bar.arrive ", count = ", " + std::to_string(threads) + ";";
    // In a register the assembler cannot tell which, and takes all sixteen.
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(id)) ptx(what + std::to_string(c->getZExtValue()) + count, "", {}, true);
    else ptx(what + "$0" + count, "r", {id}, true);
  }
  void fence_async_shared() override {
    if (target.arch >= 90) ptx("fence.proxy.async.shared::cta;", "", {});
  }
  bool has_bulk_copies() const override { return target.arch >= 90; }
  void bulk_load(Value* shared, Value* global, std::int64_t bytes, Value* barrier, kiln::evict e) override {
    std::string const copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    std::vector<Value*> const all{address(shared), global, b.getInt32(static_cast<unsigned>(bytes)), address(barrier)};
    if (e == kiln::evict::none) return ptx(copy + " [$0], [$1], $2, [$3];", "r,l,r,r", all);
    ptx(std::string("{\n\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::evict_") + (e == kiln::evict::first ? "first" : "last") +
            ".b64 policy, 1.0;\n\t" + copy + ".L2::cache_hint [$0], [$1], $2, [$3], policy;\n\t}",
        "r,l,r,r", all);
  }
  void bulk_store(Value* global, Value* shared, std::int64_t bytes) override {
    ptx("cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r", {global, address(shared), b.getInt32(static_cast<unsigned>(bytes))});
    ptx("cp.async.bulk.commit_group;", "", {});
  }
  void bulk_wait(int pending, bool read) override {
    ptx("cp.async.bulk.wait_group" + std::string(read ? ".read " : " ") + std::to_string(pending) + ";", "", {});
  }

  bool has_clusters() const override { return target.arch >= 90; }
  Value* cluster_rank(int ctas) override {
    llvm::CallInst* c = b.CreateIntrinsic(b.getInt32Ty(), nvvm_read_ptx_sreg_cluster_ctarank, {});
    c->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<std::uint64_t>(ctas))));
    return c;
  }
  void cluster_barrier() override {
    ptx("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "", {}, true);
  }
  Value* remote(Value* shared, Value* rank) override {
    return b.CreateIntrinsic(b.getPtrTy(7), nvvm_mapa_shared_cluster, {shared, rank});
  }
  void remote_arrive(Value* barrier, int count) override {
    std::string const arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0]";
    if (count == 1) ptx(arrive + ";", "r", {address(barrier)});
    else ptx(arrive + ", $1;", "r,r", {address(barrier), b.getInt32(static_cast<unsigned>(count))});
  }
  void remote_store(Value* to, llvm::ArrayRef<Value*> words, Value* barrier) override {
    form const f = form_of(words[0]->getType());
    std::string list, constraints = "r,r";
    std::vector<Value*> all{address(to), address(barrier)};
    for (std::size_t i = 0; i < words.size(); ++i) {
      list += (i ? ", $" : "$") + std::to_string(i + 2);
      constraints += "," + f.constraint;
      all.push_back(words[i]);
    }
    if (words.size() > 1) list = "{" + list + "}";
    ptx("st.async.shared::cluster.mbarrier::complete_tx::bytes" + vector(static_cast<int>(words.size())) + ".b" + std::to_string(f.bits) + " [$0], " + list + ", [$1];",
        constraints, all);
  }
  void remote_copy(Value* to, Value* from, std::int64_t bytes, Value* barrier) override {
    ptx("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r",
        {address(to), address(from), b.getInt32(static_cast<unsigned>(bytes)), address(barrier)});
  }
  void fence_barrier_init() override { ptx("fence.mbarrier_init.release.cluster;", "", {}); }

  llvm::StringRef scope_name(memory_scope s) const override {
    return s == memory_scope::cta ? "block" : s == memory_scope::gpu ? "device" : "";
  }

  Value* statement(op code, Value* x, llvm::function_ref<Value*(Value*)> f) override {
    if (llvm::isa<llvm::Constant>(x)) return nullptr; // LLVM computes it
    llvm::FunctionType* type = llvm::FunctionType::get(x->getType(), {x->getType()}, false);
    auto const [at, fresh] = statements_.try_emplace({code, x->getType()}, nullptr);
    if (fresh) {
      llvm::IRBuilder<>::InsertPointGuard guard(b);
      llvm::Function* body = llvm::Function::Create(type, llvm::Function::InternalLinkage, "", b.GetInsertBlock()->getModule());
      b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", body));
      b.SetCurrentDebugLocation({});
      b.CreateRet(f(body->getArg(0)));
      if (std::string const text = straight_line_ptx(*body); !text.empty())
        at->second = llvm::InlineAsm::get(type, text, x->getType()->isFloatTy() ? "=f,f" : "=d,d", false);
      body->eraseFromParent();
    }
    if (!at->second) return nullptr;
    llvm::CallInst* c = b.CreateCall(type, at->second, {x});
    c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::none()));
    c->addFnAttr(llvm::Attribute::NoUnwind);
    c->addFnAttr(llvm::Attribute::WillReturn); // so that it is placed, merged and left out like arithmetic
    return c;
  }

  bool can_hide() const override { return true; }
  Value* hide(Value* x) override {
    llvm::Type* i32 = b.getInt32Ty();
    if (!zero_) { // a 0 that the assembler does not know: all threads of a warp run
      llvm::IRBuilder<>::InsertPointGuard guard(b);
      llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
      b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
      llvm::FunctionType* t = llvm::FunctionType::get(i32, false);
      llvm::CallInst* c = b.CreateCall(t, llvm::InlineAsm::get(t, "activemask.b32 $0;", "=r", true), {});
      c->addFnAttr(llvm::Attribute::NoUnwind);
      zero_ = b.CreateNot(c);
    }
    // (after & zero) ^ x. Each has its own text, so that two of them are never taken for the same.
    llvm::FunctionType* t = llvm::FunctionType::get(i32, {i32, i32, i32}, false);
    std::string const text = "lop3.b32 $0, $1, $2, $3, 0x6a; // " + std::to_string(hidden_++);
    llvm::CallInst* c = b.CreateCall(t, llvm::InlineAsm::get(t, text, "=r,r,r,r", false), {zero_, zero_, x});
    c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::none()));
    c->addFnAttr(llvm::Attribute::NoUnwind);
    c->setMetadata(hidden_word, llvm::MDNode::get(b.getContext(), {}));
    return c;
  }
  void run_together(llvm::Function& f, int ctas) override { f.addFnAttr("nvvm.minctasm", std::to_string(ctas)); }

  Value* convert(Value* x, dtype from, dtype to) override {
    if (from == dtype::f32 && to == dtype::bf16)
      return b.CreateBitCast(b.CreateFPTrunc(x, b.getBFloatTy()), b.getInt16Ty()); // cvt.rn
    return nullptr;
  }

  // One instruction of the arithmetic units; a single conversion goes through the unit of the special functions.
  Value* narrow_pair(Value* low, Value* high, dtype to) override {
    if (target.arch < 80 || (to != dtype::f16 && to != dtype::bf16)) return nullptr;
    Value* c = b.CreateIntrinsic(llvm::FixedVectorType::get(to == dtype::f16 ? b.getHalfTy() : b.getBFloatTy(), 2),
                                 to == dtype::f16 ? nvvm_ff2f16x2_rn : nvvm_ff2bf16x2_rn, {high, low});
    return b.CreateBitCast(c, b.getInt32Ty());
  }

  Value* fast(op o, Value* x, Value* y) override {
    auto call = [&](ID id, Value* v) -> Value* { return b.CreateIntrinsic(b.getFloatTy(), id, {v}); };
    auto times = [&](Value* v, double c) { return b.CreateFMul(v, llvm::ConstantFP::get(b.getFloatTy(), c)); };
    constexpr double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;
    switch (o) {
    case op::exp: return call_ex2(times(x, log2_e));
    case op::exp2: return call_ex2(x);
    case op::log: return times(approximate("lg2.approx.ftz.f32", x), ln_2);
    case op::log2: return approximate("lg2.approx.ftz.f32", x);
    case op::sqrt: return call(nvvm_sqrt_approx_ftz_f, x);
    case op::rsqrt: return call(nvvm_rsqrt_approx_ftz_f, x);
    case op::sin: return call(nvvm_sin_approx_ftz_f, x);
    case op::cos: return call(nvvm_cos_approx_ftz_f, x);
    case op::tanh: return approximate("tanh.approx.f32", x);
    case op::div: return b.CreateIntrinsic(b.getFloatTy(), nvvm_div_full_ftz, {x, y});
    default: return nullptr;
    }
  }

  bool dynamic_shared() const override { return true; }

  bool can_print() const override { return true; }
  void print(llvm::StringRef format, llvm::ArrayRef<Value*> values) override {
    llvm::Module& m = *b.GetInsertBlock()->getModule();
    llvm::Constant* text = llvm::ConstantDataArray::getString(b.getContext(), format);
    auto* string = new llvm::GlobalVariable(m, text->getType(), true, llvm::GlobalValue::PrivateLinkage, text,
                                            "kiln_text", nullptr, llvm::GlobalValue::NotThreadLocal, 1);
    llvm::Value* buffer = llvm::ConstantPointerNull::get(b.getPtrTy());
    if (!values.empty()) {
      std::vector<llvm::Type*> types;
      for (Value* v : values) types.push_back(v->getType());
      llvm::StructType* s = llvm::StructType::get(b.getContext(), types);
      llvm::AllocaInst* a;
      {
        llvm::IRBuilder<>::InsertPointGuard guard(b);
        llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
        b.SetInsertPoint(&entry, entry.begin());
        a = b.CreateAlloca(s);
      }
      for (std::size_t i = 0; i < values.size(); ++i)
        b.CreateStore(values[i], b.CreateStructGEP(s, a, static_cast<unsigned>(i)));
      buffer = a;
    }
    llvm::FunctionCallee f =
        m.getOrInsertFunction("vprintf", llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false));
    b.CreateCall(f, {b.CreateAddrSpaceCast(string, b.getPtrTy()), buffer});
  }

private:
  /// An address in shared memory as the 32-bit number that it is.
  Value* address(Value* shared) { return b.CreatePtrToInt(shared, b.getInt32Ty()); }
  void ptx(std::string const& text, std::string constraints, llvm::ArrayRef<Value*> arguments, bool convergent = false) {
    std::vector<llvm::Type*> types;
    for (Value* v : arguments) types.push_back(v->getType());
    constraints += constraints.empty() ? "~{memory}" : ",~{memory}";
    llvm::FunctionType* f = llvm::FunctionType::get(b.getVoidTy(), types, false);
    llvm::CallInst* c = b.CreateCall(f, llvm::InlineAsm::get(f, text, constraints, true), arguments);
    c->addFnAttr(llvm::Attribute::NoUnwind);
    if (convergent) c->addFnAttr(llvm::Attribute::Convergent);
  }
  std::map<std::pair<op, llvm::Type*>, llvm::InlineAsm*> statements_; // nullptr: none
  int hidden_ = 0;
  Value* zero_ = nullptr;
  struct form {
    unsigned bits, register_bits;
    std::string constraint;
  };
  static form form_of(llvm::Type* word) {
    switch (word->getIntegerBitWidth()) {
    case 8: return {8, 16, "h"};
    case 16: return {16, 16, "h"};
    case 64: return {64, 64, "l"};
    default: return {32, 32, "r"};
    }
  }
  static std::string vector(int words) { return words == 1 ? "" : words == 2 ? ".v2" : ".v4"; }
  static std::string load_suffix(cache_hint h) {
    switch (h.cache) {
    case kiln::cache::ca: return ".ca";
    case kiln::cache::cg: return ".cg";
    case kiln::cache::cs: return ".cs";
    case kiln::cache::cv: return ".cv";
    default: return h.evict == kiln::evict::first ? ".cs" : "";
    }
  }
  static std::string store_suffix(cache_hint h) {
    switch (h.cache) {
    case kiln::cache::wb: return ".wb";
    case kiln::cache::cg: return ".cg";
    case kiln::cache::cs: return ".cs";
    case kiln::cache::wt: return ".wt";
    default: return h.evict == kiln::evict::first ? ".cs" : "";
    }
  }
  Value* approximate(char const* instruction, Value* x) {
    llvm::FunctionType* t = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
    llvm::CallInst* c =
        b.CreateCall(t, llvm::InlineAsm::get(t, std::string(instruction) + " $0, $1;", "=f,f", false), {x});
    c->addFnAttr(llvm::Attribute::getWithMemoryEffects(b.getContext(), llvm::MemoryEffects::none()));
    c->addFnAttr(llvm::Attribute::NoUnwind);
    return c;
  }
  Value* call_ex2(Value* x) { return approximate("ex2.approx.ftz.f32", x); }
};

} // namespace

std::unique_ptr<hardware> make_nvptx(llvm::IRBuilder<>& b, kiln::target const& t) {
  return std::make_unique<nvptx>(b, t);
}

} // namespace kiln::jit::simt
