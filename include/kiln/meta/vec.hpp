// A growable array for constant evaluation. It evaluates about twice as fast there as std::vector, which is why the
// recorder uses it; it is not meant for anything else.
#pragma once
#include <type_traits>
#include <utility>

namespace kiln::detail {

template <class T>
class vec {
public:
  constexpr vec() = default;
  vec(vec const&) = delete;
  vec& operator=(vec const&) = delete;
  constexpr ~vec() { delete[] data_; }

  /// Appends an element and returns it: a class has been value-initialised once, anything else is to be written before it is read.
  constexpr T& add() {
    if (size_ == capacity_) grow();
    return data_[size_++];
  }
  /// Appends n elements and returns the first.
  constexpr T* add_some(int n) {
    while (size_ + n > capacity_) grow();
    size_ += n;
    return data_ + (size_ - n);
  }
  constexpr void add(T const& x) {
    T copy = x; // x may live in the array that is about to move
    add() = copy;
  }
  /// Room for n elements in all.
  constexpr void reserve(int n) {
    if (n > capacity_) grow(n);
  }
  constexpr void pop() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr T const* data() const { return data_; }
  constexpr T& operator[](int i) { return data_[i]; }
  constexpr T const& operator[](int i) const { return data_[i]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T const* begin() const { return data_; }
  constexpr T const* end() const { return data_ + size_; }

private:
  static constexpr T* fresh(int n) {
    if constexpr (std::is_scalar_v<T>)
      return new T[static_cast<unsigned>(n)]; // written before they are read: nothing to initialise
    else
      return new T[static_cast<unsigned>(n)]{};
  }
  constexpr void grow() { grow(capacity_ ? 2 * capacity_ : 64); }
  constexpr void grow(int capacity) {
    T* data = fresh(capacity);
    for (int i = 0; i < size_; ++i) data[i] = data_[i];
    delete[] data_;
    data_ = data;
    capacity_ = capacity;
  }
  T* data_ = nullptr;
  int size_ = 0, capacity_ = 0;
};

} // namespace kiln::detail
