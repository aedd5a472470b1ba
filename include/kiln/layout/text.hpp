// Layouts as text, for messages, dumps of the lowering and tests.
#pragma once

#include "kiln/export.hpp"
#include "kiln/layout/linear_layout.hpp"

#include <string>

namespace kiln {

/// One line: the column of every input bit, then the extents of the output. Tile coordinates are written in axis order.
/// `reg (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) -> d0 16, d1 8`; equal layouts whose output fields are packed in
/// another order have the same text.
KILN_API std::string to_string(const linear_layout& layout);

/// The name of a field: "reg", "lane", "warp", "cta", "offset", "d0" and so on.
KILN_API std::string to_string(layout_dim d);

} // namespace kiln
