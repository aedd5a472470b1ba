// `kiln bundle`: kernels compiled ahead of time, as files that a C or C++ program takes with it and that need neither kiln
// nor LLVM: machine code for this CPU, PTX or cubins, AMD code objects, and a C header to load and launch them.
#pragma once
#include <string>
#include <vector>

#include <kiln/graph/owned.hpp>

namespace kiln::tool {

struct bundle_options {
  std::vector<std::string> inputs;  ///< .kg files or lessons
  std::vector<std::string> targets; ///< as `target::parse` reads them
  std::vector<std::string> facts;   ///< "kernel:FACT", or "FACT" where there is one kernel
  std::string folder;               ///< where the files go; made if it is not there
  std::string name;                 ///< of the header and in front of its functions; the folder's name otherwise
  std::string ptxas;                ///< path of NVIDIA's assembler: cubins in place of PTX
};

/// Writes NAME.h, NAME.c and the images; tells each file on standard output.
/// Errors: bad_input for wrong options; compile_error; std::runtime_error for files that cannot be written.
int bundle(bundle_options const& options);

} // namespace kiln::tool
