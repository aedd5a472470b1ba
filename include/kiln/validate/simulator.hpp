// The hazard simulation: what it says, its clocks, and the class that runs it, whose functions are written down by subject in
// sim_report.hpp, sim_barriers.hpp, sim_cluster.hpp, sim_sharing.hpp, sim_trips.hpp, sim_findings.hpp and simulate.hpp, which says how
// it works. They are one class without bases, because g++ needs three times as long for a member of a distant base as for one of its own.
#pragma once
#include <kiln/validate/overlap.hpp>

namespace kiln {

/// A warning or a remark. Data, never a compiler diagnostic.
struct note {
  int node = -1;
  int length = 0;
  char text[260]{};
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(length)}; }
};

/// Notes about one kernel; the first ones, when there are very many.
struct note_list {
  static constexpr int most = 12;
  int count = 0;
  note items[most]{};
  constexpr slice<note> view() const { return {items, static_cast<std::size_t>(count)}; }
};

/// What the simulation found.
struct simulation {
  diagnostic error{};
  bool complete = true; ///< false: the budget ended, or an access could not be followed (note R-VF01)
  int events = 0;       ///< instructions executed, all runs together
  int runs = 0;
  int passes = 0;       ///< of loops with runtime bounds in the main runs
  note_list notes{};
};

namespace detail {

/// Lane-parallel vector clocks, in the widest integers that a compiler computes with at once: what one operation costs while it runs
/// hardly depends on them.
struct clocks {
#ifdef __clang__
  using word = unsigned _BitInt(512);
#else
  __extension__ using word = unsigned __int128;
#endif
  static constexpr int lanes = static_cast<int>(sizeof(word)) / 2; ///< of a word
  static constexpr word high = ~word{0} / 0xffff * 0x8000; ///< the highest bit of every lane
  static constexpr word unit(int lane) { return word{1} << (lane % lanes * 16); }
  /// Written out where it is asked most: a call costs clang four times what it does.
  static constexpr int get(word const* x, int lane) { return static_cast<int>(x[lane / lanes] >> (lane % lanes * 16)) & 0x7fff; }
  static constexpr void set(word* x, int lane, int value) {
    word const one = unit(lane);
    x[lane / lanes] = (x[lane / lanes] & ~(one * 0x7fff)) | (one * static_cast<unsigned>(value));
  }
  static constexpr void raise(word* x, int lane, int value) {
    if (value > get(x, lane)) set(x, lane, value);
  }
};

class simulator {
public:
  constexpr simulator(graph_view const& g, int budget) : g_(g), slices_(g, p_), budget_(budget) {}
  simulator(simulator const&) = delete;
  constexpr ~simulator() { release(); }
  constexpr void run(simulation& out);
  constexpr void flush();

private:
  static constexpr int none = 0, always = 1, predicates = 2;
  struct decision {
    op code{};          ///< lt, eq, or another operation for a value that is simply unknown
    std::int32_t a = -1, b = -1;
    std::int32_t node = -1;
    bool value = true;  ///< of the canonical form
    bool flipped = false; ///< decided the second way
    bool fixed = false;   ///< by an assume
  };
  struct appender {
    diagnostic& d;
    constexpr appender& operator<<(std::string_view s) {
      for (char c : s)
        if (d.length < static_cast<int>(sizeof d.text) - 1) d.text[d.length++] = c;
      return *this;
    }
    constexpr appender& operator<<(int v) {
      diagnostic number;
      message(number) << v;
      return *this << number.view();
    }
  };
  struct agent {
    int pc = 0;
    std::int64_t* file = nullptr; ///< its registers
    int cta = 0;
    int groups = 0;      ///< of loads, committed
    int stores = 0;      ///< bulk stores, issued
    int waited_at = -1;  ///< groups committed when the last wait was executed
    int generation = -1; ///< of the named barrier that it waits at
    int again = -1, again_at = 0; ///< the last wait, where it saw a phase that this agent had waited for before; and its barrier
    int loads_lane = -1, stores_lane = -1, fence_lane = -1;
    bool open = false;   ///< a load since the last commit
    bool running = false, forked = false;
  };
  struct barrier { // all zeros at first, which compilers make at once
    int pending, expected, got, phase;
    int arrivals;             ///< of every phase
    int before;               ///< bytes expected in the phase before
    int expects_if, loads_if; ///< predicate of the phase: none, always, or predicates + a value number
    int last, by;             ///< 1 + instruction of the last arrival, and its agent
  };
  struct named_barrier {
    int threads = 0, present = 0, generation = 0, last = -1;
    std::uint32_t here = 0; ///< agents that have arrived
  };
  enum class step { next, stop, block, rest, end }; ///< rest: it did something, and waits now
  enum class lane_kind : std::uint8_t { agent, barrier, loads, stores, fence };
  struct atom {
    std::int32_t lane = -1, value = 0; ///< stamp of the last write
    std::int32_t by = -1;              ///< instruction of it
    std::int32_t agent = 0;            ///< that executed it
    std::int32_t poison = 0;           ///< as instruction::b of an async load
    std::int32_t lost = -1;            ///< the instruction that has since written its bytes through another buffer
  };

  // -- conditions and wording: sim_report.hpp
  constexpr std::int64_t content(int node) const;
  constexpr bool truth(int i);
  constexpr decision canonical(int i, bool& negated);
  constexpr bool promise(int i);
  constexpr std::int64_t likely(int i) const;
  constexpr message broken(int node);
  constexpr message remark(int node);
  static constexpr bool same_rule(char const* a, char const* b);
  constexpr void circumstances();
  constexpr appender append_text() { return {out_->error}; }
  constexpr bool all_true() const;
  constexpr std::string_view verb(instruction const& x) const;
  constexpr void in_task(message& m, int agent) const;
  constexpr void where(message& m, int node, int agent) const;
  constexpr void task_name(message& m, int agent) const;
  constexpr void barriers_name(message& m, int alloc) const;
  constexpr void barrier_name(message& m, int slot) const;
  constexpr void place(message& m, int node) const;
  constexpr void buffer(message& m, int b) const;
  constexpr void bare_name(message& m, box const& b) const;
  constexpr void access_name(message& m, box const& b) const;
  constexpr void outside(message& m, int node, std::int64_t value, int count) const;
  constexpr void expression(message& m, int i, int precedence) const;

  // -- agents, clocks and barriers: sim_barriers.hpp
  constexpr void allocate_agents();
  constexpr void release_agents();
  constexpr void reset_agents();
  constexpr void enter(int who);
  constexpr void tick() { clock_[word_] += unit_; }
  /// x becomes the later of x and y in every lane.
  constexpr void join(clocks::word* x, clocks::word const* y) const {
    for (int i = 0; i < words_; ++i) {
      clocks::word const q = y[i], z = x[i];
      if (q == z) continue;
      clocks::word const d = ((z | clocks::high) - q) & clocks::high, m = d - (d >> 15);
      x[i] = (z & m) | (q & ~m);
    }
  }
  /// Whether everything up to clock x is behind clock y: no lane of x is further.
  constexpr bool at_most(clocks::word const* x, clocks::word const* y) const {
    for (int i = 0; i < words_; ++i)
      if ((((y[i] | clocks::high) - x[i]) & clocks::high) != clocks::high) return false;
    return true;
  }
  constexpr int barrier_lane(int slot) const { return barrier_lanes_ + slot; }
  constexpr step fork(instruction const& x);
  constexpr int slot_of(barrier_reference const& r);
  /// Copies whose bytes count on a barrier.
  static constexpr bool brings_bytes(sim_op o) { return o == sim_op::bulk_load || o == sim_op::remote_async || o == sim_op::remote_copy; }
  constexpr bool member(instruction const& x, int k);
  constexpr int arrivals(int k) const { return barriers_[k].arrivals; }
  constexpr bool complete(instruction const& x, int k);
  constexpr void bytes_differ(int k, int node, char const* consequence);
  constexpr bool meets(instruction const& x, int reference);
  constexpr step arrived(instruction const& x);
  constexpr bool same_condition(instruction const& x, int k);
  constexpr step arrive(instruction const& x);
  constexpr int covered(int pending) const;
  constexpr step load_arrive(instruction const& x);
  constexpr step barrier_wait(instruction const& x);
  constexpr step fence();
  constexpr step named(instruction const& x);
  constexpr void deadlock();
  constexpr std::string_view meeting_name(int node) const { return g_[node].code == op::cluster_barrier ? "cluster_barrier" : "the end of async_tasks, a barrier of the cluster,"; }

  // -- what CTAs of a cluster do with each other: sim_cluster.hpp
  constexpr void allocate_clusters();
  constexpr void reset_clusters();
  /// The lane of a CTA's own agent.
  constexpr int lane_of(int cta) const { return cta * p_.cta_agents; }
  constexpr std::int64_t rank(int axis) const;
  constexpr bool reach(instruction const& x, int c, int rank_node);
  constexpr bool is_ready(instruction const& x, int k);
  constexpr bool is_there(instruction const& x, int lane, int value);
  constexpr void reaching(message& m, instruction const& x, int cta, int agent);
  constexpr bool nobody_left();
  constexpr step arrive_remotely(instruction const& x);
  constexpr step make_ready(instruction const& x);
  constexpr step meet_cluster();

  // -- buffers that share storage: sim_sharing.hpp
  constexpr char const* rule_of_sharing(int b, bool race) const;
  constexpr void common_bytes(message& t, int k, int j) const;
  constexpr step shared_conflict(instruction const& x, int k, int j, int by, int agent, bool flying);
  constexpr step overwritten(instruction const& x, int k, int base);

  // -- how often loops run: sim_trips.hpp
  constexpr void unrelated(int loop);
  constexpr void guess(int loop);
  constexpr bool same_form(int a, int b, int depth = 0) const;
  constexpr void assign();
  constexpr void choose_common();
  constexpr std::int64_t trips(int loop) const;
  constexpr bool settled(affine const& f) const;
  constexpr std::int64_t value_of(affine const& f) const;
  constexpr void solve(affine const& f, std::int64_t target, bool upwards);

  // -- what is wrong with an access: sim_findings.hpp
  constexpr bool never_committed(atom const& m) const;
  constexpr step unordered(instruction const& x, atom const& m);
  constexpr step overtaken(instruction const& x, int k);
  constexpr step without_fence(instruction const& x, atom const& m);
  constexpr step uninitialised(instruction const& x, int k);
  constexpr step poisoned(instruction const& x, atom& m);
  constexpr void left_pending(instruction const& x, char const* cure);

  // -- runs, instructions, accesses: simulate.hpp
  constexpr void explore(int passes, bool full);
  constexpr void allocate();
  constexpr void release();
  constexpr void one();
  constexpr bool advance();
  constexpr bool exhausted();
  constexpr void scalar(instruction const& x);
  constexpr void ring(instruction const& x);
  constexpr bool start(instruction const& x);
  constexpr step rarely(instruction const& x);
  constexpr step access(instruction const& x);
  constexpr int unusual_slot(instruction const& x, box const& b);
  constexpr step send(instruction const& x);
  constexpr step read_source(instruction const& x);
  constexpr step touch_cells(instruction const& x, box const& b, int first);
  constexpr step left_out(int node);
  constexpr step touch(instruction const& x, int k);
  constexpr step read_later(atom const& m, instruction const& x, int k);
  static constexpr bool reads(sim_op o) { return o == sim_op::read || o == sim_op::bulk_store || o == sim_op::remote_read; }
  constexpr bool unfenced(atom const& m) const;
  constexpr step touch_peers(instruction const& x, int atom_number);
  /// Whether a read of atom k may see what instruction `write` wrote to its bytes through another buffer.
  constexpr bool may_read(int k, int write) const { return g_.may_read(buffer_of_atom(p_, k), p_.boxes[p_.code[write].a].buffer); }
  constexpr bool pending_async(atom const& m) const { return m.lane >= p_.agents.size(); }
  constexpr bool on_barrier(atom const& m) const { return lane_kind_[m.lane] == lane_kind::barrier; }
  constexpr int line(atom const& m) const { return g_[p_.code[m.by].node].line; }
  constexpr op kind(atom const& m) const { return g_[p_.code[m.by].node].code; }
  constexpr void at_exit();
  constexpr void unused_waits();

  /// Zeros (or what T starts with) in an array that was used before: compilers make new ones much faster than they overwrite.
  template <class T>
  static constexpr void afresh(T*& items, int n) {
    delete[] items;
    items = new T[static_cast<unsigned>(n)]{};
  }

  static constexpr int most_stamps = 64000; ///< of who has read what, an agent or barrier each: what compilers' limits have room for
  // What clang's default limit (1,048,576 steps) has room for, measured: about 95 steps a node to make the program, 15 for a scalar
  // or an ordinary read, 50 for what meets others, and more where clocks are wide. What is charged here is well above.
  static constexpr std::int64_t most_cost = 900000;
  static constexpr int cost_of_node = 150, cost_of_scalar = 25;
  static constexpr int most_alone = 256; ///< steps until the budget is looked at

  // The most used first: compilers look for a member from the front.
  int pc_ = 0, who_ = 0, words_ = 1, lanes_ = 1;
  agent *me_ = nullptr;
  clocks::word* clock_ = nullptr;
  clocks::word unit_ = 1; ///< 1 in the agent's own lane
  int word_ = 0;          ///< that holds this lane
  std::int64_t* registers_ = nullptr; ///< of the agent that runs
  atom* atoms_ = nullptr;
  clocks::word* readers_ = nullptr;
  int* read_at_ = nullptr; ///< of an atom and lane: the instruction that read last
  barrier* barriers_ = nullptr;
  clocks::word *arrived_ = nullptr, *completed_ = nullptr, *waited_ = nullptr;
  barrier_reference const* references_ = nullptr; ///< the program's
  box const* boxes_ = nullptr;                    ///< the program's
  bool alone_ = true;     ///< one CTA
  bool shares_ = false;   ///< some atoms have peers
  int barrier_lanes_ = 0; ///< the first
  int on_barrier_ = -1;   ///< where the present instruction arrives, or its bytes do
  int cta_ = 0;           ///< of the agent that runs
  int peer_ = -1;         ///< the CTA whose memory or barrier it reaches now; -1: its own
  agent* agents_ = nullptr;
  clocks::word* clocks_ = nullptr;
  std::int64_t* files_ = nullptr; ///< registers that agents have of their own
  graph_view const& g_;
  sim_program p_;
  slicer slices_;
  int budget_;
  int events_ = 0, access_cost_ = 0, meeting_cost_ = 0; ///< events; what one is charged
  std::int64_t cost_ = cost_of_node * g_.size();
  simulation* out_ = nullptr;
  diagnostic spare_;
  int passes_ = 1;
  bool full_ = true;
  bool finished_ = false; ///< a run got to the end of the kernel
  std::int64_t* symbols_ = nullptr;
  vec<decision> decisions_;
  int register_count_ = 0;
  int width_ = 2; ///< of a clock, in steps of four lanes, for what is charged
  int named_lane_[16]{}, named_count_ = 0;
  int* lane_agent_ = nullptr;
  lane_kind* lane_kind_ = nullptr;
  vec<int>* commits_ = nullptr; ///< of an agent: the numbers of its committed groups, where barriers stand for others
  named_barrier* named_ = nullptr;
  clocks::word *named_arrived_ = nullptr, *named_completed_ = nullptr;
  bool *useful_ = nullptr, *reached_ = nullptr;
  vec<int> loads_in_; ///< of a group: its loads
  atom_peers peers_;
  std::int32_t const *first_peer_ = nullptr, *all_peers_ = nullptr; ///< its arrays
  int unsolved_ = -1; ///< a loop whose bounds no choice of numbers satisfies
  int guessed_ = -1, differing_ = -1; ///< a bound that the run did not know; a loop with another such bound
  int *ready_ = nullptr, *ready_lane_ = nullptr; ///< of a barrier: stamp of the fence that made it ready
  clocks::word* touched_ = nullptr;              ///< of a CTA: what others did to it
  int *touched_at_ = nullptr, *touched_by_ = nullptr; ///< and, by lane, the instruction and its agent
  clocks::word *met_ = nullptr, *all_completed_ = nullptr;
  struct {
    int present = 0, generation = 0;
  } all_; ///< CTAs at the barrier of the cluster
};

} // namespace detail
} // namespace kiln

#include <kiln/validate/simulate.hpp> // and all other parts
