// The time of verbs: latencies, rates and bandwidth of the profiles.
#include "rdma/sim/nic.h"

#include <array>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "tests/rdma/sim/sim_cluster.h"

namespace gannet::rdma::sim {
namespace nic_test {

constexpr uint64_t kCpuNanos = 300;  // most CPU time for posting, polling and completing one verb

TEST(NicProfiles, AreFoundByNameAndSayWhereTheyAreFrom) {
  for (const char* name : {"cx4-100g", "2x-cx4-100g", "cx5-100g", "cx6-100g", "cx6-200g", "ideal"}) {
    const auto profile = FindNicProfile(name);
    ASSERT_TRUE(profile.has_value()) << name;
    EXPECT_EQ(profile->name, name);
    EXPECT_FALSE(profile->source.empty());
  }
  EXPECT_FALSE(FindNicProfile("cx3").has_value());
  EXPECT_EQ(FindNicProfile("ideal")->read_nanos(), 1000u);
  EXPECT_NEAR(static_cast<double>(FindNicProfile("cx4-100g")->read_nanos()), 2000, 100);
}

TEST(Nic, AnUnloadedReadTakesWhatItsProfileSays) {
  for (const NicProfile& profile : NicProfiles()) {
    SimCluster cluster({.nic = std::string(profile.name)});
    std::array<std::byte, 64> buffer;
    const uint64_t start = cluster.now();
    ASSERT_TRUE(cluster.Post(Operation::Read(SimCluster::At(1, 0), buffer.data(), 64)).ok());
    EXPECT_GE(cluster.now() - start, profile.read_nanos()) << profile.name;
    EXPECT_LE(cluster.now() - start, profile.read_nanos() + kCpuNanos) << profile.name;
  }
}

TEST(Nic, AVerbToItsOwnNodeCrossesNoWire) {
  SimCluster cluster({.nic = "cx4-100g"});
  std::array<std::byte, 64> buffer;
  const uint64_t start = cluster.now();
  ASSERT_TRUE(cluster.Post(Operation::Read(SimCluster::At(0, 0), buffer.data(), 64)).ok());
  EXPECT_LE(cluster.now() - start, FindNicProfile("cx4-100g")->read_nanos() - 700 + kCpuNanos);
}

// Result of a load: `threads` of each of 15 clients READ `size` bytes of node 0, `depth` at a time, for a millisecond.
struct Load {
  double reads_per_second = 0;
  NicStatistics server;
};
Load RunLoad(uint32_t size, Verb verb, bool one_word) {
  constexpr int kClients = 15, kDepth = 16;
  constexpr uint64_t kNanos = 1'000'000;
  SimCluster cluster({.num_nodes = 1 + kClients, .nic = "cx4-100g"});
  uint64_t done = 0;
  bool stop = false;
  std::vector<Runtime::Thread*> threads;
  for (int i = 0; i < 2 * kClients; ++i) {
    const auto id = static_cast<NodeId>(1 + i % kClients);
    threads.push_back(cluster.simulation().StartOn(id, "client", [&, id, i] {
      const std::unique_ptr<Channel> channel = cluster.node(id).OpenChannel().value();
      coro::Worker worker;
      worker.AddPoller([&channel] { return channel->Poll(); });
      Random random(static_cast<uint64_t>(i));
      std::vector<std::byte> buffer(size * kDepth);
      std::vector<Operation> batch(kDepth);
      const auto run = [](Channel* by, std::vector<Operation>* what) -> coro::Task<Status> {
        co_return co_await by->Post(*what);
      };
      while (!stop) {
        for (int k = 0; k < kDepth; ++k) {
          const GlobalAddress at = SimCluster::At(0, one_word ? 0 : 64 * random.Below(4000));
          batch[k] =
              verb == Verb::kRead ? Operation::Read(at, buffer.data() + k * size, size) : Operation::FetchAndAdd(at, 1);
        }
        if (!worker.BlockOn(run(channel.get(), &batch)).ok()) return;
        done += kDepth;
      }
    }));
  }
  SleepForNanos(kNanos / 10);
  const uint64_t before = done;
  SleepForNanos(kNanos);
  const double rate = static_cast<double>(done - before) * 1e9 / kNanos;
  stop = true;
  for (Runtime::Thread* thread : threads) cluster.simulation().Join(thread);
  return {rate, cluster.fabric().nic_statistics(0)};
}

TEST(Nic, SmallReadsAreLimitedByTheServersRate) {
  const Load load = RunLoad(64, Verb::kRead, false);
  const double limit = FindNicProfile("cx4-100g")->inbound_per_second;
  EXPECT_GE(load.reads_per_second, 0.9 * limit);
  EXPECT_LE(load.reads_per_second, 1.02 * limit);
  EXPECT_GE(load.server.busy_serve_nanos, 900'000u);
  EXPECT_GE(load.server.bytes_out, 64 * load.server.verbs_served - 64 * 2000);
}

// All READs begin at one line.
TEST(Nic, ReadsOfAHotLineAreSlower) {
  const NicProfile profile = *FindNicProfile("cx4-100g");
  const double usual = 1e9 / profile.inbound_per_second;
  const Load hot = RunLoad(64, Verb::kRead, true);
  EXPECT_NEAR(hot.reads_per_second, 1e9 / (usual + profile.hot_line_nanos), 0.05e9 / usual);
}

TEST(Nic, LargeReadsAreLimitedByTheLink) {
  const Load load = RunLoad(4096, Verb::kRead, false);
  const double limit = FindNicProfile("cx4-100g")->bandwidth / (4096 + 36);
  EXPECT_GE(load.reads_per_second, 0.8 * limit);
  EXPECT_LE(load.reads_per_second, 1.1 * limit);
}

TEST(Nic, AtomicsAreSlowerAndThoseOfOneWordSlowest) {
  const double many = RunLoad(8, Verb::kFetchAndAdd, false).reads_per_second;
  const double one = RunLoad(8, Verb::kFetchAndAdd, true).reads_per_second;
  EXPECT_LE(many, 1.05 * FindNicProfile("cx4-100g")->atomics_per_second);
  EXPECT_GE(many, 0.5 * FindNicProfile("cx4-100g")->atomics_per_second);
  EXPECT_NEAR(one, 1e9 / 400, 0.25e6);
}

// A NIC whose atomics are not coherent with the CPU loses updates of the CPU, but none of its own.
TEST(Nic, AtomicsAreAtomicWithTheCpuOnlyWhereTheProfileSaysSo) {
  constexpr uint64_t kAdds = 500;
  for (const char* nic : {"cx4-100g", "ideal"}) {
    SimCluster cluster({.nic = nic});
    std::byte* word = cluster.node(1).memory().data() + SimCluster::kWritable;
    auto* cpu = cluster.simulation().StartOn(1, "cpu", [&] {
      for (uint64_t i = 0; i < kAdds; ++i) {
        FetchAndAddWord(word, 1);
        SleepForNanos(777);
      }
    });
    for (uint64_t i = 0; i < kAdds; ++i)
      ASSERT_TRUE(cluster.Post(Operation::FetchAndAdd(SimCluster::At(1, 0), 1)).ok());
    cluster.simulation().Join(cpu);
    if (cluster.fabric().capabilities().cpu_coherent_atomics) {
      EXPECT_EQ(LoadWord(word), 2 * kAdds);
    } else {
      EXPECT_LT(LoadWord(word), 2 * kAdds);
      EXPECT_GE(LoadWord(word), kAdds);
    }
  }
}

TEST(Nic, AWorkerThatServesIsWokenByARequest) {
  SimCluster cluster({.nic = "cx4-100g"});
  cluster.node(1).Handle(60000, [](NodeId, auto, auto) { return StatusOr<size_t>(0); });
  bool stop = false;
  auto* server = cluster.simulation().StartOn(1, "serves", [&] {
    coro::Worker worker;
    worker.AddPoller([&] { return cluster.node(1).ServePending(4); });
    const auto wait = [](coro::Worker* on, const bool* until) -> coro::Task<void> {
      while (!*until) co_await on->SleepUntil(NowNanos() + 50'000'000);
    };
    worker.BlockOn(wait(&worker, &stop));
  });
  SleepForNanos(1'000'000);
  const uint64_t start = cluster.now();
  EXPECT_TRUE(cluster.Call(1, 60000, absl::Seconds(1)).ok());
  EXPECT_LE(cluster.now() - start, 5'000u);  // less than the 100 us after which it would poll by itself
  stop = true;
  cluster.simulation().Join(server);
}

}  // namespace nic_test
}  // namespace gannet::rdma::sim
