// The compile engine on GPU targets: PTX that ptxas assembles, AMDGPU code objects that lld links in process.
#include "jit/engine.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

// LLVM's frames that a fatal error leaves behind keep the text of their message.
extern "C" const char* __lsan_default_suppressions() { return "leak:llvm::raw_ostream::write\nleak:llvm::Twine::str"; }

namespace {

using namespace kiln::jit;
using kiln::compile_error;
using kiln::target;
namespace targets = kiln::targets;

const char* const nvptx_ir =
    "define ptx_kernel void @k(ptr addrspace(1) %p) { store i32 7, ptr addrspace(1) %p ret void }";
const char* const amdgpu_ir =
    "define amdgpu_kernel void @k(ptr addrspace(1) %p) { store i32 7, ptr addrspace(1) %p ret void }";

request device_request(const target& t, std::string ir = "", std::string key = "k") {
  request r;
  r.target = t;
  r.symbol = "k";
  r.key = std::move(key);
  r.build = from_ir_text(!ir.empty() ? ir : t.is_nvptx() ? nvptx_ir : amdgpu_ir);
  return r;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string message_of(engine& e, const request& r) {
  try {
    (void)e.compile(r);
  } catch (const std::exception& x) { return x.what(); }
  return "(compiled)";
}

// Section headers and symbols of a 64-bit ELF image, enough for these checks.
struct elf_view {
  std::string_view bytes;
  template <typename T> T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes.substr(offset, sizeof value).data(), sizeof value);
    return value;
  }
  Elf64_Ehdr header() const { return at<Elf64_Ehdr>(0); }
  std::vector<std::string> dynamic_symbols() const {
    std::vector<std::string> names;
    const Elf64_Ehdr h = header();
    for (unsigned i = 0; i < h.e_shnum; ++i) {
      const auto s = at<Elf64_Shdr>(h.e_shoff + i * h.e_shentsize);
      if (s.sh_type != SHT_DYNSYM) continue;
      const auto strings = at<Elf64_Shdr>(h.e_shoff + s.sh_link * h.e_shentsize);
      for (std::size_t o = 0; o < s.sh_size; o += sizeof(Elf64_Sym))
        names.emplace_back(bytes.data() + strings.sh_offset + at<Elf64_Sym>(s.sh_offset + o).st_name);
    }
    return names;
  }
};

void check_code_object(std::string_view image) {
  ASSERT_GT(image.size(), sizeof(Elf64_Ehdr));
  const elf_view elf{image};
  const Elf64_Ehdr h = elf.header();
  EXPECT_EQ(std::memcmp(h.e_ident, ELFMAG, SELFMAG), 0);
  EXPECT_EQ(h.e_type, ET_DYN);
  EXPECT_EQ(h.e_machine, 224);            // EM_AMDGPU
  EXPECT_EQ(h.e_ident[EI_OSABI], 64);     // ELFOSABI_AMDGPU_HSA
  EXPECT_EQ(h.e_ident[EI_ABIVERSION], 3); // code object version 5
  const auto names = elf.dynamic_symbols();
  EXPECT_NE(std::find(names.begin(), names.end(), "k"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "k.kd"), names.end()); // the kernel descriptor
}

TEST(engine_device, nvptx_gives_ptx_of_the_lowest_version) {
  // sm_90 has additions of vectors to memory, which need 8.1.
  engine e;
  for (const auto& [t, version] :
       {std::pair{targets::sm_80, "7.1"}, {targets::sm_90a, "8.1"}, {targets::sm_100a, "8.6"}}) {
    const compiled c = e.compile(device_request(t));
    EXPECT_EQ(c.kind(), image_kind::ptx);
    EXPECT_EQ(c.address(), nullptr);
    EXPECT_EQ(c.entry(), "k");
    EXPECT_TRUE(contains(c.image(), ".visible .entry k(")) << c.image();
    EXPECT_TRUE(contains(c.image(), ".target " + std::string(t.name()))) << c.image();
    EXPECT_TRUE(contains(c.image(), std::string(".version ") + version)) << c.image();
  }
  request r = device_request(targets::sm_90a, "", "newer");
  r.codegen.ptx_version = 83;
  EXPECT_TRUE(contains(e.compile(r).image(), ".version 8.3"));
}

TEST(engine_device, ptxas_accepts_the_ptx) {
  std::string ptxas;
  for (const char* p : {"ptxas", "/usr/local/cuda/bin/ptxas"})
    if (ptxas.empty() && std::system(("command -v " + std::string(p) + " >/dev/null 2>&1").c_str()) == 0) ptxas = p;
  if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
  engine e;
  const auto dir = std::filesystem::temp_directory_path() / ("kiln-ptxas-" + std::to_string(getpid()));
  std::filesystem::create_directory(dir);
  for (const target& t : {targets::sm_80, targets::sm_90a, targets::sm_100a}) {
    const auto file = dir / (std::string(t.name()) + ".ptx");
    std::ofstream(file) << e.emit(device_request(t), emit_kind::assembly);
    const std::string command = ptxas + " -arch=" + std::string(t.name()) + " -o /dev/null " + file.string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::filesystem::remove_all(dir);
}

TEST(engine_device, the_driver_s_linker_runs_once_and_its_result_is_the_image) {
  engine e;
  request r = device_request(targets::sm_90a);
  int links = 0;
  r.device_link = [&](std::string_view ptx) {
    ++links;
    EXPECT_TRUE(contains(ptx, ".entry k("));
    return std::string("cubin!");
  };
  std::string stored;
  r.store = [&](const compiled& c) { stored = c.image(); };
  const compiled c = e.compile(r);
  EXPECT_EQ(e.compile(r).image(), "cubin!");
  EXPECT_EQ(c.kind(), image_kind::device_binary);
  EXPECT_EQ(links, 1);
  EXPECT_EQ(stored, "cubin!");

  engine second;
  const compiled adopted = second.adopt(r, {stored, image_kind::device_binary});
  EXPECT_EQ(adopted.image(), "cubin!");
  EXPECT_EQ(adopted.kind(), image_kind::device_binary);
  EXPECT_EQ(links, 1);
  EXPECT_EQ(second.stats().compiles, 0u);

  r.key = "failing";
  r.device_link = [](std::string_view) -> std::string { throw std::runtime_error("driver: too many registers"); };
  try {
    (void)e.compile(r);
    ADD_FAILURE() << "compiled";
  } catch (const std::runtime_error& x) { EXPECT_STREQ(x.what(), "driver: too many registers"); }
}

TEST(engine_device, amdgpu_gives_code_objects_again_and_again) {
  engine e;
  for (int round = 0; round < 3; ++round) // lld runs many times in one process
    for (const target& t :
         {targets::gfx90a, targets::gfx942, targets::gfx950, targets::gfx1100, targets::gfx1201, targets::gfx1250}) {
      SCOPED_TRACE(t.name());
      const compiled c = e.compile(device_request(t, "", std::to_string(round)));
      EXPECT_EQ(c.kind(), image_kind::code_object);
      check_code_object(c.image());
    }
  EXPECT_EQ(e.stats().links, 18u);
  EXPECT_EQ(e.stats().images, 18u);
  const compiled c = e.compile(device_request(targets::gfx942, "", "0"));
  engine second;
  EXPECT_EQ(second.adopt(device_request(targets::gfx942), {std::string(c.image()), image_kind::code_object}).image(),
            c.image());
  EXPECT_EQ(second.stats().links, 0u);
}

TEST(engine_device, stages_of_gpu_targets) {
  engine e;
  for (const target& t : targets::all) {
    if (t.is_host()) continue;
    SCOPED_TRACE(t.name());
    EXPECT_TRUE(contains(e.emit(device_request(t), emit_kind::ir_before), "define"));
    EXPECT_TRUE(contains(e.emit(device_request(t), emit_kind::ir), "\"target-cpu\"=\"" + std::string(t.name()) + "\""));
    const std::string text = e.emit(device_request(t), emit_kind::assembly);
    EXPECT_TRUE(contains(text, t.is_nvptx() ? "st.global" : "global_store")) << text;
    const std::string object = e.emit(device_request(t), emit_kind::object);
    if (t.is_nvptx()) {
      EXPECT_EQ(object, text);
    } else {
      check_code_object(object);
    }
  }
}

TEST(engine_device, an_undefined_device_function_is_a_link_error_with_its_name) {
  engine e;
  const std::string text = message_of(
      e, device_request(targets::gfx942,
                        "declare void @missing()\ndefine amdgpu_kernel void @k() { call void @missing() ret void }"));
  EXPECT_TRUE(contains(text, "kernel 'k' for gfx942: linking") && contains(text, "missing")) << text;
  EXPECT_EQ(e.compile(device_request(targets::gfx942)).kind(), image_kind::code_object); // and lld can go on
}

TEST(engine_device, too_much_shared_memory_is_an_error_with_llvms_message) {
  engine e;
  const std::string text = message_of(
      e, device_request(targets::gfx942,
                        "@s = internal addrspace(3) global [70000 x i8] poison\n"
                        "define amdgpu_kernel void @k() { store volatile i8 1, ptr addrspace(3) @s ret void }"));
  EXPECT_TRUE(contains(text, "kernel 'k' for gfx942: code generation") && contains(text, "local memory")) << text;
  EXPECT_EQ(e.compile(device_request(targets::gfx942)).kind(), image_kind::code_object);
}

TEST(engine_device, what_cannot_be_selected_is_an_error_and_not_the_end_of_the_process) {
  engine e;
  // wgmma fences do not exist on sm_80.
  const char* const ir = "declare void @llvm.nvvm.wgmma.fence.sync.aligned()\n"
                         "define ptx_kernel void @k() { call void @llvm.nvvm.wgmma.fence.sync.aligned() ret void }";
  const std::string text = message_of(e, device_request(targets::sm_80, ir));
  EXPECT_TRUE(contains(text, "kernel 'k' for sm_80: code generation") && contains(text, "wgmma")) << text;
  EXPECT_TRUE(contains(e.compile(device_request(targets::sm_90a, ir)).image(), "wgmma.fence"));
  EXPECT_EQ(e.compile(device_request(targets::sm_80)).kind(), image_kind::ptx);
}

TEST(engine_device, options_that_a_target_does_not_have_are_refused) {
  engine e;
  request r = device_request(targets::gfx942);
  r.codegen.ptx_version = 80;
  EXPECT_TRUE(contains(message_of(e, r), "ptx_version is for NVPTX")) << message_of(e, r);
  r = device_request(targets::gfx942);
  r.device_link = [](std::string_view) { return std::string(); };
  EXPECT_THROW((void)e.compile(r), std::invalid_argument);
  r = device_request(targets::sm_90a);
  r.symbol = "no-identifier";
  EXPECT_THROW((void)e.compile(r), std::invalid_argument);
}

TEST(engine_device, removal_frees_images) {
  engine e;
  const compiled a = e.compile(device_request(targets::gfx942, "", "a"));
  const compiled b = e.compile(device_request(targets::sm_90a, "", "b"));
  EXPECT_EQ(e.stats().images, 2u);
  e.remove(a);
  EXPECT_EQ(e.stats().images, 1u);
  e.remove(b);
  EXPECT_EQ(e.stats().images, 0u);
  EXPECT_EQ(e.stats().live, 0u);
}

TEST(engine_device, devices_are_apart_and_targets_live_in_one_session) {
  engine e;
  request r = device_request(targets::gfx942);
  r.device = "hip:0";
  (void)e.compile(r);
  r.device = "hip:1";
  (void)e.compile(r);
  EXPECT_EQ(e.stats().compiles, 2u);
  (void)e.compile(device_request(targets::gfx1100));
  (void)e.compile(device_request(targets::sm_80));
  EXPECT_EQ(e.stats().live, 4u);
}

} // namespace
