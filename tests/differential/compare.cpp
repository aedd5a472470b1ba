// Memory images and their comparison.
#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace kiln_test {

using namespace kiln;

namespace {

constexpr std::byte sentinel{0x5c};
constexpr std::size_t margin = 512; // a whole cache line and more before and behind

// What outputs hold before: a pattern that is no result by chance, NaN for most floating types, and no sentinel.
std::vector<std::byte> poison(std::size_t n) {
  std::vector<std::byte> p(n);
  for (std::size_t i = 0; i < n; ++i) p[i] = std::byte{static_cast<unsigned char>(0xf1 + i % 13)};
  return p;
}

} // namespace

arguments_image::arguments_image(std::vector<argument> const& arguments, std::uint64_t seed)
    : kinds(arguments), memory(arguments.size()), list(arguments.size()) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    argument const& a = kinds[i];
    if (a.kind == node_kind::value) continue;
    // An output that does not say what it holds is never read; one that does is the target of atomics.
    std::vector<std::byte> const bytes = a.is_output && a.holds == contents::zeros
                                             ? poison(static_cast<std::size_t>(a.elements * bytes_of(a.type)))
                                             : fill(a, seed + i);
    memory_image& m = memory[i];
    m.size = bytes.size();
    m.storage.assign(m.size + 2 * margin + 64, sentinel);
    m.offset = margin;
    if (m.size != 0) std::memcpy(m.storage.data() + m.offset, bytes.data(), m.size);
  }
  point();
}

arguments_image::arguments_image(arguments_image const& other) : kinds(other.kinds), memory(other.memory), list(other.list.size()) { point(); }

void arguments_image::point() {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    argument const& a = kinds[i];
    if (a.kind == node_kind::value) {
      list[i] = interpreter::value(scalar_from_bits(a.type, a.bits));
      continue;
    }
    // Elements start at a multiple of 64 bytes in every copy: alignment is a fact that code may be specialised to.
    memory_image& m = memory[i];
    auto const at = reinterpret_cast<std::uintptr_t>(m.storage.data()) + margin;
    std::size_t const wanted = margin + (64 - at % 64) % 64;
    if (wanted != m.offset) {
      std::memmove(m.storage.data() + wanted, m.data(), m.size);
      std::fill(m.storage.begin(), m.storage.begin() + static_cast<std::ptrdiff_t>(wanted), sentinel);
      std::fill(m.storage.begin() + static_cast<std::ptrdiff_t>(wanted + m.size), m.storage.end(), sentinel);
      m.offset = wanted;
    }
    list[i] = interpreter::pointer(m.data(), static_cast<i64>(m.size));
    if (a.kind != node_kind::array) continue;
    list[i].kind = node_kind::array;
    list[i].rank = a.rank;
    std::copy(a.extent, a.extent + max_rank, list[i].extent);
    std::copy(a.stride, a.stride + max_rank, list[i].stride);
  }
}

std::string arguments_image::damage() const {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory_image const& m = memory[i];
    for (std::size_t b = 0; b < m.storage.size(); ++b)
      if ((b < m.offset || b >= m.offset + m.size) && m.storage[b] != sentinel)
        return "argument " + std::to_string(i) + ": byte " +
               std::to_string(static_cast<i64>(b) - static_cast<i64>(m.offset)) + " of " + std::to_string(m.size) +
               " was written";
  }
  return "";
}

runner interpreter_runner(interpreter::run_options options) {
  return [=](graph_view g, dims grid, arguments_image& a) { interpreter::run(g, grid, a.list, options).throw_if_faulty(); };
}

std::string compare(generated const& g, runner const& tested, compare_options const& options) {
  return compare(g, interpreter_runner({.check = options.check_report}), tested, options);
}

std::string compare(generated const& g, runner const& reference, runner const& tested, compare_options const& options) {
  std::ostringstream out;
  arguments_image const before(g.arguments, options.seed);
  arguments_image x(before), y(before);
  auto attempt = [&](char const* who, runner const& r, arguments_image& a) {
    try {
      r(g.graph, g.grid, a);
    } catch (std::exception const& e) {
      out << who << ": " << e.what() << "\n";
      return false;
    }
    std::string const damage = a.damage();
    if (!damage.empty()) out << who << ": " << damage << "\n";
    return true;
  };
  bool const ran = attempt("reference", reference, x) && attempt("tested", tested, y);
  for (std::size_t i = 0; ran && i < g.arguments.size(); ++i) {
    argument const& a = g.arguments[i];
    if (a.kind == node_kind::value) continue;
    std::vector<std::byte> const old = before.memory[i].copy(), expected = x.memory[i].copy(), got = y.memory[i].copy();
    if (!a.is_output) {
      if (expected != old) out << "argument " << i << ": the reference wrote to an input\n";
      if (got != old) out << "argument " << i << ": the tested code wrote to an input\n";
      continue;
    }
    i64 wrong = 0, first = -1;
    for (i64 e = 0; e < a.elements; ++e)
      if (!same_element(element_at(expected, a.type, e), element_at(got, a.type, e), a.approximate ? options.ulps : 0)) {
        if (first < 0) first = e;
        ++wrong;
      }
    if (wrong == 0) continue;
    scalar const e = element_at(expected, a.type, first), h = element_at(got, a.type, first), o = element_at(old, a.type, first);
    out << "argument " << i << " (" << name_of(a.type) << "): " << wrong << " of " << a.elements << " elements differ, first "
        << first << ": expected " << value_of<f64>(e) << " (0x" << std::hex << e.bits << "), got " << std::dec << value_of<f64>(h)
        << " (0x" << std::hex << h.bits << "), was 0x" << o.bits << std::dec << "\n";
  }
  if (out.str().empty()) return "";
  return out.str() + "seed of the graph " + std::to_string(g.seed) + ", of the memory " + std::to_string(options.seed) + "\n";
}

namespace {

/// Distance between neighbouring numbers of a type at x.
f64 ulp_at(dtype t, f64 x) {
  x = std::fabs(x);
  int const least = 2 - (1 << (exponent_bits_of(t) - 1)); // exponent of the smallest normal number
  int const exponent = x == 0 || !std::isfinite(x) ? least : std::max(std::ilogb(x), least);
  return std::ldexp(1.0, exponent - mantissa_bits_of(t));
}

} // namespace

std::string compare_close(graph_view g, dims grid, std::vector<argument> const& arguments, runner const& tested, closeness close, std::uint64_t seed) {
  std::ostringstream out;
  arguments_image const before(arguments, seed);
  arguments_image typed(before), doubled(before), got(before);
  try {
    interpreter_runner({})(g, grid, typed);
    interpreter_runner({.precision = interpreter::precision::doubled})(g, grid, doubled);
    tested(g, grid, got);
  } catch (std::exception const& e) {
    return std::string(e.what()) + "\n";
  }
  if (std::string const damage = got.damage(); !damage.empty()) out << damage << "\n";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    argument const& a = arguments[i];
    if (a.kind == node_kind::value) continue;
    std::vector<std::byte> const x = typed.memory[i].copy(), exact = doubled.memory[i].copy(), y = got.memory[i].copy();
    if (!a.is_output && y != before.memory[i].copy()) out << "argument " << i << ": the tested code wrote to an input\n";
    auto number = [&](std::vector<std::byte> const& bytes, i64 e) { return value_of<f64>(element_at(bytes, a.type, e)); };
    f64 own_error = 0;
    for (i64 e = 0; is_float(a.type) && e < a.elements; ++e)
      if (f64 const d = std::fabs(number(x, e) - number(exact, e)); std::isfinite(d)) own_error = std::max(own_error, d);
    for (i64 e = 0; e < a.elements; ++e) {
      f64 const wanted = number(exact, e), is = number(y, e);
      bool good = same_element(element_at(is_float(a.type) ? exact : x, a.type, e), element_at(y, a.type, e));
      if (!good && is_float(a.type) && std::isfinite(wanted))
        good = std::fabs(is - wanted) <= close.ulps * ulp_at(a.type, wanted) + close.factor * own_error;
      if (good) continue;
      out << "argument " << i << " (" << name_of(a.type) << "): element " << e << " is " << is << ", expected " << wanted
          << "; the interpreter's own error is at most " << own_error << "\n";
      break;
    }
  }
  return out.str().empty() ? "" : out.str() + "seed of the memory " + std::to_string(seed) + "\n";
}

} // namespace kiln_test
