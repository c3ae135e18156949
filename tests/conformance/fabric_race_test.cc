// READs and atomics that race with writes and atomics.
#include <array>
#include <cstring>
#include <vector>

#include "base/cache_line.h"
#include "rdma/versioned.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace fabric_race_test {

constexpr uint64_t kWrites = 4000;
constexpr uint64_t kReadsPerLook = 50;  // between two checks whether the writers have finished

uint64_t WordOf(const std::vector<std::byte>& bytes, size_t offset) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

TEST_P(FabricSuite, WordsAreReadAndWrittenWhole) {
  Make();
  StartJob(1, {.kind = JobKind::kWriteWord, .target = At(1, 8), .count = kWrites});  // not the first word of its line
  StartJob(1, {.kind = JobKind::kWriteWord, .target = At(1, 64), .count = kWrites});
  do {
    for (uint64_t i = 0; i < kReadsPerLook; ++i) {
      for (const GlobalAddress at : {At(1, 8), At(1, 64)}) {
        const uint64_t word = ReadWord(at);
        ASSERT_EQ(word, (word & 0xff) * 0x0101010101010101ull);
      }
    }
  } while (!JobsDone(1));
}

// Contract 2. The writer gives every line a first word that it never had before.
TEST_P(FabricSuite, LinesAreReadAsTheyWereBetweenTwoWrites) {
  Make();
  if (!fabric().capabilities().line_consistent) GTEST_SKIP() << "this fabric does not promise it";
  constexpr uint32_t kLines = 8;
  StartJob(1, {.kind = JobKind::kWriteLines, .target = At(1, 0), .count = kWrites, .lines = kLines});
  std::vector<std::byte> image(kLines * kLineBytes);
  do {
    for (uint64_t i = 0; i < kReadsPerLook; ++i) {
      ASSERT_TRUE(Read(At(1, 0), image.data(), static_cast<uint32_t>(image.size())).ok());
      for (size_t line = 0; line < image.size(); line += kLineBytes) {
        const uint64_t first = WordOf(image, line);
        if (first == kLineBusy) continue;  // the writer was interrupted in this line: READ again
        for (size_t at = 8; at < kLineBytes; at += 8) ASSERT_EQ(WordOf(image, line + at), first);
      }
    }
  } while (!JobsDone(1));
}

constexpr uint32_t kObjectLines = 6;

struct Seen {
  uint64_t consistent = 0;
  uint64_t torn = 0;  // READs with mixed data, consistent or not
};

// Judges the image of one READ.
void Judge(const std::vector<std::byte>& image, Seen* seen) {
  std::vector<std::byte> data(kObjectLines * kLineDataBytes);
  CopyOut(image.data(), 0, data);
  const bool mixed = std::memcmp(data.data(), data.data() + 1, data.size() - 1) != 0;
  seen->torn += mixed;
  if (!IsConsistentImage(image.data(), kObjectLines)) return;
  ++seen->consistent;
  const uint64_t version = WordOf(image, 0);
  EXPECT_FALSE(mixed) << "version " << version;
  EXPECT_EQ(data[0], version == 0 ? std::byte{0} : VersionedByte(version));
}

TEST_P(FabricSuite, AnObjectWrittenByVerbsIsNeverTornIfItsVersionsAgree) {
  Make();
  StartJob(1, {.kind = JobKind::kWriteVersioned, .target = At(1, 0), .count = kWrites, .lines = kObjectLines});
  Seen seen;
  std::vector<std::byte> image(kObjectLines * kLineBytes);
  for (bool last = false, done = false; !done; done = last) {
    last = JobsDone(1);  // then no one writes during the last round of READs
    for (uint64_t i = 0; i < kReadsPerLook; ++i) {
      ASSERT_TRUE(Read(At(1, 0), image.data(), static_cast<uint32_t>(image.size())).ok());
      Judge(image, &seen);
    }
  }
  EXPECT_GE(seen.consistent, kReadsPerLook);
  // The control: without versions a reader would have taken mixed data.
  if (harness_->adversarial()) {
    EXPECT_GT(seen.torn, 0u);
  }
}

TEST_P(FabricSuite, AnObjectWrittenByItsOwnersCpuIsNeverTornIfItsVersionsAgree) {
  Make();
  StartJob(1,
           {.kind = JobKind::kWriteVersionedByCpu, .target = At(1, 0), .count = 10 * kWrites, .lines = kObjectLines});
  Seen seen;
  std::vector<std::byte> image(kObjectLines * kLineBytes);
  for (bool last = false, done = false; !done; done = last) {
    last = JobsDone(1);  // then no one writes during the last round of READs
    for (uint64_t i = 0; i < kReadsPerLook; ++i) {
      ASSERT_TRUE(Read(At(1, 0), image.data(), static_cast<uint32_t>(image.size())).ok());
      Judge(image, &seen);
    }
  }
  EXPECT_GE(seen.consistent, kReadsPerLook);
}

TEST_P(FabricSuite, TheOwnersCpuReadsWhatVerbsWriteUntorn) {
  Make();
  StartJob(1, {.kind = JobKind::kWriteVersioned, .target = At(0, 0), .count = kWrites, .lines = kObjectLines});
  std::vector<std::byte> data(kObjectLines * kLineDataBytes);
  uint64_t consistent = 0;
  for (bool last = false, done = false; !done; done = last) {
    last = JobsDone(1);
    for (uint64_t i = 0; i < kReadsPerLook; ++i) {
      uint64_t state;
      if (!TryReadLocal(channel().Local(At(0, 0)), 0, data, &state)) continue;
      ++consistent;
      const std::byte expected = state == 0 ? std::byte{0} : VersionedByte(state);
      for (const std::byte byte : data) ASSERT_EQ(byte, expected) << state;
    }
  }
  EXPECT_GE(consistent, kReadsPerLook);
}

// The lock and its release may be one WRITE with the data of the line: readers see all of it or nothing.
TEST_P(FabricSuite, AnObjectOfOneLineIsInstalledAndUnlockedByOneWrite) {
  Make();
  for (const NodeId id : {NodeId{0}, NodeId{1}}) {
    StartJob(1, {.kind = JobKind::kInstallLine, .target = At(id, 0), .count = kWrites});
  }
  std::array<std::byte, kLineBytes> image;
  std::array<std::byte, kLineDataBytes> data;
  const auto check = [&data](uint64_t state) {
    const std::byte expected = state == 0 ? std::byte{0} : VersionedByte(state);
    for (const std::byte byte : data) EXPECT_EQ(byte, expected) << state;
  };
  uint64_t by_read = 0, by_cpu = 0;
  for (bool last = false, done = false; !done; done = last) {
    last = JobsDone(1);
    for (uint64_t i = 0; i < kReadsPerLook && !HasFailure(); ++i) {
      ASSERT_TRUE(Read(At(1, 0), image.data(), kLineBytes).ok());
      if (IsConsistentImage(image.data(), 1)) {
        CopyOut(image.data(), 0, data);
        check(LoadWord(image.data()));
        ++by_read;
      }
      uint64_t state;
      if (!TryReadLocal(channel().Local(At(0, 0)), 0, data, &state)) continue;
      check(state);
      ++by_cpu;
    }
  }
  EXPECT_GE(by_read, kReadsPerLook);
  EXPECT_GE(by_cpu, kReadsPerLook);
}

// Contract 3, as the owner's CPU sees it: the data is there before the flag counts it.
TEST_P(FabricSuite, OthersSeeWritesAndAtomicsInTheirOrder) {
  Make();
  constexpr uint64_t kRounds = 3000;
  StartJob(1, {.kind = JobKind::kCheckOrder, .target = At(1, 0), .count = kRounds});
  for (uint64_t i = 1; i <= kRounds; ++i) {
    std::array<Operation, 2> batch{Operation::Write(&i, At(1, 64), 8), Operation::FetchAndAdd(At(1, 0), 1)};
    ASSERT_TRUE(Post(batch).ok());
  }
  while (!JobsDone(1)) {
  }
  EXPECT_EQ(Violations(1), 0u);
}

TEST_P(FabricSuite, AtomicsOfAllChannelsAreAtomicWithEachOther) {
  Make(3);
  constexpr uint64_t kAdds = 2000;
  for (const NodeId peer : {NodeId{1}, NodeId{2}}) {
    StartJob(peer, {.kind = JobKind::kFetchAndAdd, .target = At(1, 0), .count = kAdds});
    StartJob(peer, {.kind = JobKind::kCompareAndSwap, .target = At(1, 0), .count = kAdds});
  }
  for (uint64_t i = 0; i < kAdds; ++i) ASSERT_TRUE(Add(At(1, 0), 1).ok());
  while (!JobsDone(1) || !JobsDone(2)) {
  }
  EXPECT_EQ(ReadWord(At(1, 0)), 5 * kAdds);
}

TEST_P(FabricSuite, AtomicsAreAtomicWithTheOwnersCpuWherePromised) {
  Make();
  if (!fabric().capabilities().cpu_coherent_atomics) GTEST_SKIP() << "this fabric does not promise it";
  constexpr uint64_t kAdds = 5000;
  StartJob(1, {.kind = JobKind::kFetchAndAddByCpu, .target = At(1, 0), .count = kAdds});
  StartJob(1, {.kind = JobKind::kCompareAndSwap, .target = At(1, 0), .count = kAdds});
  for (uint64_t i = 0; i < kAdds; ++i) ASSERT_TRUE(Add(At(1, 0), 1).ok());
  while (!JobsDone(1)) {
  }
  EXPECT_EQ(ReadWord(At(1, 0)), 3 * kAdds);
}

}  // namespace fabric_race_test
}  // namespace gannet::rdma::conformance
