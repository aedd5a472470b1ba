// Forgets what does not change the code: source positions, the kernel's and the buffers' names, the texts of asserts and
// prints (their number stays: code refers to it). The semantic hash does not change.
//
//   device_assert %4 {text="n > 0"}  @k.cpp:8       device_assert %4 {text=""}
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

namespace kiln {

KILN_INTERNAL_API graph strip_debug(graph_view const& g);

} // namespace kiln
