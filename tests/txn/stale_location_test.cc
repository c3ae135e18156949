// A session whose location cache has the address of memory where the record no longer lies.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/mutant.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "tests/txn/cluster.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace stale_location_test {

constexpr uint64_t kKey = 7;
constexpr size_t kPayload = 2000;  // more than a first READ of variable length brings

class StaleLocationTest : public testing::Test {
 protected:
  StaleLocationTest()
      : cluster({.nodes = 2},
                {{.name = "blobs", .payload_bytes = kMaxPayloadBytes, .variable_length = true, .expected_rows = 100}}),
        owner(cluster.NewSession(0)),
        reader(cluster.NewSession(1)),
        table(cluster.table(1, "blobs")) {
    EXPECT_TRUE(RunBlockingBody(owner, [&](BlockingTransaction& t) {
                  return t.Insert(cluster.table(0, "blobs"), kKey, std::as_bytes(std::span(before)));
                }).ok());
    EXPECT_EQ(Read(), before);
  }

  std::string Read() {
    std::string payload(before.size(), ' ');
    const Status status = RunBlockingBody(reader, [&](BlockingTransaction& t) {
      return t.Get(table, kKey, std::as_writable_bytes(std::span(payload)), 0);
    });
    return status.ok() ? payload : status.ToString();
  }
  std::byte* Record() {
    index::WalkPosition position;
    std::vector<rdma::GlobalAddress> records;
    while (cluster.table(0, "blobs").local_index().Walk(&position, &records)) {
    }
    EXPECT_EQ(records.size(), 1u);
    return cluster.databases[0]->state().node->memory().data() + records[0].offset();
  }
  void Move() {
    EXPECT_TRUE(RunBlockingBody(owner, [&](BlockingTransaction& t) {
                  const Status removed = t.Remove(cluster.table(0, "blobs"), kKey);
                  return removed.ok() ? t.Insert(cluster.table(0, "blobs"), kKey, std::as_bytes(std::span(after)))
                                      : removed;
                }).ok());
  }

  const std::string before = std::string(kPayload, 'b');
  const std::string after = std::string(4 * kPayload, 'a');
  Cluster cluster;
  Session& owner;
  Session& reader;
  const Table& table;
};

// Smaller objects use its lines now; its first line is free.
TEST_F(StaleLocationTest, LinesOfAFreeBlockNeedNotAgree) {
  std::byte* const record = Record();
  Move();
  ASSERT_NE(Record(), record);
  ASSERT_TRUE(IsAbsent(LoadWord(record)));
  StoreWord(record + kLineBytes, LoadWord(record) + 12345);
  EXPECT_EQ(Read(), after.substr(0, kPayload));
}

// The memory now holds something that never looks like an unlocked record.
TEST_F(StaleLocationTest, WhatIsAlwaysLockedIsNotTheRecord) {
  std::byte* const record = Record();
  Move();
  ASSERT_NE(Record(), record);
  StoreWord(record, LoadWord(Record()) | rdma::kLockBit);
  EXPECT_EQ(Read(), after.substr(0, kPayload));
}

// ---------------------------------------------------------------------------------------------------------------------
// Memory of small records becomes part of large ones. Their payload looks, line by line, like records with the keys
// that readers remember: whatever line a stale address leads to, everything but its first word is a record's.

constexpr uint32_t kSmallBytes = 40;  // one line
constexpr char kTrue = 't';
constexpr char kForged = 'f';

// The first line of a payload is the record's own; each other line is a forged record of one of `victims`.
std::vector<std::byte> ForgedPayload(uint64_t key, size_t lines, TableId table, std::span<const uint64_t> victims,
                                     Random* random) {
  std::vector<std::byte> payload(kSmallBytes + (lines - 1) * rdma::kLineDataBytes, std::byte{kTrue});
  std::memcpy(payload.data(), &key, sizeof key);
  const index::RecordMeta meta{.key_bytes = sizeof key, .payload_bytes = kSmallBytes, .table = table};
  const uint64_t word = meta.Pack();
  for (size_t line = 1; line < lines; ++line) {
    std::byte* const at = payload.data() + kSmallBytes + (line - 1) * rdma::kLineDataBytes;
    const uint64_t victim = victims[random->Below(victims.size())];
    std::memset(at, kForged, rdma::kLineDataBytes);
    std::memcpy(at, &word, sizeof word);
    std::memcpy(at + sizeof word, &victim, sizeof victim);
  }
  return payload;
}

bool IsTrue(uint64_t key, std::span<const std::byte> payload) {
  uint64_t found;
  std::memcpy(&found, payload.data(), sizeof found);
  return found == key && payload.back() == std::byte{kTrue};
}

TableOptions Blobs() {
  return {.name = "blobs",
          .payload_bytes = kMaxPayloadBytes,
          .variable_length = true,
          .expected_rows = 30'000,
          .placement = Placement::OnFirstNode()};
}

class ReusedMemoryTest : public testing::Test {
 protected:
  explicit ReusedMemoryTest(bool adversarial = false)
      : cluster({.nodes = 2, .adversarial = adversarial}, {Blobs()}),
        owner(cluster.NewSession(0)),
        reader(cluster.NewSession(1)) {}

  Status Insert(uint64_t key, std::span<const std::byte> payload) {
    return RunBlockingBody(owner,
                           [&](BlockingTransaction& t) { return t.Insert(cluster.table(0, "blobs"), key, payload); });
  }
  Status Remove(uint64_t key) {
    return RunBlockingBody(owner, [&](BlockingTransaction& t) { return t.Remove(cluster.table(0, "blobs"), key); });
  }
  Status Get(uint64_t key, std::span<std::byte> out) {
    return RunBlockingBody(reader,
                           [&](BlockingTransaction& t) { return t.Get(cluster.table(1, "blobs"), key, out, 0); });
  }
  // Everything that was removed before is free afterwards.
  void PassGracePeriods(int rounds = 12) {
    rdma::EpochManager& epochs = *cluster.databases[0]->state().epochs;
    for (const uint64_t until = epochs.current_epoch() + static_cast<uint64_t>(rounds);
         epochs.current_epoch() < until;) {
      SleepForNanos(1'000'000);
    }
  }
  // Replaces small records, which the reader remembers, by large ones. Returns the number of remembered places that are
  // in the middle of a large one, and appends to *lies the keys that the reader believes to be there.
  int MakePlace(std::vector<uint64_t>* lies) {
    constexpr uint64_t kSmall = 30'000;
    constexpr uint64_t kStep = 100;
    constexpr uint64_t kLarge = 60;
    constexpr size_t kLines = 500;
    const TableId table = cluster.table(0, "blobs").id();
    std::vector<std::byte> out(kSmallBytes);
    Random random(1);
    std::vector<uint64_t> victims;
    for (uint64_t key = 1; key <= kSmall; ++key) {
      EXPECT_TRUE(Insert(key, ForgedPayload(key, 1, table, {}, &random)).ok());
      if (key % kStep == 0) victims.push_back(key);
    }
    for (const uint64_t key : victims) EXPECT_TRUE(Get(key, out).ok() && IsTrue(key, out));
    std::byte* const memory = cluster.databases[0]->state().node->memory().data();
    std::vector<std::byte*> places;
    {
      index::IndexService::Guard guard(cluster.databases[0]->state().indexes.get());
      for (const uint64_t key : victims) {
        places.push_back(memory + cluster.table(0, "blobs").local_index().Find(key).record.offset());
      }
    }
    for (uint64_t key = 1; key <= kSmall; ++key) EXPECT_TRUE(Remove(key).ok());
    PassGracePeriods();
    // All lines of a round forge the same victim. So each place gets its own key, wherever it lies in a large record.
    int inside = 0;
    for (size_t i = 0; i < victims.size(); i += victims.size() / 8) {
      const std::span<const uint64_t> one = std::span(victims).subspan(i, 1);
      for (uint64_t n = 0; n < kLarge; ++n) {
        const Status inserted = Insert(1'000'000 + n, ForgedPayload(1'000'000 + n, kLines, table, one, &random));
        EXPECT_TRUE(inserted.ok()) << inserted;
      }
      const bool forged = index::LoadMeta(places[i]).table == table && index::RecordHoldsKey(places[i], victims[i]) &&
                          places[i][kLineBytes - 1] == std::byte{kForged};
      inside += forged ? 1 : 0;
      const Status got = Get(victims[i], out);
      if (!absl::IsNotFound(got)) lies->push_back(victims[i]);
      for (uint64_t n = 0; n < kLarge; ++n) EXPECT_TRUE(Remove(1'000'000 + n).ok());
      PassGracePeriods();
    }
    return inside;
  }

  Cluster cluster;
  Session& owner;
  Session& reader;
};

TEST_F(ReusedMemoryTest, APlaceInTheMiddleOfALargerRecordIsNoRecord) {
  std::vector<uint64_t> lies;
  EXPECT_GT(MakePlace(&lies), 0);
  EXPECT_TRUE(lies.empty()) << lies.size() << " removed keys were found, such as " << lies[0];
}

// Shows that the marks prevent it.
TEST_F(ReusedMemoryTest, WithoutMarksItIsTakenForOne) {
  active_mutant = Mutant::kNoMarks;
  std::vector<uint64_t> lies;
  MakePlace(&lies);
  active_mutant = Mutant::kNone;
  EXPECT_FALSE(lies.empty());
}

class AdversarialReuseTest : public ReusedMemoryTest {
 protected:
  AdversarialReuseTest() : ReusedMemoryTest(/*adversarial=*/true) {}
};

// Records of all sizes are inserted and removed, by their owner and by the other node, while a reader uses its old
// addresses. What it finds is always a record of that key that was really written.
TEST_F(AdversarialReuseTest, ReadersFindWhatWasWrittenWhileSizesShift) {
  constexpr uint64_t kKeys = 400;
  constexpr int kPhases = 24;
  const TableId table = cluster.table(0, "blobs").id();
  std::vector<uint64_t> keys;
  for (uint64_t key = 1; key <= kKeys; ++key) keys.push_back(key);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> found = 0, wrong = 0;
  Session& second_writer = cluster.NewSession(1);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Random random(7);
    std::vector<std::byte> out(kSmallBytes);
    while (!stop) {
      const uint64_t key = keys[random.Below(kKeys)];
      const Status got = Get(key, out);
      if (got.ok()) {
        ++found;
        if (!IsTrue(key, out)) ++wrong;
      } else if (!absl::IsNotFound(got)) {
        ++wrong;
      }
    }
  });
  const auto write = [&](Session& session, int node, uint64_t seed) {
    Random random(seed);
    std::vector<std::byte> out(kSmallBytes);
    for (int phase = 0; phase < kPhases; ++phase) {
      const size_t lines = phase % 2 == 0 ? 1 : 8 + random.Below(300);
      for (uint64_t i = 0; i < kKeys / 2; ++i) {
        const uint64_t key = keys[random.Below(kKeys)];
        const std::vector<std::byte> payload = ForgedPayload(key, lines, table, keys, &random);
        const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
          const Table& blobs = cluster.table(node, "blobs");
          const Status there = t.Get(blobs, key, out, 0);
          if (there.ok()) {
            // The other writer may remove it between the two reads. RunBlockingBody validates no error.
            const Status removed = t.Remove(blobs, key);
            return absl::IsNotFound(removed) ? absl::AbortedError("the other writer was faster") : removed;
          }
          return absl::IsNotFound(there) ? t.Insert(blobs, key, payload) : there;
        });
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  };
  threads.emplace_back([&] { write(second_writer, 1, 8); });
  write(owner, 0, 9);
  threads[1].join();
  stop = true;
  threads[0].join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 0u);
}

}  // namespace stale_location_test
}  // namespace gannet::txn
