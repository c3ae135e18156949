// Shared leaves on a fabric that may tear lines (rdma/fabric.h, 2). There a WRITE changes the first word of line 0
// last, and before that word changes, nothing tells that the others do. So the owner's CPU must not judge a leaf that a
// live node has locked: a key that a split moves could be missing from both leaves.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "gtest/gtest.h"
#include "index/lock_word.h"
#include "index/registry.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "rdma/relay.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace torn_leaf_test {

constexpr IndexId kId = 1;
constexpr rdma::NodeId kClient = 1;
constexpr uint64_t kFirst = 200;  // the first keys that are inserted are this and greater ones
// A thread that does not wait has ended by then. (If the machine is slow, the test sees less.)
constexpr auto kWhile = std::chrono::milliseconds(100);

// Calls `run` once, in the middle of the next WRITE of line 0 of the leaf at offset `leaf` that takes slots away from
// it: when only the word with the slots is new.
struct Interruption {
  std::atomic<uint64_t> leaf{0};  // 0: none
  std::function<void()> run;
};

// Writes lines in words, the first one last.
class TearingChannel final : public rdma::RelayChannel {
 public:
  TearingChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
                 Interruption* interruption)
      : rdma::RelayChannel(std::move(inner), memory, capabilities), interruption_(interruption) {}

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    return Complete(RelayCall(call, completion), completion);
  }

 private:
  static int Slots(uint64_t word) { return std::popcount(shared_leaf::LeafSlots::Unpack(word).bitmap); }

  coro::Task<Status> Relay(std::span<rdma::Operation> operations) {
    for (rdma::Operation& operation : operations) {
      const bool is_line = operation.verb == rdma::Verb::kWrite && operation.size == kLineBytes;
      coro::Task<Status> task = is_line ? WriteLine(operation) : PostOne(&operation);
      const Status status = co_await task;
      GANNET_CO_RETURN_IF_ERROR(status);
    }
    co_return absl::OkStatus();
  }
  coro::Task<Status> PostOne(rdma::Operation* operation) {
    const std::span<rdma::Operation> one(operation, 1);
    const Status status = co_await inner().Post(one);
    co_return status;
  }
  coro::Task<Status> WriteLine(rdma::Operation line) {
    uint64_t slots;
    std::memcpy(&slots, static_cast<const std::byte*>(line.local) + kWordBytes, sizeof slots);
    const bool is_split = Slots(LoadWord(Local(line.remote) + kWordBytes)) > Slots(slots);
    for (size_t i = 1; i <= kLineBytes / kWordBytes; ++i) {
      const size_t at = i * kWordBytes % kLineBytes;
      rdma::Operation word = line;
      word.remote = line.remote + at;
      word.local = static_cast<std::byte*>(line.local) + at;
      word.size = kWordBytes;
      const Status status = co_await PostOne(&word);
      GANNET_CO_RETURN_IF_ERROR(status);
      uint64_t leaf = line.remote.offset();
      if (i == 1 && is_split && interruption_->leaf.compare_exchange_strong(leaf, 0)) interruption_->run();
    }
    co_return absl::OkStatus();
  }
  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    co_return bytes.status();
  }

  Interruption* interruption_;
};

class TornLeafTest : public testing::TestWithParam<std::tuple<IndexKind, KeyKind>> {
 protected:
  TornLeafTest()
      : cluster_({.wrap = [this](rdma::Fabric* inner) { return Wrap(inner); }}),
        kind_(EntryOf(std::get<0>(GetParam()))),
        key_kind_(std::get<1>(GetParam())) {
    index_ = kind_.create(cluster_.owner().service.get(), kId, {.key_kind = key_kind_, .max_key_bytes = 16}).value();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
  }

  std::unique_ptr<rdma::Fabric> Wrap(rdma::Fabric* inner) {
    rdma::Capabilities capabilities = inner->capabilities();
    capabilities.line_consistent = false;
    capabilities.cpu_coherent_atomics = false;
    return std::make_unique<rdma::RelayFabric>(
        inner, capabilities, [this, capabilities](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
          return std::make_unique<TearingChannel>(std::move(channel), memory, capabilities, &interruption_);
        });
  }

  OwnedKey KeyOf(uint64_t n) const {
    if (key_kind_ == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string text = "key " + std::to_string(1000 + n);
    return OwnedKey(Key(std::string_view(text)));
  }
  void Insert(uint64_t n) {
    const EpochGuard guard(owner_->epoch());
    const rdma::GlobalAddress record = owner_->NewRecord(KeyOf(n).view());
    const StatusOr<Change> inserted = index_->Insert(owner_->context(), KeyOf(n).view(), record, nullptr);
    ASSERT_TRUE(inserted.ok()) << inserted.status();
    records_[n] = record;
  }
  // The leaf that covers key `n`, which is absent.
  rdma::GlobalAddress LeafOf(uint64_t n) { return index_->Find(KeyOf(n).view()).witness.word; }
  void FillSomeLeaves() {
    for (uint64_t n = kFirst; n < kFirst + 150; ++n) Insert(n);
  }

  // Has another thread of the owner do `action` in the middle of the split of a leaf, when line 0 does not count the
  // entries any more that move, and still covers their keys. (A key that stays waits for the lock: so begin with the
  // greatest.)
  template <class Result>
  Result InTheMiddleOfASplit(const std::function<Result(OwnerThread&)>& action) {
    FillSomeLeaves();
    std::future<Result> result;
    interruption_.run = [&] {
      result = std::async(std::launch::async, [&] {
        OwnerThread thread(&cluster_);
        const EpochGuard guard(thread.epoch());
        return action(thread);
      });
      result.wait_for(kWhile);
    };
    // Each is the least key, so the leaf is split in its middle.
    for (uint64_t n = kFirst - 1; n > 0 && !result.valid(); --n) {
      before_ = records_;
      interruption_.leaf = LeafOf(n).offset();
      Insert(n);
    }
    Result done = result.get();
    const Status structure = index_->CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
    return done;
  }

  // Locks the leaf that covers key 0, as the client does.
  void LockAsClient() {
    std::byte* const leaf = cluster_.At(LeafOf(0));
    StoreWord(leaf, Locked(LoadWord(leaf), OwnerBits(kClient, 3)));
  }

  Interruption interruption_;
  IndexCluster cluster_;
  const IndexKindEntry& kind_;
  const KeyKind key_kind_;
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::map<uint64_t, rdma::GlobalAddress> records_;  // by key
  std::map<uint64_t, rdma::GlobalAddress> before_;   // when the insert began that splits a leaf
};
INSTANTIATE_TEST_SUITE_P(Kinds, TornLeafTest,
                         testing::Combine(testing::Values(IndexKind::kBlink, IndexKind::kRolex, IndexKind::kDex),
                                          testing::Values(KeyKind::kInteger, KeyKind::kBytes)),
                         [](const auto& instance) {
                           return EntryOf(std::get<0>(instance.param)).name +
                                  (std::get<1>(instance.param) == KeyKind::kInteger ? "_integers" : "_bytes");
                         });

TEST_P(TornLeafTest, KeysThatASplitMovesAreRemoved) {
  const auto removed = InTheMiddleOfASplit<Status>([this](OwnerThread& thread) {
    for (const auto& [n, record] : std::views::reverse(before_)) {
      GANNET_RETURN_IF_ERROR(index_->Remove(thread.context(), KeyOf(n).view(), record).status());
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(removed.ok()) << removed;
  for (const auto& [n, record] : before_) EXPECT_TRUE(index_->Find(KeyOf(n).view()).record.is_null()) << n;
}

TEST_P(TornLeafTest, KeysThatASplitMovesAreReplaced) {
  std::map<uint64_t, rdma::GlobalAddress> now;
  const auto replaced = InTheMiddleOfASplit<Status>([&](OwnerThread& thread) {
    for (const auto& [n, record] : std::views::reverse(before_)) {
      now[n] = thread.NewRecord(KeyOf(n).view());
      GANNET_RETURN_IF_ERROR(index_->Replace(KeyOf(n).view(), record, now[n]));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(replaced.ok()) << replaced;
  for (const auto& [n, record] : now) EXPECT_EQ(index_->Find(KeyOf(n).view()).record, record) << n;
}

// A checkpoint finds the rows by such a walk.
TEST_P(TornLeafTest, AWalkFindsTheKeysThatASplitMoves) {
  const auto walked = InTheMiddleOfASplit<std::vector<rdma::GlobalAddress>>([this](OwnerThread&) {
    std::vector<rdma::GlobalAddress> records;
    WalkPosition position;
    while (index_->Walk(&position, &records)) {
    }
    return records;
  });
  for (const auto& [n, record] : before_) EXPECT_EQ(std::ranges::count(walked, record), 1) << n;
}

// The verbs of a dead node take no effect any more. So nobody waits for the repair.
TEST_P(TornLeafTest, ALeafThatADeadNodeHasLockedIsRead) {
  FillSomeLeaves();
  LockAsClient();
  std::future<FindResult> found = std::async(std::launch::async, [&] { return index_->Find(KeyOf(kFirst).view()); });
  EXPECT_EQ(found.wait_for(kWhile), std::future_status::timeout) << "the node lives";
  cluster_.Kill(kClient);
  EXPECT_EQ(found.get().record, records_[kFirst]);
}

// The leaf is repaired, too, if the node lives, and only its connection has ended.
TEST_P(TornLeafTest, RepairReadsWhatItRepairs) {
  FillSomeLeaves();
  LockAsClient();
  index_->RepairAfter(kClient);
  EXPECT_EQ(index_->Find(KeyOf(kFirst).view()).record, records_[kFirst]);
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

}  // namespace torn_leaf_test
}  // namespace gannet::index
