// Peers, with and without the secret, that send what no Gannet node would send. Requires an RDMA device.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/cache_line.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/rpc.h"
#include "rdma/verbs/devices.h"
#include "rdma/verbs/verbs_channel.h"
#include "rdma/verbs/verbs_node.h"
#include "tests/conformance/verbs_cluster.h"

namespace gannet::rdma::verbs {
namespace hostile_test {

constexpr MethodId kEcho = 60000;
constexpr uint64_t kPatienceNs = 60'000'000'000;
constexpr uint64_t kWritten = 99;

coro::Task<StatusOr<size_t>> CallTask(Channel* channel, std::span<const std::byte> request,
                                      std::span<std::byte> response) {
  co_return co_await channel->Call(0, kEcho, request, response, absl::Seconds(60));
}

// Node 0 serves; the parts of node 1 are misused.
class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = conformance::LocalVerbsCluster(2, 1 << 20);
    fabric_ = VerbsFabric::Create(options_).value();
    server_ = fabric_->Attach(0).value();
    server_->Handle(kEcho, [](NodeId, std::span<const std::byte> request, std::span<std::byte> response) {
      std::copy(request.begin(), request.end(), response.begin());
      return StatusOr<size_t>(request.size());
    });
    ASSERT_TRUE(server_->Serve(1).ok());
    ClusterMap map;
    for (const std::string& node : options_.nodes) map.nodes.emplace_back(control::ParseEndpoint(node).value());
    parts_ = StartNode(options_, map, 1).value();
    ASSERT_TRUE(Eventually([&] { return parts_->core->agent->generation(0) != 0; }));
    cq_.reset(ibv_create_cq(parts_->core->context(), 256, nullptr, nullptr, 0));
    ASSERT_NE(cq_, nullptr);
    buffer_.resize(kFragmentBytes);
    region_ = Register(parts_->core->pd(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE).value();
  }

  template <class Predicate>
  static bool Eventually(Predicate predicate) {
    for (const uint64_t end = NowNanos() + kPatienceNs; !predicate();) {
      if (NowNanos() > end) return false;
      SleepForNanos(1'000'000);
    }
    return true;
  }

  control::Endpoint Server() { return RegionInfo::Decode(parts_->core->agent->details(0)->payload)->listens_at; }

  // `channel`: what the server is told.
  std::shared_ptr<Link> TryToConnect(uint16_t channel) {
    auto link = std::make_shared<Link>(parts_->core, next_link_++, 0, channel);
    parts_->connector->Connect(link, cq_.get(), Server());
    EXPECT_TRUE(Eventually([&] { return link->state() != LinkState::kConnecting; }));
    return link;
  }
  std::shared_ptr<Link> Connect() {
    auto link = TryToConnect(0);
    EXPECT_EQ(link->state(), LinkState::kUp) << link->why();
    return link;
  }

  void Send(Link* link, const FragmentHeader& header, uint32_t payload_bytes) {
    std::memcpy(buffer_.data(), &header, sizeof header);
    SendRaw(link, sizeof header + payload_bytes);
  }
  void SendRaw(Link* link, uint32_t bytes) {
    ibv_sge what{.addr = reinterpret_cast<uint64_t>(buffer_.data()), .length = bytes, .lkey = region_->lkey};
    ibv_send_wr work{};
    work.sg_list = &what;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    work.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(link->qp(), &work, &bad), 0);
    // The messages were sent or failed, or the server has ended the link before, and the card gets no acknowledgement.
    std::array<ibv_wc, 1> done;
    ASSERT_TRUE(
        Eventually([&] { return ibv_poll_cq(cq_.get(), 1, done.data()) != 0 || link->state() != LinkState::kUp; }));
  }

  // Performs one verb on a word, with any key. WRITE stores kWritten; a CAS never swaps.
  bool Perform(Link* link, ibv_wr_opcode verb, uint64_t remote, uint32_t key) {
    std::memcpy(buffer_.data(), &kWritten, sizeof kWritten);
    ibv_sge what{.addr = reinterpret_cast<uint64_t>(buffer_.data()), .length = kWordBytes, .lkey = region_->lkey};
    ibv_send_wr work{};
    work.sg_list = &what;
    work.num_sge = 1;
    work.opcode = verb;
    work.send_flags = IBV_SEND_SIGNALED;
    if (verb == IBV_WR_RDMA_READ || verb == IBV_WR_RDMA_WRITE) {
      work.wr.rdma = {.remote_addr = remote, .rkey = key};
    } else {
      work.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 2, .rkey = key};
    }
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(link->qp(), &work, &bad), 0);
    // When a queue pair breaks, its receive buffers return through the same queue. They have other ids.
    ibv_wc done{};
    do {
      done.wr_id = ~work.wr_id;
      if (!Eventually([&] { return ibv_poll_cq(cq_.get(), 1, &done) != 0; })) break;
    } while (done.wr_id != work.wr_id);
    EXPECT_EQ(done.wr_id, work.wr_id);
    return done.wr_id == work.wr_id && done.status == IBV_WC_SUCCESS;
  }

  // The server must end the link, and continue to serve other links.
  void ExpectCutOff(const std::shared_ptr<Link>& link) {
    EXPECT_TRUE(Eventually([&] { return link->state() == LinkState::kDown; }));
    parts_->connector->Release(link);
    ExpectServing();
  }
  void ExpectServing() {
    const std::unique_ptr<Channel> channel =
        VerbsChannel::Open(parts_, static_cast<uint16_t>(parts_->numbers.Take())).value();
    coro::Worker worker;
    worker.AddPoller([&] { return channel->Poll(); });
    const std::array<std::byte, 5> request{std::byte{1}, std::byte{2}};
    std::array<std::byte, 5> response{};
    const StatusOr<size_t> size = worker.BlockOn(CallTask(channel.get(), request, response));
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(response, request);
  }

  VerbsOptions options_;
  std::unique_ptr<VerbsFabric> fabric_;
  std::unique_ptr<Node> server_;
  std::shared_ptr<NodeParts> parts_;
  CompletionQueue cq_;
  std::vector<std::byte> buffer_;
  MemoryRegion region_;
  uint32_t next_link_ = 1;
};

TEST_F(HostileTest, FragmentsThatBreakTheRulesCostTheLink) {
  const auto total = static_cast<uint32_t>(kMaxMessageBytes);
  const struct {
    const char* what;
    FragmentHeader header;
    uint32_t payload;
  } cases[] = {
      {"longer than any message", {.call = 1, .total_bytes = total + 1, .room_or_code = 8, .method = kEcho}, 8},
      {"of 4 GiB", {.call = 1, .total_bytes = ~0u, .room_or_code = 8, .method = kEcho}, 8},
      {"room for 4 GiB", {.call = 1, .total_bytes = 8, .room_or_code = ~0u, .method = kEcho}, 8},
      {"more than the whole", {.call = 1, .total_bytes = 8, .room_or_code = 8, .method = kEcho}, 16},
      {"not the first", {.call = 1, .total_bytes = 100, .offset = 50, .room_or_code = 8, .method = kEcho}, 50},
      {"nothing of something", {.call = 1, .total_bytes = 100, .room_or_code = 8, .method = kEcho}, 0},
  };
  for (const auto& [what, header, payload] : cases) {
    SCOPED_TRACE(what);
    const auto link = Connect();
    Send(link.get(), header, payload);
    ExpectCutOff(link);
  }
}

// The attacker has everything that a node of the cluster has: its queue pair, its keys. The card itself must refuse.
TEST_F(HostileTest, TheCardLetsNobodyWriteWhatIsForReads) {
  const RegionInfo server = RegionInfo::Decode(parts_->core->agent->details(0)->payload).value();
  ASSERT_NE(server.read_only_key, server.writable_key);
  std::byte* const memory = server_->memory().data();
  StoreWord(memory + kHeapOffset, 7);
  StoreWord(memory + server.writable_offset, 7);
  const struct {
    const char* what;
    ibv_wr_opcode verb;
    uint64_t offset;
    uint32_t key;
    bool allowed;
  } cases[] = {
      {"WRITE to indexes", IBV_WR_RDMA_WRITE, kHeapOffset, server.read_only_key, false},
      {"CAS of indexes", IBV_WR_ATOMIC_CMP_AND_SWP, kHeapOffset, server.read_only_key, false},
      {"FAA of indexes", IBV_WR_ATOMIC_FETCH_AND_ADD, kHeapOffset, server.read_only_key, false},
      {"WRITE to indexes by the records' key", IBV_WR_RDMA_WRITE, kHeapOffset, server.writable_key, false},
      {"READ of indexes", IBV_WR_RDMA_READ, kHeapOffset, server.read_only_key, true},
      {"READ before the heap", IBV_WR_RDMA_READ, 0, server.read_only_key, false},
      {"CAS of a record", IBV_WR_ATOMIC_CMP_AND_SWP, server.writable_offset, server.writable_key, true},
      {"WRITE to a record", IBV_WR_RDMA_WRITE, server.writable_offset, server.writable_key, true},
  };
  for (const auto& [what, verb, offset, key, allowed] : cases) {
    SCOPED_TRACE(what);
    const auto link = Connect();
    EXPECT_EQ(Perform(link.get(), verb, server.base + offset, key), allowed);
    parts_->connector->Release(link);
    EXPECT_EQ(LoadWord(memory + kHeapOffset), 7u);
  }
  EXPECT_EQ(LoadWord(memory + server.writable_offset), kWritten);
  ExpectServing();
}

TEST_F(HostileTest, AFragmentWithoutAHeaderCostsTheLink) {
  const auto link = Connect();
  SendRaw(link.get(), 10);
  ExpectCutOff(link);
}

TEST_F(HostileTest, RandomFragmentsHarmNothing) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    const auto link = Connect();
    for (int i = 0; i < 4 && link->state() == LinkState::kUp; ++i) {
      for (std::byte& byte : buffer_) byte = static_cast<std::byte>(random());
      SendRaw(link.get(), static_cast<uint32_t>(1 + random.Below(kFragmentBytes)));
    }
    parts_->connector->Release(link);
  }
  ExpectServing();
}

// More requests at once than the window allows: a flood must not fill the server's memory.
TEST_F(HostileTest, AFloodOfRequestsCostsTheLink) {
  const auto link = Connect();
  FragmentHeader header{
      .call = 1, .total_bytes = static_cast<uint32_t>(kMaxMessageBytes), .room_or_code = 8, .method = kEcho};
  // The first fragments of messages that never end.
  for (uint32_t i = 0; i < 3 && link->state() == LinkState::kUp; ++i, ++header.call) {
    Send(link.get(), header, kPayloadBytes);
  }
  ExpectCutOff(link);
}

// Otherwise one peer could take all that the server's card allows.
TEST_F(HostileTest, APeerHasOneQueuePairForEachOfItsChannels) {
  const auto first = Connect(), second = Connect();
  EXPECT_TRUE(Eventually([&] { return first->state() == LinkState::kDown; }));
  EXPECT_EQ(second->state(), LinkState::kUp) << second->why();
  EXPECT_EQ(fabric_->statistics().queue_pairs_served, 1u);
  const auto none = TryToConnect(kMaxVerbsChannelsPerNode);
  ASSERT_EQ(none->state(), LinkState::kDown);
  EXPECT_TRUE(absl::StrContains(none->why(), "no channel 127")) << none->why();
  for (const auto& link : {first, second, none}) parts_->connector->Release(link);
  ExpectServing();
}

TEST_F(HostileTest, AQueuePairWithoutATicketIsRefused) {
  Random random(2);
  for (int round = 0; round < 5; ++round) {
    rdma_cm_id* raw = nullptr;
    ASSERT_EQ(rdma_create_id(nullptr, &raw, nullptr, RDMA_PS_TCP), 0);  // its steps block
    const CmId id(raw);
    control::Endpoint to = Server();
    ASSERT_EQ(rdma_resolve_addr(raw, nullptr, to.get(), 10'000), 0);
    ASSERT_EQ(rdma_resolve_route(raw, 10'000), 0);
    ibv_qp_init_attr attributes{};
    attributes.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    attributes.qp_type = IBV_QPT_RC;
    ASSERT_EQ(rdma_create_qp(raw, nullptr, &attributes), 0);
    std::array<std::byte, 40> forged;
    for (std::byte& byte : forged) byte = static_cast<std::byte>(random());
    if (round > 0) {  // everything is right except the tag
      const control::Credential credential = parts_->core->agent->MakeCredentialFor(0, 0).value();
      WireWriter writer(forged);
      writer.PutU64(control::kMagic);
      writer.PutU16(control::kProtocolVersion);
      writer.PutU16(0);
      writer.PutU16(credential.from);
      writer.PutU16(credential.channel);
      writer.PutU64(credential.number);
    }
    rdma_conn_param parameters{};
    parameters.private_data = forged.data();
    parameters.private_data_len = forged.size();
    EXPECT_NE(rdma_connect(raw, &parameters), 0);
    rdma_destroy_qp(raw);
  }
  ExpectServing();
}

TEST(DevicesTest, TheDeviceOfTheClusterIsChosenAndDescribed) {
  const auto devices = ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_FALSE(devices->empty());
  const DeviceReport& chosen = devices->front();
  EXPECT_TRUE(chosen.chosen) << chosen.why_not;
  EXPECT_FALSE(chosen.addresses.empty());
  EXPECT_FALSE(chosen.ports.empty());
  EXPECT_GT(chosen.limits.max_completions, 0);
  const auto others = ListDevices("203.0.113.1");  // the address of no machine (RFC 5737)
  EXPECT_FALSE(others->front().chosen);
  EXPECT_TRUE(absl::StrContains(others->front().why_not, "203.0.113.1")) << others->front().why_not;
}

TEST(VerbsFabricTest, BadOptionsAreRefusedAndNamed) {
  VerbsOptions options = conformance::LocalVerbsCluster(1, 1 << 20);
  options.secret = "";
  EXPECT_TRUE(absl::IsInvalidArgument(VerbsFabric::Create(options).status()));
  options = conformance::LocalVerbsCluster(1, 1 << 20);
  options.nodes = {"127.0.0.1:21000"};
  const Status status = VerbsFabric::Create(options).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1")) << status;
  options = conformance::LocalVerbsCluster(1, 1 << 20);
  options.device = "no such card";
  const auto fabric = VerbsFabric::Create(options);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_TRUE(absl::IsFailedPrecondition((*fabric)->Attach(0).status()));
}

}  // namespace hostile_test
}  // namespace gannet::rdma::verbs
