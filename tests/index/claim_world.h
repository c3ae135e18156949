// A small world for tests of claimed and kept leaves (index/shared_leaf/claim/claim.h), in a simulation: an owner, a
// holder and another node, with a connection between the first two that a test can end.
#pragma once

#include <array>
#include <cstdint>
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
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/claim_boards.h"
#include "index/dex/dex.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/leaf_client.h"
#include "index/shared_leaf/leaf_index.h"
#include "rdma/forwarding.h"
#include "rdma/relay.h"
#include "rdma/sim/sim_fabric.h"

namespace gannet::index::claim_world {

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

inline rdma::GlobalAddress Value(uint64_t n) {
  return rdma::GlobalAddress::FromBits(n + 1);
}
inline uint64_t NumberOf(rdma::GlobalAddress value) {
  return value.bits() - 1;
}

// The connection between the owner and the holder, which a test can end. (A cut link of the simulation keeps it.)
struct Link {
  uint64_t connection = 1;
  bool carries = true;  // verbs
  // The connection that each of the two sees; 0: it knows that the connection has ended.
  std::array<uint64_t, 2> seen = {1, 1};

  static bool IsBetween(rdma::NodeId from, rdma::NodeId to) { return from + to == kOwner + kHolder; }
};

class LinkChannel final : public rdma::RelayChannel {
 public:
  LinkChannel(std::unique_ptr<rdma::Channel> inner, rdma::Node* node, const rdma::Capabilities& capabilities,
              const Link* link)
      : rdma::RelayChannel(std::move(inner), node->memory().data(), capabilities), link_(*link) {}

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

struct WorldOptions {
  rdma::sim::Faults faults = {};
  shared_leaf::Keeping keeping = shared_leaf::Keeping::kNone;
  size_t cache_bytes = size_t{1} << 20;               // of a node that claims
  bool other_claims = false;                          // node 2 believes that all keys are its own
  uint64_t holder_until = UINT64_MAX;                 // keys from here on are nobody's to claim
  absl::Duration patience = absl::Milliseconds(100);  // of the other node, with a locked leaf
};

// Node 0 owns a tree of integers, whose values are in the entries. Node 1 claims its leaves, or keeps them; node 2 does
// not, unless it is asked to.
class World {
 public:
  explicit World(uint64_t seed, const WorldOptions& options = {})
      : options_(options),
        simulation_({.seed = seed, .faults = options.faults}),
        fabric_(Must(rdma::sim::SimFabric::Create(
            &simulation_, {.num_nodes = 3, .bytes_per_node = 32 << 20, .detection_nanos = 500'000}))) {
    for (const rdma::NodeId id : {kOwner, kHolder, kOther}) Attach(id);
    service_ = std::make_unique<IndexService>(nodes_[kOwner].get(), slabs_[kOwner].get(), epochs_[kOwner].get());
    RegisterDexMethods(service_.get());
    index_ = Must(CreateDex(service_.get(), kId, KeyKind::kInteger));
    std::vector<ClaimRange> ranges = AllFor(kHolder);
    if (options_.holder_until != UINT64_MAX) ranges.push_back({OwnedKey(Key(options_.holder_until)), kOwner});
    SetRanges(ranges);
    const Status served = nodes_[kOwner]->Serve(2);
    GANNET_CHECK(served.ok(), "%s", served.ToString());
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < kKeys; ++i) entries.push_back({Key(2 * i), Value(0)});
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
    if (id != kHolder && !(id == kOther && options_.other_claims)) return;
    rdma::SlabCache slab(slabs_[id].get());
    claims_[id] = std::make_unique<ClaimHolder>(nodes_[id].get(), Must(slab.Allocate(kBoardBytes)), ++processes_);
    claims_[id]->set_keeping(options_.keeping);
    pages_[id] = MakeDexCache(options_.cache_bytes);
    // Node 2 has asked for the ranges, as it believes.
    if (id == kOther) pages_[id]->SetRanges(AllFor(id), AskedBy(id));
  }

  static std::vector<ClaimRange> AllFor(rdma::NodeId id) { return {{.first = OwnedKey(Key(uint64_t{0})), .node = id}}; }
  void SetRanges(const std::vector<ClaimRange>& ranges) {
    const Status set = dynamic_cast<shared_leaf::AnyLeafIndex&>(*index_).SetClaimRanges(ranges);
    GANNET_CHECK(set.ok(), "%s", set.ToString());
  }

  void Insert(uint64_t key, uint64_t number) {
    IndexService::Guard guard(service_.get());
    const auto change = index_->Insert(guard.context(), Key(key), Value(number), nullptr);
    ASSERT_TRUE(change.ok()) << change.status();
  }

  // Between the loss of a node and the moment at which it may come back.
  bool RepairIfLost(rdma::NodeId node = kHolder) {
    if (!service_->boards().IsLost(node)) return false;
    index_->RepairAfter(node);
    while (!service_->boards().IsTermOver(node)) SleepForNanos(1'000'000);
    const Status ended = index_->EndClaimsOf(node);
    GANNET_CHECK(ended.ok(), "%s", ended.ToString());
    service_->boards().Forget(node);
    return true;
  }

  uint64_t StateOf(rdma::GlobalAddress leaf) const { return LoadWord(nodes_[kOwner]->memory().data() + leaf.offset()); }
  // Leaves with a claim of the holder, and those that it keeps.
  size_t claims() { return CountIf(shared_leaf::IsClaimedBy); }
  size_t kept() { return CountIf(shared_leaf::IsKeptBy); }

  const WorldOptions& options() const { return options_; }
  rdma::sim::Simulation& simulation() { return simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }
  Link& link() { return link_; }
  rdma::Node* node(rdma::NodeId id) { return nodes_[id].get(); }
  LocalIndex& index() { return *index_; }
  IndexService& service() { return *service_; }
  // Null: the node claims nothing.
  ClaimHolder* claimant(rdma::NodeId id) { return claims_[id].get(); }
  const std::shared_ptr<dex::SharedPages>& pages(rdma::NodeId id = kHolder) { return pages_[id]; }

 private:
  dex::SharedPages::Asked AskedBy(rdma::NodeId id) const {
    return {.connection = nodes_[id]->ConnectionTo(kOwner), .word = claims_[id]->RangesWordOf(kOwner)};
  }
  size_t CountIf(bool (*is_so)(rdma::NodeId, uint64_t)) {
    size_t n = 0;
    const auto& blocks = dynamic_cast<shared_leaf::BlockLender&>(*index_).blocks();
    blocks.ForEach([&](rdma::GlobalAddress at) { n += is_so(kHolder, StateOf(at)) ? 1 : 0; });
    return n;
  }

  const WorldOptions options_;
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  Link link_;
  std::array<std::unique_ptr<rdma::Node>, 3> nodes_;
  std::array<std::unique_ptr<rdma::SlabAllocator>, 3> slabs_;
  std::array<std::unique_ptr<rdma::EpochManager>, 3> epochs_;
  std::unique_ptr<IndexService> service_;
  std::unique_ptr<LocalIndex> index_;
  uint64_t processes_ = 0;
  std::array<std::unique_ptr<ClaimHolder>, 3> claims_;
  std::array<std::shared_ptr<dex::SharedPages>, 3> pages_;
};

// A client of a node, for one thread.
class Client {
 public:
  Client(World* world, rdma::NodeId node) : channel_(Must(world->node(node)->OpenChannel())) {
    worker_.AddPoller([this] { return channel_->Poll(); });
    remote_ = Must(ConnectDex(channel_.get(), kOwner, kId,
                              {.shared = world->pages(node),
                               .call_timeout = absl::Milliseconds(100),
                               .patience = node == kHolder ? absl::Milliseconds(100) : world->options().patience,
                               .node = world->node(node),
                               .values_in_entries = true,
                               .claims = world->claimant(node)}));
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
  // Hands back all leaves that the node keeps.
  Status HandBack() {
    using Leaves = shared_leaf::LeafClient<shared_leaf::IntegerKeys>;
    return worker_.BlockOn(dynamic_cast<Leaves&>(*remote_).HandBackLeaves(0, UINT64_MAX));
  }
  // Replaces the values of all these keys, each by a coroutine of its own. The first error.
  Status ReplaceTogether(const std::vector<uint64_t>& keys, uint64_t number) {
    Status status;
    for (const uint64_t key : keys) worker_.Spawn(ReplaceTask(key, number, &status));
    worker_.Run();
    return status;
  }
  const rdma::VerbCounters& verbs() const { return channel_->counters(); }

 private:
  coro::Task<void> ReplaceTask(uint64_t key, uint64_t number, Status* status) {
    const Status replaced = co_await remote_->Replace(Key(key), {}, Value(number));
    status->Update(replaced);
  }
  coro::Task<StatusOr<FindResult>> FindTask(uint64_t key) { co_return co_await remote_->Find(Key(key)); }

  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  std::unique_ptr<RemoteIndex> remote_;
};

inline uint64_t VerbsIn(const rdma::VerbCounters& verbs) {
  return verbs.reads + verbs.writes + verbs.compare_and_swaps + verbs.fetch_and_adds + verbs.calls;
}

// Runs on a thread of the node, as all code that uses its channel does.
template <class Body>
void On(World* world, rdma::NodeId node, Body body) {
  Runtime::Thread* const thread = world->simulation().StartOn(node, "test", body);
  world->simulation().Join(thread);
}

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

// The faults of simulations whose histories are judged.
inline rdma::sim::Faults RaceFaults() {
  return {.scatter_lines = 0.2,
          .scatter_nanos = 2000,
          .preempt = 0.02,
          .preempt_nanos = 8000,
          .slow_completion = 0.05,
          .slow_nanos = 20'000,
          .clock_drift = 0.1};
}

// Ends the holder's connection again and again, while *running is positive. `joins_after_repair`: there is no other one
// before the owner has ended the claims, as in transactions (txn/peer/peers.h).
inline void CutLinks(World* world, uint64_t seed, const int* running, bool joins_after_repair) {
  constexpr uint64_t kVerbNanos = 100'000;  // a verb that was posted has taken effect, or will not
  Random random(seed);
  Link& link = world->link();
  while (*running > 0) {
    SleepForNanos(random.Below(10'000'000));
    link.carries = false;
    SleepForNanos(kVerbNanos);
    const size_t first = random.Below(2);
    link.seen[first] = 0;
    SleepForNanos(random.Below(40'000'000));
    link.seen[1 - first] = 0;
    if (joins_after_repair) {
      while (world->service().boards().IsLost(kHolder) && *running > 0) SleepForNanos(200'000);
    } else {
      SleepForNanos(random.Below(20'000'000));
    }
    ++link.connection;
    link.seen = {link.connection, link.connection};
    link.carries = true;
  }
}

// More by hand: GANNET_CLAIM_SEEDS.
inline uint64_t Seeds(uint64_t seeds) {
  const char* const asked = std::getenv("GANNET_CLAIM_SEEDS");
  return asked == nullptr ? seeds : std::strtoull(asked, nullptr, 10);
}

}  // namespace gannet::index::claim_world
