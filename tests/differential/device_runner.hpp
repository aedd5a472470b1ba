// A device, reached through the whole runtime, as a runner of compare.hpp: memory images are copied there and back.
#pragma once
#include "compare.hpp"

#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/launch.hpp>

#include <vector>

namespace kiln_test {

/// The arguments of a launch on a stream's device, memory images copied there.
class placed_arguments {
public:
  placed_arguments(kiln::stream const& where, arguments_image& a, bool specialise = true) : memory(a.list.size()) {
    for (std::size_t i = 0; i < a.list.size(); ++i) {
      kiln::interpreter::host_argument const& x = a.list[i];
      kiln::detail::argument to;
      if (!specialise) to.mode = kiln::detail::argument_mode::generic;
      if (x.kind == kiln::node_kind::value) {
        to.bits = x.bits.bits;
      } else {
        std::vector<std::byte>& storage = a.memory[i].storage;
        std::span<kiln::u8 const> bytes(reinterpret_cast<kiln::u8 const*>(storage.data()), storage.size());
        memory[i] = kiln::buffer<kiln::u8>(where, bytes);
        to.bits = reinterpret_cast<std::uintptr_t>(memory[i].data() + (static_cast<std::byte const*>(x.data) - storage.data()));
        for (int d = 0; d < x.rank; ++d) {
          to.shape[d] = x.extent[d];
          to.strides[d] = x.stride[d];
        }
      }
      list.push_back(to);
    }
  }
  std::vector<kiln::detail::argument> list;

  /// What is there now; waits for the stream.
  void fetch(arguments_image& a) {
    for (std::size_t i = 0; i < a.list.size(); ++i)
      if (a.list[i].kind != kiln::node_kind::value) {
        std::vector<std::byte>& storage = a.memory[i].storage;
        memory[i].copy_to({reinterpret_cast<kiln::u8*>(storage.data()), storage.size()});
      }
  }

private:
  std::vector<kiln::buffer<kiln::u8>> memory;
};

/// What the runtime knows of a kernel lives until the process ends, as kernels do. This one does not: somebody must go on pointing there.
class kept_states {
public:
  explicit kept_states(kiln::detail::kernel_entry& e) : entry_(e) {}
  kept_states(kept_states const&) = delete;
  ~kept_states() {
    static auto* const all = new std::vector<kiln::detail::kernel_state*>;
    all->push_back(entry_.state);
  }

private:
  kiln::detail::kernel_entry& entry_;
};

inline runner device_runner(kiln::device const& dev, bool specialise = true) {
  return [=](kiln::graph_view g, kiln::dims grid, arguments_image& a) {
    placed_arguments there(dev, a, specialise);
    kiln::detail::kernel_entry kernel{g, nullptr};
    kept_states const states(kernel);
    kiln::detail::launch(kernel, dev, kiln::grid(grid.x, grid.y, grid.z), there.list);
    dev.synchronize();
    there.fetch(a);
  };
}

} // namespace kiln_test
