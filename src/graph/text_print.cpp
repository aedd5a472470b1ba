// Prints graphs; text.hpp describes the form, text_parse.cpp reads it.
#include <kiln/dtype/convert.hpp>
#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/text.hpp>

#include <charconv>
#include <map>

namespace kiln {

namespace {

std::string hexadecimal(std::uint64_t x) {
  char digits[20] = "0x";
  char* end = std::to_chars(digits + 2, digits + sizeof digits, x, 16).ptr;
  return {digits, end};
}

std::string extents_text(shape const& s) {
  if (s.rank == 0) return {};
  std::string t = "[";
  for (int i = 0; i < s.rank; ++i) t += (i ? "," : "") + std::to_string(s.extent[i]);
  return t + "]";
}

std::string_view wrapper_of(node_kind k) {
  switch (k) {
  case node_kind::none: return "none";
  case node_kind::value: return "";
  case node_kind::pointer: return "ptr";
  case node_kind::array: return "array";
  case node_kind::region: return "region";
  case node_kind::buffers: return "buffers";
  case node_kind::view: return "view";
  case node_kind::cell: return "cell";
  case node_kind::token: return "token";
  case node_kind::barriers: return "barriers";
  case node_kind::barrier: return "barrier";
  }
  return "";
}

bool is_dimension(op o, int i) { return attribute_name(o, i).starts_with("dim"); }

class printer {
public:
  printer(graph_view const& g, print_options const& options) : g_(g), options_(options) {}

  std::string run() {
    out_ = "kernel " + quote_text(g_.name);
    attributes_line();
    out_ += " {\n";
    files();
    std::size_t const head = out_.size();
    for (std::size_t i = 0; i < g_.params.size(); ++i) parameter(i);
    for (std::size_t i = 0; i < g_.buffers.size(); ++i) buffer(i);
    if (out_.size() != head || !aliases_.empty()) out_ += "\n";
    std::vector<bool> const labelled = labels();
    int depth = 1;
    for (int i = 0; i < g_.size(); ++i) {
      op const o = g_[i].code;
      if (has(o, trait::middle) || has(o, trait::closes)) depth -= depth > 1;
      std::size_t const start = out_.size();
      out_.append(static_cast<std::size_t>(2 * depth), ' ');
      if (labelled[static_cast<std::size_t>(i)]) out_ += "%" + std::to_string(i) + " = ";
      statement(i);
      position(i, start);
      if (has(o, trait::middle) || has(o, trait::opens)) ++depth;
    }
    return out_ + "}\n";
  }

private:
  void attributes_line() {
    // Names every member: one that is added does not compile until it is printed and parsed.
    auto const& [num_warps, cluster, cluster_nonportable, persistent, no_alias, contract, fast_math, verify_trip] = g_.attrs;
    out_ += " num_warps=" + std::to_string(num_warps);
    if (cluster != dims{})
      out_ += " cluster=[" + std::to_string(cluster.x) + "," + std::to_string(cluster.y) + "," + std::to_string(cluster.z) + "]";
    if (cluster_nonportable) out_ += " cluster_nonportable";
    if (persistent) out_ += " persistent";
    if (no_alias) out_ += " no_alias";
    if (contract) out_ += " contract";
    if (fast_math) out_ += " fast_math";
    if (verify_trip) out_ += " verify_trip=" + std::to_string(verify_trip);
  }

  // Short, unique names of the files that occur.
  void files() {
    if (!options_.positions) return;
    std::map<std::string, std::string> used; // name -> path
    for (int i = 0; i < g_.size(); ++i) {
      std::string path = g_.file(i);
      if (path.empty() || aliases_.count(path)) continue;
      std::string name = path.substr(path.find_last_of('/') + 1);
      for (char& c : name)
        if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '+')) c = '_';
      if (name.empty()) name = "_";
      std::string unique = name;
      for (int n = 2; used.count(unique) && used[unique] != path; ++n) unique = name + "." + std::to_string(n);
      used[unique] = path;
      aliases_[path] = unique;
      if (unique != path) out_ += "  file " + unique + " = " + quote_text(path) + "\n";
    }
  }

  void parameter(std::size_t i) {
    param_info const& p = g_.params[i];
    out_ += "  param " + std::to_string(i) + " : ";
    std::string const element = std::string(p.is_const ? "const " : "") + name_of(p.type);
    if (p.kind == node_kind::pointer)
      out_ += "ptr<" + element + ">";
    else if (p.kind == node_kind::array)
      out_ += "array<" + element + ", " + std::to_string(p.rank) + ">";
    else
      out_ += "val<" + element + ">";
    if (p.workspace > 0)
      out_ += " workspace=" + std::to_string(p.workspace) + (p.per_cta ? " per_cta=1" : "") + (p.zero ? " zero=1" : "");
    out_ += "\n";
  }

  void buffer(std::size_t i) {
    auto const& [type, where, placement, has_slots, slots, form, alignment, role, pun, phase, base, place, layout, name, at] = g_.buffers[i];
    (void)at; // the alloc node names the buffer
    out_ += "  buffer " + std::to_string(i);
    if (name >= 0) out_ += " " + text(name);
    out_ += " : " + std::string(name_of(type)) + extents_text(g_.shapes[static_cast<std::size_t>(form)]);
    out_ += " slots=" + std::to_string(slots);
    if (alignment) out_ += " align=" + std::to_string(alignment);
    if (where == storage::tmem) out_ += " storage=tmem";
    if (placement != scope::shared_dyn)
      out_ += placement == scope::shared_static ? " scope=shared_static" : placement == scope::local ? " scope=local" : " scope=global";
    if (!has_slots) out_ += " single";
    if (role != buffer_role::own) out_ += " role=" + std::string(buffer_role_names[static_cast<std::size_t>(role)]);
    if (pun) out_ += " pun";
    if (phase >= 0) out_ += " phase=" + std::to_string(phase);
    if (base >= 0) out_ += " base=" + std::to_string(base);
    if (place.offset) out_ += " offset=" + std::to_string(place.offset);
    if (place.stride) out_ += " stride=" + std::to_string(place.stride);
    for (int j = 0; j < place.levels; ++j)
      out_ += " radix=" + std::to_string(place.radix[j].count) + " pitch=" + std::to_string(place.radix[j].pitch);
    for (int j = 0; j < layout.modes; ++j)
      out_ += " mode=" + std::to_string(layout.mode[j].extent) + " step=" + std::to_string(layout.mode[j].stride);
    for (int j = 0; j < layout.bases; ++j) out_ += " basis=" + std::to_string(layout.basis[j]);
    if (layout.offset) out_ += " origin=" + std::to_string(layout.offset);
    if (layout.bits) out_ += " swizzle=" + std::to_string(layout.bits) + " chunk=" + std::to_string(layout.base) + " shift=" + std::to_string(layout.shift);
    for (int j = 0; j < layout.paddings; ++j)
      out_ += " interval=" + std::to_string(layout.padding[j].interval) + " pad=" + std::to_string(layout.padding[j].pad);
    out_ += "\n";
  }

  // A string, with its index where the parser would give it another one.
  std::string text(std::int64_t index) {
    std::string const s = quote_text(g_.string(static_cast<int>(index)));
    if (index != next_string_) {
      next_string_ = std::max(next_string_, index + 1);
      return "#" + std::to_string(index) + " " + s;
    }
    ++next_string_;
    return s;
  }

  std::vector<bool> labels() const {
    std::vector<bool> v(g_.nodes.size());
    for (int i = 0; i < g_.size(); ++i) {
      if (g_[i].kind != node_kind::none) v[static_cast<std::size_t>(i)] = true;
      for (int o : g_.operands(i))
        if (o >= 0) v[static_cast<std::size_t>(o)] = true;
      for (int a = 0; a < attribute_count(g_[i].code); ++a)
        if (kind_of_attribute(g_[i].code, a) == attribute_kind::combine && g_.attribute(i, a) >= 0)
          v[static_cast<std::size_t>(g_.attribute(i, a))] = true;
    }
    return v;
  }

  void statement(int i) {
    op const o = g_[i].code;
    out_ += name_of(o);
    bool first = true;
    for (int x : g_.operands(i)) {
      out_ += first ? " " : ", ";
      out_ += x < 0 ? "_" : "%" + std::to_string(x);
      first = false;
    }
    std::string list;
    auto add = [&](std::string_view name, std::string const& value) {
      if (!list.empty()) list += ", ";
      list += std::string(name) + "=" + value;
    };
    for (int a = 0; a < attribute_count(o); ++a) {
      std::int64_t const value = g_.attribute(i, a);
      if (is_dimension(o, a)) {
        add("dims", dimensions(i, a));
        while (a + 1 < attribute_count(o) && is_dimension(o, a + 1)) ++a;
        continue;
      }
      attribute_kind const kind = kind_of_attribute(o, a);
      attribute_default const absent = default_of_attribute(o, a);
      if (kind == attribute_kind::structure || (absent.has_default && value == absent.value)) continue;
      add(attribute_name(o, a), kind == attribute_kind::text ? text(value) : attribute_text(g_, i, a));
    }
    if (!list.empty()) out_ += " {" + list + "}";
    if (std::string const type = type_text(g_, i); !type.empty()) out_ += " : " + type;
  }

  // As many as the result has axes, and more only if they say something.
  std::string dimensions(int i, int first) const {
    int count = g_.shape_of(i).rank, all = 1;
    while (first + all < attribute_count(g_[i].code) && is_dimension(g_[i].code, first + all)) ++all;
    for (int a = count; a < all; ++a)
      if (g_.attribute(i, first + a) != 0) count = a + 1;
    std::string s = "[";
    for (int a = 0; a < count; ++a) s += (a ? "," : "") + std::to_string(g_.attribute(i, first + a));
    return s + "]";
  }

  void position(int i, std::size_t start) {
    std::string tail;
    if (options_.positions) {
      std::string const path = g_.file(i);
      if (!path.empty() || g_[i].line != 0)
        tail = "@" + (path.empty() ? "\"\"" : aliases_[path]) + ":" + std::to_string(g_[i].line);
    }
    if (options_.comment)
      if (std::string const c = options_.comment(i); !c.empty()) tail += (tail.empty() ? "// " : "  // ") + c;
    if (!tail.empty()) {
      std::size_t const width = out_.size() - start;
      out_.append(width < 60 ? 60 - width : 1, ' ');
    }
    out_ += tail + "\n";
  }

  graph_view const& g_;
  print_options const& options_;
  std::string out_;
  std::map<std::string, std::string> aliases_; // path -> name
  std::int64_t next_string_ = 0;
};

} // namespace

std::string quote_text(std::string_view s) {
  std::string q = "\"";
  for (char c : s) {
    auto const u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      q += {'\\', c};
    else if (c == '\n')
      q += "\\n";
    else if (c == '\t')
      q += "\\t";
    else if (c == '\r')
      q += "\\r";
    else if (u < 32 || u == 127)
      q += {'\\', 'x', "0123456789abcdef"[u >> 4], "0123456789abcdef"[u & 15]};
    else
      q += c; // bytes of UTF-8 stay what they are
  }
  return q + "\"";
}

std::string constant_text(dtype t, std::int64_t bits) {
  scalar const s = scalar_from_bits(t, static_cast<u64>(bits));
  std::int64_t const canonical = is_signed_int(t) ? int_of(s) : static_cast<std::int64_t>(s.bits);
  if (canonical != bits) return hexadecimal(static_cast<std::uint64_t>(bits));
  if (is_bool(t)) return bits ? "true" : "false";
  if (is_unsigned_int(t)) return std::to_string(s.bits);
  if (is_int(t)) return std::to_string(canonical);
  if (is_nan(s)) return s == nan_of(t) ? "nan" : hexadecimal(s.bits);
  double const value = value_of<f64>(s);
  if (value - value != 0) return value < 0 ? "-inf" : "inf";
  // The fewest digits that give the same bits when they are read back, and do not lie beyond the type's last number.
  double const most = value_of<f64>({t, detail::format_of(t).max_finite()});
  for (int digits = 1; digits <= 17; ++digits) {
    char buffer[64];
    char const* end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr;
    double back = 0;
    std::from_chars(buffer, end, back);
    if (make_scalar(t, back) != s || back > most || back < -most) continue;
    std::string text(static_cast<char const*>(buffer), end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  return hexadecimal(s.bits);
}

std::string type_text(graph_view const& g, int i) {
  node const& n = g[i];
  std::string const element = name_of(n.type), extents = extents_text(g.shape_of(i));
  bool const plain = n.type == dtype::b1 && g.shape_of(i).rank == 0;
  if (n.kind == node_kind::value) return element + extents;
  if (n.kind == node_kind::none && plain) return {};
  std::string const wrapper(wrapper_of(n.kind));
  bool const typeless = n.kind == node_kind::token || n.kind == node_kind::barriers || n.kind == node_kind::barrier;
  if (typeless && plain) return wrapper;
  return wrapper + "<" + element + ">" + extents;
}

std::string attribute_text(graph_view const& g, int i, int a) {
  op const o = g[i].code;
  std::int64_t const value = g.attribute(i, a);
  attribute_kind const kind = kind_of_attribute(o, a);
  switch (kind) {
  case attribute_kind::bits: return constant_text(g[i].type, value);
  case attribute_kind::combine:
  case attribute_kind::structure: return value < 0 ? "_" : "%" + std::to_string(value);
  case attribute_kind::text: return quote_text(g.string(static_cast<int>(value)));
  case attribute_kind::flag: return value == 1 ? "true" : value == 0 ? "false" : std::to_string(value);
  default: break;
  }
  auto const names = enumerators_of(kind);
  if (value >= 0 && value < static_cast<std::int64_t>(names.size())) return std::string(names[static_cast<std::size_t>(value)]);
  return std::to_string(value);
}

std::string print(graph_view const& g, print_options const& options) { return printer(g, options).run(); }

} // namespace kiln
