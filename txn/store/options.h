// DatabaseOptions: what a program says when it opens a database.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "rdma/global_address.h"

namespace gannet::log {
class FileSystem;
}

namespace gannet::txn {

// The path of every Get, GetMany, Scan and Search. kOneSided: READs of the index and of the records. kCall: a call to
// the owner, which does both. kAdaptive: the path that is estimated to be cheaper now (txn/path/offload_chooser.h).
// kOrderedByCall: calls for tables with an ordered index, READs for the others, as in designs whose clients keep no
// cache of trees (DrTM+H, OSDI'18). With a fixed path verb counts depend only on the workload.
//
// Nearest has no choice: a call to the owner finds the rectangles, and READs bring their rows. If they do not fit in a
// message, a search follows, by calls with kCall and by READs with the others.
enum class ReadPathPolicy : uint8_t { kAdaptive, kOneSided, kCall, kOrderedByCall };

// The moment when the commit of a transaction is acknowledged, in a database with a directory.
enum class DurabilityMode : uint8_t {
  kNone,   // nothing is logged: only what Close (or a Checkpoint while nothing runs) wrote survives
  kAsync,  // at once; a crash loses at most the last group commit and the one being written (a few milliseconds), and
           // nothing that is durable according to Database::durable_epoch
  kSync,   // when it is durable
};

// How the log and the checkpoints are written.
enum class LogMedium : uint8_t {
  kFile,  // io_uring, without the page cache where the file system allows that
  kPmem,  // mapped files by libpmem: persistent memory if the directory is on such
};

// The kinds of events (DatabaseOptions::on_event).
enum class EventLevel : uint8_t {
  kInfo,     // all is well
  kWarning,  // something is lost or was at risk, and the database goes on by itself
  kError,    // something does not work, and will not until its cause is gone
};

// A longer group commit would only delay every commit.
inline constexpr absl::Duration kMaxGroupCommit = absl::Seconds(1);
inline constexpr size_t kMaxLogLargeBuffer = size_t{1} << 30;
// The unit is bytes per second. A checkpoint that is written more slowly would hardly end, and none of the log is
// removed in that time.
inline constexpr uint64_t kLeastCheckpointRate = uint64_t{1} << 20;
inline constexpr size_t kMinLogBuffer = size_t{4} << 10;
inline constexpr size_t kMaxLogBuffer = size_t{1} << 30;
// Limit of DatabaseOptions::application and TableOptions::application.
inline constexpr size_t kMaxApplicationBytes = 4096;

struct DatabaseOptions {
  // Nodes 0 to data_nodes - 1 own the tables' rows. The others are clients: they have only the rows of replicated
  // tables, and may come and go. The same on every node; 0: all nodes own rows.
  int data_nodes = 0;

  ReadPathPolicy read_path = ReadPathPolicy::kAdaptive;  // how records of other nodes are read and scanned
  int server_threads = 1;                                // they run RPC handlers when the workers do not
  // Longest wait for the answer of another node, and for the release of a record that a lost node has locked.
  absl::Duration call_timeout = absl::Seconds(5);
  size_t location_cache_bytes = 1 << 20;  // per session and remote hash index
  // Most memory for nodes of other nodes' indexes of kind dex, all tables and sessions together. Used as far as needed.
  // At most the memory of this machine.
  size_t page_cache_bytes = size_t{64} << 20;
  // Memory for the places of this node's own rows in ordered tables (index/own_locations.h), all together: a row that
  // was read by its key is found again without the index. At most 1/32 of the node's memory; used as far as needed. 0:
  // none.
  uint64_t own_location_bytes = UINT64_MAX;

  // Calls of Database::Run that may run at the same time. Further ones wait.
  int run_sessions = 64;

  uint64_t seed = 0;  // of the back-off after conflicts

  // A Run that loses against other transactions for too long goes first, and the commits of others wait for it
  // (txn/peer/precedence.h): at most this long, and at most 65 s. 0: never; a long transaction among many writers may
  // then never commit. The same on every node.
  absl::Duration precedence_limit = absl::Seconds(10);
  // It has lost for too long after 16 attempts and this time, or after 4 attempts and ten times this time.
  absl::Duration precedence_after = absl::Milliseconds(100);

  // Durability. Without a directory there is none, and the options below have no effect.
  std::string directory = {};  // of the whole cluster, no zero byte; with several nodes each has a sub-directory
  // Create the database if the directory holds none (txn/durable/data_directory.h says when it does). The same on every
  // node. False: Open then returns NotFound, so that a mistyped or unmounted directory is not taken for an empty
  // database. True: a directory that has files of others is refused.
  bool create_if_missing = false;
  DurabilityMode durability = DurabilityMode::kSync;
  LogMedium medium = LogMedium::kFile;
  // Longest wait of a write of the log for further commits, 1 us to kMaxGroupCommit (log/commit/group_commit.h says
  // when).
  absl::Duration group_commit = absl::Microseconds(300);
  // A commit that is not durable by then returns Unknown: it is in memory, and may or may not survive a crash.
  absl::Duration durable_within = absl::Seconds(10);
  // A checkpoint is taken when the log since the last one has this many times the bytes of the live rows in memory, and
  // at least checkpoint_log_least_bytes. So a directory has at most about 2 + 3 * checkpoint_log_multiple times the
  // bytes of the rows (two checkpoints and the log since the older one; docs/log_format.md, "Size"), or three times
  // checkpoint_log_least_bytes if that is more, and recovery replays a bounded log. If one fails, for example on a full
  // disk, the next attempt comes a second later, then two, four, up to a minute (checkpoint_statistics says why). 0:
  // off.
  double checkpoint_log_multiple = 2;
  uint64_t checkpoint_log_least_bytes = uint64_t{32} << 20;
  absl::Duration checkpoint_every = absl::ZeroDuration();      // also at this interval; 0: not
  uint64_t checkpoint_bytes_per_second = uint64_t{256} << 20;  // at least kLeastCheckpointRate; 0: as fast as the disk
  uint64_t log_segment_bytes = uint64_t{64} << 20;  // of the largest segments: the first have 64 KiB, later ones grow
  // Start prepares this much of the log, or as much as the disk has room for, and takes as long as the disk needs to
  // write that. Checkpoints reuse what they free: writing to new space takes twice the work. 0: a little, when it is
  // needed.
  uint64_t log_preallocate_bytes = 0;
  // Segments that were prepared and not used stay for the next start. False: Close removes them.
  bool log_keep_preallocated = true;
  // The buffer of each session, 4 KiB to kMaxLogBuffer. More than a few group commits only takes room in the
  // processor's caches.
  size_t log_buffer_bytes = size_t{256} << 10;
  // The buffer for larger transactions: one may have changes of this size less 96 bytes, where each takes 18 bytes, its
  // key and its payload. A row with secondary indexes takes as much more as the longest entries that it may lose and
  // get, until they are known, at the latest at the commit. A write that exceeds it returns ResourceExhausted, and the
  // transaction goes on without it. All large transactions of one node together take at most this much at a time, and
  // as much again while they are written; others wait. The memory is used only while there are some. At most
  // kMaxLogLargeBuffer.
  size_t log_large_buffer_bytes = size_t{256} << 20;
  int recovery_threads = 2;
  bool salvage = false;                              // recover what can be had of damaged files, and list the rest
  std::string application = {};                      // kept in the manifest for programs that read the directory
  std::shared_ptr<log::FileSystem> files = nullptr;  // null: those of `medium`
  // Most memory for indexes and records, in any division. Only where Open makes the memory itself: Open(directory,
  // ...), OpenInMemory. It grows as needed. What is free goes back to the system when a table is dropped, and when half
  // of what the records took has become free (at least 32 MiB).
  uint64_t memory_bytes = uint64_t{8} << 30;

  // Called with the rare events that a program may want in its own log, each one line of text: what recovery did and
  // which damage it met, automatic checkpoints, a disk that is full or fails and that works again, another node that
  // has left or is lost (a fabric does not tell an orderly Close from a death): one event for each loss of an owner of
  // rows, or of a client that was connected to this node. A client that changed nothing here, and was there for only
  // some milliseconds, may go unnoticed. Called by any thread, also by several at once, from Start on until Close
  // returns, and not for other nodes that leave while this one closes. It must return soon, and must neither throw nor
  // use the database. Null: nobody is told.
  std::function<void(EventLevel level, const std::string& text)> on_event = nullptr;

  // Set by another thread or a signal handler: Start, BulkLoader, Checkpoint and Backup return Cancelled soon, also
  // those that begin later. Transactions, Close and automatic checkpoints continue. May be null; must outlive the
  // database.
  const std::atomic<bool>* stop = nullptr;
};

// InvalidArgument names the option that is wrong for node `node` of so many. Unimplemented: a directory with nodes that
// own no rows.
Status CheckOptions(const DatabaseOptions& options, rdma::NodeId node, int num_nodes);

}  // namespace gannet::txn
