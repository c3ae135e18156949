// Properties of the shm fabric alone: its memory file, its options, and slots into which another process writes
// garbage. The contract of all fabrics is tested in tests/conformance.
#include "rdma/shm/shm_fabric.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/coro/worker.h"
#include "gtest/gtest.h"
#include "rdma/shm/region.h"

namespace gannet::rdma {
namespace shm_fabric_test {

constexpr MethodId kEcho = 60000;
constexpr ShmOptions kSmall{.num_nodes = 2, .bytes_per_node = 1 << 20};

class ShmFile : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  bool Exists() const { return access(path_.c_str(), F_OK) == 0; }

  std::string path_ = absl::StrCat(::testing::TempDir(), "/gannet_shm_", getpid());
};

TEST(ShmOptions, ImpossibleOnesAreRefusedWithWhatWouldDo) {
  for (const int nodes : {0, -1, kMaxShmNodes + 1}) {
    const Status status = ShmFabric::InProcess({.num_nodes = nodes}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "1 to 64")) << status;
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, uint64_t{1} << 60}) {
    EXPECT_EQ(ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = bytes}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ShmOptions, TheLargestClusterIsPossible) {
  auto fabric = ShmFabric::InProcess({.num_nodes = kMaxShmNodes, .bytes_per_node = 1 << 20}).value();
  EXPECT_EQ(fabric->num_nodes(), kMaxShmNodes);
  auto node = fabric->Attach(kMaxShmNodes - 1).value();
  EXPECT_EQ(node->memory().size(), 1u << 20);
  EXPECT_TRUE(node->OpenChannel().ok());
}

TEST_F(ShmFile, GoesWithTheFabricThatCreatedIt) {
  {
    auto creator = ShmFabric::Create(path_, kSmall).value();
    EXPECT_TRUE(Exists());
    { auto joiner = ShmFabric::Join(path_).value(); }
    EXPECT_TRUE(Exists());
  }
  EXPECT_FALSE(Exists());
}

TEST_F(ShmFile, IsNotCreatedTwice) {
  auto creator = ShmFabric::Create(path_, kSmall).value();
  EXPECT_EQ(ShmFabric::Create(path_, kSmall).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Exists());
}

TEST_F(ShmFile, MustExistToBeJoined) {
  EXPECT_EQ(ShmFabric::Join(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ShmFabric::Create("/nowhere/at/all", kSmall).ok());
}

TEST_F(ShmFile, OfAnotherFormatIsRefused) {
  std::ofstream(path_) << "short";
  EXPECT_EQ(ShmFabric::Join(path_).status().code(), absl::StatusCode::kFailedPrecondition);
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_EQ(ShmFabric::Join(path_).status().code(), absl::StatusCode::kFailedPrecondition);
  const auto write_header = [this](const shm::ClusterHeader& header) {
    std::ofstream(path_).write(reinterpret_cast<const char*>(&header), sizeof header);
    return ShmFabric::Join(path_).status().code();
  };
  shm::ClusterHeader header{.magic = shm::kMagic,
                            .format_version = shm::kFormatVersion + 1,
                            .num_nodes = 1,
                            .bytes_per_node = 1 << 20,
                            .read_only_percent = kDefaultReadOnlyPercent,
                            .adversarial = 0,
                            .seed = 0,
                            .protocol = 0,
                            .configuration = 0};
  EXPECT_EQ(write_header(header), absl::StatusCode::kFailedPrecondition);
  header.format_version = shm::kFormatVersion;  // now the file is too short
  EXPECT_EQ(write_header(header), absl::StatusCode::kFailedPrecondition);
  header.num_nodes = ~uint64_t{0};
  EXPECT_EQ(write_header(header), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ShmFile, TwoMappingsAreOneMemory) {
  auto creator = ShmFabric::Create(path_, kSmall).value();
  auto joiner = ShmFabric::Join(path_).value();
  auto first = creator->Attach(0).value();
  auto second = joiner->Attach(1).value();
  EXPECT_EQ(joiner->Attach(0).status().code(), absl::StatusCode::kFailedPrecondition);
  auto channel = first->OpenChannel().value();
  coro::Worker worker;
  const auto add = [](Channel* c, GlobalAddress at) -> coro::Task<StatusOr<uint64_t>> {
    co_return co_await c->FetchAndAdd(at, 5);
  };
  const GlobalAddress at(1, second->writable_offset());
  EXPECT_EQ(worker.BlockOn(add(channel.get(), at)).value(), 0u);
  EXPECT_EQ(LoadWord(second->memory().data() + at.offset()), 5u);
}

// A process that maps the file may write anything into its slots. The server must survive that, and so must a caller if
// the server writes garbage.
class ShmGarbage : public ::testing::Test {
 protected:
  void SetUp() override {
    region_ = shm::Region::CreateFile(path_, kSmall).value();
    fabric_ = ShmFabric::Join(path_).value();
    node_ = fabric_->Attach(0).value();
    node_->Handle(kEcho, [this](NodeId, std::span<const std::byte> request, std::span<std::byte>) {
      ++served_;
      return StatusOr<size_t>(request.size());
    });
  }

  // Puts a request as channel 3 of node 1 would.
  shm::CallSlot& PutRequest(uint32_t method, uint32_t bytes) {
    shm::CallSlot& slot = region_->channel(1, 3).slots[2];
    slot.method = method;
    slot.request_bytes = bytes;
    slot.server_word = region_->control(0).word;
    slot.word.store(shm::CallWord(1, 0, shm::CallPhase::kRequested));
    region_->control(0).ready_slots[shm::kShmChannelSlots + 3].bits.fetch_or(1 << 2);
    region_->control(0).ready_channels[2].fetch_or(1 << 3);
    return slot;
  }

  std::string path_ = absl::StrCat(::testing::TempDir(), "/gannet_garbage_", getpid());
  std::shared_ptr<shm::Region> region_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Node> node_;
  int served_ = 0;
};

TEST_F(ShmGarbage, AnImpossibleLengthIsAnsweredWithAnError) {
  const shm::CallSlot& slot = PutRequest(kEcho, 0xffffffff);
  EXPECT_EQ(node_->ServePending(10), 1u);
  EXPECT_EQ(served_, 0);
  EXPECT_EQ(shm::PhaseOfCall(slot.word), shm::CallPhase::kDone);
  EXPECT_EQ(slot.status_code, static_cast<uint32_t>(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShmGarbage, AMethodThatDoesNotFitItsNumberIsUnknown) {
  const shm::CallSlot& slot = PutRequest(0x10000 + kEcho, 8);
  EXPECT_EQ(node_->ServePending(10), 1u);
  EXPECT_EQ(served_, 0);
  EXPECT_EQ(slot.status_code, static_cast<uint32_t>(absl::StatusCode::kUnimplemented));
}

TEST_F(ShmGarbage, ReadyBitsWithoutRequestsStartNothing) {
  shm::NodeControl& control = region_->control(0);
  for (auto& word : control.ready_channels) word.store(~uint64_t{0});
  for (auto& slots : control.ready_slots) slots.bits.store(~uint64_t{0});
  for (int i = 0; i < 100; ++i) node_->ServePending(1000);
  EXPECT_EQ(served_, 0);
  PutRequest(kEcho, 8);
  while (node_->ServePending(10) == 0) {
  }
  EXPECT_EQ(served_, 1);
}

TEST_F(ShmGarbage, ARequestForAnotherNodeIsNotOurs) {
  shm::CallSlot& slot = PutRequest(kEcho, 8);
  slot.word.store(shm::CallWord(1, 1, shm::CallPhase::kRequested));
  EXPECT_EQ(node_->ServePending(10), 0u);
  EXPECT_EQ(shm::PhaseOfCall(slot.word), shm::CallPhase::kRequested);
}

coro::Task<Status> CallNode1(Channel* channel) {
  std::array<std::byte, 8> response;
  const StatusOr<size_t> bytes = co_await channel->Call(1, kEcho, {}, response, absl::Seconds(20));
  co_return bytes.status();
}

TEST_F(ShmGarbage, ACallerSurvivesAnAnswerOfImpossibleLength) {
  auto other = fabric_->Attach(1).value();
  auto channel = node_->OpenChannel().value();
  coro::Worker worker;
  worker.AddPoller([&] { return channel->Poll(); });
  worker.AddPoller([&] {
    shm::CallSlot& slot = region_->channel(0, 0).slots[0];
    const uint64_t word = slot.word.load();
    if (shm::PhaseOfCall(word) != shm::CallPhase::kRequested) return size_t{0};
    slot.status_code = 0;
    slot.response_bytes = 0xffffffff;
    slot.word.store(shm::WithPhase(word, shm::CallPhase::kDone));
    return size_t{1};
  });
  EXPECT_EQ(worker.BlockOn(CallNode1(channel.get())).code(), absl::StatusCode::kInternal);
}

// The server is handling a call when its caller's process dies and another process takes the channel.
TEST_F(ShmGarbage, ANewChannelLeavesRunningSlotsOfItsPredecessorAlone) {
  auto other = fabric_->Attach(1).value();
  shm::CallSlot& busy = region_->channel(0, 0).slots[0];
  busy.word.store(shm::CallWord(77, 1, shm::CallPhase::kRunning));
  auto channel = node_->OpenChannel().value();
  other->Handle(kEcho, [](NodeId, std::span<const std::byte>, std::span<std::byte>) { return StatusOr<size_t>(0); });
  coro::Worker worker;
  worker.AddPoller([&] { return channel->Poll(); });
  worker.AddPoller([&] { return other->ServePending(1); });
  EXPECT_TRUE(worker.BlockOn(CallNode1(channel.get())).ok());
  EXPECT_EQ(busy.word.load(), shm::CallWord(77, 1, shm::CallPhase::kRunning));
  EXPECT_EQ(shm::PhaseOfCall(region_->channel(0, 0).slots[1].word), shm::CallPhase::kDone);
  // The handler finishes: the slot is used again.
  busy.word.store(shm::CallWord(77, 1, shm::CallPhase::kDone));
  EXPECT_TRUE(worker.BlockOn(CallNode1(channel.get())).ok());
  EXPECT_TRUE(worker.BlockOn(CallNode1(channel.get())).ok());
  EXPECT_GT(busy.word.load(), shm::CallWord(78, 0, shm::CallPhase::kFree));
}

// A call wakes sleeping server threads.
TEST(ShmServer, SleepingServersWakeUp) {
  auto fabric = ShmFabric::InProcess(kSmall).value();
  auto first = fabric->Attach(0).value();
  auto second = fabric->Attach(1).value();
  second->Handle(kEcho, [](NodeId, std::span<const std::byte>, std::span<std::byte>) { return StatusOr<size_t>(0); });
  ASSERT_TRUE(second->Serve(3).ok());
  auto channel = first->OpenChannel().value();
  coro::Worker worker;
  worker.AddPoller([&] { return channel->Poll(); });
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(i * 20));  // around the time they fall asleep
    EXPECT_TRUE(worker.BlockOn(CallNode1(channel.get())).ok());
  }
}

coro::Task<void> CallBoundTo(Channel* channel, uint64_t connection, std::vector<Status>* ends, int* begun) {
  ++*begun;
  std::array<std::byte, 8> response;
  const StatusOr<size_t> bytes = co_await channel->Call(1, kEcho, {}, response, absl::Seconds(60), connection);
  ends->push_back(bytes.status());
}

// The successor serves before the callers have noticed that the process that they called is gone.
TEST(ShmServer, ACallDoesNotRunAtTheSuccessorOfTheProcessThatWasCalled) {
  auto fabric = ShmFabric::InProcess(kSmall).value();
  auto caller = fabric->Attach(0).value();
  auto called = fabric->Attach(1).value();
  auto channel = caller->OpenChannel().value();
  constexpr int kCalls = 4 * shm::kCallsPerNode;  // most of them wait for a slot
  std::unique_ptr<Node> successor;
  int begun = 0, served = 0;
  std::vector<Status> ends;
  coro::Worker worker;
  worker.AddPoller([&] {
    if (begun < kCalls) return size_t{0};
    if (successor == nullptr) {
      fabric->Kill(1);
      successor = fabric->Attach(1).value();
      successor->Handle(kEcho, [&](NodeId, std::span<const std::byte>, std::span<std::byte>) {
        ++served;
        return StatusOr<size_t>(0);
      });
    }
    return successor->ServePending(kCalls);
  });
  worker.AddPoller([&] { return channel->Poll(); });
  for (int i = 0; i < kCalls; ++i) {
    const uint64_t connection = i % 2 == 0 ? caller->ConnectionTo(1) : 0;
    worker.Spawn(CallBoundTo(channel.get(), connection, &ends, &begun));
  }
  worker.Run();
  ASSERT_EQ(ends.size(), static_cast<size_t>(kCalls));
  for (const Status& end : ends) EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  EXPECT_EQ(served, 0);
  EXPECT_TRUE(worker.BlockOn(CallNode1(channel.get())).ok());
  EXPECT_EQ(served, 1);
}

TEST(ShmDeathTest, HandlersAreRegisteredOnceAndBeforeServing) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto fabric = ShmFabric::InProcess(kSmall).value();
  auto node = fabric->Attach(0).value();
  const Handler handler = [](NodeId, std::span<const std::byte>, std::span<std::byte>) { return StatusOr<size_t>(0); };
  node->Handle(kEcho, handler);
  EXPECT_DEATH(node->Handle(kEcho, handler), "method 60000 has two handlers");
  ASSERT_TRUE(node->Serve(1).ok());
  EXPECT_DEATH(node->Handle(kEcho + 1, handler), "after Serve");
}

}  // namespace shm_fabric_test
}  // namespace gannet::rdma
