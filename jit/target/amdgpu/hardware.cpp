// AMDGPU: work-item registers, s_barrier between fences of the workgroup, DPP and LDS permutes for shuffles.
#include "jit/target/simt/hardware.hpp"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace kiln::jit::simt {

namespace {

using namespace llvm::Intrinsic;

class amdgpu final : public hardware {
public:
  using hardware::hardware;

  void prepare_kernel(llvm::Function& f, int num_threads) override {
    f.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
    std::string const n = std::to_string(num_threads);
    f.addFnAttr("amdgpu-flat-work-group-size", n + "," + n);
    f.addFnAttr("uniform-work-group-size", "true");
    // Hidden inputs that no code here reads cost registers otherwise.
    for (char const* unused :
         {"amdgpu-no-completion-action", "amdgpu-no-default-queue", "amdgpu-no-dispatch-id", "amdgpu-no-dispatch-ptr",
          "amdgpu-no-heap-ptr", "amdgpu-no-hostcall-ptr", "amdgpu-no-lds-kernel-id", "amdgpu-no-multigrid-sync-arg",
          "amdgpu-no-queue-ptr", "amdgpu-no-workitem-id-y", "amdgpu-no-workitem-id-z"})
      f.addFnAttr(unused);
    auto number = [&](int v) { return llvm::ConstantAsMetadata::get(b.getInt32(static_cast<unsigned>(v))); };
    f.setMetadata("reqd_work_group_size",
                  llvm::MDNode::get(b.getContext(), {number(num_threads), number(1), number(1)}));
  }

  Value* thread_id(int num_threads) override {
    llvm::CallInst* c = b.CreateIntrinsic(b.getInt32Ty(), amdgcn_workitem_id_x, {});
    c->addRangeRetAttr(
        llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<std::uint64_t>(num_threads))));
    return c;
  }
  Value* block_id(int axis) override {
    ID const ids[] = {amdgcn_workgroup_id_x, amdgcn_workgroup_id_y, amdgcn_workgroup_id_z};
    return b.CreateIntrinsic(b.getInt32Ty(), ids[axis], {});
  }
  Value* grid_extent(int axis) override {
    // The first hidden arguments are the numbers of workgroups, i32 each.
    Value* hidden = b.CreateIntrinsic(b.getPtrTy(4), amdgcn_implicitarg_ptr, {});
    llvm::LoadInst* n = b.CreateAlignedLoad(
        b.getInt32Ty(), b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), hidden, static_cast<std::uint64_t>(axis)),
        llvm::Align(4));
    n->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return n;
  }
  Value* warp_uniform(Value* x) override { return b.CreateIntrinsic(amdgcn_readfirstlane, {x->getType()}, {x}); }

  void barrier(bool all_memory) override {
    llvm::SyncScope::ID const group = b.getContext().getOrInsertSyncScopeID("workgroup");
    llvm::FenceInst* release = b.CreateFence(llvm::AtomicOrdering::Release, group);
    b.CreateIntrinsic(b.getVoidTy(), amdgcn_s_barrier, {});
    llvm::FenceInst* acquire = b.CreateFence(llvm::AtomicOrdering::Acquire, group);
    if (all_memory) return;
    // Global accesses need not be waited for when only LDS is handed over.
    auto* tag = llvm::MDTuple::get(b.getContext(), {llvm::MDString::get(b.getContext(), "amdgpu-synchronize-as"),
                                                    llvm::MDString::get(b.getContext(), "local")});
    release->setMetadata(llvm::LLVMContext::MD_mmra, tag);
    acquire->setMetadata(llvm::LLVMContext::MD_mmra, tag);
  }

  Value* shuffle_xor(Value* x, Value* lane, unsigned delta) override {
    auto dpp = [&](unsigned control) -> Value* {
      Value* moved = b.CreateIntrinsic(amdgcn_update_dpp, {b.getInt32Ty()},
                                       {llvm::PoisonValue::get(b.getInt32Ty()), x, b.getInt32(control), b.getInt32(15),
                                        b.getInt32(15), b.getTrue()});
      // LLVM puts the permutation into the instruction that uses the value. On gfx12 it does so for v_mad_co_u64_u32 too, which
      // has no such form: its own assembler refuses what it emits. There the move stays an instruction.
      if (target.arch < 0x1200 || target.arch >= 0x1250) return moved;
      llvm::FunctionType* same = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
      return b.CreateCall(llvm::InlineAsm::get(same, "", "=v,0", false), {moved});
    };
    if (delta < 4) { // a permutation inside four lanes
      unsigned control = 0;
      for (unsigned i = 0; i < 4; ++i) control |= (i ^ delta) << (2 * i);
      return dpp(control);
    }
    bool const rdna = target.warp_size == 32;
    if (delta < 16 && rdna) return dpp(0x160 | delta); // row_xmask
    if (delta == 7) return dpp(0x141);                 // row_half_mirror
    if (delta == 15) return dpp(0x140);                // row_mirror
    if (delta < 32) return b.CreateIntrinsic(b.getInt32Ty(), amdgcn_ds_swizzle, {x, b.getInt32(delta << 10 | 0x1f)});
    return shuffle_index(x, b.CreateXor(lane, b.getInt32(delta)));
  }
  Value* shuffle_index(Value* x, Value* from) override {
    return b.CreateIntrinsic(b.getInt32Ty(), amdgcn_ds_bpermute, {b.CreateShl(from, 2), x});
  }

  llvm::StringRef scope_name(memory_scope s) const override {
    return s == memory_scope::cta ? "workgroup" : s == memory_scope::gpu ? "agent" : "";
  }

  Value* convert(Value* x, dtype from, dtype to) override {
    bool const native = target.arch == 0x950 || target.arch == 0x1250;
    if (native && from == dtype::f32 && to == dtype::bf16)
      return b.CreateBitCast(b.CreateFPTrunc(x, b.getBFloatTy()), b.getInt16Ty());
    return nullptr;
  }

  Value* fast(op o, Value* x, Value*) override {
    auto call = [&](ID id, Value* v) -> Value* { return b.CreateIntrinsic(id, {v->getType()}, {v}); };
    auto times = [&](Value* v, double c) { return b.CreateFMul(v, llvm::ConstantFP::get(b.getFloatTy(), c)); };
    constexpr double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;
    switch (o) {
    case op::exp: return call(amdgcn_exp2, times(x, log2_e));
    case op::exp2: return call(amdgcn_exp2, x);
    case op::log: return times(call(amdgcn_log, x), ln_2);
    case op::log2: return call(amdgcn_log, x);
    case op::rsqrt: return call(amdgcn_rsq, x);
    case op::sqrt: return call(amdgcn_sqrt, x);
    default: return nullptr;
    }
  }

  bool dynamic_shared() const override { return false; }
};

} // namespace

std::unique_ptr<hardware> make_amdgpu(llvm::IRBuilder<>& b, kiln::target const& t) {
  return std::make_unique<amdgpu>(b, t);
}

} // namespace kiln::jit::simt
