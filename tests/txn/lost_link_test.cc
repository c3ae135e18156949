// Two live nodes lose their connection in the middle of a commit (rdma/fabric.h, 5), and find each other again.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "rdma/forwarding.h"
#include "rdma/relay.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/txn/cluster.h"
#include "txn/peer/wire.h"

namespace gannet::txn {
namespace lost_link_test {

using rdma::NodeId;

constexpr int kNodes = 3;

// The connections between nodes, which the fabric beneath keeps all the time.
class Links {
 public:
  Links() {
    for (auto& of : numbers_) {
      for (std::atomic<uint64_t>& number : of) number = 1;
    }
  }
  uint64_t Between(NodeId a, NodeId b) const { return numbers_[std::min(a, b)][std::max(a, b)]; }
  void Cut(NodeId a, NodeId b) { numbers_[std::min(a, b)][std::max(a, b)] = 0; }
  void Restore(NodeId a, NodeId b) { numbers_[std::min(a, b)][std::max(a, b)] = ++last_; }

  // The call is lost, and with it the connection.
  bool Loses(NodeId from, const rdma::CallRequest& call) {
    if (call.method == kTxnForwarded && holds_back_questions) return true;
    if (from != 2 || call.node != 0 || call.method != kTxnDecide || !loses_decision.exchange(false)) return false;
    Cut(from, call.node);
    return true;
  }

  std::atomic<bool> loses_decision{false};
  std::atomic<bool> holds_back_questions{false};  // of owners, whether another one has forwarded all

 private:
  std::array<std::array<std::atomic<uint64_t>, kNodes>, kNodes> numbers_;
  std::atomic<uint64_t> last_{1};
};

class LinkedChannel final : public rdma::RelayChannel {
 public:
  LinkedChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
                Links* links)
      : rdma::RelayChannel(std::move(inner), memory, capabilities), links_(links) {}

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    for (const rdma::Operation& operation : operations) {
      if (!Carries(operation.remote.node(), operation.connection)) return Fail(completion);
    }
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    if (!Carries(call.node, call.connection) || links_->Loses(node(), call)) return Fail(completion);
    return Complete(RelayCall(call, completion), completion);
  }

 private:
  bool Carries(NodeId to, uint64_t connection) const {
    if (to == node()) return true;
    const uint64_t now = links_->Between(node(), to);
    return now != 0 && (connection == 0 || connection == now);
  }
  static bool Fail(rdma::Completion* completion) {
    completion->status = absl::UnavailableError("the connection has ended");
    return true;
  }
  coro::Task<Status> Relay(std::span<rdma::Operation> operations) {
    std::vector<rdma::Operation> relayed(operations.begin(), operations.end());
    for (rdma::Operation& operation : relayed) operation.connection = 0;
    Status status = co_await inner().Post(relayed);
    for (size_t i = 0; i < relayed.size(); ++i) operations[i].result = relayed[i].result;
    co_return status;
  }
  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout);
    if (bytes.ok()) completion->response_bytes = *bytes;
    co_return bytes.status();
  }

  Links* const links_;
};

class LinkedNode final : public rdma::ForwardingNode {
 public:
  LinkedNode(std::unique_ptr<rdma::Node> inner, const rdma::Capabilities& capabilities, Links* links)
      : ForwardingNode(std::move(inner)), capabilities_(capabilities), links_(links) {}

  StatusOr<std::unique_ptr<rdma::Channel>> OpenChannel() override {
    StatusOr<std::unique_ptr<rdma::Channel>> channel = inner().OpenChannel();
    if (!channel.ok()) return channel.status();
    return std::make_unique<LinkedChannel>(*std::move(channel), inner().memory().data(), capabilities_, links_);
  }
  uint64_t ConnectionTo(NodeId peer) const override {
    return peer == id() ? ForwardingNode::ConnectionTo(peer) : links_->Between(id(), peer);
  }
  bool CutOff(NodeId peer, uint64_t connection) override {
    if (links_->Between(id(), peer) == connection) links_->Cut(id(), peer);
    return true;
  }

 private:
  const rdma::Capabilities capabilities_;
  Links* const links_;
};

// What one node sees.
class LinkedFabric final : public rdma::ForwardingFabric {
 public:
  LinkedFabric(rdma::Fabric* inner, NodeId self, Links* links) : ForwardingFabric(inner), self_(self), links_(links) {}

  StatusOr<std::unique_ptr<rdma::Node>> Attach(NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = inner().Attach(id);
    if (!node.ok()) return node.status();
    return std::make_unique<LinkedNode>(*std::move(node), capabilities(), links_);
  }
  bool Alive(NodeId id) const override {
    return ForwardingFabric::Alive(id) && (id == self_ || links_->Between(self_, id) != 0);
  }

 private:
  const NodeId self_;
  Links* const links_;
};

// A client loses an owner before that learns of a decision, which another owner has noted. The client's next decision
// must not take the place of that note, because the first owner has yet to ask for it.
TEST(LostLinkTest, ADecisionIsNotedUntilALostOwnerHasAskedForIt) {
  constexpr NodeId kClient = 2;
  auto shm = rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{256} << 20});
  ASSERT_TRUE(shm.ok()) << shm.status();
  Links links;
  std::vector<std::unique_ptr<LinkedFabric>> fabrics;
  std::vector<std::unique_ptr<Database>> nodes;
  std::vector<const Table*> tables;
  Placement by_number = Placement::ByHash();
  by_number.owner = [](const index::Key& key, int) { return static_cast<NodeId>(key.integer() % 10); };
  for (NodeId id = 0; id < kNodes; ++id) {
    fabrics.push_back(std::make_unique<LinkedFabric>(shm->get(), id, &links));
    nodes.push_back(
        *Database::Open(fabrics.back().get(), id, {.data_nodes = 2, .read_path = ReadPathPolicy::kOneSided}));
    tables.push_back(*nodes.back()->CreateTable({.name = "rows",
                                                 .index = IndexKind::kHash,
                                                 .payload_bytes = sizeof(uint64_t),
                                                 .expected_rows = 100,
                                                 .placement = by_number}));
  }
  for (const auto& node : nodes) ASSERT_TRUE(node->Start().ok());
  {
    const auto session = *nodes[kClient]->OpenSession();
    const Table& rows = *tables[kClient];
    const auto set = [&](std::vector<uint64_t> keys, uint64_t value) {
      return RunBlockingBody(*session, [&](BlockingTransaction& t) -> Status {
        for (const uint64_t key : keys) GANNET_RETURN_IF_ERROR(t.Upsert(rows, key, value));
        return absl::OkStatus();
      });
    };
    const Status loaded = set({10, 11, 21, 31}, 1);
    ASSERT_TRUE(loaded.ok()) << loaded;
    links.holds_back_questions = true;
    links.loses_decision = true;
    const Status torn = set({10, 11}, 2);
    EXPECT_TRUE(absl::IsUnknown(torn)) << torn;
    EXPECT_FALSE(links.loses_decision);
    const Status next = set({21, 31}, 2);
    EXPECT_TRUE(next.ok()) << next;
    links.Restore(0, kClient);
    links.holds_back_questions = false;
  }
  const auto session = *nodes[1]->OpenSession();
  for (const uint64_t key : {uint64_t{10}, uint64_t{11}, uint64_t{21}, uint64_t{31}}) {
    uint64_t value = 0;
    const Status read =
        RunBlockingBody(*session, [&](BlockingTransaction& t) { return t.Get(*tables[1], key, &value); });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(value, 2u) << key;
  }
}

}  // namespace lost_link_test
}  // namespace gannet::txn
