// A race in the simulation: one session swaps amounts between two rows of an owner, while another reads both by one
// call in transactions that only read. Such an answer is a snapshot or must be validated (txn/peer/seen_words.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "gtest/gtest.h"
#include "index/rectangle.h"
#include "tests/txn/simulated_cluster.h"

namespace gannet::txn {

struct SnapshotRace {
  uint64_t reads = 0;      // that committed
  uint64_t wrong = 0;      // of these: in no state of the database
  uint64_t validated = 0;  // of these: with a validation
  uint64_t swaps = 0;
};

enum class SnapshotKind : uint8_t { kGetMany, kScan, kSearch };

class SnapshotRaceRun {
 public:
  SnapshotRaceRun(SnapshotKind kind, uint64_t seed)
      : kind_(kind),
        cluster_(2, SimulationOf(seed), {.read_path = ReadPathPolicy::kCall, .server_threads = 2}, {Rows(kind)}) {}

  SnapshotRace Run(uint64_t virtual_nanos) {
    SnapshotRace result;
    cluster_.On(0, [this](Session& session) {
      const Status filled = RunBlockingBody(session, [this](BlockingTransaction& t) {
        const Status first = t.Insert(rows(0), KeyOf(0), kTotal);
        return first.ok() ? t.Insert(rows(0), KeyOf(1), int64_t{0}) : first;
      });
      ASSERT_TRUE(filled.ok()) << filled;
    });
    std::atomic<bool> stop = false;
    Runtime::Thread* const writer = cluster_.Start(0, [&](Session& session) {
      while (!stop) {
        const Status swapped = RunBlockingBody(session, [this](BlockingTransaction& t) -> Status {
          std::array<int64_t, 2> amounts;
          std::array<StatusOr<RecordHandle>, 2> handles;
          for (size_t i = 0; i < 2; ++i) {
            handles[i] = t.GetForUpdate(rows(0), KeyOf(i), &amounts[i]);
            if (!handles[i].ok()) return handles[i].status();
          }
          const Status first = t.Update(*handles[0], amounts[1]);
          return first.ok() ? t.Update(*handles[1], amounts[0]) : first;
        });
        EXPECT_TRUE(swapped.ok()) << swapped;
        ++result.swaps;
        SleepForNanos(2'000);
      }
    });
    Runtime::Thread* const reader = cluster_.Start(1, [&](Session& session) {
      while (!stop) {
        uint64_t reads = 0;
        int64_t sum = 0;
        const Status read = RunBlockingBody(session, [&](BlockingTransaction& t) {
          reads = session.channel().counters().reads;
          return Sum(t, &sum);
        });
        EXPECT_TRUE(read.ok()) << read;
        ++result.reads;
        result.wrong += sum == kTotal ? 0 : 1;
        result.validated += session.channel().counters().reads == reads ? 0 : 1;
      }
    });
    SleepForNanos(virtual_nanos);
    stop = true;
    cluster_.simulation().Join(writer);
    cluster_.simulation().Join(reader);
    return result;
  }

 private:
  static constexpr int64_t kTotal = 100;
  static constexpr index::Rectangle kBoxes[] = {{1, 1, 2, 2}, {3, 3, 4, 4}};

  static rdma::sim::SimulationOptions SimulationOf(uint64_t seed) {
    rdma::sim::SimulationOptions options{.seed = seed};
    options.faults.preempt = 0.02;
    return options;
  }
  static TableOptions Rows(SnapshotKind kind) {
    TableOptions table{
        .name = "rows", .payload_bytes = sizeof(int64_t), .expected_rows = 10, .placement = Placement::OnFirstNode()};
    if (kind == SnapshotKind::kScan) table.index = IndexKind::kXStore;
    if (kind == SnapshotKind::kSearch) {
      table.key_kind = index::KeyKind::kBytes;
      table.max_key_bytes = index::RectangleKey::kBytes;
      table.index = IndexKind::kCatfish;
    }
    return table;
  }

  const Table& rows(int node) { return cluster_.table(node, "rows"); }
  Key KeyOf(size_t i) {
    if (kind_ != SnapshotKind::kSearch) return Key(uint64_t{i});
    return i == 0 ? first_.view() : second_.view();
  }

  Status Sum(BlockingTransaction& t, int64_t* sum) {
    *sum = 0;
    if (kind_ == SnapshotKind::kGetMany) {
      std::array<int64_t, 2> amounts;
      std::array<GetRequest, 2> requests = {GetRequest::Of(rows(1), KeyOf(0), &amounts[0]),
                                            GetRequest::Of(rows(1), KeyOf(1), &amounts[1])};
      Status status = t.GetMany(requests);
      for (const GetRequest& request : requests) status.Update(request.status);
      *sum = amounts[0] + amounts[1];
      return status;
    }
    ScanRows found;
    Status status = kind_ == SnapshotKind::kScan ? t.Scan(rows(1), {.from = KeyOf(0), .to = KeyOf(1)}, &found)
                                                 : t.Search(rows(1), {0, 0, 5, 5}, &found);
    for (size_t i = 0; i < found.size(); ++i) *sum += found.As<int64_t>(i);
    return status;
  }

  const SnapshotKind kind_;
  const index::RectangleKeyBytes first_{{kBoxes[0], 0}};
  const index::RectangleKeyBytes second_{{kBoxes[1], 1}};
  SimulatedCluster cluster_;
};

}  // namespace gannet::txn
