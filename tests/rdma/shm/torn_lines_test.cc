// Processes die within the store of a line; the survivors find the line whole.
#include "rdma/shm/torn_lines.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/heap_parts.h"
#include "rdma/shm/line_copy.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma::shm {
namespace torn_lines_test {

constexpr int kVictims = 12;
constexpr ShmOptions kTornOptions{.num_nodes = 1 + kVictims, .bytes_per_node = 1 << 20};
constexpr uint64_t kLines = 4;
constexpr uint64_t kHeap = WritableOffset(kHeapOffset, kTornOptions.bytes_per_node, kTornOptions.read_only_percent);

struct alignas(kLineBytes) Line {
  std::array<uint64_t, kLineWords> words{};
  explicit Line(uint64_t all = 0) { words.fill(all); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
};

// Begins to store a line as a channel does, and dies in the middle.
void DieWithinALine(Region* region, NodeId node, uint16_t channel, std::byte* line, uint64_t value) {
  const LineWriter writer(BusyMarker(node, channel), &region->control(node).stores[channel], region->memory(0));
  Line from(value);
  writer.WriteWithinLine(line, from.bytes(), kLineBytes, [] { raise(SIGKILL); });
}

class TornLinesTest : public ::testing::Test {
 protected:
  ~TornLinesTest() override {
    for (const Victim& victim : victims_) {
      if (victim.process <= 0) continue;
      kill(victim.process, SIGKILL);
      waitpid(victim.process, nullptr, 0);
    }
    unlink(path_.c_str());
  }

  // Makes a process that waits until it is told to begin. Must be called while this process has no other threads.
  int Prepare(const std::function<void(int ready)>& body) {
    std::array<int, 2> go{};
    std::array<int, 2> ready{};
    GANNET_CHECK(pipe(go.data()) == 0 && pipe(ready.data()) == 0, "errno %d", errno);
    const pid_t process = fork();
    if (process == 0) {
      close(go[1]);
      char byte = 0;
      if (read(go[0], &byte, 1) != 1) _exit(3);
      body(ready[1]);
      _exit(4);
    }
    close(go[0]);
    close(ready[1]);
    victims_.push_back({process, go[1], ready[0]});
    return static_cast<int>(victims_.size()) - 1;
  }
  void Begin(int victim) { ASSERT_EQ(write(victims_[victim].go, "x", 1), 1); }
  void AwaitReady(int victim) {
    char byte = 0;
    ASSERT_EQ(read(victims_[victim].ready, &byte, 1), 1);
  }
  // Waits until it is dead; returns true if it was killed.
  bool Reap(int victim) {
    int status = 0;
    EXPECT_EQ(waitpid(victims_[victim].process, &status, 0), victims_[victim].process);
    victims_[victim].process = -1;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  void Kill(int victim) {
    kill(victims_[victim].process, SIGKILL);
    EXPECT_TRUE(Reap(victim));
  }

  struct Victim {
    pid_t process;
    int go;
    int ready;
  };
  std::vector<Victim> victims_;
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/gannet_torn_", getpid());
};

TEST_F(TornLinesTest, AreFinishedAsTheyWereMeant) {
  const int victim = Prepare([this](int) {
    const auto region = Region::OpenFile(path_).value();
    DieWithinALine(region.get(), 1, 5, region->memory(0) + kHeap, 7);
  });
  const auto region = Region::CreateFile(path_, kTornOptions).value();
  Begin(victim);
  ASSERT_TRUE(Reap(victim));

  Line seen;
  ReadLines(region->memory(0) + kHeap, seen.bytes(), kLineBytes);
  ASSERT_EQ(seen.words[0], kLineBusy);
  EXPECT_FALSE(HasTornLines(*region, 2));
  ASSERT_TRUE(HasTornLines(*region, 1));
  FinishTornLines(region.get(), 1);
  EXPECT_FALSE(HasTornLines(*region, 1));
  ReadLines(region->memory(0) + kHeap, seen.bytes(), kLineBytes);
  EXPECT_EQ(seen.words, Line(7).words);
}

// The dead node's note names a line that a living node writes by now.
TEST_F(TornLinesTest, AnothersStoreIsLeftAlone) {
  const auto region = Region::CreateFile(path_, kTornOptions).value();
  std::byte* line = region->memory(0) + kHeap;
  Line from(7);
  LineWriter(BusyMarker(1, 5), &region->control(1).stores[5], region->memory(0))
      .WriteLines(line, from.bytes(), kLineBytes);
  Line other(8);
  LineWriter(BusyMarker(2, 5), &region->control(2).stores[5], region->memory(0))
      .WriteWithinLine(line, other.bytes(), kLineBytes, [&] {
        EXPECT_FALSE(HasTornLines(*region, 1));
        FinishTornLines(region.get(), 1);
        EXPECT_EQ(LoadWord(line), BusyMarker(2, 5));
      });
  Line seen;
  ReadLines(line, seen.bytes(), kLineBytes);
  EXPECT_EQ(seen.words, other.words);
}

// A store of a part of a line leaves the rest as it was.
TEST_F(TornLinesTest, OfAPartOnlyThePart) {
  const int victim = Prepare([this](int) {
    const auto region = Region::OpenFile(path_).value();
    const LineWriter writer(BusyMarker(1, 0), &region->control(1).stores[0], region->memory(0));
    Line from(9);
    writer.WriteWithinLine(region->memory(0) + kHeap, from.bytes(), 3 * kWordBytes, [] { raise(SIGKILL); });
  });
  const auto region = Region::CreateFile(path_, kTornOptions).value();
  for (size_t i = 0; i < kLineWords; ++i) StoreWord(region->memory(0) + kHeap + i * kWordBytes, 100 + i);
  Begin(victim);
  ASSERT_TRUE(Reap(victim));
  FinishTornLines(region.get(), 1);
  Line seen;
  ReadLines(region->memory(0) + kHeap, seen.bytes(), kLineBytes);
  EXPECT_EQ(seen.words, (std::array<uint64_t, kLineWords>{9, 9, 9, 103, 104, 105, 106, 107}));
}

class TornLinesOfNodesTest : public TornLinesTest {
 protected:
  // Prepares a node's process that attaches and dies within a line of node 0.
  int PrepareToDie(NodeId node) {
    return Prepare([this, node](int ready) {
      const auto region = Region::OpenFile(path_).value();
      const auto fabric = ShmFabric::Join(path_).value();
      const auto attached = fabric->Attach(node).value();
      GANNET_CHECK(write(ready, "x", 1) == 1, "errno %d", errno);
      DieWithinALine(region.get(), node, 3, region->memory(0) + kHeap, 70 + node);
    });
  }
  // Node 1 dies within a line; `burial` returns when its death has been handled.
  void ExpectWholeAfter(const std::function<void(ShmFabric*)>& burial) {
    const int victim = PrepareToDie(1);
    const auto fabric = ShmFabric::Create(path_, kTornOptions).value();
    const auto node = fabric->Attach(0).value();
    const auto channel = node->OpenChannel().value();
    Begin(victim);
    AwaitReady(victim);
    ASSERT_TRUE(Reap(victim));
    burial(fabric.get());
    EXPECT_EQ(Get(channel.get(), 0).words, Line(71).words);
  }
  static Line Get(Channel* channel, uint64_t line) {
    Line seen;
    coro::Worker worker;
    const auto read = [](Channel* by, uint64_t at, std::byte* to) -> coro::Task<Status> {
      co_return co_await by->Read(GlobalAddress(0, at), to, kLineBytes);
    };
    const Status status = worker.BlockOn(read(channel, kHeap + line * kLineBytes, seen.bytes()));
    EXPECT_TRUE(status.ok()) << status;
    return seen;
  }
};

TEST_F(TornLinesOfNodesTest, WhoKnowsThatItIsDeadFindsItsLinesWhole) {
  ExpectWholeAfter([](ShmFabric* fabric) {
    while (fabric->Alive(1)) usleep(100);
  });
}

TEST_F(TornLinesOfNodesTest, WhoTakesItsPlaceFinishesThemToo) {
  ExpectWholeAfter([](ShmFabric* fabric) { EXPECT_TRUE(fabric->Attach(1).ok()); });
}

// Nodes are killed at random instructions. A process that WRITEs the same lines repeatedly spends a good part of its
// time within their stores.
TEST_F(TornLinesOfNodesTest, KilledAtAnyInstruction) {
  std::vector<int> victims;
  for (int i = 0; i < kVictims; ++i) {
    const auto id = static_cast<NodeId>(1 + i);
    victims.push_back(Prepare([this, id](int ready) {
      const auto fabric = ShmFabric::Join(path_).value();
      const auto attached = fabric->Attach(id).value();
      const auto channel = attached->OpenChannel().value();
      coro::Worker worker;
      std::array<Line, kLines> lines;
      const auto write_on = [](Channel* by, std::span<Line> from, int sign_to) -> coro::Task<void> {
        for (uint64_t round = 1;; ++round) {
          for (Line& line : from) line = Line(round);
          const Status status = co_await by->Write(from.data(), GlobalAddress(0, kHeap), kLines * kLineBytes);
          GANNET_CHECK(status.ok(), "%s", status.ToString());
          if (round == 1) GANNET_CHECK(write(sign_to, "x", 1) == 1, "errno %d", errno);
        }
      };
      worker.BlockOn(write_on(channel.get(), lines, ready));
    }));
  }
  const auto fabric = ShmFabric::Create(path_, kTornOptions).value();
  const auto node = fabric->Attach(0).value();
  const auto channel = node->OpenChannel().value();
  Random random(20261121);
  for (int i = 0; i < kVictims; ++i) {
    Begin(victims[i]);
    AwaitReady(victims[i]);
    usleep(static_cast<useconds_t>(random.Below(2000)));
    Kill(victims[i]);
    while (fabric->Alive(static_cast<NodeId>(1 + i))) usleep(100);
    for (uint64_t line = 0; line < kLines; ++line) {
      const Line seen = Get(channel.get(), line);
      ASSERT_EQ(seen.words, Line(seen.words[0]).words);
      ASSERT_NE(seen.words[0], kLineBusy) << "line " << line << " after death " << i;
    }
  }
}

}  // namespace torn_lines_test
}  // namespace gannet::rdma::shm
