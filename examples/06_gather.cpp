// out[r, :] = table[indices[r], :]: rows by index, for your own table and indices
// tour: --rows 8192 --columns 1024
#include "support/lesson.hpp"

#include <cstring>

using namespace kiln;

// Nothing is computed, so rows move as bits: one kernel per element size serves f16, bf16, f32, i32 and i64. The index is
// loaded like any other number and is then a row of the region. `table` may be in Fortran order: its strides say so.
template <class Bits, class Index, int Block>
inline constexpr auto gather_rows = kernel<"gather_rows", Block>([](context& k, array<const Bits, 2> table, ptr<const Index> indices, array<Bits, 2> out) {
  auto r = k.program_id<i64>(0);
  auto row = load(indices + r);
  for (auto c : k.range(0, out.extent(1), Block))
    store(out.region(at(r, c), extent<1, Block>), load(table.region(at(row, c), extent<1, Block>)));
});

template <class Bits, class Index>
void run(lesson::program& p, npy_array const& table, npy_array const& indices, dtype shown) {
  i64 const rows = indices.shape()[0], columns = table.shape()[1];
  device dev = p.device();
  buffer<Bits> t = lesson::upload<Bits>(table, dev), y(dev, rows * columns);
  buffer<Index> i = lesson::upload<Index>(indices, dev);
  double seconds = p.time([&] {
    gather_rows<Bits, Index, 1024>.launch(dev, grid(rows), lesson::matrix(t, table), i, y.view(rows, columns));
    dev.synchronize();
  });
  std::vector<Bits> const got = y.to_vector();

  auto const* source = reinterpret_cast<Bits const*>(table.data());
  std::vector<i64> const strides = table.strides();
  i64 wrong = 0;
  for (i64 r = 0; r < rows; ++r)
    for (i64 c = 0; c < columns; ++c)
      wrong += got[static_cast<std::size_t>(r * columns + c)] !=
               source[indices.as<Index>()[static_cast<std::size_t>(r)] * strides[0] + c * strides[1]];
  double const bytes = 2.0 * sizeof(Bits) * static_cast<double>(rows * columns);
  if (auto out = p.text("out"); out && wrong == 0) {
    npy_array result(table.type(), {rows, columns}, false);
    if (!got.empty()) std::memcpy(result.data(), got.data(), got.size() * sizeof(Bits));
    write_npy(*out, result);
    p.say("wrote " + *out);
  }
  p.report(lesson::size_text({rows, columns}, shown) + " " + name_of(dtype_of<Index>), seconds, bytes, "GB/s", static_cast<double>(wrong), 0);
}

// An index outside of the table would be a wild row number; a region reads nothing there. A user should hear of it instead.
template <class Index>
void check_indices(std::string const& file, npy_array const& indices, i64 rows) {
  for (Index i : indices.as<Index>())
    if (i < 0 || i >= rows)
      throw lesson::usage_error(file + ": holds the index " + std::to_string(i) + "; the table has " + (rows == 0 ? "no rows" : "rows 0 to " + std::to_string(rows - 1)));
}

void choose(lesson::program& p, npy_array const& table, std::string const& file, npy_array const& indices, dtype shown) {
  auto with_index = [&]<class Index>(Index) {
    check_indices<Index>(file, indices, table.shape()[0]);
    switch (bytes_of(table.type(), 1)) {
    case 2: return run<u16, Index>(p, table, indices, shown);
    case 4: return run<u32, Index>(p, table, indices, shown);
    default: return run<u64, Index>(p, table, indices, shown);
    }
  };
  if (indices.type() == dtype::i32) return with_index(i32{});
  if (indices.type() == dtype::i64) return with_index(i64{});
  throw lesson::usage_error(file + ": holds " + name_of(indices.type()) + "; indices are i32 or i64");
}

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "gather",
                      {{"table", "T.npy", "a matrix of f16, bf16 (saved as u16), f32, i32 or i64"},
                       {"indices", "I.npy", "a vector of row numbers, i32 or i64"},
                       {"out", "Y.npy", "where the rows go"},
                       {"rows", "N", "without files: rows of a random table, and how many are picked"},
                       {"columns", "N", "without files: columns of the random table"}});
    if (p.has("table") || p.has("indices")) {
      p.only_without_files({"rows", "columns"});
      std::string const table_file = p.need("table"), index_file = p.need("indices");
      npy_array const table = lesson::read(table_file, 2), indices = lesson::read(index_file, 1);
      dtype const t = table.type();
      if (t != dtype::f16 && t != dtype::u16 && t != dtype::f32 && t != dtype::i32 && t != dtype::i64)
        throw lesson::usage_error(table_file + ": holds " + name_of(t) + "; this lesson takes f16, bf16 (saved as u16), f32, i32 and i64");
      choose(p, table, index_file, indices, t == dtype::u16 ? dtype::bf16 : t);
      return p.finish();
    }
    i64 const rows = p.number("rows", 1000, 1), columns = p.number("columns", 300, 1);
    npy_array table(dtype::f32, {rows, columns}, false), indices(dtype::i64, {rows}, false);
    std::ranges::copy(lesson::random_values<f32>(rows * columns, 1), table.as<f32>().begin());
    std::vector<double> const random = lesson::random_numbers(rows, 2);
    for (std::size_t i = 0; i < random.size(); ++i)
      indices.as<i64>()[i] = static_cast<i64>((random[i] + 1) / 2 * static_cast<double>(rows));
    choose(p, table, "the indices", indices, dtype::f32);
    return p.finish();
  });
}
