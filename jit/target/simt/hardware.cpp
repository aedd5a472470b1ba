// The plain forms of memory access, which targets improve on.
#include "hardware.hpp"

namespace kiln::jit::simt {

Value* hardware::load_plain(Value* address, llvm::Type* word, int words, int align, cache_hint hint) {
  llvm::Type* t =
      words > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(word, static_cast<unsigned>(words))) : word;
  llvm::LoadInst* load =
      b.CreateAlignedLoad(t, address, llvm::Align(static_cast<std::uint64_t>(align)), hint.is_volatile);
  if (hint.read_only) load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  if (hint.cache == kiln::cache::cs || hint.evict == kiln::evict::first)
    load->setMetadata(llvm::LLVMContext::MD_nontemporal,
                      llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
  return load;
}

void hardware::store_plain(Value* address, llvm::ArrayRef<Value*> values, int align, cache_hint hint) {
  Value* whole = values[0];
  if (values.size() > 1) {
    whole =
        llvm::PoisonValue::get(llvm::FixedVectorType::get(values[0]->getType(), static_cast<unsigned>(values.size())));
    for (std::size_t i = 0; i < values.size(); ++i) whole = b.CreateInsertElement(whole, values[i], i);
  }
  llvm::StoreInst* store = b.CreateAlignedStore(whole, address, llvm::Align(static_cast<std::uint64_t>(align)));
  if (hint.cache == kiln::cache::cs || hint.evict == kiln::evict::first)
    store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                       llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
}

std::vector<std::vector<Value*>> hardware::load(llvm::ArrayRef<Value*> addresses, llvm::Type* word, int words,
                                                int align, Value* mask, cache_hint hint) {
  llvm::BasicBlock *before = b.GetInsertBlock(), *inside = nullptr, *after = nullptr;
  if (mask) {
    inside = llvm::BasicBlock::Create(b.getContext(), "load", before->getParent());
    after = llvm::BasicBlock::Create(b.getContext(), "loaded", before->getParent());
    b.CreateCondBr(mask, inside, after);
    b.SetInsertPoint(inside);
  }
  std::vector<Value*> whole;
  for (Value* a : addresses) whole.push_back(load_plain(a, word, words, align, hint));
  if (mask) {
    b.CreateBr(after);
    b.SetInsertPoint(after);
    for (Value*& v : whole) {
      llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
      phi->addIncoming(llvm::Constant::getNullValue(v->getType()), before);
      phi->addIncoming(v, inside);
      v = phi;
    }
  }
  std::vector<std::vector<Value*>> r;
  for (Value* v : whole) {
    std::vector<Value*> w;
    for (int i = 0; i < words; ++i)
      w.push_back(words > 1 ? b.CreateExtractElement(v, static_cast<std::uint64_t>(i)) : v);
    r.push_back(std::move(w));
  }
  return r;
}

void hardware::store(llvm::ArrayRef<Value*> addresses, llvm::ArrayRef<std::vector<Value*>> values, int align,
                     Value* mask, cache_hint hint) {
  llvm::BasicBlock* after = nullptr;
  if (mask) {
    llvm::Function* f = b.GetInsertBlock()->getParent();
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(b.getContext(), "store", f);
    after = llvm::BasicBlock::Create(b.getContext(), "stored", f);
    b.CreateCondBr(mask, inside, after);
    b.SetInsertPoint(inside);
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) store_plain(addresses[i], values[i], align, hint);
  if (mask) {
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }
}

void hardware::copy(Value*, Value*, int, Value*, cache_hint) {
  llvm_unreachable("this target copies through registers");
}

} // namespace kiln::jit::simt
