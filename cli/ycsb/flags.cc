#include "cli/ycsb/flags.h"

#include <span>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/report/bench_flags.h"
#include "index/registry.h"
#include "ycsb/value.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostClientThreads = 1024;
constexpr int kMostClientCoroutines = 256;
constexpr double kMostTheta = 5;
constexpr std::string_view kCacheNames[] = {"whole", "models", "top", "locations"};

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

StatusOr<double> ParseTheta(const std::string& text) {
  double theta = 0;
  if (absl::SimpleAtod(text, &theta) && theta >= 0 && theta <= kMostTheta) return theta;
  return absl::InvalidArgumentError(absl::StrCat("must be a number from 0 to ", kMostTheta));
}

std::string FormatMix(const ycsb::Mix& mix) {
  return absl::StrJoin(mix, ",");
}

// One of `names`, which may be fewer than Enum has.
template <class Enum>
auto Name(std::span<const std::string_view> names) {
  return form::OneOf<Enum>("NAME", names);
}
auto PathOf(std::span<const std::string_view> names) {
  return form::OneOf<ycsb::Path>("PATH", names);
}

// The paths in effect, which depend on other flags if these are not given.
auto NameOf(const ycsb::Path& path) {
  return [&path]() -> Json { return ycsb::kPathNames[static_cast<size_t>(path)]; };
}

void AddWorkFlags(bench::YcsbOptions* o, Flags* flags) {
  flags->Group("What is run");
  const auto mix = [o] { return Json(o->operations()); };
  flags->Add(
      "--workload", "workload", &o->workload,
      Form{"NAME", ParseWorkload, [](const ycsb::Workload& workload) { return std::string(workload.name); }},
      "a: 50% read, 50% update; b: 95% read, 5% update; c: read only; d: 95% read, 5% insert; e: 95% scan of 1-100\n"
      "records, 5% insert; f: 50% read, 50% read-modify-write; load: insert only; update: update only. Default: c");
  flags
      ->Add("--mix", "mix", &o->mix, Form{"R,U,I,S,M", ParseOperations, FormatMix},
            "Other shares of read, update, insert, scan and read-modify-write, in percent")
      .Reports(mix);
  flags
      ->Add("--writes", "mix", &o->mix, Form{"PERCENT", ParseWrites, FormatMix},
            "Other shares: this percentage of inserts, and reads. 0 is the mix of workload c, 100 that of load. Reads "
            "find\nnew keys, too, with --distribution uniform or latest")
      .Excludes("--mix")
      .Reports(mix)
      .text = [] { return std::string(); };  // --mix says it
  flags
      ->Add("--distribution", "distribution", &o->distribution, Name<ycsb::Distribution>(ycsb::kDistributionNames),
            "uniform, zipfian (scattered over the keys) or latest (of the keys that a client has inserted).\n"
            "Default: YCSB's own, which is latest for d and zipfian for the others")
      .Reports([o]() -> Json { return ycsb::kDistributionNames[static_cast<size_t>(o->keys_drawn())]; });
  flags->Add("--theta", "theta", &o->theta, Form{"THETA", ParseTheta, form::kDigits},
             "Skew of zipfian and latest: key number r is drawn as often as 1 / r^THETA says. Default: 0.99, YCSB's");
  flags->Add(
      "--inserts", "inserts", &o->inserts, form::OneOf<ycsb::InsertPlace>("WHERE", ycsb::kInsertPlaceNames),
      "Where new keys lie: spread (evenly over the loaded keys, in random order), append (ascending, behind all\n"
      "others; the last server gets them) or random (drawn from the whole key space of --keyspace random).\n"
      "Clients never insert the same key. Default: spread");
  flags->Add("--insert-rate", "insert_rate", &o->insert_rate, form::Number(1, ycsb::kMaxKeys),
             "The last client machine inserts this many keys per second, such as 500K or 2M, instead of the mix. With\n"
             "--cluster this process does. Default: none");
  flags->Add("--insert-for", "insert_for_seconds", &o->insert_for, form::Time(absl::Microseconds(1)),
             "How long it inserts, from the beginning of the measurement. Default: to the end");
  flags->Add("--move-after", "move_after_seconds", &o->move_after, form::Time(absl::Microseconds(1)),
             "With --partitioned: the last client machine has no keys at first. So long after the beginning of the "
             "measurement, the\none before it gives it half of its part, while clients work. The measurement lasts "
             "until that is done. "
             "Default:\nno keys move",
             kOfOneProcess);
  flags->Add("--path", "path", &o->paths.reads, PathOf(ycsb::kPathNames),
             "How reads and scans reach a record: one-sided (the client looks it up by READs, with the index's cache) "
             "or rpc\n(one call to the server), or adaptive (the cheaper one for each). Default: one-sided");
  flags
      ->Add("--updates", "updates", &o->updates, PathOf(ycsb::kPathNames),
            "How updates are done: rpc (one call) or one-sided (READ, CAS to lock, WRITE), or with --inline adaptive "
            "(the cheaper\none for each). Default: rpc; with --inline one-sided for blink, rolex, dex, dolphin",
            kOfServers)
      .Reports(NameOf(o->paths.updates));
  flags
      ->Add("--insert-path", "insert_path", &o->inserts_by, PathOf(ycsb::kPathNames),
            "How inserts are done: rpc (one call), one-sided (the client changes the index by verbs: blink, rolex, "
            "dex\nand dolphin, with --inline) or adaptive. Default: one-sided where possible")
      .Reports(NameOf(o->paths.inserts));
  flags->Add("--duration", "duration_seconds", &o->duration, form::Time(absl::Microseconds(1)),
             "How long to measure, in the time of the fabric. Default: 10s on shm, 10ms on sim");
  flags->Add("--warmup", "warmup_seconds", &o->warmup, form::Time(absl::ZeroDuration()),
             "How long to run before, once caches are filled. Default: 1s on shm, 2ms on sim");
  AddInterval(flags, &o->interval, absl::Microseconds(1), "operation", "1s on shm, a fifth of the duration on sim");
  AddSeed(flags, &o->seed);
}

void AddDataFlags(bench::YcsbOptions* o, Flags* flags) {
  flags->Group("On what");
  flags->Add(
      "--index", "index", &o->index, Form{"NAME", ParseIndexOfAnyKey, form::kIndexName},
      "hash (no scans), xstore, blink (a B-link tree), rolex (learned), dex (a B-link tree whose clients cache leaves, "
      "too)\nor dolphin (a radix tree over leaves). Default: xstore",
      kOfServers);
  flags->Add(
      "--index-options", "index_options", &o->index_options, form::Path("OPTIONS"),
      "Options of this index, as a table has them. rolex: epsilon=N, the error bound of its models in sixteenths "
      "of\na leaf (16). dolphin: key_lines=N, the lines of a leaf that have keys (3; 7: leaves of 1 KiB). Default: "
      "those of the index",
      kOfOneProcess);
  AddIndexRights(flags, &o->index_rights, "with --inline by verbs", "").Reports([o]() -> Json {
    return index::NameOf(o->clients_change_index() ? index::IndexRights::kClients : index::IndexRights::kOwnerOnly);
  });
  flags->Add("--keys", "keys", &o->keys, form::Number(1, ycsb::kMaxKeys),
             "Keys that are loaded, such as 500K or 10M, dealt to the servers by ranges. Default: 1M", kOfServers);
  flags->Add(
      "--keyspace", "keyspace", &o->key_form, form::OneOf<ycsb::KeyForm>("FORM", ycsb::kKeyFormNames),
      "linear (equal distances), noised (the same plus noise), osm-like (uneven at all scales, as longitudes of "
      "a\nmap), normal or lognormal (distributed like that, sigma of the latter 2), random (as hashes). Default: "
      "linear",
      kOfServers);
  flags->Add("--value-bytes", "value_bytes", &o->value_bytes,
             form::Integer(static_cast<int64_t>(ycsb::kMinValueBytes), static_cast<int64_t>(ycsb::kMaxValueBytes)),
             "Size of every value. Default: 8", kOfServers);
  flags->AddSwitch("--inline", "inline_values", &o->inline_values,
                   absl::StrCat("Values of 8 bytes lie in the entries of the index, in the place of the record's "
                                "address: ",
                                index::KindsWith(&index::IndexTraits::holds_values)),
                   kOfOneProcess);
  flags->Add("--fill", "fill_percent", &o->fill_percent, form::Integer(10, 100),
             "Percent of a leaf that loading fills. Default: 50", kOfServers);
  flags->Add("--sub-models", "sub_models", &o->sub_models, form::Integer(1, UINT32_MAX),
             "Sub-models of each server's XStore. Default: one for 200 keys, and more as keys are inserted",
             kOfServers);
  flags->Add("--trainers", "trainers", &o->trainers, form::Integer(1, index::kMostXStoreTrainers),
             "Threads that retrain sub-models of each server's XStore at the same time. Default: 1", kOfOneProcess);
  flags->Add("--durability", "durability", &o->durability, form::kDurability,
             "On sim: whether servers log the writes that they do. none; async: a write is answered when it is in the "
             "log's\nbuffer; sync: its client then waits until it is on the disk. What is loaded is not logged. "
             "Default: none",
             kOfOneProcess);
}

// --cache sets two members.
Flag CacheFlag(bench::YcsbOptions* o) {
  const auto name = [o] { return std::string(kCacheNames[o->locations ? 3 : static_cast<size_t>(o->cache)]); };
  return {.name = "--cache",
          .key = "cache",
          .word = "WHAT",
          .help =
              "What the clients of a machine keep of xstore: whole (models and translation tables), models, top "
              "(the top\nmodel only), or locations (whole, and where each record is: a read that finds it there "
              "is one READ; on shm\neach thread has its own of these). Default: whole",
          .set = [o](const std::string& text) -> Status {
            const StatusOr<size_t> at = ParseChoice(text, kCacheNames);
            if (!at.ok()) return at.status();
            o->locations = *at == 3;
            o->cache = o->locations ? index::XCacheMode::kWhole : static_cast<index::XCacheMode>(*at);
            return absl::OkStatus();
          },
          .text = name,
          .json = name};
}

void AddPlaceFlags(bench::YcsbOptions* o, Flags* flags) {
  flags->Group("Where");
  flags->Add("--fabric", "fabric", &o->fabric,
             // verbs: by a cluster file
             Form{"NAME", Name<bench::FabricKind>(std::span(bench::kFabricNames).first(2)).parse,
                  Name<bench::FabricKind>(bench::kFabricNames).format},
             "shm: threads of this process that reach each other's memory through shared memory, in real time.\n"
             "sim: a simulated rack, in virtual time: the same seed gives the same numbers on every machine, except "
             "for\nload_seconds, run_seconds and resident_bytes of the JSON report, which tell about the simulation "
             "itself. Default: shm",
             kOfServers);
  flags
      ->Add("--clients", "machines", &o->clients,
            Form{"MxT", ParseClients,
                 [](const bench::ClientThreads& clients) {
                   return absl::StrCat(clients.machines, "x", clients.threads);
                 }},
            "Client machines x threads of each. With --cluster this process is one machine. Default: 1x2 on shm, 15x24 "
            "on\nsim")
      .Reports([o] { return Json(o->clients.machines); });
  flags->Add("--coroutines", "coroutines", &o->coroutines, form::Integer(1, kMostClientCoroutines),
             "Operations that a client thread has in flight. Default: 1 on shm, 8 on sim");
  flags->Add("--servers", "servers", &o->servers, form::Integer(1, 32), "Nodes that hold the keys. Default: 1",
             kOfServers);
  flags
      ->AddSwitch(
          "--colocated", "colocated", &o->colocated,
          "Each client machine is a server, too, and has cores for both. So there are as many servers as machines",
          kOfOneProcess)
      .Excludes("--servers");
  flags->AddSwitch(
      "--partitioned", "partitioned", &o->partitioned,
      absl::StrCat("Each client machine works on a part of the keys that is its own, of all servers. With ",
                   index::KindsWith(&index::IndexTraits::has_claims),
                   " it claims\nthe leaves of its part, and reads them without a verb"),
      kOfOneProcess);
  flags->Add(
      "--kept-leaves", "kept_leaves", &o->keeping, Name<index::shared_leaf::Keeping>(bench::kKeepingNames),
      "With --partitioned and --inline: a machine locks the leaves of its part that it caches, and changes "
      "them in its\ncache. write-through: the owner has each change before it is done. write-back: when the leaf is "
      "evicted; what a machine\nhas changed since is lost if it dies. none: claims only. Default: none",
      kOfOneProcess);
  flags->Add("--server-threads", "server_threads", &o->server_threads, form::Integer(1, 64),
             "Threads of a server that answer calls; on sim each has a core. Default: 1 on shm, 24 on sim", kOfServers);
  flags->Add("--nic", "nic", &o->nic, form::Path("NAME"),
             "Model of the NICs, on sim: cx4-100g, 2x-cx4-100g (a machine of XStore's testbed has two), cx5-100g, "
             "cx6-100g, cx6-200g\nor ideal. Default: cx4-100g",
             kOfOneProcess);
  flags->Add("--disk", "disk", &o->disk, form::Path("NAME"),
             "Model of each server's disk, for --durability: nvme (20 us, 1.9 GB/s) or sata-ssd (65 us, 460 MB/s).\n"
             "Default: nvme",
             kOfOneProcess);
  flags
      ->AddSwitch("--no-spread", "spread", &o->spread,
                  "On sim: every round trip takes the same time, apart from queues. Without this flag one in ten takes "
                  "0.7 us longer\nthan the median or more, one in 100 1.6 us, one in 1,000 5 us",
                  0, false)
      .Reports([o] { return Json(o->simulated() && o->spread); });
  flags->Add(CacheFlag(o));
  flags->Add(
      "--cache-bytes", "cache_bytes", &o->cache_bytes, form::kBytes,
      "Largest size of a machine's cache of one server: of models (xstore, rolex), of inner nodes (blink, dolphin), of "
      "inner\nnodes and leaves (dex; those of all servers have their memory together), of record addresses (--cache "
      "locations); or of\na thread's cache of record addresses (hash). Default: no limit; 64M; 64M; 16 bytes for "
      "each key; 1M");
  flags->Add("--leaf-admission", "leaf_admission_percent", &o->leaf_admission_percent, form::Integer(0, 100),
             "Percent of the leaves READ that come into a full cache (dex). Default: 10");
  flags->AddSwitch("--one-cooling-latch", "one_cooling_latch", &o->one_cooling_latch,
                   "One latch for all that may leave the cache soon, in place of one for each six copies (dex): what "
                   "its paper compares with");
  flags->AddSwitch("--contended-lines", "contended_lines", &o->contended_lines,
                   "On sim: a latch that another thread of the machine took last costs the time in which a line goes "
                   "from core to core,\nand threads get it one after the other (dex)",
                   kOfOneProcess);
}

}  // namespace

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

Flags FlagsOfYcsb(bench::YcsbOptions* options, YcsbFlags* others) {
  Flags flags;
  AddWorkFlags(options, &flags);
  AddDataFlags(options, &flags);
  AddPlaceFlags(options, &flags);
  AddClusterFlags(&flags, &others->cluster, &others->wait,
                  "one client machine of it. The file says what\nthe servers hold and how updates are done. Default: "
                  "servers and clients are in this process");
  AddReportFlags(&flags, /*run=*/true, &others->report);
  return flags;
}

nlohmann::ordered_json YcsbConfiguration(bench::YcsbOptions options, YcsbFlags others) {
  Json json = {{"version", GANNET_VERSION}};
  json.update(FlagsOfYcsb(&options, &others).Values());
  json["threads_per_machine"] = options.clients.threads;
  return json;
}

}  // namespace gannet::cli
