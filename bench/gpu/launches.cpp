// What a launch costs the calling thread beside the driver's own call, what a first launch costs beside the driver's own
// assembler, and what it costs where the disk cache has the code.
#include "harness.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <jit/compile.hpp>
#include <stdexcept>
#include <unistd.h>

namespace kiln_bench {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median_of(std::vector<double> v) {
  auto const middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// The driver as a program without kiln would use it.
struct raw_driver {
  int (*load)(void**, void const*) = nullptr;
  int (*unload)(void*) = nullptr;
  int (*function)(void**, void*, char const*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) = nullptr;
  int (*current)(void**) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*make_current)(void*) = nullptr;

  raw_driver() {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) throw std::runtime_error("libcuda.so.1 is not there");
    auto const find = [&](auto& f, char const* name) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(library, name));
      if (!f) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
    };
    find(load, "cuModuleLoadData"), find(unload, "cuModuleUnload"), find(function, "cuModuleGetFunction"), find(launch, "cuLaunchKernel");
    find(current, "cuCtxGetCurrent"), find(retain, "cuDevicePrimaryCtxRetain"), find(make_current, "cuCtxSetCurrent");
    void* context = nullptr; // kiln's is the primary one, too, and is made current where it is not
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(make_current(context), "cuCtxSetCurrent");
  }
  static void check(int code, char const* call) {
    if (code != 0) throw std::runtime_error(std::string(call) + " fails with " + std::to_string(code));
  }
};

/// A module that the driver made of the PTX of a kernel.
struct raw_kernel {
  raw_driver const& d;
  void *module = nullptr, *function = nullptr;
  double load_seconds = 0;

  raw_kernel(raw_driver const& driver, std::string const& ptx) : d(driver) {
    std::size_t const entry = ptx.find(".entry ") + 7;
    std::string const name = ptx.substr(entry, ptx.find('(', entry) - entry);
    double const start = now();
    raw_driver::check(d.load(&module, ptx.c_str()), "cuModuleLoadData");
    raw_driver::check(d.function(&function, module, name.c_str()), "cuModuleGetFunction");
    load_seconds = now() - start;
  }
  raw_kernel(raw_kernel const&) = delete;
  ~raw_kernel() { d.unload(module); }
};

/// PTX for arguments whose addresses and integers are multiples of 16.
std::string ptx_of(graph_view const& g, target const& t) {
  specialisation facts = specialisation::generic(g);
  for (std::size_t i = 0; i < g.params.size(); ++i)
    if (g.params[i].kind != node_kind::value) facts.params[i].alignment = 16;
    else if (is_int(g.params[i].type)) facts.params[i].scalar = {false, 0, 16};
  return jit::emit(g, facts, t, jit::emit_kind::assembly);
}

// -- warm launches
// -----------------------------------------------------------------

inline constexpr auto four_arguments = kernel<"four_arguments", attributes{.num_warps = 1}>(
    [](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
      auto i = k.arange<32>();
      store(z + i, load(x + i, {.mask = i < n}) + load(y + i, {.mask = i < n}), {.mask = i < n});
    });
inline constexpr auto twelve_arguments = kernel<"twelve_arguments", attributes{.num_warps = 1}>(
    [](context& k, ptr<const f32> a, ptr<const f32> b, ptr<const f32> c, ptr<f32> z, val<i64> n, val<i64> m, val<i32> p, val<i32> q,
       val<f32> r, val<f32> s, val<f32> t, val<f32> u) {
      auto i = k.arange<32>();
      auto in = cast<i64>(i) < n + m + cast<i64>(p * q);
      auto v = load(a + i, {.mask = in}) * r + load(b + i, {.mask = in}) * s + load(c + i, {.mask = in}) * t + u;
      store(z + i, v, {.mask = in});
    });

/// Both sides in turns, a few launches at a time, so that the queue stays short; the least disturbed half of the rounds.
template <class Kiln, class Raw> void warm(session& s, char const* shape, Kiln const& ours, Raw const& raw) {
  constexpr int rounds = 400, launches = 32;
  std::vector<double> a, b;
  auto const batch = [&](auto const& one) {
    double const start = now();
    for (int i = 0; i < launches; ++i) one();
    double const seconds = (now() - start) / launches;
    s.on.synchronize();
    return seconds;
  };
  batch(ours), batch(raw);
  for (int i = 0; i < rounds; ++i) {
    if (i % 2) a.push_back(batch(ours)), b.push_back(batch(raw));
    else b.push_back(batch(raw)), a.push_back(batch(ours));
  }
  double const mine = median_of(a), theirs = median_of(b);
  char note[96];
  std::snprintf(note, sizeof note, "raw cuLaunchKernel %.3f us, ratio %.3f", theirs * 1e6, mine / theirs);
  s.add({"warm launch", shape, mine, 0, "us", theirs * 1.10e6, 0, note});
}

void warm_launches(session& s, raw_driver const& d) {
  buffer<f32> x(s.on, 64), y(s.on, 64), z(s.on, 64);
  x.fill(1), y.fill(2);
  void* const queue = s.on.native();
  {
    raw_kernel const raw(d, ptx_of(four_arguments.graph(), s.dev.target()));
    float const *px = x.data(), *py = y.data();
    float* pz = z.data();
    i64 n = 32;
    void* arguments[] = {&px, &py, &pz, &n};
    warm(
        s, "4 arguments", [&] { four_arguments.launch(s.on, grid(1), x, y, z, i64{32}); },
        [&] { raw_driver::check(d.launch(raw.function, 1, 1, 1, 32, 1, 1, 0, queue, arguments, nullptr), "cuLaunchKernel"); });
  }
  {
    raw_kernel const raw(d, ptx_of(twelve_arguments.graph(), s.dev.target()));
    float const *pa = x.data(), *pb = y.data(), *pc = x.data();
    float* pz = z.data();
    i64 n = 32, m = 16;
    int p = 16, q = 32;
    float r = 1, w = 2, t = 3, u = 4;
    void* arguments[] = {&pa, &pb, &pc, &pz, &n, &m, &p, &q, &r, &w, &t, &u};
    warm(
        s, "12 arguments", [&] { twelve_arguments.launch(s.on, grid(1), x, y, x, z, i64{32}, i64{16}, 16, 32, 1.f, 2.f, 3.f, 4.f); },
        [&] { raw_driver::check(d.launch(raw.function, 1, 1, 1, 32, 1, 1, 0, queue, arguments, nullptr), "cuLaunchKernel"); });
  }
}

// -- first launches
// -----------------------------------------------------------------

// As many kernels as there are numbers: the code of each differs in a constant.
template <int Number>
inline constexpr auto numbered_add = kernel<"numbered_add", Number>(
    [](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
      auto i = k.program_id<i64>(0) * 1024 + k.arange<1024>();
      auto in = i < n;
      store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}) + static_cast<float>(Number), {.mask = in});
    });
template <int Number>
inline constexpr auto numbered_softmax = kernel<"numbered_softmax", Number>(
    [](context& k, ptr<const bf16> x, ptr<bf16> y) {
      auto i = k.program_id<i64>(0) * 4096 + k.arange<4096>();
      auto v = cast<f32>(load(x + i)) * static_cast<float>(Number + 1);
      auto e = exp(v - reduce<max>(v));
      store(y + i, cast<bf16>(e / reduce<sum>(e)));
    });

struct cold_times {
  std::vector<double> ours, driver;
};

/// A kernel's first launch until its result is there, and the driver's load of the same PTX.
template <class K, class... A> void cold(session& s, raw_driver const& d, cold_times& t, K const& k, A&&... arguments) {
  double const start = now();
  k.launch(s.on, grid(1), arguments...);
  s.on.synchronize();
  t.ours.push_back(now() - start);
  t.driver.push_back(raw_kernel(d, ptx_of(K::graph(), s.dev.target())).load_seconds);
}

void report(session& s, char const* job, cold_times const& t, double more) {
  // The first of a process starts LLVM's target and the driver's assembler.
  auto const rest = [](std::vector<double> const& v) { return median_of({v.begin() + 1, v.end()}); };
  // Each kernel against the driver's load of its own PTX right behind it: over twenty kernels the processor's speed may change by half.
  std::vector<double> differences;
  for (std::size_t i = 0; i < t.ours.size(); ++i) differences.push_back(t.ours[i] - t.driver[i]);
  double const mine = rest(t.ours), driver = rest(t.driver), difference = rest(differences);
  char note[128];
  std::snprintf(note, sizeof note, "driver's PTX load %.2f ms, pair by pair %.2f ms more; the first %.1f ms", driver * 1e3, difference * 1e3, t.ours[0] * 1e3);
  s.add({"cold compile to result", job, mine, 0, "ms", (mine - difference) * 1e3 + more, 0, note});
}

template <int... N> void cold_compiles(session& s, raw_driver const& d, std::integer_sequence<int, N...>) {
  buffer<f32> x(s.on, 1024), y(s.on, 1024), z(s.on, 1024);
  buffer<bf16> v(s.on, 4096), w(s.on, 4096);
  x.fill(1), y.fill(2), v.fill(bf16(1.f));
  cold_times add, soft;
  (cold(s, d, add, numbered_add<N>, x, y, z, i64{1024}), ...);
  (cold(s, d, soft, numbered_softmax<N>, v, w), ...);
  report(s, "vector add", add, 5);
  report(s, "softmax", soft, 15);
}

/// Median of the children's times; each is a process of its own that finds the code on disk.
void disk_warm(session& s) {
  namespace fs = std::filesystem;
  fs::path const folder = fs::temp_directory_path() / ("kiln_bench_cache_" + std::to_string(::getpid()));
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  std::error_code ignored;
  std::string const self = fs::read_symlink("/proc/self/exe").string();
  for (char const* job : {"vector add", "softmax"}) {
    std::string const command = "KILN_CACHE=on KILN_CACHE_DIR=" + folder.string() + " '" + self + "' --device " + s.dev.id() + " --first-launch '" + job + "'";
    std::vector<double> seconds;
    bool failed = false;
    for (int i = 0; i < 12 && !failed; ++i) {
      FILE* const child = ::popen(command.c_str(), "r");
      double milliseconds = 0;
      failed = !child || std::fscanf(child, "%lf", &milliseconds) != 1;
      if (child) failed |= ::pclose(child) != 0;
      if (i > 0) seconds.push_back(milliseconds * 1e-3); // the first one fills the cache
    }
    if (failed) s.add({"disk-warm first launch", job, 0, 0, "ms", 1.5, 0, "the child process failed"});
    else s.add({"disk-warm first launch", job, median_of(seconds), 0, "ms", 1.5});
  }
  fs::remove_all(folder, ignored);
}

} // namespace

void launch_jobs(session& s) {
  if (s.dev.kind() != device_kind::cuda) return;
  bool const warm_wanted = s.wants("warm launch", "4 arguments 12 arguments"), cold_wanted = s.wants("cold compile to result", "vector add softmax");
  if (warm_wanted || cold_wanted) {
    raw_driver const d;
    if (warm_wanted) warm_launches(s, d);
    if (cold_wanted) cold_compiles(s, d, std::make_integer_sequence<int, 21>{});
  }
  if (s.wants("disk-warm first launch", "vector add softmax")) disk_warm(s);
}

double first_launch_milliseconds(std::string const& where, std::string const& job) {
  device const dev = device::parse(where);
  stream const on = stream::create(dev);
  buffer<f32> x(on, 1024), y(on, 1024), z(on, 1024);
  buffer<bf16> v(on, 4096), w(on, 4096);
  x.fill(1), y.fill(2), v.fill(bf16(1.f));
  on.synchronize();
  double const start = now();
  if (job == "softmax") numbered_softmax<0>.launch(on, grid(1), v, w);
  else numbered_add<0>.launch(on, grid(1), x, y, z, i64{1024});
  on.synchronize();
  return (now() - start) * 1e3;
}

} // namespace kiln_bench
