// Processes share a memory file in any order of their starts; some of them are killed.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {
namespace shared_file_test {

using ::testing::HasSubstr;

constexpr int kNodes = 4;
constexpr ShmOptions kOptions{.num_nodes = kNodes, .bytes_per_node = 1 << 20, .protocol = 3, .configuration = 77};

class SharedFileTest : public ::testing::Test {
 protected:
  ~SharedFileTest() override { unlink(path_.c_str()); }
  bool Exists() const { return access(path_.c_str(), F_OK) == 0; }

  // A process that, when told to, shares the file, attaches node 1, and exits without any cleanup. Must be made while
  // this process has no other threads.
  struct Victim {
    Victim() { EXPECT_EQ(pipe(go), 0); }
    pid_t process = -1;
    int go[2] = {-1, -1};
  };
  std::unique_ptr<Victim> PrepareVictim() {
    auto victim = std::make_unique<Victim>();
    victim->process = fork();
    if (victim->process == 0) {
      char byte = 0;
      if (read(victim->go[0], &byte, 1) != 1) _exit(3);
      auto fabric = ShmFabric::Share(path_, kOptions);
      if (!fabric.ok()) _exit(1);
      auto node = (*fabric)->Attach(1);
      if (!node.ok()) _exit(2);
      _exit(0);  // without any destructor
    }
    return victim;
  }
  void LeaveBehind(std::unique_ptr<Victim> victim) {
    ASSERT_EQ(write(victim->go[1], "x", 1), 1);
    int status = 0;
    ASSERT_EQ(waitpid(victim->process, &status, 0), victim->process);
    close(victim->go[0]);
    close(victim->go[1]);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  void LeaveBehind() { LeaveBehind(PrepareVictim()); }

  std::string path_ = absl::StrCat(::testing::TempDir(), "/gannet_shared_", getpid());
};

TEST_F(SharedFileTest, TheLastOneRemovesIt) {
  auto first = ShmFabric::Share(path_, kOptions).value();
  auto node = first->Attach(2).value();
  auto second = ShmFabric::Share(path_, kOptions).value();
  EXPECT_TRUE(second->Alive(2));
  node.reset();
  first.reset();
  EXPECT_TRUE(Exists());
  EXPECT_FALSE(second->Alive(2));
  EXPECT_EQ(second->Attachments(2), 1u);
  EXPECT_EQ(second->Attachments(3), 0u);
  auto third = ShmFabric::Share(path_, kOptions).value();
  EXPECT_EQ(third->Attachments(2), 1u);  // still the same cluster
  second.reset();
  third.reset();
  EXPECT_FALSE(Exists());
}

TEST_F(SharedFileTest, WhatIsLeftOverIsReplaced) {
  LeaveBehind();
  ASSERT_TRUE(Exists());
  auto fabric = ShmFabric::Share(path_, kOptions).value();
  EXPECT_EQ(fabric->Attachments(1), 0u);
  EXPECT_TRUE(fabric->Attach(1).ok());
}

TEST_F(SharedFileTest, AKilledProcessIsNoReasonToReplaceIt) {
  auto victim = PrepareVictim();
  auto fabric = ShmFabric::Share(path_, kOptions).value();
  LeaveBehind(std::move(victim));
  auto other = ShmFabric::Share(path_, kOptions).value();
  EXPECT_EQ(other->Attachments(1), 1u);
  EXPECT_TRUE(other->Attach(1).ok());  // its place is free
  EXPECT_EQ(fabric->Attachments(1), 2u);
}

TEST_F(SharedFileTest, OtherOptionsAreRefusedWithTheDifference) {
  auto fabric = ShmFabric::Share(path_, kOptions).value();
  const auto refusal = [&](ShmOptions options) {
    const Status status = ShmFabric::Share(path_, options).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  ShmOptions other = kOptions;
  other.protocol = 4;
  EXPECT_THAT(refusal(other), HasSubstr("protocol version 3, this one has 4"));
  other = kOptions;
  other.num_nodes = 5;
  EXPECT_THAT(refusal(other), HasSubstr("nodes: 4, this one has 5"));
  other = kOptions;
  other.bytes_per_node = 2 << 20;
  EXPECT_THAT(refusal(other), HasSubstr("memory per node"));
  other = kOptions;
  other.configuration = 78;
  EXPECT_THAT(refusal(other), HasSubstr("a configuration with hash 77, this one has 78"));
  EXPECT_TRUE(ShmFabric::Share(path_, kOptions).ok());
}

TEST_F(SharedFileTest, AFileOfSomethingElseIsNotTouched) {
  FILE* file = std::fopen(path_.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("a letter", file);
  std::fclose(file);
  EXPECT_TRUE(absl::IsFailedPrecondition(ShmFabric::Share(path_, kOptions).status()));
  EXPECT_TRUE(Exists());
}

TEST_F(SharedFileTest, AFileThatItsCreatorUsesIsNotTakenForLeftOver) {
  ShmOptions unnamed = kOptions;
  unnamed.configuration = 0;
  auto creator = ShmFabric::Create(path_, unnamed).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(ShmFabric::Share(path_, kOptions).status()));
  EXPECT_TRUE(Exists());
}

TEST_F(SharedFileTest, AllThatStartAtOnceMeetInOneFile) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 1) LeaveBehind();
    std::barrier together(kNodes);
    std::vector<std::thread> threads;
    for (int i = 0; i < kNodes; ++i) {
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        auto fabric = ShmFabric::Share(path_, kOptions);
        EXPECT_TRUE(fabric.ok()) << fabric.status();
        StatusOr<std::unique_ptr<Node>> node = absl::UnknownError("no fabric");
        if (fabric.ok()) node = (*fabric)->Attach(static_cast<NodeId>(i));
        EXPECT_TRUE(node.ok()) << node.status();
        if (node.ok()) {
          const Status all = (*fabric)->WaitForAll(absl::Seconds(30));
          EXPECT_TRUE(all.ok()) << all;
        }
        together.arrive_and_wait();  // no thread leaves before all have met
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(Exists());
  }
}

TEST_F(SharedFileTest, TheLastTwoThatLeaveAtOnceRemoveIt) {
  constexpr ShmOptions small{.num_nodes = 1, .bytes_per_node = 1 << 20, .protocol = 3, .configuration = 77};
  for (int round = 0; round < 200; ++round) {
    std::barrier together(2);
    const auto come_and_go = [&] {
      auto fabric = ShmFabric::Share(path_, small);
      EXPECT_TRUE(fabric.ok()) << fabric.status();
      together.arrive_and_wait();
    };
    std::thread other(come_and_go);
    come_and_go();
    other.join();
    ASSERT_FALSE(Exists()) << "in round " << round;
  }
}

}  // namespace shared_file_test
}  // namespace gannet::rdma
