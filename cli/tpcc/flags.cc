#include "cli/tpcc/flags.h"

#include <string>

#include "CLI/CLI.hpp"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/schema/keys.h"

namespace gannet::cli {
namespace {

constexpr int kMaxThreads = 256;  // the key of HISTORY numbers them in a byte
constexpr int kMaxCoroutines = 1024;
constexpr int kMaxInFlight = 1 << 20;

void AddStoreFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "What is loaded";
  AddInteger(command, "--warehouses", &o->warehouses, 1, tpcc::kMaxWarehouses,
             "Warehouses, about 100 MB each; dealt to the nodes in turn. Default: one per node, or as --dir has")
      ->group(group);
  AddInteger(command, "--nodes", &o->nodes, 1, rdma::kMaxShmNodes,
             "Nodes, as threads of this process that reach each other's memory only through the fabric. Default: 1,\n"
             "or as --dir has")
      ->group(group);
  Add(command, "--ordered-index", &o->ordered_index, ParseOrderedIndex, "NAME",
      "Index of the tables that are scanned: xstore, blink or rolex. Default: xstore, or as --dir has")
      ->group(group);
  Add(command, "--index-rights", &o->index_rights, ParseIndexRights, "WHO",
      "Who may change these indexes, if they are blink or rolex: owner (clients only READ them, and call for\n"
      "changes) or clients (by verbs, too). Default: clients, or as --dir has")
      ->group(group);
  Add(command, "--memory-per-node", &o->memory_per_node, ParseSize, "SIZE",
      "Most memory that a node may use, such as 8G. Default: an equal share of three quarters of the machine's")
      ->group(group);
  AddInteger(command, "--seed", &o->seed, 0, INT64_MAX, "Of the population and of the run. Default: 1")->group(group);
  AddPath(command, "--store", &o->store, "PATH",
          "Keep the nodes' memory in this file (on /dev/shm) for other processes to map. It must not exist,\n"
          "and is removed at the end. Default: anonymous memory")
      ->group(group);
  command
      .add_flag("--adversarial", o->adversarial,
                "Access lines in random order and yield in between, as the fabric's contract allows. Slow; for testing")
      ->group(group);
}

void AddClusterFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "Where it is served";
  AddPath(command, "--cluster", &o->cluster, "FILE",
          "Run against the servers of this cluster (`gannet serve`), as a client that has no data. The file says what\n"
          "is loaded; --seed affects only the run. Default: all nodes are in this process")
      ->group(group);
  AddDuration(command, "--wait", &o->wait, absl::ZeroDuration(),
              "How long to wait until the servers have loaded. Default: 1m")
      ->group(group);
}

void AddDirectoryFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "Where it is kept";
  AddPath(command, "--dir", &o->directory, "DIR",
          o->verb == TpccVerb::kCheck
              ? "Check the database in this directory instead of loading one. Default: load one into memory only"
              : "Keep the data in this directory: an existing database is recovered, and nothing is loaded.\n"
                "With --create, one is created if there is none. Default: in memory only")
      ->group(group);
  if (o->verb != TpccVerb::kCheck) {
    command
        .add_flag("--create", o->create,
                  "Create a database in --dir if it holds none; the directory is made, too. Without this flag that is "
                  "an error")
        ->group(group);
  }
  if (o->verb == TpccVerb::kCheck) return;  // it writes nothing
  Add(command, "--medium", &o->medium, ParseMedium, "MEDIUM",
      "How files are written: file (io_uring, without the page cache) or pmem (mapped). Default: file")
      ->group(group);
  if (o->verb != TpccVerb::kRun) return;
  Add(command, "--durability", &o->durability, ParseDurability, "MODE",
      "When a commit returns: sync (when it is durable), async (at once; a crash loses the last group commit and\n"
      "the one being written, a few milliseconds), or none\n"
      "(nothing is logged; only the states before and after the run are kept). Default with --dir: sync")
      ->group(group);
  Add(
      command, "--group-commit", &o->group_commit,
      [](const std::string& text) { return ParseDuration(text, absl::Microseconds(1), txn::kMaxGroupCommit); }, "TIME",
      "Time from one write of the log to the next, but at least six times that of a write (at most 1.3ms for that).\n"
      "At most 1s. Default: 300us")
      ->group(group);
  Add(
      command, "--checkpoint-every", &o->checkpoint_every,
      [](const std::string& text) { return ParseDuration(text, absl::ZeroDuration()); }, "TIME",
      "Interval of checkpoints during the run; each shortens the log. Default: 0s, never")
      ->group(group);
  Add(
      command, "--checkpoint-at", &o->checkpoint_at,
      [](const std::string& text) { return ParseInteger(text, 0, 1000); }, "N",
      "Take a checkpoint when the log since the last one has N times the bytes of the rows, and at least 32M.\n"
      "Default: 2. 0: never")
      ->group(group);
  Add(command, "--log-preallocate", &o->log_preallocate, ParseSizeOrZero, "SIZE",
      "Prepare this much of each node's log before the run, and reuse what checkpoints free: writing to new space\n"
      "takes twice the work; what the run does not use stays. Default: what the run may write, at most 4G and a\n"
      "quarter of the disk, and the rest is removed")
      ->group(group);
}

void AddRunFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "What is run";
  AddInteger(command, "--threads", &o->threads, 1, kMaxThreads,
             "Worker threads, dealt to the nodes in turn. Default: one per node")
      ->group(group);
  AddInteger(
      command, "--coroutines", &o->coroutines, 1, kMaxCoroutines,
      "Transactions that each thread interleaves. Default: 1 on one node; on several 4, or fewer if all threads\n"
      "together would then have more than there are warehouses")
      ->group(group);
  AddInteger(
      command, "--in-flight", &o->in_flight, 0, kMaxInFlight,
      "Transactions of each thread that run or wait for the disk, each from another terminal: a thread continues\n"
      "when a commit is visible, and answers when it is durable. 0: it waits for each. Default: 384 with --durability\n"
      "sync, else 0")
      ->group(group);
  Add(command, "--prefault", &o->prefault, ParseSizeOrZero, "SIZE",
      "Make this much of each node's memory resident before the run, so that finding pages is not measured. 0: none.\n"
      "Default: 128M for each thread and second, at most 4G and half of the node's memory")
      ->group(group);
  AddDuration(command, "--duration", &o->duration, absl::Milliseconds(10),
              "How long to measure, such as 500ms, 30s or 2m. Default: 30s")
      ->group(group);
  AddDuration(command, "--warmup", &o->warmup, absl::ZeroDuration(), "How long to run before measuring. Default: 2s")
      ->group(group);
  Add(command, "--mix", &o->mix, ParseMix, "N,N,N,N,N",
      "Percent of NewOrder, Payment, OrderStatus, Delivery, StockLevel. Default: 45,43,4,4,4")
      ->group(group);
  command
      .add_flag("--think-time", o->think_time,
                "Ten terminals per warehouse with the think times of clause 5.2.5 (about 12.86 tpmC per warehouse)")
      ->group(group);
  Add(command, "--read-path", &o->read_path, ParseReadPath, "PATH",
      "How records of other nodes are read: adaptive (whichever is cheaper now, for each access), one-sided, call,\n"
      "or ordered-by-call (tables with an ordered index by calls, the others one-sided). Default: adaptive")
      ->group(group);
  AddDuration(
      command, "--interval", &o->interval, absl::Milliseconds(10),
      "Time between two lines of progress, with throughput and latencies (p50/p95/p99) of each transaction, on\n"
      "standard error; and between two points of the time series in --json. Default: 1s")
      ->group(group);
}

}  // namespace

void AddTpccFlags(CLI::App& command, TpccOptions* options) {
  AddStoreFlags(command, options);
  if (options->verb != TpccVerb::kPrepare) AddClusterFlags(command, options);
  AddDirectoryFlags(command, options);
  if (options->verb == TpccVerb::kRun) AddRunFlags(command, options);
  AddReportFlags(command, options->verb == TpccVerb::kRun, &options->report);
}

}  // namespace gannet::cli
