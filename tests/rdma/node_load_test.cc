#include <cstdint>

#include "gtest/gtest.h"
#include "rdma/statistics.h"

namespace gannet::rdma {
namespace node_load_test {

constexpr uint64_t kMilli = 1'000'000;

TEST(NodeLoadTest, SurvivesItsWord) {
  const NodeLoad load{.number = 1023,
                      .servers = 950,
                      .link = 31,
                      .engine = 702,
                      .link_megabytes_per_second = 25'000,
                      .verb_picos = 12'125};
  const NodeLoad read = NodeLoad::Unpack(load.Pack());
  EXPECT_EQ(read.number, 1023u);
  EXPECT_EQ(read.servers, 950u);
  EXPECT_EQ(read.link, 31u);
  EXPECT_EQ(read.engine, 702u);
  EXPECT_EQ(read.link_megabytes_per_second, 25'000u);
  EXPECT_EQ(read.verb_picos, 12'125u);
  EXPECT_TRUE(read.known());
  EXPECT_FALSE(NodeLoad::Unpack(0).known());
}

TEST(NodeLoadTest, AWordOfAStrangerIsNoMoreThanWholeShares) {
  const NodeLoad load = NodeLoad::Unpack(~uint64_t{0});
  EXPECT_EQ(load.servers, NodeLoad::kWhole);
  EXPECT_EQ(load.link, NodeLoad::kWhole);
  EXPECT_EQ(load.engine, NodeLoad::kWhole);
}

TEST(NodeLoadTest, IsTheShareOfTheServerThreads) {
  const ServedTime from{.server_threads = 4, .server_nanos = 7 * kMilli, .worker_nanos = kMilli};
  ServedTime to = from;
  to.server_nanos += 10 * kMilli;
  const NodeLoad load = NodeLoad::Between(from, to, 5 * kMilli, 0);
  EXPECT_EQ(load.servers, 500u);  // 10 of 4 x 5 ms
  EXPECT_EQ(load.number, 1u);
  EXPECT_EQ(load.link_megabytes_per_second, 0u);
}

TEST(NodeLoadTest, WorkersThatServeAddWhatTheyServed) {
  const ServedTime from{.server_threads = 1};
  ServedTime to = from;
  to.worker_nanos = 5 * kMilli;  // the server thread had nothing to do
  EXPECT_EQ(NodeLoad::Between(from, to, 5 * kMilli, 1).servers, 500u);
  to.server_nanos = 5 * kMilli;
  EXPECT_EQ(NodeLoad::Between(from, to, 5 * kMilli, 1).servers, 1000u);
  // A call that began before the interval ends in it.
  to.server_nanos = 50 * kMilli;
  EXPECT_EQ(NodeLoad::Between(from, to, 5 * kMilli, 1).servers, 1000u);
}

TEST(NodeLoadTest, WithoutServerThreadsItIsBusyIffWorkersServed) {
  ServedTime to;
  EXPECT_EQ(NodeLoad::Between({}, to, 5 * kMilli, 1).servers, 0u);
  to.worker_nanos = 1;
  EXPECT_EQ(NodeLoad::Between({}, to, 5 * kMilli, 1).servers, 1000u);
}

TEST(NodeLoadTest, TheLinkIsAsBusyAsItsBusierDirection) {
  const ServedTime from{.server_threads = 1, .link_bytes_per_second = 12'500'000'000, .link_out_nanos = kMilli};
  ServedTime to = from;
  to.link_in_nanos += 1 * kMilli;
  to.link_out_nanos += 4 * kMilli;
  const NodeLoad load = NodeLoad::Between(from, to, 5 * kMilli, 1);
  EXPECT_EQ(load.link, 800u);
  EXPECT_EQ(load.link_megabytes_per_second, 12'500u);
}

TEST(NodeLoadTest, TheEngineIsAnnouncedWhereItIsKnown) {
  const ServedTime from{.server_threads = 1, .engine_picos_per_verb = 6'098, .engine_nanos = kMilli};
  ServedTime to = from;
  to.engine_nanos += 3 * kMilli;
  const NodeLoad load = NodeLoad::Between(from, to, 5 * kMilli, 1);
  EXPECT_EQ(load.engine, 600u);
  EXPECT_EQ(load.verb_picos, 6'000u);
  to.engine_picos_per_verb = 0;
  EXPECT_EQ(NodeLoad::Between(from, to, 5 * kMilli, 1).engine, 0u);
}

TEST(NodeLoadTest, NumbersGoRoundAndAreNeverZero) {
  uint32_t number = 0;
  for (int i = 0; i < 10'000; ++i) {
    const NodeLoad load = NodeLoad::Unpack(NodeLoad::Between({}, {}, kMilli, number).Pack());
    ASSERT_TRUE(load.known());
    ASSERT_NE(load.number, number);
    number = load.number;
  }
}

}  // namespace node_load_test
}  // namespace gannet::rdma
