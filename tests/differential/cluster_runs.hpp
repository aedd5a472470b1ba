// Kernels in clusters on a device, against the interpreter: every form of what CTAs do with each other, in clusters of several shapes.
#pragma once
#include "cluster_forms.hpp"
#include "cluster_kernels.hpp"
#include "device_runner.hpp"

#include <kiln/target/compile_error.hpp>

#include <gtest/gtest.h>

namespace kiln_test {

/// What differs between the device and the interpreter; R-TG01 is what a device without clusters answers. `record` fills a kernel of
/// (const f32*, f32*, i32).
template <class Record>
std::string differs_in_clusters(kiln::device const& dev, Record record, char const* name, kiln::dims cluster) {
  run_time_recording t;
  t.r.attrs.cluster = cluster;
  t.r.attrs.cluster_nonportable = cluster.x * cluster.y * cluster.z > 8;
  auto x = t.pointer<kiln::f32 const>();
  auto y = t.pointer<kiln::f32>();
  auto n = t.value<kiln::i32>();
  record(t.k, x, y, n);
  t.k.finish();
  if (!t.r.error.ok()) return t.r.error.text;
  std::string all;
  for (int count : {1, 2, 5})
    for (int clusters : {1, 3}) {
      generated g;
      g.graph = kiln::graph(t.graph());
      g.graph.name = name;
      g.grid = {clusters * cluster.x, cluster.y, cluster.z};
      g.arguments.resize(3);
      g.arguments[0] = {.kind = kiln::node_kind::pointer, .type = kiln::dtype::f32, .elements = 1 << 14, .holds = contents::small};
      g.arguments[1] = {.kind = kiln::node_kind::pointer, .type = kiln::dtype::f32, .elements = 1 << 14, .is_output = true};
      g.arguments[2] = {.kind = kiln::node_kind::value, .type = kiln::dtype::i32, .bits = static_cast<std::uint64_t>(count)};
      std::string const now = compare(g, device_runner(dev, count == 2), {.seed = 1});
      if (!now.empty()) all += std::string(name) + ", n " + std::to_string(count) + ", " + std::to_string(clusters) + " clusters: " + now + "\n";
    }
  return all;
}

/// KILN_EVERY_CLUSTER(X): X(kernel, x, y, z) for each kernel with each shape of a cluster that it runs in.
#define KILN_EVERY_CLUSTER(X)                                                                                          \
  X(cluster_forms::stores, 2, 1, 1) X(cluster_forms::stores, 2, 2, 2) X(cluster_forms::sent, 2, 1, 1) X(cluster_forms::sent, 4, 1, 1)                   \
  X(cluster_forms::arrivals, 2, 2, 1) X(cluster_forms::arrivals, 8, 1, 1) X(cluster_forms::tasks, 2, 1, 1) X(cluster_forms::tasks, 1, 4, 1)              \
  X(clusters::sum, 4, 1, 1) X(clusters::sum, 8, 1, 1) X(clusters::ring, 2, 1, 1) X(clusters::ring, 4, 1, 1) X(clusters::broadcast, 2, 1, 1) X(clusters::broadcast, 4, 1, 1)

} // namespace kiln_test
