// What a memory map shows, before anything is drawn: where buffers lie, what happens to them statement by statement, and when each
// holds something that is still needed.
#pragma once
#include <kiln/graph/local_layout.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::tool {

/// Bytes, or columns of tensor memory, from the start of their memory.
struct byte_span {
  std::int64_t lo, hi;
  bool meets(byte_span const& o) const { return lo < o.hi && o.lo < hi; }
};

/// Something that happens to buffers, or at a barrier, at one statement.
struct map_column {
  enum class kind : std::uint8_t { access, wait, arrive, copies, sync, fence };
  struct touch {
    int buffer;
    std::vector<int> slots; ///< which it may be: one, or several of which the pass decides
    char letter;            ///< W written, R read, C copied into, S copied out of
    bool writes() const { return letter == 'W' || letter == 'C'; }
    bool may(int slot) const;
  };
  int node = -1;
  kind what = kind::access;
  std::string label;
  std::vector<touch> touches{};
};
/// A program: the kernel's own statements, or a task's.
struct map_block {
  int task = -1;  ///< task_begin; -1: the kernel's own
  int stage = 0;  ///< tasks of one stage run at the same time; stages follow each other
  std::string title, name; ///< "task load, 4 warps", "load"
  int first = 0, last = -1; ///< columns
};
/// A loop or branch around columns.
struct map_bracket {
  std::string name;
  int first, last, depth;
};
/// A slot of a buffer holds something that is needed, from column to column of one block.
struct map_bar {
  int buffer, slot, first, last;
};
/// Storage of one buffer, or of several.
struct map_storage {
  int owner;
  byte_span bytes;
  int lanes = 1;         ///< side by side lie buffers that share bytes
  bool shared = false;
  std::int64_t apart = 0; ///< what its buffers would need with storage of their own
  std::int64_t slack = 0; ///< at its end: the author asked for it
  std::vector<int> buffers{};
};
/// One kind of memory.
struct map_memory {
  storage where;
  char const *name, *unit;
  std::int64_t total = 0;
  std::vector<map_storage> storages{};
  std::vector<std::pair<int, byte_span>> barriers{}; ///< alloc_barriers and its bytes
  std::vector<std::pair<int, byte_span>> growth{};   ///< a buffer, and what others beside it make its slots wider by
  std::vector<byte_span> padding{};                  ///< between aligned things
  std::vector<std::int64_t> edges{};                 ///< every place where something begins or ends
};

class map_model {
public:
  /// The graph must be valid and outlive the model.
  explicit map_model(graph_view const& g);

  graph_view g;
  std::vector<map_column> columns;
  std::vector<map_block> blocks;
  std::vector<map_bracket> brackets;
  std::vector<map_memory> memories;
  std::vector<map_bar> bars;
  std::vector<int> lane_of; ///< of each buffer, within its storage

  std::string buffer_name(int b) const;
  std::string slot_name(int b, int slot) const;
  std::string barriers_name(int alloc) const;
  byte_span slot(int b, int i) const;

private:
  struct loop_state {
    int node;
    std::string name;
  };
  std::optional<std::int64_t> constant(int i) const;
  std::optional<std::set<std::int64_t>> possible(int i) const;
  std::pair<std::string, int> index_text(int i) const;
  std::string index(int i) const;
  std::string barrier_text(int node) const;
  map_column::touch touch_of(int view, char letter, std::string* where) const;
  std::string partners(int barrier_node, bool waiting, int block) const;
  void collect_partners();
  void collect();
  void describe(int node, map_column& c, bool& shown) const;
  void place();
  void fill_lanes(map_memory& m, map_storage& s);
  void find_growth(map_memory& m, map_storage const& s);
  int done_by(int c, int end) const;
  void lives();
  void lives_of(int b, int slot);
  bool taken_over(int b, int slot, int first, int last) const;

  std::map<int, std::int64_t> base_;                 ///< of each storage
  std::vector<std::pair<int, int>> loops_;           ///< columns
  std::map<int, std::string> loop_names_;            ///< for_begin: what its index is called
  std::map<int, int> replicas_;                      ///< replica_id: how many there are
  std::map<int, std::set<std::string>> waiters_, signallers_; ///< alloc_barriers, or -1 - id of a named barrier: tasks
  std::map<int, std::string> task_of_;               ///< statement at a barrier: its task
};

} // namespace kiln::tool
