// Tasks as one program: for targets that run a CTA on one thread.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

namespace kiln {

/// The text of the device_assert that ends a deadlock. Its index is the first behind the texts of the kernel itself.
inline constexpr char const* deadlock_text = "deadlock: every task waits for a barrier; kiln::check says for which";

/// The same kernel without tasks, barriers, bulk copies and clusters; a graph that has none comes back as it is.
///
/// Every agent becomes a machine with a state. A state is the code from one wait to the next (loops and branches that hold
/// waits are taken apart, all others stay as they are), and runs when the barrier that it begins at lets it. One loop visits
/// the agents in turn until all are done; when none could go on, a device_assert says that it is a deadlock. Values that are used
/// in another state than their own live in vars, barriers are vars that count, copies happen at once.
///
/// Worked example, a ring:  producer  0: i = 0 | 1: i < n ? 2 : 4 | 2: wait empty[s]; copy; arrive full[s]; i += 1; 1 | 4: done
///                          consumer  0: i = 0 | 1: i < n ? 2 : 4 | 2: wait full[s]; read; arrive empty[s]; i += 1; 1 | 4: done
///
/// Errors: std::invalid_argument naming node and line, for pointers in a var that come from no argument.
///
/// A kernel of clusters becomes a program of whole clusters: its grid is that many times smaller along each axis, and each CTA has local
/// memory and a program of its own in it. Text t of its strings that CTA `rank` prints is number t + (rank + 1) * strings of the kernel.
KILN_INTERNAL_API graph sequentialise_tasks(graph_view const& g);

} // namespace kiln
