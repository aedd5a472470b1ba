// NumPy .npy files: how programs take a user's arrays and give results back. Format versions 1, 2 and 3, C and Fortran
// order, little-endian numbers of kiln's element types. NumPy has no bf16 and no fp8: these travel as u16 (or '<V2', as
// ml_dtypes saves them) and u8, and the reader says which one it expects.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/dtype/dtype.hpp"
#include "kiln/dtype/float16.hpp"
#include "kiln/dtype/float8.hpp"
#include "kiln/export.hpp"

namespace kiln {

/// A file that cannot be read or written. `what()` is one line: the path, what is wrong, and what would be right.
class KILN_API npy_error : public std::runtime_error {
public:
  npy_error(std::filesystem::path const& file, std::string const& problem);
};

/// The contents of a .npy file, in memory exactly as they stand in the file.
class KILN_API npy_array {
public:
  npy_array(dtype type, std::vector<i64> shape, bool fortran_order);

  dtype type() const { return type_; }
  std::vector<i64> const& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  bool fortran_order() const { return fortran_order_; }
  /// Number of elements; 1 for rank 0.
  i64 size() const { return size_; }
  i64 size_bytes() const { return bytes_of(type_, size_); }
  /// Distance between neighbours along each axis. Units: elements.
  std::vector<i64> strides() const;

  std::byte* data() { return data_.get(); }
  std::byte const* data() const { return data_.get(); }

  /// The elements in file order.
  /// Errors: std::invalid_argument if T is not the array's element type.
  template <element T> std::span<T const> as() const {
    require_type(dtype_of<T>);
    return {reinterpret_cast<T const*>(data_.get()), static_cast<std::size_t>(size_)};
  }
  template <element T> std::span<T> as() {
    require_type(dtype_of<T>);
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(size_)};
  }

  /// Reorders a Fortran-order array, so that `fortran_order()` is false afterwards. Cost: one pass and a copy.
  void make_row_major();

private:
  void require_type(dtype wanted) const;

  dtype type_;
  bool fortran_order_;
  std::vector<i64> shape_;
  i64 size_;
  std::unique_ptr<std::byte[]> data_;
};

/// Reads a file whose element type is taken from its header.
/// Errors: npy_error for a missing, truncated or over-long file, a wrong magic, a big-endian, structured or unknown
/// type.
KILN_API npy_array read_npy(std::filesystem::path const& file);

/// Reads a file that must hold `expected`; u16 and '<V2' files serve as bf16, u8 and '|V1' files as either fp8 type.
/// Errors: as above, and npy_error naming both types if they differ.
KILN_API npy_array read_npy(std::filesystem::path const& file, dtype expected);

/// Writes a file under a temporary name beside it and renames it when it is complete: a reader never sees half of it,
/// and after an error the old file, if there was one, is untouched. bf16 is written as u16, fp8 as u8. Shapes: the
/// product of `shape` elements in `data`. Errors: npy_error.
KILN_API void write_npy(std::filesystem::path const& file, dtype type, std::span<i64 const> shape,
                        std::span<std::byte const> data, bool fortran_order = false);

inline void write_npy(std::filesystem::path const& file, npy_array const& array) {
  write_npy(file, array.type(), array.shape(), {array.data(), static_cast<std::size_t>(array.size_bytes())},
            array.fortran_order());
}

/// Writes any contiguous range of an element type (std::vector, std::span, std::array, ...).
template <std::ranges::contiguous_range Range>
requires element<std::ranges::range_value_t<Range>>
void write_npy(std::filesystem::path const& file, Range const& values, std::vector<i64> const& shape,
               bool fortran_order = false) {
  std::span elements(std::ranges::data(values), std::ranges::size(values));
  write_npy(file, dtype_of<std::ranges::range_value_t<Range>>, shape, std::as_bytes(elements), fortran_order);
}

} // namespace kiln
