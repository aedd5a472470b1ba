// `kiln timeline`: what the tasks of a checked run do, as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include <string>

namespace kiln::tool {

/// Collects the events of one run and writes them as a Chrome trace. One microsecond is one step: something that is shown begins or
/// ends. Arrows lead from what completes a wait to the wait.
class timeline {
public:
  explicit timeline(graph_view const& g) : g_(g) {}
  /// For `run_options::trace`. The timeline must outlive the run.
  void add(interpreter::trace_event const& e);
  /// The trace; spans that the run left open (a deadlock) end with it, and are called unfinished.
  std::string json() const;

private:
  graph_view g_;
  std::vector<interpreter::trace_event> events_;
};

} // namespace kiln::tool
