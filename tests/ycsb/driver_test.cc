// Short real runs of every workload. Every read is checked (driver.h), and the stored rows are counted afterwards.
#include "ycsb/driver.h"

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/ycsb/small_bench.h"
#include "ycsb/client.h"
#include "ycsb/connection.h"
#include "ycsb/moving_part.h"
#include "ycsb/value.h"

namespace gannet::ycsb {
namespace driver_test {

using ::testing::HasSubstr;

// The store has every insert and update that finished, and nothing else.
void ExpectStoreHas(const RunReport& run, const Server::Contents& contents, uint64_t loaded) {
  EXPECT_EQ(contents.records, loaded + run.of(Kind::kInsert).finished);
  EXPECT_EQ(contents.updates, run.of(Kind::kUpdate).finished + run.of(Kind::kReadModifyWrite).finished);
}

struct WorkloadCase {
  std::string_view workload;
  IndexKind index;
  Path path;
  Path updates;
  bool simulated;
};

std::string NameOf(const ::testing::TestParamInfo<WorkloadCase>& info) {
  const WorkloadCase& c = info.param;
  return std::string(c.simulated ? "sim_" : "shm_") + std::string(c.workload) + "_" +
         (c.index == IndexKind::kHash ? "hash" : "xstore") +
         (c.path == Path::kOneSided ? "_one_sided"
          : c.path == Path::kCall   ? "_rpc"
                                    : "_adaptive") +
         (c.updates == Path::kOneSided ? "_cas" : "");
}

std::vector<WorkloadCase> AllCases() {
  std::vector<WorkloadCase> cases;
  for (const bool simulated : {false, true}) {
    for (const Workload& workload : kWorkloads) {
      for (const IndexKind index : {IndexKind::kHash, IndexKind::kXStore}) {
        if (index == IndexKind::kHash && workload.name == "e") continue;
        for (const Path path : {Path::kOneSided, Path::kCall, Path::kAdaptive}) {
          cases.push_back({workload.name, index, path, Path::kCall, simulated});
        }
        if (workload.mix[1] + workload.mix[4] > 5) {
          cases.push_back({workload.name, index, Path::kOneSided, Path::kOneSided, simulated});
        }
      }
    }
  }
  return cases;
}

class EveryWorkload : public ::testing::TestWithParam<WorkloadCase> {};

TEST_P(EveryWorkload, ReadsWhatIsRightAndDoesWhatItReports) {
  const WorkloadCase& c = GetParam();
  SmallBenchOptions options;
  options.simulated = c.simulated;
  options.servers = 2;
  options.index = c.index;
  SmallBench bench(options);
  const Workload workload = *FindWorkload(c.workload);
  RunOptions run_options = bench.ShortRun();
  run_options.threads_per_machine = 2;
  run_options.mix = workload.mix;
  run_options.distribution = workload.distribution;
  run_options.paths = {.reads = c.path, .updates = c.updates};
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->operations, 0u);
  EXPECT_EQ(run->all.operations, run->operations);
  for (size_t k = 0; k < kKinds; ++k) {
    const KindReport& kind = run->kinds[k];
    EXPECT_TRUE(workload.mix[k] > 0 || kind.operations == 0);
    // With one coroutine per thread every operation is a sample.
    EXPECT_EQ(kind.verb_samples, kind.operations);
    EXPECT_LE(kind.p50_us, kind.p99_us);
  }
  const KindReport& reads = run->of(Kind::kRead);
  if (reads.operations > 0 && c.path != Path::kAdaptive) {
    EXPECT_EQ(reads.verbs.calls >= reads.operations, c.path == Path::kCall);
    EXPECT_EQ(reads.verbs.reads >= reads.operations, c.path == Path::kOneSided);
  }
  uint64_t accesses = 0;
  for (const txn::TablePaths& each : run->paths) {
    accesses += each.paths.accesses();
    EXPECT_TRUE(c.path != Path::kOneSided || each.paths.calls == 0);
    EXPECT_TRUE(c.path != Path::kCall || each.paths.one_sided == 0);
    EXPECT_TRUE(c.path == Path::kAdaptive || each.paths.estimated == 0);
  }
  // An operation that was in flight when the measurement began had chosen its path before.
  const auto in_flight = static_cast<uint64_t>(run->threads) * static_cast<uint64_t>(run->coroutines);
  EXPECT_GE(accesses + in_flight, reads.operations + run->of(Kind::kScan).operations);
  const KindReport& updates = run->of(Kind::kUpdate);
  if (updates.operations > 0) {
    EXPECT_EQ(updates.verbs.compare_and_swaps >= updates.operations, c.updates == Path::kOneSided);
    EXPECT_EQ(updates.verbs.calls >= updates.operations, c.updates == Path::kCall);
  }
  ExpectStoreHas(*run, bench.Contents(), options.keys);
}

INSTANTIATE_TEST_SUITE_P(All, EveryWorkload, ::testing::ValuesIn(AllCases()), NameOf);

struct InlineCase {
  IndexKind index;
  Path changes;
  bool simulated;
};

class ValuesInEntries : public ::testing::TestWithParam<InlineCase> {};

// Reads, updates, inserts and scans at once, of keys that all threads share, while leaves split. No operation touches a
// record: there are none.
TEST_P(ValuesInEntries, AreReadAndChangedByAllPaths) {
  const InlineCase& c = GetParam();
  SmallBenchOptions options;
  options.simulated = c.simulated;
  options.adversarial = !c.simulated;
  options.servers = 2;
  options.machines = 2;
  options.index = c.index;
  options.value_bytes = 8;
  options.values_in_entries = true;
  SmallBench bench(options);
  for (const InsertPlace place : {InsertPlace::kSpread, InsertPlace::kAppend}) {
    for (const Path reads : {Path::kOneSided, Path::kCall, Path::kAdaptive}) {
      RunOptions run_options = bench.ShortRun();
      run_options.threads_per_machine = 2;
      run_options.mix = {25, 25, 25, 5, 20};
      run_options.distribution = Distribution::kZipfian;
      run_options.inserts = place;
      run_options.paths = {.reads = reads, .updates = c.changes, .inserts = c.changes};
      const uint64_t before = bench.Contents().records;
      const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(bench.Contents().records, before + run->of(Kind::kInsert).finished);
      EXPECT_GT(run->of(Kind::kInsert).finished, 0u);
      for (const Kind kind : {Kind::kUpdate, Kind::kInsert}) {
        const KindReport& changes = run->of(kind);
        // Several changes may share a lock, and the WRITEs of their leaf. Who updates a value of dolphin enters by FAA.
        const uint64_t atomics = changes.verbs.compare_and_swaps + changes.verbs.fetch_and_adds;
        EXPECT_EQ(atomics > 0, c.changes == Path::kOneSided);
        EXPECT_EQ(changes.verbs.writes > 0, c.changes == Path::kOneSided);
        // Clients borrow blocks for several splits with one call.
        EXPECT_EQ(changes.verbs.calls >= changes.operations, c.changes == Path::kCall);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ValuesInEntries,
                         ::testing::Values(InlineCase{IndexKind::kXStore, Path::kCall, false},
                                           InlineCase{IndexKind::kXStore, Path::kCall, true},
                                           InlineCase{IndexKind::kBlink, Path::kCall, true},
                                           InlineCase{IndexKind::kRolex, Path::kCall, true},
                                           InlineCase{IndexKind::kBlink, Path::kOneSided, false},
                                           InlineCase{IndexKind::kBlink, Path::kOneSided, true},
                                           InlineCase{IndexKind::kRolex, Path::kOneSided, false},
                                           InlineCase{IndexKind::kRolex, Path::kOneSided, true},
                                           InlineCase{IndexKind::kDex, Path::kOneSided, false},
                                           InlineCase{IndexKind::kDex, Path::kCall, true},
                                           InlineCase{IndexKind::kDolphin, Path::kOneSided, false},
                                           InlineCase{IndexKind::kDolphin, Path::kOneSided, true}),
                         [](const ::testing::TestParamInfo<InlineCase>& each) {
                           const InlineCase& c = each.param;
                           return std::string(c.simulated ? "sim_" : "shm_") + index::EntryOf(c.index).name +
                                  (c.changes == Path::kOneSided ? "_one_sided" : "_rpc");
                         });

TEST(Driver, RefusesValuesInEntriesWhereTheyCannotBe) {
  SmallBenchOptions options;
  options.simulated = true;
  options.value_bytes = 8;
  options.values_in_entries = true;
  SmallBench bench(options);
  RunOptions run_options = bench.ShortRun();
  run_options.paths.inserts = Path::kOneSided;
  EXPECT_THAT(RunBenchmark(&bench.cluster(), run_options, nullptr).status().message(), HasSubstr("one-sided inserts"));
  run_options = bench.ShortRun();
  run_options.paths.updates = Path::kOneSided;
  EXPECT_THAT(RunBenchmark(&bench.cluster(), run_options, nullptr).status().message(), HasSubstr("updated by calls"));
  run_options = bench.ShortRun();
  run_options.caches.xstore_location_bytes = 1 << 16;
  EXPECT_THAT(RunBenchmark(&bench.cluster(), run_options, nullptr).status().message(), HasSubstr("needs records"));
  ClusterOptions cluster = bench.cluster().options();
  for (const auto& [index, bytes] : {std::pair{IndexKind::kHash, 8}, std::pair{IndexKind::kRolex, 16}}) {
    cluster.index = index;
    cluster.value_bytes = static_cast<size_t>(bytes);
    EXPECT_THAT(Cluster::Create(&bench.cluster().fabric(), cluster).status().message(), HasSubstr("hold whole keys"));
  }
}

// Clients on the nodes of the servers read and change keys of their own node and of others, by each path.
TEST(Driver, ClientsWorkOnTheNodesOfTheServers) {
  for (const bool simulated : {false, true}) {
    for (const IndexKind index : index::KindsOfPoints()) {
      SmallBenchOptions options;
      options.simulated = simulated;
      options.servers = options.machines = 2;
      options.colocated = true;
      options.index = index;
      options.value_bytes = 8;
      options.values_in_entries = index != IndexKind::kHash;
      SmallBench bench(options);
      ASSERT_EQ(bench.cluster().machine(1).node, &bench.cluster().server(1).node());
      const Path changes = index::EntryOf(index).traits.client_writes ? Path::kOneSided : Path::kCall;
      for (const Path reads : {Path::kOneSided, Path::kCall, Path::kAdaptive}) {
        SCOPED_TRACE(index::EntryOf(index).name + (simulated ? " sim" : " shm"));
        RunOptions run_options = bench.ShortRun();
        run_options.threads_per_machine = 2;
        run_options.mix = {40, 20, 20, 0, 20};
        run_options.paths = {.reads = reads, .updates = changes, .inserts = changes};
        const uint64_t before = bench.Contents().records;
        const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
        ASSERT_TRUE(run.ok()) << run.status();
        EXPECT_GT(run->of(Kind::kInsert).finished, 0u);
        EXPECT_EQ(bench.Contents().records, before + run->of(Kind::kInsert).finished);
      }
      ClusterOptions unequal = bench.cluster().options();
      unequal.machines = 1;
      EXPECT_THAT(Cluster::Create(&bench.cluster().fabric(), unequal).status().message(), HasSubstr("colocated"));
    }
  }
}

// Each machine works on a part of the keys. With claims, most lookups then take no verb.
TEST(Driver, MachinesWorkOnPartsOfTheKeys) {
  for (const bool simulated : {false, true}) {
    for (const bool colocated : {false, true}) {
      for (const IndexKind index : {IndexKind::kBlink, IndexKind::kDex}) {
        SCOPED_TRACE(index::EntryOf(index).name + (simulated ? " sim" : " shm"));
        SmallBenchOptions options;
        options.simulated = simulated;
        options.servers = options.machines = 2;
        options.colocated = colocated;
        options.partitioned = true;
        options.index = index;
        options.value_bytes = 8;
        options.values_in_entries = true;
        SmallBench bench(options);
        RunOptions run_options = bench.ShortRun();
        run_options.threads_per_machine = 2;
        run_options.mix = {100, 0, 0, 0, 0};
        run_options.at_least = 3000;  // several for each leaf, however slow the machine is
        const StatusOr<RunReport> reads = RunBenchmark(&bench.cluster(), run_options, nullptr);
        ASSERT_TRUE(reads.ok()) << reads.status();
        run_options.at_least = bench.ShortRun().at_least;
        const uint64_t lookups = reads->lookups.lookups;
        const uint64_t leaves = reads->lookups.leaves_read;
        if (index == IndexKind::kDex) {
          EXPECT_LT(leaves, lookups / 2);
        } else {
          EXPECT_GE(leaves, lookups);
        }
        run_options.mix = {40, 20, 20, 10, 10};
        run_options.paths = {.reads = Path::kOneSided, .updates = Path::kOneSided, .inserts = Path::kOneSided};
        const uint64_t before = bench.Contents().records;
        const StatusOr<RunReport> all = RunBenchmark(&bench.cluster(), run_options, nullptr);
        ASSERT_TRUE(all.ok()) << all.status();
        EXPECT_EQ(bench.Contents().records, before + all->of(Kind::kInsert).finished);
      }
    }
  }
}

uint64_t CallsOf(const RunReport& run, txn::AccessKind kind) {
  uint64_t calls = 0;
  for (const txn::TablePaths& each : run.paths) calls += each.kind == kind ? each.paths.calls : 0;
  return calls;
}

// With kept leaves, most changes of leaves that a machine has cached take no verb, or no lock. With adaptive paths some
// of the others are calls. At the end the owners have all of them, and nothing is locked.
TEST(Driver, MachinesKeepLeaves) {
  using index::shared_leaf::Keeping;
  for (const bool simulated : {false, true}) {
    for (const Keeping keeping : {Keeping::kWriteThrough, Keeping::kWriteBack}) {
      SCOPED_TRACE(absl::StrCat(simulated ? "sim" : "shm", static_cast<int>(keeping)));
      SmallBenchOptions options;
      options.simulated = simulated;
      options.servers = options.machines = 2;
      options.colocated = true;
      options.partitioned = true;
      options.keeping = keeping;
      options.index = IndexKind::kDex;
      options.value_bytes = 8;
      options.values_in_entries = true;
      SmallBench bench(options);
      RunOptions run_options = bench.ShortRun();
      run_options.threads_per_machine = 2;
      run_options.mix = {40, 20, 20, 10, 10};
      for (const Path path : {Path::kOneSided, Path::kAdaptive}) {
        run_options.paths = {.reads = path, .updates = path, .inserts = path};
        // The second: the cache has room for a quarter of the leaves.
        for (const uint64_t cache_bytes : {uint64_t{1} << 20, uint64_t{12} << 10}) {
          run_options.caches.index_bytes = cache_bytes;
          const uint64_t before = bench.Contents().records;
          const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
          ASSERT_TRUE(run.ok()) << run.status();
          EXPECT_EQ(bench.Contents().records, before + run->of(Kind::kInsert).finished);
          for (const txn::AccessKind kind : {txn::AccessKind::kGet, txn::AccessKind::kChange}) {
            if (path == Path::kOneSided) {
              EXPECT_EQ(CallsOf(*run, kind), 0u);
            } else if (cache_bytes < size_t{1} << 20) {
              EXPECT_GT(CallsOf(*run, kind), 0u);
            }
          }
          EXPECT_EQ(CallsOf(*run, txn::AccessKind::kScan), 0u);
        }
      }
      run_options.paths.updates = Path::kCall;
      EXPECT_TRUE(absl::IsInvalidArgument(RunBenchmark(&bench.cluster(), run_options, nullptr).status()));
    }
  }
}

// The keys of a machine move to another one while clients work. Then those are the new one's, and nothing is locked.
TEST(Driver, KeysMoveWhileClientsWork) {
  using index::shared_leaf::Keeping;
  for (const bool simulated : {false, true}) {
    for (const Keeping keeping : {Keeping::kNone, Keeping::kWriteThrough, Keeping::kWriteBack}) {
      SCOPED_TRACE(absl::StrCat(simulated ? "sim" : "shm", static_cast<int>(keeping)));
      SmallBenchOptions options;
      options.simulated = simulated;
      options.servers = options.machines = 3;
      options.colocated = true;
      options.partitioned = true;
      options.keeping = keeping;
      options.index = IndexKind::kDex;
      options.value_bytes = 8;
      options.values_in_entries = true;
      SmallBench bench(options);
      RunOptions run_options = bench.ShortRun();
      run_options.threads_per_machine = 2;
      run_options.paths = {.reads = Path::kOneSided, .updates = Path::kOneSided, .inserts = Path::kOneSided};
      run_options.mix = {40, 40, 0, 0, 20};
      run_options.move_after = run_options.duration / 10;
      run_options.at_least = 1000;
      const uint64_t keys = bench.Contents().records;
      const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE(run->move.has_value());
      EXPECT_EQ(run->move->slices, MovingPart::kMoved);
      EXPECT_GT(run->move->seconds, 0);
      EXPECT_EQ(bench.Contents().records, keys);
      uint64_t cached = 0;
      for (const auto& cache : bench.cluster().machine(2).caches) cached += cache->bytes();
      EXPECT_GT(cached, 0u) << "the last machine works on its keys";
      for (const Mix& mix : {Mix{50, 40, 10, 0, 0}, Mix{50, 40, 0, 10, 0}}) {
        RunOptions wrong = run_options;
        wrong.mix = mix;
        EXPECT_TRUE(absl::IsInvalidArgument(RunBenchmark(&bench.cluster(), wrong, nullptr).status()));
      }
    }
  }
}

// Values in the entries of indexes that clients may only READ: all changes are calls.
TEST(Driver, ServersChangeWhatClientsMayOnlyRead) {
  for (const IndexKind index : index::KindsThatClientsChange()) {
    SmallBenchOptions options;
    options.index = index;
    options.index_rights = IndexRights::kOwnerOnly;
    options.value_bytes = 8;
    options.values_in_entries = true;
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.mix = {40, 20, 20, 0, 20};
    run_options.paths = {.reads = Path::kOneSided, .updates = Path::kCall, .inserts = Path::kCall};
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_GT(run->of(Kind::kInsert).finished, 0u);
    EXPECT_EQ(bench.Contents().records, options.keys + run->of(Kind::kInsert).finished);
    for (const bool updates : {false, true}) {
      (updates ? run_options.paths.updates : run_options.paths.inserts) = Path::kOneSided;
      EXPECT_TRUE(absl::IsInvalidArgument(RunBenchmark(&bench.cluster(), run_options, nullptr).status()));
      run_options.paths.updates = run_options.paths.inserts = Path::kCall;
    }
  }
}

// New keys of several machines lie behind all others, on the last server.
TEST(Driver, AppendsToTheLastServer) {
  for (const IndexKind index : {IndexKind::kHash, IndexKind::kXStore}) {
    SmallBenchOptions options;
    options.simulated = true;
    options.servers = 2;
    options.machines = 2;
    options.index = index;
    options.key_form = KeyForm::kLognormal;
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.threads_per_machine = 2;
    run_options.coroutines = 2;
    run_options.mix = {50, 0, 50, 0, 0};
    run_options.distribution = Distribution::kLatest;
    run_options.inserts = InsertPlace::kAppend;
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    ExpectStoreHas(*run, bench.Contents(), options.keys);
    const uint64_t inserted = run->of(Kind::kInsert).finished;
    EXPECT_GT(inserted, 0u);
    EXPECT_EQ(bench.cluster().server(0).index().statistics().keys, options.keys / 2);
    EXPECT_EQ(bench.cluster().server(1).index().statistics().keys, options.keys / 2 + inserted);
  }
}

// Several coroutines, machines and kinds of operations at once, on adversarial shared memory.
TEST(Driver, ManyAtOnceUnderTheAdversary) {
  for (const Path updates : {Path::kCall, Path::kOneSided}) {
    SmallBenchOptions options;
    options.machines = 2;
    options.keys = 300;
    options.adversarial = true;
    options.server_threads = 2;
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.at_least = 2000;
    run_options.threads_per_machine = 2;
    run_options.coroutines = 4;
    run_options.mix = {30, 30, 10, 20, 10};
    run_options.distribution = Distribution::kZipfian;
    run_options.paths.updates = updates;
    const StatusOr<RunReport> first = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(first.ok()) << first.status();
    ExpectStoreHas(*first, bench.Contents(), options.keys);
    // A later run inserts other keys.
    const StatusOr<RunReport> second = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(bench.Contents().records,
              options.keys + first->of(Kind::kInsert).finished + second->of(Kind::kInsert).finished);
  }
}

// NICs whose atomics are atomic only with each other: no update is lost, whether NICs or CPUs lock.
TEST(Driver, NicsThatLockWhatCpusMayNot) {
  for (const Path updates : {Path::kCall, Path::kOneSided}) {
    SmallBenchOptions options;
    options.simulated = true;
    options.machines = 2;
    options.keys = 20;
    options.server_threads = 2;
    SmallBench bench(options);
    ASSERT_FALSE(bench.cluster().fabric().capabilities().cpu_coherent_atomics);
    RunOptions run_options = bench.ShortRun();
    run_options.at_least = 2000;
    run_options.threads_per_machine = 2;
    run_options.coroutines = 2;
    run_options.mix = {10, 50, 10, 0, 30};
    run_options.distribution = Distribution::kZipfian;
    run_options.paths.updates = updates;
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    ExpectStoreHas(*run, bench.Contents(), options.keys);
  }
}

// A server whose clients lock records refuses to lock them by its CPU.
TEST(Driver, AServerDoesNotLockWhatClientsLock) {
  for (const bool cpu_atomics : {false, true}) {
    SmallBenchOptions options;
    options.simulated = true;
    options.cpu_atomics = cpu_atomics;
    SmallBench bench(options);
    const RunOptions run_options = bench.ShortRun();
    bench.cluster().server(0).set_locked_by_clients(true);
    Status updated;
    Thread client("client", [&] {
      auto connection = Connection::Open(&bench.cluster(), 0, run_options.caches);
      ASSERT_TRUE(connection.ok()) << connection.status();
      Client calls(connection->get(), {.updates = Path::kCall});
      const uint64_t key = bench.cluster().keys().LoadedKey(0);
      std::vector<std::byte> value(options.value_bytes);
      MakeValue(key, 1, value);
      updated = (*connection)->worker().BlockOn(calls.Update(key, value));
    });
    client.join();
    EXPECT_EQ(updated.code(), cpu_atomics ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition) << updated;
  }
}

TEST(Driver, ProfilesEachKindWithSeveralCoroutines) {
  SmallBenchOptions options;
  options.simulated = true;
  SmallBench bench(options);
  RunOptions run_options = bench.ShortRun();
  run_options.coroutines = 4;
  run_options.mix = {50, 50, 0, 0, 0};
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  const KindReport& reads = run->of(Kind::kRead);
  const KindReport& updates = run->of(Kind::kUpdate);
  ASSERT_GT(reads.verb_samples, 0u);
  ASSERT_GT(updates.verb_samples, 0u);
  EXPECT_EQ(reads.verbs.calls, 0u);
  EXPECT_EQ(updates.verbs.calls, updates.verb_samples);
  EXPECT_EQ(updates.verbs.reads, 0u);
}

// Equal operations need the same verbs on every fabric.
TEST(Driver, VerbsPerOperationAreTheSameOnBothFabrics) {
  for (const IndexKind index : {IndexKind::kHash, IndexKind::kXStore}) {
    for (const Path path : {Path::kOneSided, Path::kCall}) {
      rdma::VerbCounters of[2];
      for (const bool simulated : {false, true}) {
        SmallBenchOptions options;
        options.simulated = simulated;
        options.index = index;
        SmallBench bench(options);
        RunOptions run_options = bench.ShortRun();
        run_options.coroutines = 1;
        run_options.paths.reads = path;
        run_options.caches.location_bytes = 0;
        const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
        ASSERT_TRUE(run.ok()) << run.status();
        const KindReport& reads = run->of(Kind::kRead);
        ASSERT_GT(reads.verb_samples, 0u);
        // The averages are in tenths: overflowing buckets are rare, but longer runs meet different shares of them.
        const auto each = [&reads](uint64_t sum) { return (sum * 10 + reads.verb_samples / 2) / reads.verb_samples; };
        of[simulated].reads = each(reads.verbs.reads);
        of[simulated].calls = each(reads.verbs.calls);
        of[simulated].round_trips = each(reads.verbs.round_trips);
        of[simulated].writes = reads.verbs.writes;
      }
      EXPECT_EQ(of[0].reads, of[1].reads);
      EXPECT_EQ(of[0].calls, of[1].calls);
      EXPECT_EQ(of[0].round_trips, of[1].round_trips);
      EXPECT_EQ(of[0].writes, of[1].writes);
    }
  }
}

TEST(Driver, OneMachineInsertsAtItsRateBesideTheOthers) {
  SmallBenchOptions options;
  options.simulated = true;
  options.machines = 2;
  SmallBench bench(options);
  RunOptions run_options = bench.ShortRun();
  run_options.threads_per_machine = 2;
  run_options.warmup = absl::Microseconds(200);
  run_options.duration = absl::Milliseconds(10);
  run_options.insert_rate = 50'000;
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(static_cast<double>(run->of(Kind::kInsert).operations), 500, 10) << "in 10 ms of virtual time";
  EXPECT_GT(run->of(Kind::kRead).operations, 1000u);
  ExpectStoreHas(*run, bench.Contents(), options.keys);
}

// Lookups of many clients are in progress while their shared model is replaced by one with more sub-models.
TEST(Driver, ModelsGrowUnderTheReaders) {
  for (const int how : {0, 1, 2, 3}) {
    const bool shared = how % 2 != 0;
    SmallBenchOptions options;
    options.simulated = how < 2;
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.threads_per_machine = 4;
    run_options.coroutines = 4;
    run_options.mix = {60, 0, 40, 0, 0};
    run_options.caches.share = shared;
    run_options.at_least = 40'000;
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_GT(bench.cluster().server(0).xstore()->model_statistics().generation, 1u);
    EXPECT_GT(run->lookups.cache_bytes, 0u);
    ExpectStoreHas(*run, bench.Contents(), options.keys);
  }
}

TEST(Driver, ACacheOfTheModelIsAsLargeForManyThreads) {
  uint64_t of_one = 0;
  for (const int threads : {1, 4}) {
    SmallBench bench({.keys = 20'000});
    RunOptions run_options = bench.ShortRun();
    run_options.threads_per_machine = threads;
    run_options.mix = {100, 0, 0, 0, 0};
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    if (threads == 1) of_one = run->lookups.cache_bytes;
    EXPECT_GT(run->lookups.cache_bytes, 0u);
    EXPECT_LE(run->lookups.cache_bytes, of_one * 11 / 10);
  }
}

TEST(Driver, ASimulatedRunIsTheSameEveryTime) {
  const auto run = [] {
    SmallBenchOptions options;
    options.simulated = true;
    options.machines = 2;
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.threads_per_machine = 2;
    run_options.coroutines = 2;
    run_options.mix = {50, 30, 10, 5, 5};
    const StatusOr<RunReport> report = RunBenchmark(&bench.cluster(), run_options, nullptr);
    EXPECT_TRUE(report.ok()) << report.status();
    return std::tuple(report->operations, report->all.verbs.reads, report->all.verbs.bytes_in, report->all.max_us,
                      bench.simulation()->digest());
  };
  EXPECT_EQ(run(), run());
}

TEST(Driver, RefusesWhatCannotBe) {
  SmallBenchOptions options;
  options.index = IndexKind::kHash;
  SmallBench bench(options);
  const auto refused = [&bench](auto change) {
    RunOptions run_options = bench.ShortRun();
    change(&run_options);
    const Status status = RunBenchmark(&bench.cluster(), run_options, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](RunOptions* o) { o->mix = {0, 0, 5, 95, 0}; }), HasSubstr("ordered"));
  EXPECT_THAT(refused([](RunOptions* o) { o->mix = {50, 0, 0, 0, 0}; }), HasSubstr("100"));
  EXPECT_THAT(refused([](RunOptions* o) { o->duration = absl::ZeroDuration(); }), HasSubstr("duration"));
  EXPECT_THAT(refused([](RunOptions* o) { o->coroutines = 0; }), HasSubstr("coroutines"));
}

TEST(Driver, StopsWhenItIsToldTo) {
  SmallBench bench({});
  RunOptions run_options = bench.ShortRun();
  std::atomic<bool> stop{false};
  run_options.stop = &stop;
  run_options.duration = absl::Hours(1);
  run_options.at_least = UINT64_MAX / 2;
  run_options.watch = [&stop](bool end) { stop = !end; };
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
}

TEST(Driver, StopsWhileItFillsItsCaches) {
  SmallBench bench({});
  RunOptions run_options = bench.ShortRun();
  const std::atomic<bool> stop{true};
  run_options.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(RunBenchmark(&bench.cluster(), run_options, nullptr).status()));
}

}  // namespace driver_test
}  // namespace gannet::ycsb
