// READ, WRITE, CAS and FAA without concurrency: sizes, batches, counters, errors.
#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "base/cache_line.h"
#include "base/random.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace fabric_memory_test {

TEST_P(FabricSuite, HeapsAreZeroAtFirst) {
  Make();
  std::vector<std::byte> bytes(4096, std::byte{1});
  for (const NodeId id : {NodeId{0}, NodeId{1}}) {
    ASSERT_TRUE(Read(At(id, 0), bytes.data(), 4096).ok());
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}), 4096);
  }
}

TEST_P(FabricSuite, ReadsBackWhatItWroteAndTouchesNothingElse) {
  Make();
  Random random(1);
  std::vector<std::byte> model(4096), out(2048 + 8), in(4096 + 8);
  for (int round = 0; round < 300; ++round) {
    const auto size = static_cast<uint32_t>(8 * (1 + random.Below(256)));
    const uint64_t offset = 8 * random.Below((4096 - size) / 8 + 1);
    const size_t skew = random.Below(8);  // local buffers need no alignment
    for (uint32_t i = 0; i < size; ++i) out[skew + i] = static_cast<std::byte>(random());
    ASSERT_TRUE(Write(out.data() + skew, At(1, offset), size).ok());
    std::copy_n(out.begin() + static_cast<ptrdiff_t>(skew), size, model.begin() + static_cast<ptrdiff_t>(offset));
    ASSERT_TRUE(Read(At(1, 0), in.data() + skew, 4096).ok());
    ASSERT_TRUE(std::equal(model.begin(), model.end(), in.begin() + static_cast<ptrdiff_t>(skew))) << round;
  }
}

TEST_P(FabricSuite, ReadsAnyPartOfWhatIsThere) {
  Make();
  std::vector<uint64_t> words(64);
  for (size_t i = 0; i < words.size(); ++i) words[i] = 1000 + i;
  ASSERT_TRUE(Write(words.data(), At(1, 0), 512).ok());
  for (size_t from = 0; from < words.size(); ++from) {
    for (size_t to = from + 1; to <= words.size(); ++to) {
      std::vector<uint64_t> part(to - from + 1, 7);
      ASSERT_TRUE(Read(At(1, 8 * from), part.data(), static_cast<uint32_t>(8 * (to - from))).ok());
      ASSERT_TRUE(std::equal(part.begin(), part.end() - 1, words.begin() + static_cast<ptrdiff_t>(from)));
      ASSERT_EQ(part.back(), 7u);
    }
  }
}

TEST_P(FabricSuite, OwnMemoryIsReachedLikeOthers) {
  Make();
  const uint64_t word = 5;
  ASSERT_TRUE(Write(&word, At(0, 64), 8).ok());
  EXPECT_EQ(ReadWord(At(0, 64)), 5u);
  EXPECT_EQ(LoadWord(channel().Local(At(0, 64))), 5u);
  EXPECT_EQ(channel().Local(At(1, 64)), nullptr);
  EXPECT_EQ(node().AddressOf(channel().Local(At(0, 64))), At(0, 64));
}

TEST_P(FabricSuite, AMarkedAddressIsTheSamePlace) {
  Make();
  const uint64_t word = 6;
  ASSERT_TRUE(Write(&word, At(1, 64).WithMark(true), 8).ok());
  EXPECT_EQ(ReadWord(At(1, 64)), 6u);
}

TEST_P(FabricSuite, CompareAndSwapSwapsOnlyWhatIsExpected) {
  Make();
  EXPECT_EQ(Swap(At(1, 0), 0, 10).value(), 0u);
  EXPECT_EQ(Swap(At(1, 0), 0, 20).value(), 10u);
  EXPECT_EQ(ReadWord(At(1, 0)), 10u);
  EXPECT_EQ(Swap(At(1, 0), 10, 20).value(), 10u);
  EXPECT_EQ(ReadWord(At(1, 0)), 20u);
}

TEST_P(FabricSuite, FetchAndAddReturnsWhatWasThereAndWraps) {
  Make();
  EXPECT_EQ(Add(At(1, 8), 3).value(), 0u);
  EXPECT_EQ(Add(At(1, 8), ~uint64_t{0}).value(), 3u);
  EXPECT_EQ(ReadWord(At(1, 8)), 2u);
}

// Contract 3, within one batch and over several.
TEST_P(FabricSuite, AReadSeesWhatItsChannelWroteBefore) {
  Make();
  for (uint64_t i = 1; i <= 200; ++i) {
    std::array<uint64_t, 24> out, in{};
    out.fill(i);
    std::array<Operation, 3> batch{Operation::Write(out.data(), At(1, 0), sizeof out),
                                   Operation::FetchAndAdd(At(1, 512), 1), Operation::Read(At(1, 0), in.data(), 192)};
    ASSERT_TRUE(Post(batch).ok());
    ASSERT_EQ(in, out);
    ASSERT_EQ(batch[1].result, i - 1);
    in.fill(0);
    ASSERT_TRUE(Read(At(1, 0), in.data(), sizeof in).ok());
    ASSERT_EQ(in, out);
  }
}

TEST_P(FabricSuite, WritesOfOneChannelTakeEffectInOrder) {
  Make();
  for (int round = 0; round < 100; ++round) {
    std::array<std::array<uint64_t, 16>, 6> images;
    std::vector<Operation> batch;
    for (size_t i = 0; i < images.size(); ++i) {
      images[i].fill(i);
      batch.push_back(Operation::Write(images[i].data(), At(1, 64), 128));
    }
    batch.push_back(Operation::CompareAndSwap(At(1, 64), images.size() - 1, 99));
    ASSERT_TRUE(Post(batch).ok());
    EXPECT_EQ(batch.back().result, images.size() - 1);
    ASSERT_EQ(ReadWord(At(1, 64)), 99u);
    ASSERT_EQ(ReadWord(At(1, 128)), images.size() - 1);
  }
}

TEST_P(FabricSuite, CountersCountOperationsBytesAndRoundTrips) {
  Make(3);
  std::array<std::byte, 256> buffer{};
  const VerbCounters before = channel().counters();
  std::vector<Operation> batch{Operation::Read(At(1, 0), buffer.data(), 64),
                               Operation::Read(At(2, 0), buffer.data(), 8),
                               Operation::Write(buffer.data(), At(0, 0), 256), Operation::FetchAndAdd(At(2, 8), 1),
                               Operation::CompareAndSwap(At(2, 16), 0, 1)};
  ASSERT_TRUE(Post(batch).ok());
  ASSERT_TRUE(Read(At(1, 0), buffer.data(), 128).ok());
  ASSERT_TRUE(Post({}).ok());  // an empty batch counts nothing
  ASSERT_EQ(Call(1, kEcho, std::span(buffer).first(10)).value().size(), 10u);
  channel().CountRetry();
  const VerbCounters done = channel().counters() - before;
  EXPECT_EQ(done.reads, 3u);
  EXPECT_EQ(done.writes, 1u);
  EXPECT_EQ(done.fetch_and_adds, 1u);
  EXPECT_EQ(done.compare_and_swaps, 1u);
  EXPECT_EQ(done.calls, 1u);
  EXPECT_EQ(done.round_trips, 3u);
  EXPECT_EQ(done.bytes_out, 256u + 8 + 16 + 10);
  EXPECT_EQ(done.bytes_in, 64u + 8 + 8 + 8 + 128 + 10);
  EXPECT_EQ(done.retries, 1u);
}

TEST_P(FabricSuite, BadAddressesAreRefusedByNameAndHarmNothing) {
  Make();
  std::vector<std::byte> buffer(1 << 20);
  const uint64_t end = node().memory().size();
  const struct {
    Operation operation;
    const char* verb;
  } cases[] = {
      {Operation::Read(GlobalAddress(), buffer.data(), 8), "READ"},                        // null
      {Operation::Read(GlobalAddress(1, end), buffer.data(), 8), "READ"},                  // beyond the end
      {Operation::Read(GlobalAddress(1, end - 64), buffer.data(), 128), "READ"},           // across the end
      {Operation::Write(buffer.data(), GlobalAddress(1, end - 8), 1 << 20), "WRITE"},      // across the end
      {Operation::Write(buffer.data(), GlobalAddress(1, (1ull << 48) - 8), 64), "WRITE"},  // across all ends
      {Operation::Read(At(1, 4), buffer.data(), 8), "READ"},                               // not aligned
      {Operation::Read(At(1, 0), buffer.data(), 12), "READ"},                              // odd size
      {Operation::Write(buffer.data(), At(1, 1), 8), "WRITE"},
      {Operation::CompareAndSwap(At(1, 4), 0, 1), "CAS"},
      {Operation::FetchAndAdd(GlobalAddress(1, end), 1), "FAA"},
      {Operation::Read(GlobalAddress(1, node().writable_offset() - 8), buffer.data(), 16), "READ"},  // both parts
      {Operation::Write(buffer.data(), GlobalAddress(1, node().writable_offset() - 8), 16), "WRITE"},
      {Operation::Read(At(2, 0), buffer.data(), 8), "READ"},  // there is no node 2
      {Operation::FetchAndAdd(At(kMaxNodes - 1, 0), 1), "FAA"},
  };
  for (const auto& [bad, verb] : cases) {
    std::array<Operation, 1> batch{bad};
    const Status status = Post(batch);
    EXPECT_THAT(status, IsStatus(absl::StatusCode::kInvalidArgument));
    EXPECT_TRUE(absl::StrContains(status.message(), verb)) << status;
  }
  EXPECT_EQ(ReadWord(At(1, 0)), 0u);
}

TEST_P(FabricSuite, WhatOnlyTheOwnerWritesOthersMayRead) {
  Make();
  const uint64_t first = node().heap_offset();
  const uint64_t last = node().writable_offset() - 8;
  ASSERT_LT(first, last);
  StoreWord(node().memory().data() + first, 7);
  EXPECT_EQ(ReadWord(GlobalAddress(0, first)), 7u);
  const uint64_t word = 9;
  for (const NodeId id : {NodeId{0}, NodeId{1}}) {  // not writable by an owner's verbs either
    for (const uint64_t offset : {first, last}) {
      const GlobalAddress at(id, offset);
      const uint64_t before = ReadWord(at);
      uint64_t read = 0;
      for (const Operation& bad : {Operation::Write(&word, at, 8), Operation::CompareAndSwap(at, before, word),
                                   Operation::FetchAndAdd(at, 1)}) {
        std::array<Operation, 2> batch{Operation::Read(At(id, 0), &read, 8), bad};
        const Status status = Post(batch);
        EXPECT_THAT(status, IsStatus(absl::StatusCode::kPermissionDenied));
        EXPECT_TRUE(absl::StrContains(status.message(), at.ToString())) << status;
      }
      EXPECT_EQ(ReadWord(at), before);
    }
  }
  // After a refusal the channel still works.
  ASSERT_TRUE(Write(&word, At(1, 0), 8).ok());
  EXPECT_EQ(ReadWord(At(1, 0)), word);
}

TEST_P(FabricSuite, TheLastWordOfMemoryIsUsable) {
  Make();
  const GlobalAddress last(1, node().memory().size() - 8);
  ASSERT_EQ(Swap(last, 0, 3).value(), 0u);
  EXPECT_EQ(ReadWord(last), 3u);
}

}  // namespace fabric_memory_test
}  // namespace gannet::rdma::conformance
