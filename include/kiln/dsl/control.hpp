// Loops that are C++ loops: their range opens a region when it begins, closes it when the body ends, and stops C++'s loop
// after that one pass.
#pragma once
#include <kiln/dsl/value.hpp>

namespace kiln {

namespace detail {

/// What `k.range(...)` returns. The body of the `for` runs once, while recording.
template <class T>
class loop {
public:
  constexpr loop(recorder* r, int lo, int hi, int step, site at) : recorder_(r), lo_(lo), hi_(hi), step_(step), at_(at) {}
  loop(loop const&) = delete;
  constexpr ~loop() {
    if (begin_ >= 0 && !closed_)
      recorder_->fail_at(begin_) << "kiln[K-05] a recorded loop is left early (break, return or goto); use k.loop_while, or "
                                    "k.when around the rest of the body";
  }

  class iterator {
  public:
    constexpr explicit iterator(loop* l) : loop_(l) {}
    constexpr tile<T> operator*() const { return {loop_->recorder_, loop_->begin_}; }
    constexpr iterator& operator++() {
      loop_->close();
      return *this;
    }
    constexpr bool operator!=(iterator const&) const { return !loop_->closed_; }

  private:
    loop* loop_;
  };
  constexpr iterator begin() {
    begin_ = recorder_->push(op::for_begin, {dtype_of<T>, node_kind::value, 0}, {lo_, hi_, step_}, {-1}, at_);
    recorder_->open(begin_);
    return iterator(this);
  }
  constexpr iterator end() { return iterator(this); }

private:
  constexpr void close() {
    int end = recorder_->push(op::for_end, {}, {}, {begin_}, at_);
    recorder_->close();
    recorder_->attribute(begin_, 0) = end;
    closed_ = true;
  }
  recorder* recorder_;
  int lo_, hi_, step_, begin_ = -1;
  site at_;
  bool closed_ = false;
};

/// What `k.unrolled(n)` returns: plain C++ integers 0..n-1.
class counting {
public:
  constexpr explicit counting(int n) : n_(n) {}
  class iterator {
  public:
    constexpr explicit iterator(int i) : i_(i) {}
    constexpr int operator*() const { return i_; }
    constexpr iterator& operator++() {
      ++i_;
      return *this;
    }
    constexpr bool operator!=(iterator const& o) const { return i_ != o.i_; }

  private:
    int i_;
  };
  constexpr iterator begin() const { return iterator(0); }
  constexpr iterator end() const { return iterator(n_); }

private:
  int n_;
};

/// The type of a loop index over bounds of these types: that of the recorded ones, i32 when all are C++ integers.
template <class A, class B, class C>
constexpr auto index_type() {
  using X = read_t<A>;
  using Y = read_t<B>;
  using Z = read_t<C>;
  auto element = []<class V>(std::type_identity<V>) {
    if constexpr (literal<V>)
      return std::type_identity<bool>{};
    else
      return std::type_identity<typename V::element_type>{};
  };
  using R = promote_t<promote_t<typename decltype(element(std::type_identity<X>{}))::type, typename decltype(element(std::type_identity<Y>{}))::type>,
                      typename decltype(element(std::type_identity<Z>{}))::type>;
  if constexpr (std::same_as<R, bool>)
    return std::type_identity<i32>{};
  else
    return std::type_identity<R>{};
}
template <class A, class B, class C>
using index_t = typename decltype(index_type<A, B, C>())::type;

template <class X>
constexpr bool is_integer_scalar() {
  if constexpr (literal<X>)
    return std::is_integral_v<X> && !std::same_as<X, bool>;
  else
    return read_t<X>::dims.rank == 0 && is_int(dtype_of<typename read_t<X>::element_type>);
}

} // namespace detail
} // namespace kiln
