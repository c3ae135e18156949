// Inserts and updates of several clients of a process in the same leaves: who waits, who leads, and what it costs.
#include "ycsb/leaf_combiner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "index/rolex/synonyms.h"
#include "tests/index/record_helper.h"
#include "tests/ycsb/slow_channel.h"
#include "ycsb/leaf_queues.h"

namespace gannet::ycsb {
namespace leaf_combiner_test {

using index::Change;
using index::ClientThread;
using index::ConnectBlink;
using index::ConnectRolex;
using index::CreateBlink;
using index::CreateRolex;
using index::IndexCluster;
using index::IndexId;
using index::IndexService;
using index::Key;
using index::KeyKind;
using index::LoadEntry;
using index::LocalIndex;
using index::MakeBlinkCache;
using index::MakeRolexCache;
using index::OwnerThread;
using index::RegisterBlinkMethods;
using index::RegisterRolexMethods;
using index::RemoteIndex;
using index::ScanResult;
using index::Witness;
using index::WordChange;
using Turn = LeafQueues::Turn;

constexpr IndexId kId = 1;
const rdma::GlobalAddress kLeaf{0, 1 << 20};

// A client of a queue, and what it has come to.
struct Member : LeafQueues::Waiter {
  Member(coro::Worker* worker, int of) : Waiter(worker), number(of) {}
  const int number;
};
coro::Task<void> Come(LeafQueues* queues, coro::Worker* worker, int number, std::vector<std::pair<int, Turn>>* came) {
  Member member(worker, number);
  const Turn turn = co_await queues->Enter(kLeaf, &member);
  came->push_back({number, turn});
}
coro::Task<void> YieldTimes(coro::Worker* worker, int times) {
  for (int i = 0; i < times; ++i) co_await worker->Yield();
}

class LeafQueuesTest : public ::testing::Test {
 protected:
  // A first client leads; `waiting` others wait.
  void Begin(int waiting) {
    for (int i = 0; i <= waiting; ++i) worker_.Spawn(Come(&queues_, &worker_, i, &came_));
    worker_.BlockOn(YieldTimes(&worker_, 3));
    ASSERT_EQ(came_, (Came{{0, Turn::kLeads}}));
    came_.clear();
    lead_.emplace(&queues_, kLeaf);
    ASSERT_EQ(lead_->waiting(), static_cast<size_t>(waiting));
  }
  using Came = std::vector<std::pair<int, Turn>>;

  LeafQueues queues_;
  coro::Worker worker_;
  Came came_;
  std::optional<LeafQueues::Leader> lead_;
};

TEST_F(LeafQueuesTest, TheLeadIsPassedInOrder) {
  Begin(3);
  for (int next = 1; next <= 3; ++next) {
    int handed = 0;
    lead_->Pass([&handed](LeafQueues::Waiter& waiter) { handed = static_cast<Member&>(waiter).number; });
    EXPECT_EQ(handed, next);
    worker_.BlockOn(YieldTimes(&worker_, 3));
    EXPECT_EQ(came_, (Came{{next, Turn::kLeads}}));
    came_.clear();
    lead_.emplace(&queues_, kLeaf);
  }
  lead_->Pass([](LeafQueues::Waiter&) { FAIL() << "nobody waits"; });
  worker_.Spawn(Come(&queues_, &worker_, 4, &came_));
  worker_.Run();
  EXPECT_EQ(came_, (Came{{4, Turn::kLeads}})) << "nobody leads";
}

TEST_F(LeafQueuesTest, TheLeaderAnswersThoseItHasTaken) {
  Begin(5);
  std::vector<int> taken;
  lead_->Take(
      4, [&taken](const LeafQueues::Waiter& waiter) { taken.push_back(static_cast<const Member&>(waiter).number); });
  EXPECT_EQ(taken, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(lead_->waiting(), 1u);
  lead_->Answer([](size_t number, LeafQueues::Waiter& waiter) -> std::optional<Turn> {
    EXPECT_EQ(static_cast<Member&>(waiter).number, static_cast<int>(number) + 1);
    if (number == 1) return std::nullopt;
    return number == 2 ? Turn::kAgain : Turn::kAnswered;
  });
  worker_.BlockOn(YieldTimes(&worker_, 3));
  EXPECT_EQ(came_, (Came{{1, Turn::kAnswered}, {3, Turn::kAgain}, {4, Turn::kAnswered}}));
  came_.clear();
  EXPECT_EQ(lead_->waiting(), 2u);
  int first = 0;
  lead_->Pass([&first](LeafQueues::Waiter& waiter) { first = static_cast<Member&>(waiter).number; });
  EXPECT_EQ(first, 2) << "it has waited for longer";
  worker_.BlockOn(YieldTimes(&worker_, 3));
  lead_.emplace(&queues_, kLeaf);
  lead_->Disperse();
  lead_.reset();
  worker_.Run();
  EXPECT_EQ(came_, (Came{{2, Turn::kLeads}, {5, Turn::kAgain}}));
}

TEST_F(LeafQueuesTest, AFailedLeaderSendsTheOthersAway) {
  Begin(2);
  lead_.reset();
  worker_.Run();
  EXPECT_EQ(came_, (Came{{1, Turn::kAgain}, {2, Turn::kAgain}}));
}

TEST_F(LeafQueuesTest, AWorkerThatEndsTakesItsClientsAlong) {
  Begin(1);
  Came unused;
  {
    coro::Worker ends;
    for (int i = 2; i < 5; ++i) ends.Spawn(Come(&queues_, &ends, i, &unused));
    ends.BlockOn(YieldTimes(&ends, 3));
    EXPECT_EQ(lead_->waiting(), 4u);
    lead_->Take(2, [](const LeafQueues::Waiter&) {});  // one of each worker
  }
  lead_->Answer([](size_t number, LeafQueues::Waiter&) -> std::optional<Turn> {
    EXPECT_EQ(number, 0u);
    return Turn::kAnswered;
  });
  EXPECT_EQ(lead_->waiting(), 0u);
  lead_->Disperse();
  lead_.reset();
  worker_.Run();
  EXPECT_EQ(came_, (Came{{1, Turn::kAnswered}}));
  EXPECT_TRUE(unused.empty());
}

TEST_F(LeafQueuesTest, ALeaderThatIsNeverResumedPassesTheLeadOn) {
  Came unused;
  {
    coro::Worker ends;
    ends.Spawn(Come(&queues_, &ends, 0, &unused));
    ends.Spawn(Come(&queues_, &ends, 1, &unused));
    ends.BlockOn(YieldTimes(&ends, 3));
    worker_.Spawn(Come(&queues_, &worker_, 2, &came_));
    worker_.BlockOn(YieldTimes(&worker_, 3));
    lead_.emplace(&queues_, kLeaf);
    lead_->Pass([](LeafQueues::Waiter&) {});
    lead_.reset();
    worker_.BlockOn(YieldTimes(&worker_, 3));
    EXPECT_TRUE(came_.empty());
  }
  worker_.Run();
  EXPECT_EQ(came_, (Came{{2, Turn::kAgain}}));
}

// One leader at a time, in any threads, and everybody comes to something.
TEST(LeafQueuesThreads, OneLeadsAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 500;
  LeafQueues queues;
  uint64_t led = 0;  // guarded by the lead
  std::atomic<uint64_t> answered{0};
  const auto client = [&](coro::Worker* worker) -> coro::Task<void> {
    for (int i = 0; i < kTimes;) {
      Member member(worker, i);
      const Turn turn = co_await queues.Enter(kLeaf, &member);
      if (turn == Turn::kAgain) continue;
      ++i;
      if (turn == Turn::kAnswered) continue;
      LeafQueues::Leader lead(&queues, kLeaf);
      ++led;
      co_await worker->Yield();
      lead.Take(3, [](const LeafQueues::Waiter&) {});
      co_await worker->Yield();
      lead.Answer([&](size_t number, LeafQueues::Waiter&) -> std::optional<Turn> {
        if (number == 2) return std::nullopt;
        ++answered;
        return Turn::kAnswered;
      });
      if (i % 7 != 0) lead.Pass([](LeafQueues::Waiter&) {});
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&client] {
      coro::Worker worker;
      for (int c = 0; c < 3; ++c) worker.Spawn(client(&worker));
      worker.Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(led + answered, uint64_t{kThreads * 3 * kTimes});
  EXPECT_GT(answered, 0u);
}

rdma::GlobalAddress RecordOf(uint64_t key) {
  return {0, (uint64_t{1} << 20) + key % 4096 * kLineBytes};
}

// Clients of one node in one thread: what they do at the same time is always the same.
template <class Kind>
class LeafCombinerTest : public ::testing::Test {
 protected:
  LeafCombinerTest() : cluster_({}) {
    Kind::Register(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = Kind::Create(cluster_.owner().service.get());
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = *std::move(index);
  }

  // A client, with a worker of its own.
  struct Client {
    explicit Client(LeafCombinerTest* test) : thread(&test->cluster_), channel(thread.channel()) {
      worker->AddPoller([this] { return channel.Poll(); });
      auto connected = Kind::Connect(&channel, test->machine_->cache);
      GANNET_CHECK(connected.ok(), "%s", connected.status().ToString());
      remote = *std::move(connected);
      combiner.emplace(dynamic_cast<LeafCombiner::Leaves*>(remote.get()), &test->machine_->queues, worker.get());
    }
    void Spawn(uint64_t key) { worker->Spawn(InsertKey(this, key)); }
    void SpawnUpdate(uint64_t key, rdma::GlobalAddress value) { worker->Spawn(UpdateKey(this, key, value)); }
    static coro::Task<void> UpdateKey(Client* client, uint64_t key, rdma::GlobalAddress value) {
      const StatusOr<std::optional<Change>> combined = co_await client->combiner->Update({key, value.bits()});
      Status status = combined.status();
      if (combined.ok() && !combined->has_value()) {
        ++client->alone;
        status = co_await client->remote->Replace(Key(key), {}, value);
      }
      if (!status.ok()) client->errors.push_back(status);
    }
    static coro::Task<void> InsertKey(Client* client, uint64_t key) {
      StatusOr<std::optional<Change>> combined = co_await client->combiner->Insert({key, RecordOf(key).bits()});
      StatusOr<Change> change = Change();
      if (!combined.ok()) {
        change = combined.status();
      } else if (combined->has_value()) {
        change = *std::move(*combined);
      } else {
        change = co_await client->remote->Insert(Key(key), RecordOf(key));
      }
      if (!change.ok()) {
        client->errors.push_back(change.status());
      } else {
        client->changes.push_back(*std::move(change));
      }
    }

    ClientThread thread;
    SlowChannel channel;
    std::unique_ptr<RemoteIndex> remote;
    std::optional<LeafCombiner> combiner;
    std::vector<Change> changes;
    std::vector<Status> errors;
    int alone = 0;  // updates
    std::unique_ptr<coro::Worker> worker = std::make_unique<coro::Worker>();
  };

  void ExpectKeys(const std::set<uint64_t>& keys) {
    const Status status = index_->CheckStructure();
    ASSERT_TRUE(status.ok()) << status;
    ScanResult all;
    ASSERT_TRUE(index_->Scan({.from = Key(uint64_t{0}), .to = Key(UINT64_MAX)}, &all).ok());
    std::set<uint64_t> found;
    for (const index::Entry& entry : all.entries) {
      EXPECT_EQ(entry.record, RecordOf(entry.key.integer()));
      found.insert(entry.key.integer());
    }
    std::vector<uint64_t> wrong;
    std::ranges::set_symmetric_difference(found, keys, std::back_inserter(wrong));
    EXPECT_THAT(wrong, testing::IsEmpty());
  }
  // Enough keys for several leaves, below 1,000,000.
  std::set<uint64_t> Load(uint64_t keys) {
    std::vector<LoadEntry> entries;
    std::set<uint64_t> loaded;
    for (uint64_t i = 0; i < keys; ++i) {
      entries.push_back({Key(i * 10), RecordOf(i * 10)});
      loaded.insert(i * 10);
    }
    EXPECT_TRUE(index_->BulkLoad(owner_->context(), entries, 0.5).ok());
    return loaded;
  }

  // What the clients of a machine share.
  struct Machine {
    std::shared_ptr<typename Kind::Shared> cache = Kind::Cache();
    LeafQueues queues;
  };

  IndexCluster cluster_;
  std::unique_ptr<Machine> machine_ = std::make_unique<Machine>();
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
};

struct Rolex {
  using Shared = index::rolex::SharedModels;
  static auto Cache() { return MakeRolexCache(); }
  static void Register(IndexService* service) { RegisterRolexMethods(service); }
  static auto Create(IndexService* service) { return CreateRolex(service, kId, KeyKind::kInteger); }
  static auto Connect(rdma::Channel* channel, const std::shared_ptr<Shared>& cache) {
    return ConnectRolex(channel, 0, kId, {.shared = cache});
  }
};
struct Blink {
  using Shared = index::blink::SharedNodes;
  static auto Cache() { return MakeBlinkCache(); }
  static void Register(IndexService* service) { RegisterBlinkMethods(service); }
  static auto Create(IndexService* service) { return CreateBlink(service, kId, KeyKind::kInteger); }
  static auto Connect(rdma::Channel* channel, const std::shared_ptr<Shared>& cache) {
    return ConnectBlink(channel, 0, kId, {.key_kind = KeyKind::kInteger, .shared = cache});
  }
};
using Kinds = ::testing::Types<Rolex, Blink>;
TYPED_TEST_SUITE(LeafCombinerTest, Kinds);

TYPED_TEST(LeafCombinerTest, OneLockForTheInsertsOfALeaf) {
  std::set<uint64_t> keys = this->Load(200);
  typename TestFixture::Client client(this);
  client.Spawn(1001);
  client.worker->Run();
  keys.insert(1001);
  const size_t reads = client.channel.reads();
  const size_t locks = client.channel.locks();
  const size_t changes = client.channel.changes();
  const Witness leaf = this->index_->Find(Key(uint64_t{1005})).witness;
  for (uint64_t key = 1002; key < 1007; ++key) {
    client.Spawn(key);
    keys.insert(key);
  }
  client.worker->Run();
  EXPECT_TRUE(client.errors.empty());
  EXPECT_EQ(client.channel.reads(), reads + 1);
  EXPECT_EQ(client.channel.locks(), locks + 1);
  EXPECT_EQ(client.channel.changes(), changes + 1);
  this->ExpectKeys(keys);

  // Their changes follow each other, from the leaf's word before to that after: no transaction that has seen the leaf
  // takes another's insert for its own.
  ASSERT_EQ(client.changes.size(), 6u);
  std::map<uint64_t, uint64_t> steps;
  for (size_t i = 1; i < client.changes.size(); ++i) {
    ASSERT_EQ(client.changes[i].words().size(), 1u);
    const WordChange& word = client.changes[i].words()[0];
    EXPECT_EQ(word.word, leaf.word);
    EXPECT_TRUE(steps.emplace(word.before, word.after).second);
  }
  uint64_t word = leaf.seen;
  for (size_t i = 0; i < steps.size(); ++i) {
    ASSERT_TRUE(steps.contains(word)) << i;
    word = steps[word];
  }
  EXPECT_EQ(word, this->index_->Find(Key(uint64_t{1009})).witness.seen);
}

TYPED_TEST(LeafCombinerTest, OneLockForTheUpdatesOfALeaf) {
  this->Load(200);
  typename TestFixture::Client client(this);
  client.SpawnUpdate(1000, RecordOf(1));
  client.worker->Run();
  EXPECT_EQ(this->index_->Find(Key(uint64_t{1000})).record, RecordOf(1));
  const size_t reads = client.channel.reads();
  const size_t locks = client.channel.locks();
  const size_t changes = client.channel.changes();
  client.SpawnUpdate(1000, RecordOf(2));
  client.Spawn(1001);
  client.SpawnUpdate(1010, RecordOf(3));
  client.SpawnUpdate(1000, RecordOf(4));
  client.SpawnUpdate(1003, RecordOf(5));  // it is not there
  client.worker->Run();
  EXPECT_EQ(client.alone, 1);
  ASSERT_EQ(client.errors.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(client.errors[0])) << client.errors[0];
  EXPECT_EQ(this->index_->Find(Key(uint64_t{1000})).record, RecordOf(4)) << "the last one";
  EXPECT_EQ(this->index_->Find(Key(uint64_t{1010})).record, RecordOf(3));
  EXPECT_EQ(this->index_->Find(Key(uint64_t{1001})).record, RecordOf(1001));
  EXPECT_LE(client.channel.locks(), locks + 2) << "one, and that of the update that is made alone";
  EXPECT_LE(client.channel.changes(), changes + 2);
  EXPECT_LE(client.channel.reads(), reads + 4);
  const Status status = this->index_->CheckStructure();
  EXPECT_TRUE(status.ok()) << status;
}

// More than a leaf has room for: updates wait while it is split.
TYPED_TEST(LeafCombinerTest, UpdatesWaitForASplit) {
  this->Load(200);
  typename TestFixture::Client client(this);
  client.SpawnUpdate(1000, RecordOf(1));
  client.worker->Run();
  for (uint64_t key = 1001; key < 1040; ++key) {
    if (key % 10 != 0) client.Spawn(key);
    client.SpawnUpdate(key / 10 * 10, RecordOf(key));
  }
  client.worker->Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  for (uint64_t key = 1000; key < 1040; ++key) {
    const rdma::GlobalAddress found = this->index_->Find(Key(key)).record;
    bool is_right = found == RecordOf(key);
    for (uint64_t other = key; key % 10 == 0 && other < key + 10; ++other) is_right |= found == RecordOf(other);
    EXPECT_TRUE(is_right) << key << " has " << found.ToString();
  }
  const Status status = this->index_->CheckStructure();
  EXPECT_TRUE(status.ok()) << status;
}

TYPED_TEST(LeafCombinerTest, OneSplitForTheInsertsOfALeaf) {
  std::set<uint64_t> keys = this->Load(200);
  typename TestFixture::Client client(this);
  client.Spawn(1991);
  client.worker->Run();
  keys.insert(1991);
  const size_t locks = client.channel.locks();
  const uint64_t nodes = this->index_->statistics().nodes;
  for (uint64_t key = 2000; key < 2024; ++key) {
    client.Spawn(key);
    keys.insert(key);
  }
  client.worker->Run();
  EXPECT_TRUE(client.errors.empty());
  EXPECT_EQ(client.changes.size(), 25u);
  this->ExpectKeys(keys);
  EXPECT_GE(this->index_->statistics().nodes, nodes + 1);
  EXPECT_LE(this->index_->statistics().nodes, nodes + 3);
  EXPECT_LT(client.channel.locks(), locks + 24 / 2) << "with those of a tree's inner node";
}

TYPED_TEST(LeafCombinerTest, AKeyIsInsertedOnce) {
  std::set<uint64_t> keys = this->Load(200);
  typename TestFixture::Client client(this);
  for (int i = 0; i < 3; ++i) {
    client.Spawn(500);  // it is there
    client.Spawn(501);
    client.Spawn(502);
  }
  client.worker->Run();
  keys.insert({501, 502});
  EXPECT_EQ(client.changes.size(), 2u);
  EXPECT_EQ(client.errors.size(), 7u);
  for (const Status& error : client.errors) EXPECT_TRUE(absl::IsAlreadyExists(error)) << error;
  this->ExpectKeys(keys);
}

// Another client of the machine does not wait, and a client of another machine does not know of those that do.
TYPED_TEST(LeafCombinerTest, TheLeafIsChangedByOthers) {
  std::set<uint64_t> keys = this->Load(400);
  typename TestFixture::Client client(this);
  OwnerThread owner(&this->cluster_);
  for (uint64_t key = 1001; key < 1400; ++key) {
    if (key % 10 == 0) continue;
    client.Spawn(key);
    keys.insert(key);
  }
  for (int round = 0; client.changes.size() < 300; ++round) {
    client.worker->BlockOn(YieldTimes(client.worker.get(), 1));
    const auto key = static_cast<uint64_t>(1000 + round % 40 * 10);
    if (!keys.erase(key)) continue;
    ASSERT_TRUE(this->index_->Remove(owner.context(), Key(key), RecordOf(key)).ok());
  }
  client.worker->Run();
  EXPECT_TRUE(client.errors.empty());
  this->ExpectKeys(keys);
}

// The leader's thread ends while its change is on the way. Those that it had taken do not know whether it was made;
// those that wait insert their keys themselves.
TYPED_TEST(LeafCombinerTest, ALeaderThatEndsLetsTheOthersGoOn) {
  for (int steps = 0; steps < 8; ++steps) {
    SCOPED_TRACE(steps);
    std::set<uint64_t> sure = steps == 0 ? this->Load(200) : std::set<uint64_t>();
    const uint64_t from = 1'000'000 + static_cast<uint64_t>(steps) * 1000;
    typename TestFixture::Client other(this);
    other.Spawn(from);
    other.worker->Run();
    {
      typename TestFixture::Client ends(this);
      ends.Spawn(from + 1);
      ends.worker->BlockOn(YieldTimes(ends.worker.get(), 1));
      for (uint64_t key = from + 2; key < from + 7; ++key) other.Spawn(key);
      other.worker->BlockOn(YieldTimes(other.worker.get(), 2));
      ends.worker->BlockOn(YieldTimes(ends.worker.get(), steps));
      ends.worker.reset();
    }
    other.worker->Run();
    EXPECT_EQ(other.changes.size() + other.errors.size(), 6u);
    for (const Status& error : other.errors) EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    // The channel's node has died for the owner: what its verbs had locked is repaired.
    this->index_->RepairAfter(1);
    this->machine_ = std::make_unique<typename TestFixture::Machine>();
    const Status status = this->index_->CheckStructure();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_FALSE(this->index_->Find(Key(from)).record.is_null());
  }
}

TYPED_TEST(LeafCombinerTest, ClientsOfSeveralThreads) {
  std::set<uint64_t> keys = this->Load(200);
  std::vector<std::thread> threads;
  for (uint64_t n = 1; n <= 3; ++n) {
    for (uint64_t i = 0; i < 200; ++i) keys.insert(10 * i + n);
    threads.emplace_back([this, n] {
      typename TestFixture::Client client(this);
      for (uint64_t i = 0; i < 200; ++i) {
        client.Spawn(10 * i + n);
        if (i % 8 == 7) client.worker->Run();
      }
      for (const Status& error : client.errors) ADD_FAILURE() << error;
    });
  }
  for (std::thread& thread : threads) thread.join();
  this->ExpectKeys(keys);
}

class RolexCombinerTest : public LeafCombinerTest<Rolex> {
 protected:
  // A client of another machine, which has a cache of its own.
  std::unique_ptr<Client> OnOtherMachine() {
    std::swap(machine_, other_);
    auto client = std::make_unique<Client>(this);
    std::swap(machine_, other_);
    return client;
  }

  std::unique_ptr<Machine> other_ = std::make_unique<Machine>();
};

// What others know of a new leaf costs one posting after the split: the slot was taken in that of the split.
TEST_F(RolexCombinerTest, ASplitTakesTheSlotOfItsSynonym) {
  std::set<uint64_t> keys = Load(200);
  Client client(this);
  client.Spawn(1001);
  client.worker->Run();
  keys.insert(1001);
  const std::byte* const table = dynamic_cast<index::rolex::RolexIndex*>(index_.get())->synonym_tables()[0];
  ASSERT_EQ(LoadWord(table + index::rolex::kUsedOffset), 0u);
  const auto postings = [&client] { return std::array{client.channel.reads(), client.channel.changes()}; };
  size_t splits = 0;
  for (uint64_t key = 1002; key < 1060; ++key) {
    if (!keys.insert(key).second) continue;
    const auto before = postings();
    client.Spawn(key);
    client.worker->Run();
    const bool is_split = LoadWord(table + index::rolex::kUsedOffset) > splits;
    EXPECT_EQ(postings()[0], before[0] + 1);
    EXPECT_EQ(postings()[1], before[1] + (is_split ? 2 : 1));
    if (!is_split) continue;
    ++splits;
    const index::rolex::Synonym synonym{LoadWord(table + index::rolex::SynonymOffset(splits - 1)),
                                        LoadWord(table + index::rolex::SynonymOffset(splits - 1) + kWordBytes)};
    const auto* const leaf = reinterpret_cast<const index::shared_leaf::LeafHead*>(cluster_.At({0, synonym.leaf}));
    EXPECT_EQ(leaf->low, synonym.low);
  }
  EXPECT_GE(splits, 3u);
  EXPECT_TRUE(client.errors.empty());
  ExpectKeys(keys);
}

// Another machine has appended many leaves. The clients of this one that want to append, too, all expect the leaf that
// was the last before; they come to their own by a few steps, and together.
TEST_F(RolexCombinerTest, ClientsCatchUpWithAnotherMachine) {
  std::set<uint64_t> keys = Load(200);
  Client client(this);
  const std::unique_ptr<Client> other = OnOtherMachine();
  const auto insert = [&keys](Client* by, uint64_t from, uint64_t n) {
    for (uint64_t key = from; key < from + 10 * n; key += 10) {
      by->Spawn(key);
      keys.insert(key);
    }
    by->worker->Run();
  };
  insert(&client, 10'000, 20);
  for (uint64_t round = 0; round < 40; ++round) insert(other.get(), 20'000 + 1000 * round, 20);
  const uint64_t leaves = index_->statistics().nodes;
  ASSERT_GT(leaves, 40u);
  // The inserts come in the middle of what the other one has appended, and behind it.
  const size_t reads = client.channel.reads();
  for (uint64_t key = 30'005; key < 60'000; key += 3000) {
    client.Spawn(key);
    keys.insert(key);
  }
  insert(&client, 70'000, 10);
  EXPECT_TRUE(client.errors.empty());
  EXPECT_TRUE(other->errors.empty());
  // There is one READ for each of the 11 leaves, and few until they are known.
  EXPECT_LE(client.channel.reads() - reads, 11u + 6u);
  ExpectKeys(keys);
}

// The newest synonyms are found also where the ring of slots has come round between two looks.
TEST_F(RolexCombinerTest, ClientsCatchUpOverTheEndOfTheRing) {
  std::set<uint64_t> keys = Load(200);
  Client client(this);
  const std::unique_ptr<Client> other = OnOtherMachine();
  Random random(1);
  client.Spawn(9'990);  // it knows the model
  client.worker->Run();
  keys.insert(9'990);
  uint64_t next = 10'000;
  const std::byte* const table = dynamic_cast<index::rolex::RolexIndex*>(index_.get())->synonym_tables()[0];
  for (int round = 0; round < 60; ++round) {
    for (uint64_t n = random.Below(400); n > 0; --n) {
      other->Spawn(next);
      keys.insert(next);
      next += 10;
    }
    other->worker->Run();
    const size_t reads = client.channel.reads();
    client.Spawn(next);
    keys.insert(next);
    next += 10;
    client.worker->Run();
    EXPECT_LE(client.channel.reads() - reads, 6u);
  }
  EXPECT_GT(LoadWord(table + index::rolex::kUsedOffset), 2 * index::rolex::kSynonyms);
  EXPECT_TRUE(client.errors.empty());
  EXPECT_TRUE(other->errors.empty());
  ExpectKeys(keys);
}

}  // namespace leaf_combiner_test
}  // namespace gannet::ycsb
