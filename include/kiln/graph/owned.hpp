// A graph that owns its tables: made by the text parser, by passes, and from a recorder at run time.
#pragma once
#include <kiln/graph/recorder.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kiln {

class graph {
public:
  graph() = default;
  /// Copies everything, strings included.
  explicit graph(graph_view const& g)
      : name(g.name), attrs(g.attrs), nodes(g.nodes.begin(), g.nodes.end()),
        operand_pool(g.operand_pool.begin(), g.operand_pool.end()),
        attribute_pool(g.attribute_pool.begin(), g.attribute_pool.end()), shapes(g.shapes.begin(), g.shapes.end()),
        buffers(g.buffers.begin(), g.buffers.end()), params(g.params.begin(), g.params.end()) {
    for (char const* s : g.strings) add_string(s);
    for (char const* f : g.files) add_file(f);
  }
  graph(std::string kernel_name, recorder const& r) : graph(r.view()) { name = std::move(kernel_name); }
  graph(graph const& other) : graph(other.view()) {}
  graph(graph&&) = default;
  graph& operator=(graph const& other) { return *this = graph(other.view()); }
  graph& operator=(graph&&) = default;

  std::string name;
  attributes attrs;
  std::vector<node> nodes;
  std::vector<std::int32_t> operand_pool;
  std::vector<std::int64_t> attribute_pool;
  std::vector<shape> shapes;
  std::vector<buffer_info> buffers;
  std::vector<param_info> params;

  std::int32_t add_string(std::string s) { return add(strings_, string_pointers_, std::move(s)); }
  /// Replaces the text of a string that is in the table.
  void set_string(std::int32_t i, std::string s) {
    *strings_[static_cast<std::size_t>(i)] = std::move(s);
    string_pointers_[static_cast<std::size_t>(i)] = strings_[static_cast<std::size_t>(i)]->c_str();
  }
  std::int32_t add_file(std::string s) { return add(files_, file_pointers_, std::move(s)); }

  graph_view view() const {
    return {name, attrs, nodes, operand_pool, attribute_pool, shapes, buffers, params, string_pointers_, file_pointers_};
  }
  operator graph_view() const { return view(); }

private:
  // unique_ptr, so that the characters stay where they are when the tables grow or the graph moves.
  using texts = std::vector<std::unique_ptr<std::string>>;
  static std::int32_t add(texts& all, std::vector<char const*>& pointers, std::string s) {
    all.push_back(std::make_unique<std::string>(std::move(s)));
    pointers.push_back(all.back()->c_str());
    return static_cast<std::int32_t>(all.size()) - 1;
  }
  texts strings_, files_;
  std::vector<char const*> string_pointers_, file_pointers_;
};

} // namespace kiln
