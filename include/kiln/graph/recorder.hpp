// Appends nodes to a graph that is being made, while the C++ compiler runs or at run time (tests, tools, the text parser).
// It knows nothing of the DSL's types: callers give dtype, kind and shape. Mistakes that only a value can show (not a
// type) are reported through `fail`; the first one is kept.
#pragma once
#include <kiln/graph/graph.hpp>
#include <kiln/meta/site.hpp>
#include <kiln/meta/vec.hpp>

#include <initializer_list>
#include <string_view>

namespace kiln {

namespace detail {
/// Deliberately not constexpr: calling it ends constant evaluation, and the compiler's backtrace then shows the user's
/// statement.
inline void the_error_is_in_the_statement_above() { __builtin_trap(); }

/// Writes one-line messages during constant evaluation.
class message {
public:
  constexpr explicit message(diagnostic& d) : d_(d) { d_.length = 0; }
  constexpr message& operator<<(std::string_view s) {
    for (char c : s) put(c);
    return *this;
  }
  constexpr message& operator<<(char const* s) { return *this << std::string_view(s); }
  constexpr message& operator<<(std::int64_t v) {
    char digits[24]{};
    int n = 0;
    bool negative = v < 0;
    std::uint64_t u = negative ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
    do digits[n++] = static_cast<char>('0' + u % 10);
    while (u /= 10);
    if (negative) digits[n++] = '-';
    while (n) put(digits[--n]);
    return *this;
  }
  constexpr message& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
  /// [2,64] f16, as in tile types.
  constexpr message& type(dtype t, shape const& s) {
    *this << name_of(t);
    if (s.rank == 0) return *this;
    *this << "[";
    for (int i = 0; i < s.rank; ++i) *this << (i ? "," : "") << s.extent[i];
    return *this << "]";
  }

private:
  constexpr void put(char c) {
    if (d_.length < static_cast<int>(sizeof d_.text) - 1) d_.text[d_.length++] = c;
  }
  diagnostic& d_;
};
} // namespace detail

namespace detail {
/// A storage_alias_spec while it is recorded.
struct alias_state {
  std::int32_t buffer = -1;   ///< its storage
  std::int32_t tree_line = 0; ///< of set_buffer_overlap; 0: not yet
  std::int64_t given = 0;     ///< buffer_size_bytes
  std::int64_t needed = 0;    ///< without a tree
  bool pun = false;
  bool all_lanes = false;     ///< in tensor memory: a buffer has 128 rows, not 64
};
/// What an access_ptr said of a window.
struct access_limit {
  std::int32_t buffer = -1;
  std::int32_t line = 0;
  bool read = true, write = true;
};
} // namespace detail

/// Type of a node's result.
struct result_type {
  dtype type{};
  node_kind kind = node_kind::none;
  std::int32_t shape = 0; ///< index into the recorder's shape table
};

class recorder {
public:
  constexpr recorder() { shapes.add(); } // shape 0: scalar
  recorder(recorder const&) = delete;

  detail::vec<node> nodes;
  detail::vec<std::int32_t> operand_pool;
  detail::vec<std::int64_t> attribute_pool;
  detail::vec<shape> shapes;
  detail::vec<buffer_info> buffers;
  detail::vec<param_info> params;
  detail::vec<char const*> strings;
  detail::vec<char const*> files;
  detail::vec<detail::alias_state> specs; ///< no part of the graph
  detail::vec<detail::access_limit> limits; ///< neither
  void (*check_limits)(recorder&) = nullptr; ///< of dsl/buffer.hpp, where an access_ptr was made
  diagnostic error;
  attributes attrs{};

  int task = -1;            ///< being recorded: 0 the default task, 1 another one, -1 none
  int last_tasks = -1;      ///< the latest tasks_begin
  int exclusive_tasks = -1; ///< the one that promised to be alone

  /// During a replay, recording stops with a compile error at this node.
  int stop_at = -1;
  bool replay = false;

  /// Appends a node and returns its index.
  constexpr int push(op code, result_type t, std::initializer_list<std::int32_t> operands,
                     std::initializer_list<std::int64_t> attributes, site at) {
    // Written for compilers, which pay for every call: a range-for over a list calls five functions of the list.
    int const i = begin_node(code, t, at);
    int const operand_total = static_cast<int>(operands.size()), attribute_total = static_cast<int>(attributes.size());
    if (operand_total > 0) {
      std::int32_t const* from = operands.begin();
      std::int32_t* to = operand_pool.add_some(operand_total);
      for (int j = 0; j < operand_total; ++j) to[j] = from[j];
      nodes.back().operand_count = operand_total;
    }
    if (attribute_total > 0) {
      std::int64_t const* from = attributes.begin();
      std::int64_t* to = attribute_pool.add_some(attribute_total);
      for (int j = 0; j < attribute_total; ++j) to[j] = from[j];
    }
    return i;
  }

  /// Appends a node whose operands are added one by one with `add_operand`.
  constexpr int begin_node(op code, result_type t, site at) {
    if (replay && nodes.size() == stop_at) detail::the_error_is_in_the_statement_above();
    std::uint8_t const file = file_index(at.file);
    nodes.add() = {code, t.type, t.kind, file, at.line, t.shape, operand_pool.size(), attribute_pool.size(), 0};
    return nodes.size() - 1;
  }
  constexpr void add_operand(std::int32_t o) {
    operand_pool.add() = o;
    ++nodes.back().operand_count;
  }
  constexpr void add_attribute(std::int64_t a) { attribute_pool.add() = a; }

  constexpr std::int64_t& attribute(int n, int i) { return attribute_pool[nodes[n].attributes + i]; }
  constexpr std::int32_t operand(int n, int i) const { return operand_pool[nodes[n].operands + i]; }

  /// Index of a shape in the table; equal shapes share one entry.
  constexpr std::int32_t intern(shape const& s) {
    for (int i = shapes.size() - 1; i >= 0; --i)
      if (shapes[i] == s) return i;
    shapes.add() = s;
    return shapes.size() - 1;
  }
  constexpr std::int32_t add_string(char const* s) {
    strings.add() = s;
    return strings.size() - 1;
  }

  /// Opens a region at node `begin`; loops and conditionals that are still open form a stack.
  constexpr void open(int begin) { open_.add() = begin; }
  constexpr int innermost() const { return open_.empty() ? -1 : open_[open_.size() - 1]; }
  constexpr void close() { open_.pop(); }

  /// Reports a mistake at the statement being recorded. Only the first is kept.
  constexpr detail::message fail() {
    if (replay && error.ok()) detail::the_error_is_in_the_statement_above();
    if (!error.ok()) return detail::message(ignored_);
    error.node = nodes.size();
    return detail::message(error);
  }
  /// The same for a statement that records no node of its own: one is put there, so that its line is known.
  constexpr detail::message fail(site at) {
    bool const first = error.ok();
    detail::message m = fail();
    if (first) push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
    return m;
  }
  /// The same for a statement that began at `at`, recorded earlier.
  constexpr detail::message fail_at(int node) {
    if (!error.ok()) return detail::message(ignored_);
    error.node = node;
    return detail::message(error);
  }

  template <class T>
  static constexpr slice<T> slice_of(detail::vec<T> const& v) {
    return {v.data(), static_cast<std::size_t>(v.size())};
  }
  constexpr graph_view view() const {
    return {{},
            attrs,
            slice_of(nodes),
            slice_of(operand_pool),
            slice_of(attribute_pool),
            slice_of(shapes),
            slice_of(buffers),
            slice_of(params),
            slice_of(strings),
            slice_of(files)};
  }

private:
  constexpr std::uint8_t file_index(char const* f) {
    if (last_file_name_ && __builtin_strcmp(last_file_name_, f) == 0) return last_file_;
    last_file_ = find_file(f);
    last_file_name_ = files[last_file_];
    return last_file_;
  }
  constexpr std::uint8_t find_file(char const* f) {
    for (int i = files.size() - 1; i >= 0; --i)
      if (__builtin_strcmp(files[i], f) == 0) return static_cast<std::uint8_t>(i);
    if (files.size() == 255) return 254;
    files.add() = f;
    return static_cast<std::uint8_t>(files.size() - 1);
  }
  detail::vec<std::int32_t> open_;
  char const* last_file_name_ = nullptr; ///< nearly every node has the file of the one before
  std::uint8_t last_file_ = 0;
  diagnostic ignored_;
};

} // namespace kiln
