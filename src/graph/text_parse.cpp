// Parses text graphs; text.hpp describes the form. Whatever the input, the outcome is a well-formed graph or a text_error.
#include <kiln/dtype/convert.hpp>
#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/structure.hpp>
#include <kiln/graph/text.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace kiln {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t most_strings = 1 << 16;

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_file_char(char c) { return is_word_char(c) || c == '.' || c == '-' || c == '+'; }

class parser {
public:
  parser(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  std::vector<graph> run() {
    std::vector<graph> all;
    for (skip_lines(); at_ < text_.size(); skip_lines()) all.push_back(kernel());
    return all;
  }

private:
  // -- characters ------------------------------------------------------------------------------------------------------

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_line_end() const { return at_ >= text_.size() || text_[at_] == '\n'; }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (text_.substr(at_, 2) == "//")
      while (!at_line_end()) ++at_;
  }
  void skip_lines() {
    for (skip_blanks(); at_ < text_.size() && text_[at_] == '\n'; skip_blanks()) ++at_;
  }

  [[noreturn]] void fail_at(std::size_t where, std::string const& message) const {
    int line = 1;
    std::size_t start = 0;
    for (std::size_t i = 0; i < where && i < text_.size(); ++i)
      if (text_[i] == '\n') {
        ++line;
        start = i + 1;
      }
    throw text_error(file_, line, static_cast<int>(where - start) + 1, message);
  }
  /// "expected WHAT, found ..." at the cursor.
  [[noreturn]] void expected(std::string const& what) const {
    std::string found;
    if (at_ >= text_.size())
      found = "the end of the text";
    else if (text_[at_] == '\n')
      found = "the end of the line";
    else {
      std::size_t end = at_;
      while (end < text_.size() && end - at_ < 24 && is_word_char(text_[end])) ++end;
      found = quote_text(text_.substr(at_, end == at_ ? 1 : end - at_));
    }
    fail_at(at_, "expected " + what + ", found " + found);
  }

  bool accept(char c) {
    skip_blanks();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c, char const* where) {
    if (!accept(c)) expected("'" + std::string(1, c) + "' " + where);
  }
  void end_of_line(char const* what) {
    skip_blanks();
    if (!at_line_end()) expected(what);
  }

  std::string_view word() {
    skip_blanks();
    std::size_t const start = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view expect_word(char const* what) {
    skip_blanks();
    std::string_view const w = word();
    if (w.empty()) expected(what);
    return w;
  }

  std::int64_t integer(std::int64_t least, std::int64_t most, std::string const& what) {
    skip_blanks();
    std::int64_t value = 0;
    char const* const first = text_.data() + at_;
    auto const [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (end == first) expected(what);
    if (error != std::errc{} || value < least || value > most)
      fail_at(at_, what + " must be between " + std::to_string(least) + " and " + std::to_string(most));
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }
  std::int32_t int32(std::int32_t least, std::string const& what) {
    return static_cast<std::int32_t>(integer(least, INT32_MAX, what));
  }

  std::string string(char const* what) {
    skip_blanks();
    std::size_t const start = at_;
    if (peek() != '"') expected(what);
    ++at_;
    std::string s;
    for (;; ++at_) {
      if (at_line_end()) fail_at(start, "the string is not closed on its line");
      char c = text_[at_];
      if (c == '"') break;
      if (c == '\\') {
        ++at_;
        switch (peek()) {
        case 'n': c = '\n'; break;
        case 't': c = '\t'; break;
        case 'r': c = '\r'; break;
        case '"':
        case '\\': c = peek(); break;
        case 'x': c = escaped_byte(); break;
        default: expected("one of \\n \\t \\r \\\" \\\\ \\xHH");
        }
      }
      if (c == '\0') fail_at(at_, "a string cannot hold a zero byte");
      s += c;
    }
    ++at_;
    return s;
  }
  char escaped_byte() {
    unsigned value = 0;
    for (int i = 0; i < 2; ++i) {
      ++at_;
      char const c = peek();
      if (!std::isxdigit(static_cast<unsigned char>(c))) expected("two hexadecimal digits");
      value = value * 16 + static_cast<unsigned>(std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 32) - 'a' + 10);
    }
    return static_cast<char>(value);
  }

  // -- the kernel --------------------------------------------------------------------------------------------------------

  graph kernel() {
    g_ = graph();
    g_.shapes.push_back({});
    labels_.clear();
    paths_.clear();
    files_.clear();
    gaps_.clear();
    node_at_.clear();
    std::size_t const start = at_;
    if (word() != "kernel") {
      at_ = start;
      expected("'kernel'");
    }
    g_.name = string("the kernel's name in quotes");
    kernel_attributes();
    expect('{', "after the kernel's attributes");
    end_of_line("the end of the line after '{'");
    for (skip_lines(); peek() != '}'; skip_lines()) {
      if (at_ >= text_.size()) expected("a node or '}' to close kernel " + quote_text(g_.name));
      statement();
    }
    ++at_;
    end_of_line("the end of the line after '}'");
    if (region_fault const fault = link_regions(g_); !fault.ok())
      fail_at(node_at_[static_cast<std::size_t>(fault.node)], fault.text);
    for (std::size_t i = 0; i < g_.params.size(); ++i)
      if (g_.params[i].node < 0) fail_at(start, "no node `param {index=" + std::to_string(i) + "}` for parameter " + std::to_string(i));
    for (std::size_t i = 0; i < g_.buffers.size(); ++i)
      if (g_.buffers[i].node < 0) fail_at(start, "no node `alloc {buffer=" + std::to_string(i) + "}` for buffer " + std::to_string(i));
    return std::move(g_);
  }

  void kernel_attributes() {
    for (;;) {
      skip_blanks();
      if (peek() == '{') return;
      std::size_t const start = at_;
      std::string_view const name = expect_word("an attribute of the kernel or '{'");
      if (name == "num_warps") {
        expect('=', "after num_warps");
        g_.attrs.num_warps = static_cast<int>(integer(1, 64, "num_warps"));
      } else if (name == "cluster") {
        expect('=', "after cluster");
        expect('[', "before the extents of the cluster");
        g_.attrs.cluster.x = int32(1, "the extent of the cluster");
        expect(',', "between the extents of the cluster");
        g_.attrs.cluster.y = int32(1, "the extent of the cluster");
        expect(',', "between the extents of the cluster");
        g_.attrs.cluster.z = int32(1, "the extent of the cluster");
        expect(']', "after the extents of the cluster");
      } else if (name == "cluster_nonportable") {
        g_.attrs.cluster_nonportable = true;
      } else if (name == "verify_trip") {
        expect('=', "after verify_trip");
        g_.attrs.verify_trip = int32(0, "verify_trip");
      } else if (name == "persistent") {
        g_.attrs.persistent = true;
      } else if (name == "no_alias") {
        g_.attrs.no_alias = true;
      } else if (name == "contract") {
        g_.attrs.contract = true;
      } else if (name == "fast_math") {
        g_.attrs.fast_math = true;
      } else {
        at_ = start;
        expected("num_warps, cluster, cluster_nonportable, persistent, no_alias, contract, fast_math, verify_trip or '{'");
      }
    }
  }

  void statement() {
    std::size_t const start = at_;
    if (peek() != '%') {
      std::string_view const w = expect_word("a node, `file`, `param`, `buffer` or '}'");
      if (w == "file") return file();
      if (w == "param") return parameter();
      if (w == "buffer") return buffer();
    }
    at_ = start;
    node_statement();
  }

  void file() {
    skip_blanks();
    std::size_t const start = at_;
    while (at_ < text_.size() && is_file_char(text_[at_])) ++at_;
    std::string const name(text_.substr(start, at_ - start));
    if (name.empty()) expected("a name for the file");
    expect('=', "after the file's name");
    if (!paths_.emplace(name, string("the file's path in quotes")).second) fail_at(start, "a second file called " + name);
    end_of_line("the end of the line after the file's path");
  }

  dtype element_type(char const* what) {
    skip_blanks();
    std::size_t const start = at_;
    dtype t{};
    if (!parse_dtype(word(), t)) {
      at_ = start;
      expected(what);
    }
    return t;
  }
  void header_index(std::size_t size, char const* what) {
    skip_blanks();
    std::size_t const start = at_;
    if (integer(0, INT32_MAX, std::string("the number of the ") + what) != static_cast<std::int64_t>(size))
      fail_at(start, std::string(what) + "s are numbered in order; this one is " + std::to_string(size));
    if (!g_.nodes.empty()) fail_at(start, std::string("a ") + what + " must stand before the first node");
  }

  void parameter() {
    header_index(g_.params.size(), "parameter");
    if (g_.params.size() >= 1000) fail_at(at_, "more than 1000 parameters");
    expect(':', "after the parameter's number");
    param_info p;
    skip_blanks();
    std::size_t const start = at_;
    std::string_view const kind = word();
    p.kind = kind == "val" ? node_kind::value : kind == "ptr" ? node_kind::pointer : kind == "array" ? node_kind::array : node_kind::none;
    if (p.kind == node_kind::none) {
      at_ = start;
      expected("val<T>, ptr<T> or array<T, rank>");
    }
    expect('<', "before the element type");
    skip_blanks();
    std::size_t const element = at_;
    if (word() == "const" && p.kind != node_kind::value)
      p.is_const = true;
    else
      at_ = element;
    p.type = element_type("an element type");
    if (p.kind == node_kind::array) {
      expect(',', "and the array's rank after the element type");
      p.rank = static_cast<std::uint8_t>(integer(1, max_rank, "the rank of an array"));
    }
    expect('>', "after the parameter's type");
    while (p.kind == node_kind::pointer && (skip_blanks(), !at_line_end())) {
      std::size_t const property = at_;
      std::string_view const name = word();
      if (name != "workspace" && name != "per_cta" && name != "zero") {
        at_ = property;
        expected("workspace, per_cta, zero or the end of the line");
      }
      expect('=', "after the property");
      if (name == "workspace")
        p.workspace = integer(1, INT64_MAX, "a number of elements");
      else
        (name == "zero" ? p.zero : p.per_cta) = integer(0, 1, "0 or 1") != 0;
    }
    end_of_line("the end of the line after the parameter");
    g_.params.push_back(p);
  }

  void buffer() {
    header_index(g_.buffers.size(), "buffer");
    buffer_info b;
    skip_blanks();
    if (peek() == '"' || peek() == '#') b.name = static_cast<std::int32_t>(text_index());
    expect(':', "after the buffer's name");
    b.type = element_type("the buffer's element type");
    b.shape = intern_shape(g_, extents());
    while (skip_blanks(), !at_line_end()) {
      std::size_t const start = at_;
      std::string_view const name = word();
      if (name == "single" || name == "pun") {
        (name == "pun" ? b.pun : b.has_slots) = name == "pun";
        continue;
      }
      bool const known = name == "slots" || name == "align" || name == "storage" || name == "scope" || name == "role" ||
                         name == "phase" || name == "base" || name == "offset" || name == "stride" || name == "radix" || name == "pitch" || name == "mode" || name == "step" ||
                         name == "origin" || name == "basis" || name == "swizzle" || name == "chunk" || name == "shift" || name == "interval" || name == "pad";
      if (!known) {
        at_ = start;
        expected("slots, align, storage, scope, single, role, pun, phase, base, offset, stride, radix, pitch, mode, step, origin, basis, swizzle, chunk, shift, interval, pad or the end of the line");
      }
      if ((name == "radix" && b.place.levels == slot_map::most_levels) || (name == "pitch" && b.place.levels == 0)) {
        at_ = start;
        expected(name == "pitch" ? "a radix before its pitch" : "at most 3 radices");
      }
      slot_layout& l = b.layout;
      if (name == "basis" && l.bases == slot_layout::most_bases) {
        at_ = start;
        expected("at most 16 bases");
      }
      if ((name == "mode" && l.modes == slot_layout::most_modes) || (name == "interval" && l.paddings == slot_layout::most_paddings) ||
          (name == "step" && l.modes == 0) || (name == "pad" && l.paddings == 0)) {
        at_ = start;
        expected(name == "step" ? "a mode before its step" : name == "pad" ? "an interval before its pad" : "at most 6 modes and 2 intervals");
      }
      expect('=', "after the property");
      if (name == "mode")
        l.mode[l.modes++].extent = int32(1, "mode");
      else if (name == "step")
        l.mode[l.modes - 1].stride = int32(0, "step");
      else if (name == "swizzle")
        l.bits = int32(1, "swizzle");
      else if (name == "chunk")
        l.base = int32(0, "chunk");
      else if (name == "shift")
        l.shift = int32(1, "shift");
      else if (name == "basis")
        l.basis[l.bases++] = int32(1, "basis");
      else if (name == "origin")
        l.offset = int32(0, "origin");
      else if (name == "interval")
        l.padding[l.paddings++].interval = int32(1, "interval");
      else if (name == "pad")
        l.padding[l.paddings - 1].pad = int32(0, "pad");
      else if (name == "slots")
        b.slots = int32(1, "slots");
      else if (name == "align")
        b.alignment = int32(0, "align");
      else if (name == "role")
        b.role = static_cast<buffer_role>(choice(buffer_role_names));
      else if (name == "phase")
        b.phase = int32(0, "phase");
      else if (name == "base")
        b.base = int32(0, "base");
      else if (name == "offset")
        b.place.offset = int32(0, "offset");
      else if (name == "stride")
        b.place.stride = int32(1, "stride");
      else if (name == "radix")
        b.place.radix[b.place.levels++].count = int32(2, "radix");
      else if (name == "pitch")
        b.place.radix[b.place.levels - 1].pitch = int32(0, "pitch");
      else if (name == "storage")
        b.where = static_cast<storage>(choice({"smem", "tmem"}));
      else
        b.placement = static_cast<scope>(choice({"shared_dyn", "shared_static", "local", "global"}));
    }
    g_.buffers.push_back(b);
  }
  int choice(std::initializer_list<std::string_view> names) { return choice(std::span(names.begin(), names.size())); }
  int choice(std::span<std::string_view const> names) {
    skip_blanks();
    std::size_t const start = at_;
    std::string_view const w = word();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == w) return static_cast<int>(i);
    at_ = start;
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i)
      all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
    expected(all);
  }

  shape extents() {
    shape s;
    skip_blanks();
    if (peek() != '[') return s;
    std::size_t const start = at_++;
    do {
      if (s.rank == max_rank) fail_at(start, "more than " + std::to_string(max_rank) + " axes");
      s.extent[s.rank++] = int32(1, "an extent");
      std::int64_t total = 1;
      for (int i = 0; i < s.rank; ++i)
        if ((total *= s.extent[i]) > most_elements) fail_at(start, "a shape of more than 2^40 elements");
    } while (accept(','));
    expect(']', "after the extents");
    return s;
  }

  /// A string's index in the table: the next one, or the one that stands before it.
  std::int64_t text_index() {
    skip_blanks();
    std::size_t const start = at_;
    auto const size = static_cast<std::int64_t>(texts());
    std::int64_t index = size;
    if (accept('#')) index = integer(0, most_strings, "the index of a string");
    std::string const s = string("a string in quotes");
    graph_view const view = g_.view();
    if (index < size) {
      // Given before, or a gap that an earlier, larger index left.
      if (std::string_view const old = view.strings[static_cast<std::size_t>(index)]; old == s) return index;
      if (!gaps_.contains(index)) fail_at(start, "string " + std::to_string(index) + " has another text already");
      g_.set_string(static_cast<std::int32_t>(index), s);
      gaps_.erase(index);
      return index;
    }
    for (std::int64_t i = size; i < index; ++i) {
      g_.add_string("");
      gaps_.insert(i);
    }
    g_.add_string(s);
    return index;
  }
  std::size_t texts() const { return g_.view().strings.size(); }

  // -- nodes -------------------------------------------------------------------------------------------------------------

  void node_statement() {
    std::size_t const start = at_;
    std::string label;
    if (accept('%')) {
      label = expect_word("a label after %");
      expect('=', "after the label");
    }
    skip_blanks();
    std::size_t const name_at = at_;
    std::string_view const name = expect_word("an operation");
    int const found = find_op(name);
    if (found == op_count) {
      at_ = name_at;
      expected("the name of an operation");
    }
    op const code = static_cast<op>(found);
    node n;
    n.code = code;
    n.operands = static_cast<std::int32_t>(g_.operand_pool.size());
    n.attributes = static_cast<std::int32_t>(g_.attribute_pool.size());
    operands(n, name_at);
    std::size_t const list_at = at_;
    std::vector<std::pair<std::string, std::size_t>> list = attribute_list();
    if (accept(':')) type(n);
    attributes_of(n, list, list_at);
    position(n);
    end_of_line("the end of the line after the node");

    auto const index = static_cast<std::int32_t>(g_.nodes.size());
    tables(n, index, start);
    if (!label.empty() && !labels_.emplace(label, index).second) fail_at(start, "a second node with label %" + label);
    node_at_.push_back(start);
    g_.nodes.push_back(n);
  }

  std::int32_t operand() {
    skip_blanks();
    std::size_t const start = at_;
    if (accept('_')) return -1;
    if (!accept('%')) expected("an operand: %label, or _ for an absent one");
    std::string const label(expect_word("a label after %"));
    auto const it = labels_.find(label);
    if (it == labels_.end()) fail_at(start, "%" + label + " is not defined above");
    return it->second;
  }

  void operands(node& n, std::size_t name_at) {
    skip_blanks();
    if (peek() == '%' || peek() == '_')
      do {
        g_.operand_pool.push_back(operand());
        ++n.operand_count;
      } while (accept(','));
    op_info const& i = info(n.code);
    if (n.operand_count < i.least || (i.most >= 0 && n.operand_count > i.most))
      fail_at(name_at, std::string(i.name) + " takes " + std::to_string(i.least) +
                           (i.most < 0 ? " or more" : i.most != i.least ? " to " + std::to_string(i.most) : "") +
                           " operands, not " + std::to_string(n.operand_count));
    for (int k = 0; k < i.least; ++k)
      if (g_.operand_pool[static_cast<std::size_t>(n.operands + k)] < 0)
        fail_at(name_at, "operand " + std::to_string(k) + " of " + std::string(i.name) + " cannot be absent");
  }

  /// The raw values between the braces, by name, with where they start; read once the node's type is known.
  std::vector<std::pair<std::string, std::size_t>> attribute_list() {
    std::vector<std::pair<std::string, std::size_t>> list;
    if (!accept('{')) return list;
    if (accept('}')) return list;
    do {
      skip_blanks();
      std::size_t const start = at_;
      std::string name(expect_word("the name of an attribute"));
      for (auto const& [other, where] : list)
        if (other == name) fail_at(start, "attribute " + name + " is given twice");
      expect('=', "after the attribute's name");
      skip_blanks();
      list.emplace_back(std::move(name), at_);
      skip_value();
      skip_blanks();
    } while (accept(','));
    expect('}', "after the attributes");
    return list;
  }
  void skip_value() {
    if (accept('#')) {
      while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
      skip_blanks();
    }
    if (peek() == '"') {
      string("a string");
      return;
    }
    if (peek() == '[') {
      while (!at_line_end() && peek() != ']') ++at_;
      if (!accept(']')) expected("']'");
      return;
    }
    while (!at_line_end() && peek() != ',' && peek() != '}' && peek() != ' ') ++at_;
  }

  void type(node& n) {
    skip_blanks();
    std::size_t const start = at_;
    std::string_view const w = word();
    static constexpr std::pair<std::string_view, node_kind> wrappers[] = {
        {"ptr", node_kind::pointer}, {"array", node_kind::array},   {"region", node_kind::region},
        {"view", node_kind::view},   {"buffers", node_kind::buffers}, {"cell", node_kind::cell},
        {"token", node_kind::token}, {"none", node_kind::none},       {"barriers", node_kind::barriers},
        {"barrier", node_kind::barrier}};
    n.kind = node_kind::value;
    if (!parse_dtype(w, n.type)) {
      auto const* found = std::find_if(std::begin(wrappers), std::end(wrappers), [&](auto const& x) { return x.first == w; });
      if (found == std::end(wrappers)) {
        at_ = start;
        expected("a type: an element type, ptr<T>, array<T>, region<T>, buffers<T>, view<T>, cell<T>, token, barriers or barrier");
      }
      n.kind = found->second;
      bool const typeless = n.kind == node_kind::token || n.kind == node_kind::barriers || n.kind == node_kind::barrier;
      if (typeless && (skip_blanks(), peek() != '<')) return;
      expect('<', "before the element type");
      n.type = element_type("an element type");
      expect('>', "after the element type");
    }
    n.shape = intern_shape(g_, extents());
  }

  void attributes_of(node const& n, std::vector<std::pair<std::string, std::size_t>>& list, std::size_t list_at) {
    std::size_t const after = at_;
    std::vector<bool> used(list.size());
    auto find = [&](std::string_view name) {
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].first == name) {
          used[i] = true;
          at_ = list[i].second;
          return true;
        }
      return false;
    };
    int const count = attribute_count(n.code);
    for (int i = 0; i < count; ++i) {
      std::string const name(attribute_name(n.code, i));
      if (name.starts_with("dim")) {
        int last = i;
        while (last + 1 < count && attribute_name(n.code, last + 1).starts_with("dim")) ++last;
        dimensions(find("dims"), last - i + 1, list_at);
        i = last;
        continue;
      }
      attribute_default const absent = default_of_attribute(n.code, i);
      if (kind_of_attribute(n.code, i) == attribute_kind::structure) {
        g_.attribute_pool.push_back(-1); // link_regions knows
        continue;
      }
      if (find(name))
        g_.attribute_pool.push_back(attribute(n, i, name));
      else if (absent.has_default)
        g_.attribute_pool.push_back(absent.value);
      else
        fail_at(list_at, std::string(name_of(n.code)) + " needs the attribute " + name);
    }
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!used[i])
        fail_at(list[i].second, std::string(name_of(n.code)) + " has no attribute " + list[i].first);
    at_ = after;
  }

  void dimensions(bool given, int count, std::size_t list_at) {
    if (!given) fail_at(list_at, "the attribute dims=[...] is missing");
    expect('[', "before the axes");
    int n = 0;
    if (!accept(']')) {
      do {
        if (n == count) fail_at(at_, "more than " + std::to_string(count) + " axes");
        g_.attribute_pool.push_back(integer(0, max_rank - 1, "an axis"));
        ++n;
      } while (accept(','));
      expect(']', "after the axes");
    }
    for (; n < count; ++n) g_.attribute_pool.push_back(0);
  }

  std::int64_t attribute(node const& n, int i, std::string const& name) {
    attribute_kind const kind = kind_of_attribute(n.code, i);
    std::size_t const start = at_;
    std::int64_t value = 0;
    if (auto const names = enumerators_of(kind); !names.empty()) {
      value = choice(names);
    } else if (kind == attribute_kind::flag) {
      value = choice({"false", "true"});
    } else if (kind == attribute_kind::bits) {
      value = constant(n.type);
    } else if (kind == attribute_kind::combine) {
      value = operand();
      if (value >= 0 && g_.nodes[static_cast<std::size_t>(value)].code != op::combine_begin)
        fail_at(start, "combine must name a combine_begin");
    } else if (kind == attribute_kind::text) {
      value = text_index();
    } else {
      value = integer(INT64_MIN, INT64_MAX, name);
    }
    skip_blanks();
    if (!at_line_end() && peek() != ',' && peek() != '}') expected("',' or '}' after the attribute " + name);
    return value;
  }

  std::int64_t constant(dtype t) {
    std::size_t const start = at_;
    while (!at_line_end() && peek() != ',' && peek() != '}' && peek() != ' ') ++at_;
    std::string_view const s = text_.substr(start, at_ - start);
    auto bad = [&](std::string const& what) { fail_at(start, "expected " + what + ", found " + quote_text(s)); };
    char const *first = s.data(), *last = s.data() + s.size();
    if (s.starts_with("0x")) {
      std::uint64_t bits = 0;
      auto const [end, error] = std::from_chars(first + 2, last, bits, 16);
      if (end != last || s.size() == 2 || error != std::errc{}) bad("1 to 16 hexadecimal digits");
      return static_cast<std::int64_t>(bits);
    }
    if (is_bool(t)) {
      if (s != "true" && s != "false") bad("true or false");
      return s == "true";
    }
    if (is_int(t)) {
      scalar v{t, 0};
      bool fits = false;
      if (is_signed_int(t)) {
        std::int64_t x = 0;
        auto const [end, error] = std::from_chars(first, last, x);
        v = scalar_from_bits(t, static_cast<u64>(x));
        fits = end == last && error == std::errc{} && int_of(v) == x;
      } else {
        std::uint64_t x = 0;
        auto const [end, error] = std::from_chars(first, last, x);
        v = scalar_from_bits(t, x);
        fits = end == last && error == std::errc{} && v.bits == x;
      }
      if (!fits || s.empty()) bad(std::string("a number of type ") + name_of(t));
      return int_of(v);
    }
    if (s == "nan") return static_cast<std::int64_t>(nan_of(t).bits);
    if (s == "inf" || s == "-inf") {
      if (!has_infinity(t)) bad(std::string("a finite number (") + name_of(t) + " has no infinity)");
      return static_cast<std::int64_t>((s == "inf" ? highest_of(t) : lowest_of(t)).bits);
    }
    double x = 0;
    std::size_t const digit = s.starts_with("-") ? 1 : 0;
    bool const starts = s.size() > digit && (std::isdigit(static_cast<unsigned char>(s[digit])) || s[digit] == '.');
    auto const [end, error] = std::from_chars(first, last, x);
    if (!starts || end != last || error != std::errc{}) bad(std::string("a number of type ") + name_of(t));
    scalar const v = make_scalar(t, x);
    // Past the largest number the f8 types saturate and the others go to infinity; neither is what was written.
    double const most = value_of<f64>({t, detail::format_of(t).max_finite()});
    if (x > most || x < -most) bad(std::string("a number that ") + name_of(t) + " can hold");
    return static_cast<std::int64_t>(v.bits);
  }

  void position(node& n) {
    std::string path;
    if (accept('@')) {
      if (peek() == '"') {
        path = string("a path");
      } else {
        std::size_t const start = at_;
        while (at_ < text_.size() && is_file_char(text_[at_])) ++at_;
        std::string const name(text_.substr(start, at_ - start));
        if (name.empty()) expected("a file after @");
        auto const it = paths_.find(name);
        path = it == paths_.end() ? name : it->second;
      }
      expect(':', "and a line after the file");
      n.line = int32(0, "a line");
    }
    auto [it, fresh] = files_.emplace(path, static_cast<int>(files_.size()));
    if (fresh) {
      if (it->second > 255) fail_at(at_, "more than 256 files");
      g_.add_file(path);
    }
    n.file = static_cast<std::uint8_t>(it->second);
  }

  // Parameters and buffers know their nodes.
  void tables(node const& n, std::int32_t index, std::size_t start) {
    auto claim = [&](std::int32_t& slot, char const* what) {
      if (slot >= 0) fail_at(start, std::string("a second node for the ") + what);
      slot = index;
    };
    if (n.code != op::param && n.code != op::alloc) return;
    std::int64_t const i = g_.attribute_pool[static_cast<std::size_t>(n.attributes)];
    std::size_t const size = n.code == op::param ? g_.params.size() : g_.buffers.size();
    if (i < 0 || i >= static_cast<std::int64_t>(size))
      fail_at(start, std::string(n.code == op::param ? "parameter " : "buffer ") + std::to_string(i) + " is not declared; there are " + std::to_string(size));
    if (n.code == op::param)
      claim(g_.params[static_cast<std::size_t>(i)].node, "parameter");
    else
      claim(g_.buffers[static_cast<std::size_t>(i)].node, "buffer");
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  graph g_;
  std::unordered_map<std::string, std::int32_t> labels_;
  std::unordered_map<std::string, std::string> paths_; // name -> path
  std::unordered_map<std::string, int> files_;         // path -> index
  std::unordered_set<std::int64_t> gaps_;             // indices of strings not given yet
  std::vector<std::size_t> node_at_;                   // where each node stands in the text
};

} // namespace

std::vector<graph> parse_graphs(std::string_view text, std::string file) { return parser(text, std::move(file)).run(); }

std::vector<graph> load_graphs(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened for reading");
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) throw std::runtime_error(path + ": reading failed");
  return parse_graphs(text.str(), path);
}

} // namespace kiln
