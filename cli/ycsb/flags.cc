#include "cli/ycsb/flags.h"

#include <span>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_split.h"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "ycsb/value.h"

namespace gannet::cli {
namespace {

constexpr int kMostClientThreads = 1024;
constexpr int kMostClientCoroutines = 256;

StatusOr<ycsb::Workload> ParseWorkload(const std::string& text) {
  const auto workload = ycsb::FindWorkload(text);
  if (workload.has_value()) return *workload;
  return absl::InvalidArgumentError("must be a, b, c, d, e, f, load or update");
}

StatusOr<ycsb::Mix> ParseWrites(const std::string& text) {
  const StatusOr<int64_t> percent = ParseInteger(text, 0, 100);
  if (!percent.ok()) return percent.status();
  const auto inserts = static_cast<int>(*percent);
  return ycsb::Mix{100 - inserts, 0, inserts, 0, 0};
}

StatusOr<ycsb::Mix> ParseOperations(const std::string& text) {
  return ParseShares(text, "(read, update, insert, scan, read-modify-write), such as 90,10,0,0,0");
}

template <class Enum, size_t N>
auto Choice(const std::string_view (&names)[N]) {
  return [&names](const std::string& text) -> StatusOr<Enum> {
    const auto at = ParseChoice(text, names);
    if (!at.ok()) return at.status();
    return static_cast<Enum>(*at);
  };
}

StatusOr<bench::FabricKind> ParseFabric(const std::string& text) {
  const auto at = ParseChoice(text, std::span(bench::kFabricNames).first(2));  // verbs: by a cluster file
  if (!at.ok()) return at.status();
  return static_cast<bench::FabricKind>(*at);
}

void AddWorkFlags(CLI::App& command, bench::YcsbOptions* o) {
  const std::string group = "What is run";
  Add(command, "--workload", &o->workload, ParseWorkload, "NAME",
      "a: 50% read, 50% update; b: 95% read, 5% update; c: read only; d: 95% read, 5% insert; e: 95% scan of 1-100\n"
      "records, 5% insert; f: 50% read, 50% read-modify-write; load: insert only; update: update only. Default: c")
      ->group(group);
  CLI::Option* const mix = Add(command, "--mix", &o->mix, ParseOperations, "R,U,I,S,M",
                               "Other shares of read, update, insert, scan and read-modify-write, in percent")
                               ->group(group);
  Add(command, "--writes", &o->mix, ParseWrites, "PERCENT",
      "Other shares: this percentage of inserts, and reads. 0 is the mix of workload c, 100 that of load. Reads find\n"
      "new keys, too, with --distribution uniform or latest")
      ->excludes(mix)
      ->group(group);
  Add(command, "--distribution", &o->distribution, Choice<ycsb::Distribution>(ycsb::kDistributionNames), "NAME",
      "uniform, zipfian (0.99, scattered over the keys) or latest (of the keys that a client has inserted).\n"
      "Default: YCSB's own, which is latest for d and zipfian for the others")
      ->group(group);
  Add(command, "--inserts", &o->inserts, Choice<ycsb::InsertPlace>(ycsb::kInsertPlaceNames), "WHERE",
      "Where new keys lie: spread (evenly over the loaded keys, in random order) or append (ascending, behind all\n"
      "others; the last server gets them). Clients never insert the same key. Default: spread")
      ->group(group);
  Add(
      command, "--insert-rate", &o->insert_rate,
      [](const std::string& text) { return ParseCount(text, 1, ycsb::kMaxKeys); }, "N",
      "The last client machine inserts this many keys per second, such as 500K or 2M, instead of the mix. With\n"
      "--cluster this process does. Default: none")
      ->group(group);
  AddDuration(command, "--insert-for", &o->insert_for, absl::Microseconds(1),
              "How long it inserts, from the beginning of the measurement. Default: to the end")
      ->group(group);
  Add(command, "--path", &o->paths.reads, Choice<ycsb::Path>(ycsb::kPathNames), "PATH",
      "How reads and scans reach a record: one-sided (the client looks it up by READs, with the index's cache) or rpc\n"
      "(one call to the server), or adaptive (the cheaper one for each). Default: one-sided")
      ->group(group);
  Add(command, "--updates", &o->updates, Choice<ycsb::Path>(ycsb::kUpdatePathNames), "PATH",
      "How updates are done: rpc (one call) or one-sided (READ, CAS to lock, WRITE). Default: rpc; with --inline\n"
      "one-sided for blink and rolex")
      ->group(group);
  Add(command, "--insert-path", &o->inserts_by, Choice<ycsb::Path>(ycsb::kUpdatePathNames), "PATH",
      "How inserts are done: rpc (one call) or one-sided (the client changes the index by verbs: blink and rolex,\n"
      "with --inline). Default: one-sided where possible")
      ->group(group);
  AddDuration(command, "--duration", &o->duration, absl::Microseconds(1),
              "How long to measure, in the time of the fabric. Default: 10s on shm, 10ms on sim")
      ->group(group);
  AddDuration(command, "--warmup", &o->warmup, absl::ZeroDuration(),
              "How long to run before, once caches are filled. Default: 1s on shm, 2ms on sim")
      ->group(group);
  AddDuration(
      command, "--interval", &o->interval, absl::Microseconds(1),
      "Time between two lines of progress, with throughput and latencies (p50/p95/p99) of each operation, on standard\n"
      "error; and between two points of the time series in --json. Default: 1s on shm, a fifth of the duration on sim")
      ->group(group);
  AddInteger(command, "--seed", &o->seed, 0, INT64_MAX, "Seed of everything random. Default: 1")->group(group);
}

void AddDataFlags(CLI::App& command, bench::YcsbOptions* o) {
  const std::string group = "On what";
  Add(command, "--index", &o->index, ParseIndexOfAnyKey, "NAME",
      "hash (no scans), xstore, blink (a B-link tree) or rolex (learned). Default: xstore")
      ->group(group);
  AddPath(
      command, "--index-options", &o->index_options, "OPTIONS",
      "Options of this index, as a table has them. rolex: epsilon=N, the error bound of its models in sixteenths of\n"
      "a leaf (16). Default: those of the index")
      ->group(group);
  Add(command, "--index-rights", &o->index_rights, ParseIndexRights, "WHO",
      "Who may change an index of kind blink or rolex: owner (clients only READ it, and call for changes)\n"
      "or clients (with --inline by verbs). Default: clients")
      ->group(group);
  Add(
      command, "--keys", &o->keys, [](const std::string& text) { return ParseCount(text, 1, ycsb::kMaxKeys); }, "N",
      "Keys that are loaded, such as 500K or 10M, dealt to the servers by ranges. Default: 1M")
      ->group(group);
  Add(command, "--keyspace", &o->key_form, Choice<ycsb::KeyForm>(ycsb::kKeyFormNames), "FORM",
      "linear (equal distances), noised (the same plus noise), osm-like (uneven at all scales, as longitudes of a\n"
      "map), normal or lognormal (distributed like that, sigma of the latter 2), random (as hashes). Default: linear")
      ->group(group);
  AddInteger(command, "--value-bytes", &o->value_bytes, static_cast<int64_t>(ycsb::kMinValueBytes),
             static_cast<int64_t>(ycsb::kMaxValueBytes), "Size of every value. Default: 8")
      ->group(group);
  command
      .add_flag_callback(
          "--inline", [o] { o->inline_values = true; },
          "Values of 8 bytes lie in the entries of the index, in the place of the record's address: xstore, blink, "
          "rolex")
      ->group(group);
  AddInteger(command, "--fill", &o->fill_percent, 10, 100, "Percent of a leaf that loading fills. Default: 50")
      ->group(group);
  AddInteger(command, "--sub-models", &o->sub_models, 1, UINT32_MAX,
             "Sub-models of each server's XStore. Default: one for 200 keys, and more as keys are inserted")
      ->group(group);
  AddInteger(command, "--trainers", &o->trainers, 1, index::kMostXStoreTrainers,
             "Threads that retrain sub-models of each server's XStore at the same time. Default: 1")
      ->group(group);
  Add(command, "--durability", &o->durability, ParseDurability, "MODE",
      "On sim: whether servers log the writes that they do. none; async: a write is answered when it is in the log's\n"
      "buffer; sync: its client then waits until it is on the disk. What is loaded is not logged. Default: none")
      ->group(group);
}

struct CacheChoice {
  index::XCacheMode mode;
  bool locations;
};

StatusOr<CacheChoice> ParseCache(const std::string& text) {
  static constexpr std::string_view kNames[] = {"whole", "models", "top", "locations"};
  const auto at = ParseChoice(text, kNames);
  if (!at.ok()) return at.status();
  if (*at == 3) return CacheChoice{index::XCacheMode::kWhole, true};
  return CacheChoice{static_cast<index::XCacheMode>(*at), false};
}

void AddClusterFlags(CLI::App& command, YcsbFlags* flags) {
  const std::string group = "Where it is served";
  AddPath(command, "--cluster", &flags->cluster, "FILE",
          "Run against the servers of this cluster (`gannet serve`), as one client machine of it. The file says what\n"
          "the servers hold and how updates are done. Default: servers and clients are in this process")
      ->group(group);
  AddDuration(command, "--wait", &flags->wait, absl::ZeroDuration(),
              "How long to wait until the servers have loaded. Default: 1m")
      ->group(group);
}

void AddPlaceFlags(CLI::App& command, bench::YcsbOptions* o) {
  const std::string group = "Where";
  Add(command, "--fabric", &o->fabric, ParseFabric, "NAME",
      "shm: threads of this process that reach each other's memory through shared memory, in real time.\n"
      "sim: a simulated rack, in virtual time: the same seed gives the same numbers on every machine, except for\n"
      "load_seconds, run_seconds and resident_bytes of the JSON report, which tell about the simulation itself. "
      "Default: shm")
      ->group(group);
  Add(command, "--clients", &o->clients, ParseClients, "MxT",
      "Client machines x threads of each. With --cluster this process is one machine. Default: 1x2 on shm, 15x24 on\n"
      "sim")
      ->group(group);
  AddInteger(command, "--coroutines", &o->coroutines, 1, kMostClientCoroutines,
             "Operations that a client thread has in flight. Default: 1 on shm, 8 on sim")
      ->group(group);
  CLI::Option* const servers =
      AddInteger(command, "--servers", &o->servers, 1, 32, "Nodes that hold the keys. Default: 1")->group(group);
  command
      .add_flag_callback(
          "--colocated", [o] { o->colocated = true; },
          "Each client machine is a server, too, and has cores for both. So there are as many servers as machines")
      ->excludes(servers)
      ->group(group);
  AddInteger(command, "--server-threads", &o->server_threads, 1, 64,
             "Threads of a server that answer calls; on sim each has a core. Default: 1 on shm, 24 on sim")
      ->group(group);
  AddPath(command, "--nic", &o->nic, "NAME",
          "Model of the NICs, on sim: cx4-100g, 2x-cx4-100g (a machine of XStore's testbed has two), cx5-100g, "
          "cx6-100g, cx6-200g\n"
          "or ideal. Default: cx4-100g")
      ->group(group);
  AddPath(command, "--disk", &o->disk, "NAME",
          "Model of each server's disk, for --durability: nvme (20 us, 1.9 GB/s) or sata-ssd (65 us, 460 MB/s).\n"
          "Default: nvme")
      ->group(group);
  command
      .add_flag_callback(
          "--no-spread", [o] { o->spread = false; },
          "On sim: every round trip takes the same time, apart from queues. Without this flag one in ten takes 0.7 us "
          "longer\nthan the median or more, one in 100 1.6 us, one in 1,000 5 us")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--cache",
          [o](const std::string& text) {
            const auto choice = ParseCache(text);
            if (!choice.ok()) throw CLI::ValidationError("--cache " + text, std::string(choice.status().message()));
            o->cache = choice->mode;
            o->locations = choice->locations;
          },
          "What the clients of a machine keep of xstore: whole (models and translation tables), models, top (the top\n"
          "model only), or locations (whole, and where each record is: a read that finds it there is one READ; on shm\n"
          "each thread has its own of these). Default: whole")
      ->type_name("WHAT")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(group);
  Add(command, "--cache-bytes", &o->cache_bytes, ParseSize, "SIZE",
      "Largest size of a machine's cache of one server: of models (xstore, rolex), of inner nodes (blink), of record\n"
      "addresses (--cache locations); or of a thread's cache of record addresses (hash).\n"
      "Default: no limit; 64M; 16 bytes for each key; 1M")
      ->group(group);
}

}  // namespace

std::string FlagOfServers(const CLI::App& command) {
  for (const char* flag : {"--index", "--index-options", "--index-rights", "--keys", "--keyspace", "--value-bytes",
                           "--inline", "--fill", "--sub-models", "--updates", "--fabric", "--servers", "--colocated",
                           "--server-threads", "--nic", "--durability", "--disk"}) {
    if (command.count(flag) > 0) return flag;
  }
  return "";
}

StatusOr<bench::ClientThreads> ParseClients(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() == 2) {
    const auto machines = ParseInteger(parts[0], 1, kMostClientThreads);
    const auto threads = ParseInteger(parts[1], 1, kMostClientThreads);
    if (machines.ok() && threads.ok())
      return bench::ClientThreads{static_cast<int>(*machines), static_cast<int>(*threads)};
  }
  return absl::InvalidArgumentError("must be machines x threads of each, such as 15x24");
}

void AddYcsbFlags(CLI::App& command, bench::YcsbOptions* options, YcsbFlags* flags) {
  AddWorkFlags(command, options);
  AddDataFlags(command, options);
  AddPlaceFlags(command, options);
  AddClusterFlags(command, flags);
  AddReportFlags(command, /*run=*/true, &flags->report);
}

}  // namespace gannet::cli
