// What NVIDIA's assembler says about a kernel, read from its log: registers, stack, spills, and what it could not do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kiln/dtype/dtype.hpp"
#include "kiln/export.hpp"

namespace kiln::detail {

struct assembler_report {
  bool known = false; ///< the log had figures
  int registers = 0;
  i64 stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
  /// One line each, in words of the assembler where it warned: spills, serialised wgmma, ignored setmaxnreg.
  std::vector<std::string> warnings;
};

/// Reads a verbose log, of the driver's linker or of ptxas. With several functions in it, figures are the largest.
KILN_INTERNAL_API assembler_report read_assembler_log(std::string_view log);

} // namespace kiln::detail
