// Makes a graph from another one, node by node in program order: how passes are written. The new graph keeps parameters,
// strings and files; buffers whose alloc node is gone leave the table; regions are linked again at the end.
#pragma once
#include <kiln/dtype/scalar.hpp>
#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/structure.hpp>

#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::detail {

/// The form of a node's result.
struct node_type {
  dtype type{};
  node_kind kind = node_kind::none;
  shape extents{};
};

class rewriter {
public:
  explicit rewriter(graph_view const& from) : from_(from), map_(from.nodes.size(), -1) {
    to_.name = from.name;
    to_.attrs = from.attrs;
    to_.params.assign(from.params.begin(), from.params.end());
    to_.shapes.assign(from.shapes.begin(), from.shapes.end());
    for (char const* s : from.strings) to_.add_string(s);
    for (char const* f : from.files) to_.add_file(f);
    to_.nodes.reserve(from.nodes.size());
  }

  graph_view const& from() const { return from_; }
  /// Node i of the new graph.
  node const& made(int i) const { return to_.nodes[static_cast<std::size_t>(i)]; }
  shape const& shape_of_made(int i) const { return to_.shapes[static_cast<std::size_t>(made(i).shape)]; }
  int operand_of_made(int i, int j) const {
    return j < made(i).operand_count ? to_.operand_pool[static_cast<std::size_t>(made(i).operands + j)] : -1;
  }
  std::int64_t attribute_of_made(int i, int j) const { return to_.attribute_pool[static_cast<std::size_t>(made(i).attributes + j)]; }
  int size() const { return static_cast<int>(to_.nodes.size()); }

  /// What node i of the old graph has become; -1 stays -1.
  int mapped(int i) const { return i < 0 ? -1 : map_[static_cast<std::size_t>(i)]; }
  /// Operand j of old node i in the new graph; -1 when absent.
  int operand(int i, int j) const { return mapped(from_.operand(i, j)); }
  /// Uses of old node i become uses of a new node.
  void replace(int i, int with) { map_[static_cast<std::size_t>(i)] = with; }

  /// Copies old node i.
  int copy(int i) {
    node n = from_[i];
    n.operands = static_cast<std::int32_t>(to_.operand_pool.size());
    n.attributes = static_cast<std::int32_t>(to_.attribute_pool.size());
    for (std::int32_t o : from_.operands(i)) to_.operand_pool.push_back(mapped(o));
    for (int a = 0; a < attribute_count(n.code); ++a) {
      std::int64_t x = from_.attribute(i, a);
      if (kind_of_attribute(n.code, a) == attribute_kind::combine && x >= 0) x = mapped(static_cast<int>(x));
      to_.attribute_pool.push_back(x);
    }
    to_.nodes.push_back(n);
    replace(i, size() - 1);
    if (n.code == op::alloc) {
      buffer_info b = from_.buffer(static_cast<int>(from_.attribute(i, 0)));
      b.node = size() - 1;
      // The buffer that a window shows, where that is there: of several copies, the last one.
      int const shown = b.base < 0 ? -1 : mapped(from_.buffer(b.base).node);
      if (shown >= 0) b.base = static_cast<int>(attribute_of_made(shown, 0));
      linked_.push_back(shown >= 0);
      to_.attribute_pool.back() = static_cast<std::int64_t>(to_.buffers.size());
      to_.buffers.push_back(b);
      old_buffer_.push_back(static_cast<int>(from_.attribute(i, 0)));
    }
    if (n.code == op::param) to_.params[static_cast<std::size_t>(from_.attribute(i, 0))].node = size() - 1;
    return size() - 1;
  }

  /// Appends a node that has the source position of old node `like`.
  int add(op code, node_type const& t, std::span<std::int32_t const> operands, std::span<std::int64_t const> attributes, int like) {
    node n;
    n.code = code;
    n.type = t.type;
    n.kind = t.kind;
    n.shape = intern_shape(to_, t.extents);
    n.line = from_[like].line;
    n.file = from_[like].file;
    n.operands = static_cast<std::int32_t>(to_.operand_pool.size());
    n.attributes = static_cast<std::int32_t>(to_.attribute_pool.size());
    n.operand_count = static_cast<std::int32_t>(operands.size());
    to_.operand_pool.insert(to_.operand_pool.end(), operands.begin(), operands.end());
    to_.attribute_pool.insert(to_.attribute_pool.end(), attributes.begin(), attributes.end());
    to_.nodes.push_back(n);
    return size() - 1;
  }
  int add(op code, node_type const& t, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes, int like) {
    return add(code, t, std::span(operands.begin(), operands.size()), std::span(attributes.begin(), attributes.size()), like);
  }
  /// Index of a text in the new graph.
  std::int64_t add_string(std::string const& s) {
    to_.add_string(s.c_str());
    return static_cast<std::int64_t>(graph_view(to_).strings.size()) - 1;
  }
  int add_constant(scalar v, shape const& s, int like) {
    return add(op::constant, {v.type, node_kind::value, s}, {}, {is_signed_int(v.type) ? int_of(v) : static_cast<std::int64_t>(v.bits)}, like);
  }

  /// A new buffer of slots in local memory: its alloc node.
  int add_buffer(dtype t, shape const& s, int slots, int like) {
    int const i = add(op::alloc, {t, node_kind::buffers, s}, {}, {static_cast<std::int64_t>(to_.buffers.size())}, like);
    buffer_info b;
    b.type = t;
    b.slots = slots;
    b.shape = made(i).shape;
    b.node = i;
    to_.buffers.push_back(b);
    linked_.push_back(true);
    old_buffer_.push_back(-1);
    return i;
  }

  /// The new graph. Errors: std::logic_error when its regions do not nest, which is a fault of the pass.
  graph finish() {
    // Where the buffer that windows show is gone, the first of them stands for it.
    std::vector<int> stands_for(from_.buffers.size(), -1);
    for (std::size_t i = 0; i < to_.buffers.size(); ++i)
      if (old_buffer_[i] >= 0 && from_.buffer(old_buffer_[i]).base < 0) stands_for[static_cast<std::size_t>(old_buffer_[i])] = static_cast<int>(i);
    for (std::size_t i = 0; i < to_.buffers.size(); ++i) {
      buffer_info& b = to_.buffers[i];
      if (b.base < 0 || linked_[i]) continue;
      int& s = stands_for[static_cast<std::size_t>(b.base)];
      b.base = s;
      if (s < 0) s = static_cast<int>(i);
    }
    if (region_fault const f = link_regions(to_); !f.ok()) throw std::logic_error("a pass made a graph whose regions do not nest: " + f.text);
    return std::move(to_);
  }

private:
  graph_view from_;
  graph to_;
  std::vector<std::int32_t> map_;
  std::vector<bool> linked_;    ///< of a new buffer: its base is one of the new graph
  std::vector<int> old_buffer_; ///< of a new buffer: which one it was; -1: none
};

} // namespace kiln::detail
