// What a machine offers: one constexpr capability record per target, and the constants for the targets that kiln knows.
// The record is structural, so a target can be a template argument; nothing here needs a driver or LLVM.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kiln/export.hpp"

namespace kiln {

/// Which back end makes code for a target, and which kind of image comes out of it.
enum class target_family : std::uint8_t {
  host,   ///< native object, linked into this process
  nvptx,  ///< PTX text, finished by the CUDA driver
  amdgpu, ///< code object (a linked ELF image) for HIP
};

constexpr std::string_view to_string(target_family f) {
  return f == target_family::host ? "host" : f == target_family::nvptx ? "nvptx" : "amdgpu";
}

/// The widest matrix unit that the target's `dot` family can reach.
enum class matrix_unit : std::uint8_t {
  vector_fma, ///< explicit vectors, no matrix unit
  mma_sync,   ///< warp-level mma.sync
  wgmma,      ///< warp-group wgmma, and mma.sync below it
  tcgen05,    ///< tcgen05.mma with tensor memory, and mma.sync below it
  mfma,       ///< AMD matrix cores, 64 lanes
  wmma,       ///< AMD wave matrix, 32 lanes
};

/// Capabilities and limits of one target.
///
/// Units: bytes for memory, threads for `max_threads`, CTAs for `cluster_*`, 32-bit columns of 128 lanes for
/// `tensor_columns`. A limit of 0 means that the target has no such thing.
struct target {
  char name_chars[12] = {};
  target_family family = target_family::host;
  matrix_unit matrix = matrix_unit::vector_fma;
  /// 80, 90, 100 for NVIDIA; the hexadecimal digits of the gfx name for AMD (0x942, 0x1100); 0 for the host.
  unsigned arch = 0;
  int warp_size = 32;
  /// Most shared memory of one CTA, dynamic included.
  std::uint32_t shared_bytes = 0;
  /// Most shared memory that may be declared statically.
  std::uint32_t static_shared_bytes = 0;
  int max_threads = 1024;
  int tensor_columns = 0;
  /// CTAs of a portable cluster; 0 where clusters do not exist.
  int cluster_max = 0;
  /// CTAs of a cluster when the kernel opts into a non-portable size.
  int cluster_max_opt_in = 0;
  bool has_cp_async = false;       ///< asynchronous global to shared copies tracked by the issuing thread
  bool has_mbarrier = false;       ///< shared-memory barriers with phases and transaction counts
  bool has_bulk_copy = false;      ///< descriptor-driven bulk copies (TMA)
  bool has_tdm = false;            ///< descriptor-driven bulk copies (AMD tensor data mover)
  bool has_direct_to_lds = false;  ///< AMD global loads that write shared memory
  bool has_setmaxnreg = false;     ///< register budgets per warp group
  bool has_cluster_launch = false; ///< cluster launch control (a CTA can take another's grid index)

  /// The name that `parse` accepts, for instance "sm_90a".
  constexpr std::string_view name() const { return name_chars; }
  constexpr bool is_host() const { return family == target_family::host; }
  constexpr bool is_nvptx() const { return family == target_family::nvptx; }
  constexpr bool is_amdgpu() const { return family == target_family::amdgpu; }
  constexpr bool has_tensor_memory() const { return tensor_columns != 0; }
  constexpr bool has_clusters() const { return cluster_max != 0; }
  constexpr bool has_wgmma() const { return matrix == matrix_unit::wgmma; }
  constexpr bool has_tcgen05() const { return matrix == matrix_unit::tcgen05; }

  /// Two targets are the same when they have the same name.
  friend constexpr bool operator==(const target& a, const target& b) { return a.name() == b.name(); }

  /// The target called `name`.
  ///
  /// Errors: an unknown name throws `std::invalid_argument` with the list of names; in a constant expression it is a
  /// compile error whose text contains that list.
  static constexpr target parse(std::string_view name);
};

namespace detail {

constexpr target named(std::string_view name, target t) {
  for (std::size_t i = 0; i < name.size(); ++i) t.name_chars[i] = name[i];
  return t;
}

constexpr target nvidia(std::string_view name, unsigned arch, matrix_unit matrix) {
  const bool hopper_up = arch >= 90, blackwell = arch >= 100;
  return named(name, {.family = target_family::nvptx,
                      .matrix = matrix,
                      .arch = arch,
                      .warp_size = 32,
                      .shared_bytes = hopper_up ? 232448u : 166912u,
                      .static_shared_bytes = 49152,
                      .tensor_columns = blackwell ? 512 : 0,
                      .cluster_max = hopper_up ? 8 : 0,
                      .cluster_max_opt_in = hopper_up ? 16 : 0,
                      .has_cp_async = true,
                      .has_mbarrier = true,
                      .has_bulk_copy = hopper_up,
                      .has_setmaxnreg = hopper_up,
                      .has_cluster_launch = blackwell});
}

constexpr target amd(std::string_view name, unsigned arch, int warp_size, std::uint32_t shared_bytes) {
  const bool wide = warp_size == 64, tdm = arch == 0x1250;
  return named(name, {.family = target_family::amdgpu,
                      .matrix = wide ? matrix_unit::mfma : matrix_unit::wmma,
                      .arch = arch,
                      .warp_size = warp_size,
                      .shared_bytes = shared_bytes,
                      .static_shared_bytes = shared_bytes,
                      .cluster_max = tdm ? 16 : 0,
                      .cluster_max_opt_in = tdm ? 16 : 0,
                      .has_tdm = tdm,
                      .has_direct_to_lds = wide});
}

} // namespace detail

/// The targets that kiln knows.
namespace targets {

/// The CPU of this process. Its shared memory is a slice of the worker's arena; the limits mirror sm_90a, so that a
/// kernel which fits the host also fits a GPU.
inline constexpr target host = detail::named("host", {.shared_bytes = 232448, .static_shared_bytes = 232448});
inline constexpr target sm_80 = detail::nvidia("sm_80", 80, matrix_unit::mma_sync);
inline constexpr target sm_90a = detail::nvidia("sm_90a", 90, matrix_unit::wgmma);
inline constexpr target sm_100a = detail::nvidia("sm_100a", 100, matrix_unit::tcgen05);
inline constexpr target gfx90a = detail::amd("gfx90a", 0x90a, 64, 65536);
inline constexpr target gfx942 = detail::amd("gfx942", 0x942, 64, 65536);
inline constexpr target gfx950 = detail::amd("gfx950", 0x950, 64, 163840);
inline constexpr target gfx1100 = detail::amd("gfx1100", 0x1100, 32, 65536);
inline constexpr target gfx1201 = detail::amd("gfx1201", 0x1201, 32, 65536);
inline constexpr target gfx1250 = detail::amd("gfx1250", 0x1250, 32, 327680);

inline constexpr std::array<target, 10> all = {host,   sm_80,  sm_90a,  sm_100a, gfx90a,
                                               gfx942, gfx950, gfx1100, gfx1201, gfx1250};

} // namespace targets

namespace detail {

// Deliberately not constexpr: reaching it in a constant expression is the compile error, and its name is the message.
[[noreturn]] KILN_API void
unknown_target_use_one_of_host_sm_80_sm_90a_sm_100a_gfx90a_gfx942_gfx950_gfx1100_gfx1201_gfx1250(
    std::string_view name);

} // namespace detail

constexpr target target::parse(std::string_view name) {
  for (const target& t : targets::all)
    if (t.name() == name) return t;
  detail::unknown_target_use_one_of_host_sm_80_sm_90a_sm_100a_gfx90a_gfx942_gfx950_gfx1100_gfx1201_gfx1250(name);
}

} // namespace kiln
