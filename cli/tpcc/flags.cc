#include "cli/tpcc/flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/report/bench_flags.h"
#include "index/registry.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/schema/keys.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxThreads = 256;  // the key of HISTORY numbers them in a byte
constexpr int kMaxCoroutines = 1024;
constexpr int kMaxInFlight = 1 << 20;

void AddStoreFlags(TpccOptions* o, Flags* flags) {
  flags->Group("What is loaded");
  flags->Add("--warehouses", "warehouses", &o->warehouses, form::Integer(1, tpcc::kMaxWarehouses),
             "Warehouses, about 100 MB each; dealt to the nodes in turn. Default: one per node, or as --dir has",
             kOfServers);
  flags->Add("--nodes", "nodes", &o->nodes, form::Integer(1, rdma::kMaxShmNodes),
             "Nodes, as threads of this process that reach each other's memory only through the fabric. Default: 1,\n"
             "or as --dir has",
             kOfServers);
  flags->Add("--ordered-index", "ordered_index", &o->ordered_index, form::kOrderedIndex,
             absl::StrCat("Index of the tables that are scanned: ", index::KindsWith(&index::IndexTraits::ordered),
                          ". Default: xstore, or as --dir has"),
             kOfServers);
  AddIndexRights(flags, &o->index_rights, "by verbs, too", ", or as --dir has");
  flags->Add("--memory-per-node", "memory_per_node_bytes", &o->memory_per_node, form::kBytes,
             "Most memory that a node may use, such as 8G. Default: an equal share of three quarters of the machine's",
             kOfServers);
  AddSeed(flags, &o->run.seed);
  flags->Add("--store", "store", &o->store, form::Path("PATH"),
             "Keep the nodes' memory in this file (on /dev/shm) for other processes to map. It must not exist,\n"
             "and is removed at the end. Default: anonymous memory",
             kOfServers);
  flags->AddSwitch(
      "--adversarial", "adversarial", &o->adversarial,
      "Access lines in random order and yield in between, as the fabric's contract allows. Slow; for testing",
      kOfServers);
}

void AddDirectoryFlags(TpccOptions* o, Flags* flags) {
  flags->Group("Where it is kept");
  txn::DatabaseOptions& database = o->database;
  flags->Add("--dir", "directory", &database.directory, form::Path("DIR"),
             o->verb == TpccVerb::kCheck
                 ? "Check the database in this directory instead of loading one. Default: load one into memory only"
                 : "Keep the data in this directory: an existing database is recovered, and nothing is loaded.\n"
                   "With --create, one is created if there is none. Default: in memory only",
             kOfServers);
  if (o->verb == TpccVerb::kCheck) return;  // it writes nothing
  flags->AddSwitch("--create", "", &database.create_if_missing,
                   "Create a database in --dir if it holds none; the directory is made, too. Without this flag that is "
                   "an error",
                   kOfServers | kOfDirectory);
  flags->Add("--medium", "medium", &database.medium, form::kMedium,
             "How files are written: file (io_uring, without the page cache) or pmem (mapped). Default: file",
             kOfServers | kOfDirectory | kWithDurability);
  if (o->verb != TpccVerb::kRun) return;
  flags
      ->Add(
          "--durability", "durability", &database.durability, form::kDurability,
          "When a commit returns: sync (when it is durable), async (at once; a crash loses the last group commit and\n"
          "the one being written, a few milliseconds), or none\n"
          "(nothing is logged; only the states before and after the run are kept). Default with --dir: sync",
          kOfServers | kOfDirectory)
      .Reports([o] { return Json(o->database.directory.empty() ? "none" : FormatDurability(o->database.durability)); });
  flags->Add("--group-commit", "group_commit_us", &database.group_commit,
             form::Time(absl::Microseconds(1), txn::kMaxGroupCommit),
             "Time from one write of the log to the next, but at least six times that of a write (at most 1.3ms for "
             "that).\nAt most 1s. Default: 300us",
             kOfServers | kOfDirectory | kWithDurability);
  flags->Add("--checkpoint-every", "checkpoint_every_seconds", &database.checkpoint_every,
             form::Time(absl::ZeroDuration()),
             "Interval of checkpoints during the run; each shortens the log. Default: 0s, never",
             kOfServers | kOfDirectory | kWithDurability);
  flags->Add("--checkpoint-at", "checkpoint_at", &o->checkpoint_at, form::Integer(0, 1000),
             "Take a checkpoint when the log since the last one has N times the bytes of the rows, and at least 32M.\n"
             "Default: 2. 0: never",
             kOfServers | kOfDirectory | kWithDurability);
  flags->Add("--log-preallocate", "log_preallocate_bytes", &o->log_preallocate, form::kBytesOrZero,
             "Prepare this much of each node's log before the run, and reuse what checkpoints free: writing to new "
             "space\ntakes twice the work; what the run does not use stays. Default: what the run may write, at most "
             "4G and a\nquarter of the disk, and the rest is removed",
             kOfServers | kOfDirectory | kWithDurability);
}

void AddRunFlags(TpccOptions* o, Flags* flags) {
  flags->Group("What is run");
  tpcc::RunOptions& run = o->run;
  flags->Add("--threads", "threads", &run.threads, form::Integer(1, kMaxThreads),
             "Worker threads, dealt to the nodes in turn. Default: one per node");
  flags
      ->Add("--coroutines", "coroutines", &run.coroutines, form::Integer(1, kMaxCoroutines),
            "Transactions that each thread interleaves. Default: 1 on one node; on several 4, or fewer if all threads\n"
            "together would then have more than there are warehouses")
      .Reports([o] { return o->run.coroutines == 0 ? Json() : Json(o->run.coroutines); });
  flags->Add(
      "--in-flight", "in_flight", &o->in_flight, form::Integer(0, kMaxInFlight),
      "Transactions of each thread that run or wait for the disk, each from another terminal: a thread continues\n"
      "when a commit is visible, and answers when it is durable. 0: it waits for each. Default: 384 with "
      "--durability\nsync, else 0",
      kOfDirectory);
  flags->Add("--prefault", "prefault_bytes", &o->prefault, form::kBytesOrZero,
             "Make this much of each node's memory resident before the run, so that finding pages is not measured. 0: "
             "none.\nDefault: 128M for each thread and second, at most 4G and half of the node's memory",
             kOfServers);
  flags->Add("--duration", "duration_seconds", &run.duration, form::Time(absl::Milliseconds(10)),
             "How long to measure, such as 500ms, 30s or 2m. Default: 30s");
  flags->Add("--warmup", "warmup_seconds", &run.warmup, form::Time(absl::ZeroDuration()),
             "How long to run before measuring. Default: 2s");
  AddInterval(flags, &run.interval, absl::Milliseconds(10), "transaction", "1s");
  flags->Add("--mix", "mix", &run.mix,
             Form{"N,N,N,N,N", ParseMix, [](const auto& mix) { return absl::StrJoin(mix, ","); }},
             "Percent of NewOrder, Payment, OrderStatus, Delivery, StockLevel. Default: 45,43,4,4,4");
  flags->AddSwitch("--think-time", "think_time", &run.think_time,
                   "Ten terminals per warehouse, with --cluster for each client, with the think times of clause 5.2.5\n"
                   "(about 12.86 tpmC per warehouse). They take the place of --coroutines and --in-flight");
  flags->Add("--read-path", "read_path", &o->database.read_path, Form{"PATH", ParseReadPath, FormatReadPath},
             "How records of other nodes are read: adaptive (whichever is cheaper now, for each access), one-sided, "
             "call,\nor ordered-by-call (tables with an ordered index by calls, the others one-sided). Default: "
             "adaptive");
}

}  // namespace

Flags TpccFlags(TpccOptions* o) {
  Flags flags;
  AddStoreFlags(o, &flags);
  if (o->verb != TpccVerb::kPrepare) {
    AddClusterFlags(&flags, &o->cluster, &o->wait,
                    "a client that has no data. The file says what\nis loaded; --seed affects only the run. Default: "
                    "all nodes are in this process");
  }
  AddDirectoryFlags(o, &flags);
  const bool run = o->verb == TpccVerb::kRun;
  if (run) AddRunFlags(o, &flags);
  AddReportFlags(&flags, run, &o->report);
  return flags;
}

}  // namespace gannet::cli
