// .npy files: what is written reads back, what is damaged is refused with one line, nothing half-written stays.
#include "kiln/io/npy.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

namespace fs = std::filesystem;
using namespace kiln;

namespace {

class npy : public testing::Test {
protected:
  fs::path folder;

  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kiln-npy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path path(std::string const& name = "x.npy") const { return folder / name; }

  // A file with the given parts, as another program would write it.
  fs::path file(int version, std::string header, std::string const& data, std::size_t claimed_length = 0) const {
    header.push_back('\n');
    std::string bytes("\x93NUMPY", 6);
    bytes.push_back(static_cast<char>(version));
    bytes.push_back('\0');
    std::size_t length = claimed_length != 0 ? claimed_length : header.size();
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
    std::ofstream(path(), std::ios::binary) << bytes << header << data;
    return path();
  }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
};

std::string message_of(auto&& action) {
  try {
    action();
  } catch (npy_error const& error) {
    std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << "not one line: " << text;
    return text;
  }
  return "no error";
}

// The message starts with the file and contains the text.
#define EXPECT_REFUSED(action, text)                                                                                   \
  do {                                                                                                                 \
    auto message = message_of([&] { action; });                                                                        \
    EXPECT_NE(message.find(text), std::string::npos) << message;                                                       \
    EXPECT_TRUE(message.starts_with(folder.string())) << message;                                                      \
  } while (false)

std::string const good_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

} // namespace

template <class T> class npy_types : public npy {};
using element_types = testing::Types<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(npy_types, element_types);

TYPED_TEST(npy_types, round_trip) {
  using T = TypeParam;
  for (bool fortran : {false, true}) {
    npy_array written(dtype_of<T>, {3, 1, 5}, fortran);
    for (i64 i = 0; i < written.size_bytes(); ++i)
      written.data()[i] = static_cast<std::byte>(std::is_same_v<T, bool> ? i % 2 : i * 7);
    write_npy(this->path(), written);
    npy_array read = read_npy(this->path(), dtype_of<T>);
    EXPECT_EQ(read.type(), dtype_of<T>);
    EXPECT_EQ(read.shape(), (std::vector<i64>{3, 1, 5}));
    EXPECT_EQ(read.fortran_order(), fortran);
    EXPECT_EQ(read.size(), 15);
    EXPECT_EQ(std::memcmp(read.data(), written.data(), static_cast<std::size_t>(read.size_bytes())), 0);
    EXPECT_EQ(fs::file_size(this->path()) % 64, static_cast<std::size_t>(read.size_bytes()) % 64) << "data not aligned";
  }
}

TEST_F(npy, ranks_and_empty_arrays) {
  for (auto const& shape : std::vector<std::vector<i64>>{{}, {0}, {1}, {7}, {0, 5}, {4, 0, 3}, {2, 3, 4, 5, 6}}) {
    i64 size = std::accumulate(shape.begin(), shape.end(), i64{1}, std::multiplies<>());
    std::vector<f64> values(static_cast<std::size_t>(size), 2.5);
    write_npy(path(), values, shape);
    auto read = read_npy(path());
    EXPECT_EQ(read.shape(), shape);
    EXPECT_EQ(read.size(), size);
    EXPECT_TRUE(std::ranges::equal(read.as<f64>(), values));
  }
}

TEST_F(npy, strides_and_row_major) {
  npy_array array(dtype::i32, {2, 3, 4}, true);
  EXPECT_EQ(array.strides(), (std::vector<i64>{1, 2, 6}));
  auto elements = array.as<i32>();
  for (i32 i = 0; i < 2; ++i)
    for (i32 j = 0; j < 3; ++j)
      for (i32 k = 0; k < 4; ++k) elements[static_cast<std::size_t>(i + 2 * j + 6 * k)] = 100 * i + 10 * j + k;
  array.make_row_major();
  EXPECT_FALSE(array.fortran_order());
  EXPECT_EQ(array.strides(), (std::vector<i64>{12, 4, 1}));
  elements = array.as<i32>();
  for (i32 i = 0; i < 2; ++i)
    for (i32 j = 0; j < 3; ++j)
      for (i32 k = 0; k < 4; ++k)
        EXPECT_EQ(elements[static_cast<std::size_t>(12 * i + 4 * j + k)], 100 * i + 10 * j + k);
  EXPECT_THROW(array.as<f32>(), std::invalid_argument);
}

TEST_F(npy, versions_and_header_spellings) {
  std::string data(24, '\0');
  for (int version : {1, 2, 3}) EXPECT_EQ(read_npy(file(version, good_header, data)).shape(), (std::vector<i64>{2, 3}));
  EXPECT_EQ(read_npy(file(1, "{\"shape\":(6,),\"fortran_order\":True,\"descr\":\"<f4\"}   ", data)).size(), 6);
  EXPECT_TRUE(read_npy(file(1, "{'shape': (6,), 'fortran_order': True, 'descr': '<f4'}", data)).fortran_order());
  EXPECT_EQ(read_npy(file(1, "{'shape': (12,), 'fortran_order': False, 'descr': '<V2'}", data), dtype::bf16).type(),
            dtype::bf16);
}

TEST_F(npy, a_long_header_is_written_as_version_2) {
  std::vector<i64> shape(30000, 1);
  write_npy(path(), std::vector<u8>{42}, shape);
  std::ifstream stream(path(), std::ios::binary);
  std::string start(8, '\0');
  stream.read(start.data(), 8);
  EXPECT_EQ(start[6], 2);
  EXPECT_EQ(read_npy(path()).shape(), shape);
}

TEST_F(npy, damaged_files_are_refused) {
  std::string data(24, '\0');
  EXPECT_REFUSED(read_npy(path("absent.npy")), "cannot be opened: No such file");
  EXPECT_REFUSED(read_npy(folder), "cannot be read: Is a directory");
  std::ofstream(path()) << "PK not this";
  EXPECT_REFUSED(read_npy(path()), "is not a .npy file");
  std::ofstream(path()) << "";
  EXPECT_REFUSED(read_npy(path()), "is not a .npy file");
  EXPECT_REFUSED(read_npy(file(4, good_header, data)), "format version 4");
  EXPECT_REFUSED(read_npy(file(1, good_header, data.substr(1))),
                 "is truncated: shape (2, 3) of f32 needs 24 bytes of data, the file has 23");
  EXPECT_REFUSED(read_npy(file(1, good_header, data + "x")), "has 1 bytes after the data");
  EXPECT_REFUSED(read_npy(file(1, good_header, "", 9000)), "is truncated: it ends inside the header");
  EXPECT_REFUSED(read_npy(file(2, good_header, data, 1u << 31)), "malformed header: its length");
  auto with = [&](std::string const& header) { return file(1, header, data); };
  EXPECT_REFUSED(read_npy(with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}")), "is big-endian (>f4)");
  EXPECT_REFUSED(read_npy(with("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}")), "element type '<c8'");
  EXPECT_REFUSED(read_npy(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}")), "holds records");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False}")), "incomplete header");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}")), "malformed header");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}")), "malformed header");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x")), "malformed header");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (6")), "malformed header");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'other': False, 'shape': (6,)}")), "unknown key 'other'");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}")),
                 "64 bits");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}")),
                 "64 bits");
  EXPECT_REFUSED(read_npy(with("{'descr': '<f4', 'fortran_order': False, 'shape': (72057594037927936,)}")),
                 "is truncated");
}

TEST_F(npy, every_truncation_of_a_file_is_refused) {
  write_npy(path(), std::vector<f32>{1, 2, 3}, {3});
  std::ifstream stream(path(), std::ios::binary);
  std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path("cut.npy"), std::ios::binary) << whole.substr(0, size);
    EXPECT_THROW(read_npy(path("cut.npy")), npy_error) << size;
  }
}

TEST_F(npy, the_expected_type_is_checked) {
  write_npy(path(), std::vector<f32>{1, 2}, {2});
  EXPECT_REFUSED(read_npy(path(), dtype::f16), "holds f32, expected f16");
  EXPECT_REFUSED(read_npy(path(), dtype::bf16), "holds f32, expected bf16 (saved as u16)");
  write_npy(path(), std::vector<bf16>{bf16(1.5f)}, {1});
  EXPECT_EQ(read_npy(path()).type(), dtype::u16);
  EXPECT_EQ(read_npy(path(), dtype::bf16).as<bf16>()[0], bf16(1.5f));
}

TEST_F(npy, a_wrong_shape_is_not_written) {
  EXPECT_REFUSED(write_npy(path(), std::vector<f32>(5), {2, 3}), "does not match");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(npy, failed_writes_leave_nothing) {
  EXPECT_REFUSED(write_npy(path("no/such/x.npy"), std::vector<f32>(6), {6}), "cannot be written: No such file");
  fs::create_directory(path("folder"));
  EXPECT_REFUSED(write_npy(path("folder"), std::vector<f32>(6), {6}), "not a regular file");
  fs::remove(path("folder"));

  // The disk "fills" after 100 kB: the old file stays as it was, and no temporary file remains.
  write_npy(path(), std::vector<f32>{7}, {1});
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 100000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto message = message_of([&] { write_npy(path(), std::vector<f32>(100000), {100000}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(read_npy(path()).as<f32>()[0], 7.0f);
}

TEST_F(npy, a_link_is_followed) {
  fs::create_directory(path("data"));
  write_npy(path("data/real.npy"), std::vector<i32>{1}, {1});
  fs::create_symlink("data/real.npy", path("link.npy"));
  write_npy(path("link.npy"), std::vector<i32>{2}, {1});
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_EQ(read_npy(path("data/real.npy")).as<i32>()[0], 2);
}

TEST_F(npy, numpy_agrees) {
  std::string interpreter;
  for (std::string name : {"/usr/bin/python3", "python3"})
    if (std::system((name + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0) interpreter = name;
  if (interpreter.empty()) GTEST_SKIP() << "python3 has no numpy (package python3-numpy)";
  auto python = [&](std::string const& code) {
    std::ofstream(path("script.py")) << "import numpy as np\n" << code;
    return std::system(("cd '" + folder.string() + "' && " + interpreter + " script.py").c_str());
  };
  // NumPy writes, kiln reads.
  ASSERT_EQ(python("a = np.arange(12, dtype=np.float16).reshape(3, 4)\n"
                   "np.save('c.npy', a)\n"
                   "np.save('f.npy', np.asfortranarray(a))\n"
                   "np.save('i.npy', np.array(-5, dtype=np.int64))\n"
                   "np.save('b.npy', np.array([True, False]))\n"
                   "with open('v3.npy', 'wb') as f: np.lib.format.write_array(f, a, version=(3, 0))\n"),
            0);
  for (auto name : {"c.npy", "f.npy", "v3.npy"}) {
    auto array = read_npy(path(name), dtype::f16);
    EXPECT_EQ(array.fortran_order(), std::string(name) == "f.npy");
    array.make_row_major();
    for (int i = 0; i < 12; ++i) EXPECT_EQ(array.as<f16>()[static_cast<std::size_t>(i)], f16(i)) << name;
  }
  EXPECT_EQ(read_npy(path("i.npy")).as<i64>()[0], -5);
  EXPECT_EQ(read_npy(path("b.npy")).as<bool>()[0], true);
  // kiln writes, NumPy reads.
  std::vector<f32> values{0, 1, 2, 3, 4, 5};
  write_npy(path("k.npy"), values, {2, 3});
  write_npy(path("kf.npy"), values, {2, 3}, true);
  write_npy(path("k0.npy"), std::vector<u8>{9}, {});
  EXPECT_EQ(python("a = np.arange(6, dtype=np.float32)\n"
                   "k, kf, k0 = np.load('k.npy'), np.load('kf.npy'), np.load('k0.npy')\n"
                   "assert k.dtype == np.float32 and (k == a.reshape(2, 3)).all()\n"
                   "assert kf.flags.f_contiguous and (kf == a.reshape(2, 3, order='F')).all()\n"
                   "assert k0.shape == () and k0 == 9\n"),
            0);
}
