// Claims of leaves (index/shared_leaf/claim/claim.h), in simulations: what a holder reads without a verb, how the owner
// and others change what is claimed, lost connections and deaths. And that each rule is needed: deliberate mistakes
// (base/mutant.h) show.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/claim_boards.h"
#include "index/dex/dex.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "rdma/forwarding.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/relay_fabric.h"

namespace gannet::index {
namespace dex_claim_test {

using shared_leaf::ClaimHolder;

constexpr IndexId kId = 1;
constexpr uint64_t kKeys = 400;  // that exist: the even numbers below 2 * kKeys
constexpr rdma::NodeId kOwner = 0;
constexpr rdma::NodeId kHolder = 1;
constexpr rdma::NodeId kOther = 2;

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}

rdma::GlobalAddress Value(uint64_t n) {
  return rdma::GlobalAddress::FromBits(n + 1);
}
uint64_t NumberOf(rdma::GlobalAddress value) {
  return value.bits() - 1;
}

// The connection between the owner and the holder, which a test can end. (A cut link of the simulation keeps it.)
struct Link {
  uint64_t connection = 1;
  bool carries = true;  // verbs
  // What each of the two sees; 0: it knows that the connection has ended.
  std::array<uint64_t, 2> seen = {1, 1};

  static bool IsBetween(rdma::NodeId from, rdma::NodeId to) { return from + to == kOwner + kHolder; }
};

class LinkChannel final : public RelayChannel {
 public:
  LinkChannel(std::unique_ptr<rdma::Channel> inner, rdma::Node* node, const rdma::Capabilities& capabilities,
              const Link* link)
      : RelayChannel(std::move(inner), node->memory().data(), capabilities), link_(*link) {}

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    for (const rdma::Operation& operation : operations) {
      if (Carries(operation.remote.node(), operation.connection)) continue;
      completion->status = absl::UnavailableError("the connection has ended");
      return true;
    }
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    if (!Carries(call.node, call.connection)) {
      completion->status = absl::UnavailableError("the connection has ended");
      return true;
    }
    return Complete(RelayCall(call, completion), completion);
  }

 private:
  bool Carries(rdma::NodeId to, uint64_t connection) const {
    if (!Link::IsBetween(node(), to)) return true;
    return link_.carries && (connection == 0 || connection == link_.connection);
  }
  // The fabric beneath has one connection all the time.
  coro::Task<Status> Relay(std::span<rdma::Operation> operations) {
    std::vector<rdma::Operation> relayed(operations.begin(), operations.end());
    for (rdma::Operation& operation : relayed) {
      if (Link::IsBetween(node(), operation.remote.node())) operation.connection = 0;
    }
    Status status = co_await inner().Post(relayed);
    for (size_t i = 0; i < relayed.size(); ++i) operations[i].result = relayed[i].result;
    counters_ = inner().counters();
    co_return status;
  }
  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion) {
    if (Link::IsBetween(node(), call.node)) call.connection = 0;
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    counters_ = inner().counters();
    co_return bytes.status();
  }

  const Link& link_;
};

class LinkNode final : public rdma::ForwardingNode {
 public:
  LinkNode(std::unique_ptr<rdma::Node> inner, const rdma::Capabilities& capabilities, const Link* link)
      : ForwardingNode(std::move(inner)), capabilities_(capabilities), link_(*link) {}

  StatusOr<std::unique_ptr<rdma::Channel>> OpenChannel() override {
    return std::unique_ptr<rdma::Channel>(
        std::make_unique<LinkChannel>(Must(inner().OpenChannel()), &inner(), capabilities_, &link_));
  }
  uint64_t ConnectionTo(rdma::NodeId peer) const override {
    const uint64_t connection = ForwardingNode::ConnectionTo(peer);
    return connection != 0 && Link::IsBetween(id(), peer) ? link_.seen[id()] : connection;
  }

 private:
  const rdma::Capabilities capabilities_;
  const Link& link_;
};

// Node 0 owns a tree of integers, whose values are in the entries. Node 1 claims all of its leaves, node 2 does not.
class World {
 public:
  explicit World(uint64_t seed, const rdma::sim::Faults& faults = {}, uint64_t keys = kKeys)
      : simulation_({.seed = seed, .faults = faults}),
        fabric_(Must(rdma::sim::SimFabric::Create(
            &simulation_, {.num_nodes = 3, .bytes_per_node = 32 << 20, .detection_nanos = 500'000}))) {
    for (const rdma::NodeId id : {kOwner, kHolder, kOther}) Attach(id);
    service_ = std::make_unique<IndexService>(nodes_[kOwner].get(), slabs_[kOwner].get(), epochs_[kOwner].get());
    RegisterDexMethods(service_.get());
    index_ = Must(CreateDex(service_.get(), kId, KeyKind::kInteger));
    const Status served = nodes_[kOwner]->Serve(2);
    GANNET_CHECK(served.ok(), "%s", served.ToString());
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < keys; ++i) entries.push_back({Key(2 * i), Value(0)});
    IndexService::Guard guard(service_.get());
    const Status loaded = index_->BulkLoad(guard.context(), entries, 0.7);
    GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
  }
  ~World() {
    for (auto& node : nodes_) {
      if (node != nullptr) node->Shutdown();
    }
    index_.reset();
    service_.reset();
    for (auto& epochs : epochs_) epochs.reset();
  }

  void Attach(rdma::NodeId id) {
    epochs_[id].reset();
    slabs_[id].reset();
    if (id == kHolder)
      link_ = {.connection = link_.connection + 1, .seen = {link_.connection + 1, link_.connection + 1}};
    nodes_[id] = std::make_unique<LinkNode>(Must(fabric_->Attach(id)), fabric_->capabilities(), &link_);
    slabs_[id] = std::make_unique<rdma::SlabAllocator>(nodes_[id].get());
    epochs_[id] = Must(rdma::EpochManager::Create(fabric_.get(), nodes_[id].get(), slabs_[id].get()));
    if (id != kHolder) return;
    rdma::SlabCache slab(slabs_[id].get());
    claims_ = std::make_unique<ClaimHolder>(nodes_[id].get(), Must(slab.Allocate(kBoardBytes)), ++processes_);
    pages_ = MakeDexCache(cache_bytes_);
    pages_->SetRanges({{.first = OwnedKey(Key(uint64_t{0})), .node = kHolder}});
  }

  void Insert(uint64_t key, uint64_t number) {
    IndexService::Guard guard(service_.get());
    const auto change = index_->Insert(guard.context(), Key(key), Value(number), nullptr);
    ASSERT_TRUE(change.ok()) << change.status();
  }

  // Between the holder's loss and the moment at which it may come back.
  bool RepairIfLost() {
    if (!service_->boards().IsLost(kHolder)) return false;
    index_->RepairAfter(kHolder);
    if (!GANNET_MUTANT(kNoClaimTerm)) SleepForNanos(NanosOf(kClaimTerm));
    const Status ended = index_->EndClaimsOf(kHolder);
    GANNET_CHECK(ended.ok(), "%s", ended.ToString());
    service_->boards().Forget(kHolder);
    return true;
  }

  uint64_t StateOf(rdma::GlobalAddress leaf) const { return LoadWord(nodes_[kOwner]->memory().data() + leaf.offset()); }
  // Leaves with a claim of the holder.
  size_t claims() {
    size_t n = 0;
    const auto& blocks = dynamic_cast<shared_leaf::BlockLender&>(*index_).blocks();
    blocks.ForEach([&](rdma::GlobalAddress at) { n += shared_leaf::IsClaimedBy(kHolder, StateOf(at)) ? 1 : 0; });
    return n;
  }

  rdma::sim::Simulation& simulation() { return simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }
  Link& link() { return link_; }
  rdma::Node* node(rdma::NodeId id) { return nodes_[id].get(); }
  LocalIndex& index() { return *index_; }
  IndexService& service() { return *service_; }
  ClaimHolder* claimant() { return claims_.get(); }
  const std::shared_ptr<dex::SharedPages>& pages() { return pages_; }

 private:
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  Link link_;
  std::array<std::unique_ptr<rdma::Node>, 3> nodes_;
  std::array<std::unique_ptr<rdma::SlabAllocator>, 3> slabs_;
  std::array<std::unique_ptr<rdma::EpochManager>, 3> epochs_;
  std::unique_ptr<IndexService> service_;
  std::unique_ptr<LocalIndex> index_;
  size_t cache_bytes_ = size_t{1} << 20;
  uint64_t processes_ = 0;
  std::unique_ptr<ClaimHolder> claims_;
  std::shared_ptr<dex::SharedPages> pages_;
};

// A client of a node, for one thread.
class Client {
 public:
  Client(World* world, rdma::NodeId node) : channel_(Must(world->node(node)->OpenChannel())) {
    worker_.AddPoller([this] { return channel_->Poll(); });
    const bool claims = node == kHolder;
    remote_ = Must(ConnectDex(channel_.get(), kOwner, kId,
                              {.shared = claims ? world->pages() : nullptr,
                               .call_timeout = absl::Milliseconds(100),
                               .patience = absl::Milliseconds(100),
                               .node = world->node(node),
                               .values_in_entries = true,
                               .claims = claims ? world->claimant() : nullptr}));
  }

  StatusOr<FindResult> Find(uint64_t key) { return worker_.BlockOn(FindTask(key)); }
  StatusOr<Change> Insert(uint64_t key, uint64_t number) {
    return worker_.BlockOn(remote_->Insert(Key(key), Value(number)));
  }
  StatusOr<Change> Remove(uint64_t key, uint64_t number) {
    return worker_.BlockOn(remote_->Remove(Key(key), Value(number)));
  }
  Status Replace(uint64_t key, uint64_t number) {
    return worker_.BlockOn(remote_->Replace(Key(key), {}, Value(number)));
  }
  Status Scan(uint64_t from, uint64_t to, ScanResult* result) {
    return worker_.BlockOn(remote_->Scan({.from = Key(from), .to = Key(to)}, result));
  }
  const rdma::VerbCounters& verbs() const { return channel_->counters(); }

 private:
  coro::Task<StatusOr<FindResult>> FindTask(uint64_t key) { co_return co_await remote_->Find(Key(key)); }

  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  std::unique_ptr<RemoteIndex> remote_;
};

uint64_t VerbsIn(const rdma::VerbCounters& verbs) {
  return verbs.reads + verbs.writes + verbs.compare_and_swaps + verbs.fetch_and_adds + verbs.calls;
}

// Runs on a thread of the node, as all code that uses its channel does.
template <class Body>
void On(World* world, rdma::NodeId node, Body body) {
  Runtime::Thread* const thread = world->simulation().StartOn(node, "test", body);
  world->simulation().Join(thread);
}

TEST(DexClaim, AClaimedLeafTakesNoVerb) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    EXPECT_GE(world.claims(), 100 / 13u);
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 200; ++key) {
      const StatusOr<FindResult> found = client.Find(key);
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->record, key % 2 == 0 ? Value(0) : rdma::GlobalAddress());
      EXPECT_EQ(found->witness.word.is_null(), key % 2 == 0);
    }
    ScanResult rows;
    ASSERT_TRUE(client.Scan(10, 150, &rows).ok());
    EXPECT_EQ(rows.entries.size(), 71u);
    EXPECT_EQ(VerbsIn(client.verbs() - before), 0u);
    Client second(&world, kHolder);
    ASSERT_TRUE(second.Find(1).ok());
    const rdma::VerbCounters known = second.verbs();
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(second.Find(key).ok());
    EXPECT_EQ(VerbsIn(second.verbs() - known), 0u) << "the copies are those of all clients of the process";
  });
}

TEST(DexClaim, ALeaseThatHasEndedTakesOneLookAtALeaf) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    SleepForNanos(2 * NanosOf(kClaimLease));
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_EQ(VerbsIn(used), 1u) << "one READ renews the lease of all";
    EXPECT_EQ(used.bytes_in, kWordBytes);
  });
}

TEST(DexClaim, AChangeByAnybodyShows) {
  World world(1);
  On(&world, kHolder, [&] {
    Client holder(&world, kHolder);
    Client other(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(holder.Find(key).ok());
    // The owner.
    world.Insert(11, 7);
    EXPECT_EQ(holder.Find(11)->record, Value(7));
    EXPECT_GT(world.service().boards().ended(), 0u);
    // Another thread of the holder, and itself.
    const uint64_t ended = world.service().boards().ended();
    ASSERT_TRUE(other.Replace(60, 3).ok());
    ASSERT_TRUE(holder.Replace(62, 4).ok());
    ASSERT_TRUE(holder.Insert(63, 5).ok());
    ASSERT_TRUE(holder.Remove(64, 0).ok());
    const rdma::VerbCounters before = holder.verbs();
    EXPECT_EQ(holder.Find(60)->record, Value(3));
    EXPECT_EQ(holder.Find(62)->record, Value(4));
    EXPECT_EQ(holder.Find(63)->record, Value(5));
    EXPECT_TRUE(holder.Find(64)->record.is_null());
    EXPECT_EQ(VerbsIn(holder.verbs() - before), 0u) << "changes by the holder go into its copies";
    EXPECT_EQ(world.service().boards().ended(), ended);
  });
  // Another node calls the owner.
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    ASSERT_TRUE(other.Find(80).ok());
    const rdma::VerbCounters before = other.verbs();
    ASSERT_TRUE(other.Replace(80, 9).ok());
    ASSERT_TRUE(other.Insert(81, 10).ok());
    ASSERT_TRUE(other.Remove(82, 0).ok());
    const rdma::VerbCounters used = other.verbs() - before;
    EXPECT_GE(used.calls, 1u);
  });
  On(&world, kHolder, [&] {
    Client holder(&world, kHolder);
    EXPECT_EQ(holder.Find(80)->record, Value(9));
    EXPECT_EQ(holder.Find(81)->record, Value(10));
    EXPECT_TRUE(holder.Find(82)->record.is_null());
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

TEST(DexClaim, AChangeByTheHolderTakesTwoRoundTrips) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 100; key += 2) ASSERT_TRUE(client.Replace(key, key).ok());
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_EQ(used.reads, 0u) << "the leaf is in the cache";
    EXPECT_EQ(used.compare_and_swaps, 50u) << "the lock";
    EXPECT_EQ(used.calls, 0u);
  });
}

TEST(DexClaim, ANodeWhoseClaimWasEndedWaitsBeforeItClaimsAgain) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    ASSERT_TRUE(client.Find(20).ok());
    const size_t claims = world.claims();
    ASSERT_GT(claims, 0u);
    world.Insert(21, 1);
    EXPECT_EQ(world.claims(), claims - 1);
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(world.claims(), claims - 1) << "it would disturb the owner";
    SleepForNanos(1'100'000);
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(world.claims(), claims);
  });
}

TEST(DexClaim, AnOwnerThatHasLostTheHolderWaitsForItsLease) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
  });
  ASSERT_GT(world.claims(), 0u);
  world.fabric().Kill(kHolder);
  const uint64_t killed = world.simulation().now();
  bool is_over = false;
  Thread repair("repair", [&] {
    while (!is_over) {
      world.RepairIfLost();
      SleepForNanos(100'000);
    }
  });
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    // The leaf is served, and can be changed when the lease has ended for sure.
    EXPECT_EQ(other.Find(60)->record, Value(0));
    ASSERT_TRUE(other.Replace(60, 1).ok());
    EXPECT_EQ(other.Find(60)->record, Value(1));
  });
  EXPECT_LT(world.simulation().now() - killed, 50'000'000u);
  is_over = true;
  repair.join();
  EXPECT_EQ(world.claims(), 0u);
  // The next process of the node claims again.
  world.Attach(kHolder);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
  });
  EXPECT_GT(world.claims(), 0u);
}

// --- histories ---

// The value of each key only grows, by one writer at a time. What was read must be a value that the key had at a moment
// between the beginning and the end of the read.
class History {
 public:
  struct Write {
    uint64_t begin = 0;
    uint64_t end = UINT64_MAX;
  };

  History() : writes_(2 * kKeys) {
    for (std::vector<Write>& of : writes_) of.push_back({.begin = 0, .end = 0});
  }
  uint64_t Tick() { return ++clock_; }
  size_t Begin(uint64_t key) {
    writes_[key].push_back({.begin = Tick()});
    return writes_[key].size() - 1;
  }
  void End(uint64_t key, size_t number) { writes_[key][number].end = Tick(); }
  // Empty: right.
  std::string Judge(uint64_t key, uint64_t number, uint64_t begin, uint64_t end) const {
    const std::vector<Write>& writes = writes_[key];
    if (number >= writes.size() || writes[number].begin > end) return "a value that nobody has written";
    for (size_t later = number + 1; later < writes.size(); ++later) {
      if (writes[later].end < begin) return "value " + std::to_string(number) + " when it was overwritten";
    }
    return "";
  }

 private:
  uint64_t clock_ = 0;
  std::vector<std::vector<Write>> writes_;
};

struct RaceOptions {
  // Of the holder's connection to the owner. Then it changes nothing: that it may do so again only after the repair of
  // its locks is the business of transactions (txn/peer/peers.h).
  bool cuts = false;
  int operations = 250;
};

// Ends of claims of a lost holder, in all races.
uint64_t repairs = 0;

// Threads of all nodes read and write a few leaves. Returns what is wrong, or nothing.
std::string Race(uint64_t seed, const RaceOptions& options) {
  constexpr uint64_t kHot = 40;             // keys, in three or four leaves
  constexpr uint64_t kVerbNanos = 100'000;  // a verb that was posted has taken effect, or will not
  const rdma::sim::Faults faults{.scatter_lines = 0.2,
                                 .scatter_nanos = 2000,
                                 .preempt = 0.02,
                                 .preempt_nanos = 8000,
                                 .slow_completion = 0.05,
                                 .slow_nanos = 20'000,
                                 .clock_drift = 0.1};
  World world(seed, faults);
  History history;
  std::array<bool, 2 * kKeys> taken{};  // by a writer
  std::string wrong;
  int running = 0;
  const auto note = [&wrong, seed](const std::string& what) {
    if (wrong.empty()) wrong = "seed " + std::to_string(seed) + ": " + what;
  };
  const auto read = [&](Client* client, uint64_t key) {
    const uint64_t begin = history.Tick();
    const StatusOr<FindResult> found = client->Find(key);
    if (!found.ok()) return;  // of a cut link
    const std::string judged =
        found->record.is_null() ? "no value" : history.Judge(key, NumberOf(found->record), begin, history.Tick());
    if (!judged.empty()) note("key " + std::to_string(key) + ": " + judged);
  };
  const auto scan = [&](Client* client, uint64_t key) {
    const uint64_t begin = history.Tick();
    ScanResult rows;
    if (!client->Scan(key, key + 30, &rows).ok()) return;
    const uint64_t end = history.Tick();
    for (const Entry& row : rows.entries) {
      if (row.key.integer() % 2 != 0) continue;  // of the churn
      const std::string judged = history.Judge(row.key.integer(), NumberOf(row.record), begin, end);
      if (!judged.empty()) note("scanned " + std::to_string(row.key.integer()) + ": " + judged);
    }
  };
  // A write whose outcome is unknown may take effect later: the key is left alone from then on.
  const auto write = [&](Client* client, uint64_t key) {
    if (std::exchange(taken[key], true)) return;
    const size_t number = history.Begin(key);
    Status done;
    if (client != nullptr) {
      done = client->Replace(key, number);
    } else {
      done = world.index().Replace(Key(key), Value(number - 1), Value(number));
    }
    if (!done.ok()) return;
    history.End(key, number);
    taken[key] = false;
  };
  const auto churn = [&](Client* client, uint64_t key, bool* is_there) {
    if (client != nullptr) {
      const Status done = *is_there ? client->Remove(key, 0).status() : client->Insert(key, 0).status();
      if (done.ok()) *is_there = !*is_there;
      return;
    }
    IndexService::Guard guard(&world.service());
    const Status done = *is_there ? world.index().Remove(guard.context(), Key(key), Value(0)).status()
                                  : world.index().Insert(guard.context(), Key(key), Value(0), nullptr).status();
    if (done.ok()) *is_there = !*is_there;
  };
  // `node` nullopt: the owner's CPU. `writes` of 16 operations.
  const auto work = [&](std::optional<rdma::NodeId> node, uint64_t number, uint64_t writes) {
    Random random(seed * 16 + number);
    std::unique_ptr<Client> client;
    if (node.has_value()) client = std::make_unique<Client>(&world, *node);
    std::array<bool, 8> there{};
    for (int i = 0; i < options.operations && wrong.empty(); ++i) {
      const uint64_t key = 100 + 2 * random.Below(kHot);
      const uint64_t what = random.Below(16);
      if (what < writes) {
        write(client.get(), key);
      } else if (what < writes + 1 && writes > 0) {
        const uint64_t own = random.Below(8);
        churn(client.get(), 101 + 16 * own % (2 * kHot) + 2 * number, &there[own]);
      } else if (client == nullptr) {
        SleepForNanos(random.Below(20'000));
      } else if (random.OneIn(6)) {
        scan(client.get(), key);
      } else {
        read(client.get(), key);
      }
      if (random.OneIn(options.cuts ? 8 : 64)) SleepForNanos(random.Below(4'000'000));
    }
    --running;
  };
  struct Role {
    std::optional<rdma::NodeId> node;
    uint64_t writes;
  };
  std::vector<Runtime::Thread*> threads;
  const std::array<Role, 6> roles = {Role{kHolder, 0}, Role{kHolder, 0},      Role{kHolder, 3},
                                     Role{kHolder, 3}, Role{std::nullopt, 5}, Role{kOther, 2}};
  running = static_cast<int>(roles.size());
  for (uint64_t i = 0; i < roles.size(); ++i) {
    Role role = roles[i];
    if (options.cuts && role.node == kHolder) role.writes = 0;
    threads.push_back(world.simulation().StartOn(role.node.value_or(kOwner), "worker",
                                                 [&work, role, i] { work(role.node, i, role.writes); }));
  }
  threads.push_back(world.simulation().StartOn(kOwner, "repair", [&] {
    Random random(seed);
    while (running > 0) {
      repairs += world.RepairIfLost() ? 1 : 0;
      SleepForNanos(200'000);
    }
  }));
  if (options.cuts) {
    threads.push_back(world.simulation().StartOn(kOther, "cuts", [&] {
      Random random(seed + 1);
      Link& link = world.link();
      while (running > 0) {
        SleepForNanos(random.Below(10'000'000));
        link.carries = false;
        SleepForNanos(kVerbNanos);
        const size_t first = random.Below(2);
        link.seen[first] = 0;
        SleepForNanos(random.Below(40'000'000));
        link.seen[1 - first] = 0;
        SleepForNanos(random.Below(20'000'000));
        ++link.connection;
        link.seen = {link.connection, link.connection};
        link.carries = true;
      }
    }));
  }
  for (Runtime::Thread* const thread : threads) world.simulation().Join(thread);
  const Status structure = world.index().CheckStructure();
  if (!structure.ok()) note(structure.ToString());
  return wrong;
}

// More by hand: GANNET_CLAIM_SEEDS.
uint64_t Seeds(uint64_t seeds) {
  const char* const asked = std::getenv("GANNET_CLAIM_SEEDS");
  return asked == nullptr ? seeds : std::strtoull(asked, nullptr, 10);
}

TEST(DexClaim, WhatIsReadWasThere) {
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) ASSERT_EQ(Race(seed, {}), "");
}

TEST(DexClaim, WhatIsReadWasThereWhenConnectionsEnd) {
  repairs = 0;
  for (uint64_t seed = 1; seed <= Seeds(40); ++seed) ASSERT_EQ(Race(seed, {.cuts = true}), "");
  EXPECT_GT(repairs, 40u);
}

TEST(DexClaim, EachRuleIsNeeded) {
  struct Mistake {
    Mutant mutant;
    const char* name;
    bool cuts;
  };
  for (const Mistake& mistake :
       {Mistake{Mutant::kClaimNotEnded, "ClaimNotEnded", false}, Mistake{Mutant::kBoardUnseen, "BoardUnseen", false},
        Mistake{Mutant::kLeaseUnseen, "LeaseUnseen", true},
        Mistake{Mutant::kClaimSameVersion, "ClaimSameVersion", false},
        Mistake{Mutant::kClaimBeforeFrame, "ClaimBeforeFrame", false},
        Mistake{Mutant::kCopyStaysGood, "CopyStaysGood", false},
        Mistake{Mutant::kUnmarkedChange, "UnmarkedChange", false},
        Mistake{Mutant::kNoClaimTerm, "NoClaimTerm", true}}) {
    active_mutant = mistake.mutant;
    std::string wrong;
    uint64_t seed = 1;
    for (; wrong.empty() && seed <= 2000; ++seed) wrong = Race(seed, {.cuts = mistake.cuts});
    active_mutant = Mutant::kNone;
    EXPECT_NE(wrong, "") << mistake.name;
    std::printf("%s: %s\n", mistake.name, wrong.c_str());
  }
}

}  // namespace dex_claim_test
}  // namespace gannet::index
