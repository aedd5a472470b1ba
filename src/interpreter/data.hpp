// What a node's result is while a kernel runs: one u64 per element, in row-major order.
#pragma once
#include <kiln/dtype/convert.hpp>
#include <kiln/graph/graph.hpp>

#include <vector>

namespace kiln::interpreter {

/// The content of a node. One struct for all kinds, so that vars can hold and copy any of them.
struct data {
  dtype type = dtype::b1;  ///< how `bits` is to be read; f64 for floating tiles in a doubled run
  std::vector<u64> bits;   ///< values, zero above their width; pointers: addresses; tokens: one number
  int origin = -1;         ///< pointers: the parameter that they were made from; tokens: the node that made them
  /// Integers and pointers: for each element the operation that wrapped on the way to it, or -1. Empty: none did.
  std::vector<i32> wrapped;

  int buffer = -1;         ///< views: the allocation
  std::vector<i32> offsets; ///< views: byte offset of every element in the arena

  i64 start[max_rank]{};   ///< regions: coordinates of the first element

  bool unset = false;      ///< cells: nothing was assigned yet
  std::vector<data> more;  ///< second and later results of a reduce or scan

  scalar at(std::size_t i) const { return {type, bits[i]}; }
};

/// Steps through the coordinates of a shape in row-major order.
class odometer {
public:
  explicit odometer(shape const& s) : shape_(s) {}
  int operator[](int axis) const { return c_[axis]; }
  void next() {
    for (int d = shape_.rank - 1; d >= 0; --d) {
      if (++c_[d] < shape_.extent[d]) return;
      c_[d] = 0;
    }
  }

private:
  shape const& shape_;
  int c_[max_rank]{};
};

/// Distance in elements between neighbours along each axis of a row-major tile.
struct strides {
  i64 of[max_rank]{};
  explicit strides(shape const& s) {
    i64 n = 1;
    for (int d = s.rank - 1; d >= 0; --d) {
      of[d] = n;
      n *= s.extent[d];
    }
  }
};

/// A tile seen as outer x axis x inner, for operations along one axis. Axis -1: the whole tile is the axis.
struct axis_split {
  i64 outer = 1, length = 1, inner = 1;
  axis_split(shape const& s, i64 axis) {
    if (axis < 0) {
      length = s.elements();
      return;
    }
    for (int d = 0; d < s.rank; ++d) (d < axis ? outer : d == axis ? length : inner) *= s.extent[d];
  }
  std::size_t index(i64 o, i64 k, i64 i) const { return static_cast<std::size_t>((o * length + k) * inner + i); }
};

} // namespace kiln::interpreter
