// Round trips of clients of Dolphin whose caches do not know yet that another node has split a leaf.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "index/dolphin/dolphin.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace dolphin_way_test {

constexpr IndexId kId = 1;
constexpr uint64_t kLoaded = 1000;
constexpr uint64_t kInserts = 13;
constexpr uint64_t kGap = uint64_t{1} << 32;

class DolphinWayTest : public testing::Test {
 protected:
  DolphinWayTest() : cluster_({}) {
    RegisterDolphinMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    index_ = *CreateDolphin(cluster_.owner().service.get(), kId, KeyKind::kInteger);
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < kLoaded; ++i) entries.push_back({Key(i * kGap), FakeRecord(i)});
    GANNET_CHECK(index_->BulkLoad(owner_->context(), entries, 0.5).ok(), "loaded");
  }

  // With a cache of its own, which knows the inner nodes that there are.
  struct Client {
    explicit Client(DolphinWayTest* test) : thread(&test->cluster_) {
      remote = *ConnectDolphin(thread.channel(), 0, kId, {.key_kind = KeyKind::kInteger, .values_in_entries = true});
      for (uint64_t i = 0; i < kLoaded; ++i) Find(i * kGap);
    }
    // Each returns its round trips.
    uint64_t Find(uint64_t key) {
      const uint64_t before = thread.channel()->counters().round_trips;
      const StatusOr<FindResult> found = thread.Await(remote->Find(Key(key)));
      EXPECT_TRUE(found.ok() && !found->record.is_null()) << key;
      return thread.channel()->counters().round_trips - before;
    }
    uint64_t Insert(uint64_t key) {
      const uint64_t before = thread.channel()->counters().round_trips;
      const StatusOr<Change> inserted = thread.Await(remote->Insert(Key(key), FakeRecord(key)));
      EXPECT_TRUE(inserted.ok()) << inserted.status();
      return thread.channel()->counters().round_trips - before;
    }
    // Inserts keys behind `key`, which split its leaf once.
    void Split(uint64_t key) {
      for (uint64_t i = 1; i <= kInserts; ++i) Insert(key + i);
    }

    ClientThread thread;
    std::unique_ptr<RemoteIndex> remote;
  };

  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
};

TEST_F(DolphinWayTest, OneDetourBringsANewLeafIntoTheCache) {
  Client other(this);
  Client client(this);
  for (uint64_t i = 100; i < 900; i += 100) {
    const uint64_t key = i * kGap;
    other.Split(key);
    uint64_t found = 0;
    for (uint64_t at = 0; at <= kInserts; ++at) found += client.Find(key + at);
    EXPECT_LE(found, kInserts + 1 + 2) << "the new leaf, and what leads to it";
    for (uint64_t at = 0; at <= kInserts; ++at) EXPECT_EQ(client.Find(key + at), 1u);
  }
}

TEST_F(DolphinWayTest, AnInsertGoesToTheRight) {
  Client other(this);
  Client client(this);
  for (uint64_t i = 100; i < 900; i += 100) {
    const uint64_t key = i * kGap;
    other.Split(key);
    const uint64_t last = key + kGap / 2;  // behind all of them
    EXPECT_LE(client.Insert(last), 3u + 3) << "a look at each leaf on the way, and one READ of what leads to the last";
    EXPECT_EQ(client.Find(last), 1u);
  }
}

TEST_F(DolphinWayTest, ASplitTakesItsEntryAlong) {
  Client client(this);
  uint64_t inserts = 0;
  uint64_t round_trips = 0;
  for (uint64_t i = 100; i < 900; i += 100) {
    for (uint64_t at = 1; at <= 20; ++at) {
      round_trips += client.Insert(i * kGap + at * (kGap / 32));
      ++inserts;
    }
  }
  EXPECT_TRUE(index_->CheckStructure().ok());
  EXPECT_LT(static_cast<double>(round_trips), 3.5 * static_cast<double>(inserts));
}

}  // namespace dolphin_way_test
}  // namespace gannet::index
