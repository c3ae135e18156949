// Each step of a commit calls all owners together: one more owner adds calls to a transaction, but far less time than
// the round trip of a call. In virtual time, so the machine has no influence.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "txn/peer/wire.h"

namespace gannet::txn {
namespace owner_calls_test {

constexpr int kNodes = 4;
constexpr int kRounds = 10;

// The owner is key % kNodes.
rdma::NodeId OwnerByRemainder(const index::Key& key, int num_nodes) {
  return static_cast<rdma::NodeId>(key.integer() % static_cast<uint64_t>(num_nodes));
}
int OwnerOfRangeByRemainder(const index::Key& from, const index::Key& to, int num_nodes) {
  return from.integer() == to.integer() ? OwnerByRemainder(from, num_nodes) : Placement::kSeveralNodes;
}

// The shortest duration of several transactions, and the calls of each.
struct Took {
  uint64_t insert_nanos = UINT64_MAX;
  uint64_t insert_calls = 0;
  uint64_t remove_nanos = UINT64_MAX;
  uint64_t remove_calls = 0;
};

class OwnerCallsTest : public testing::TestWithParam<bool> {
 protected:
  OwnerCallsTest() {
    auto fabric =
        rdma::sim::SimFabric::Create(&simulation_, {.num_nodes = kNodes, .bytes_per_node = uint64_t{64} << 20});
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    fabric_ = *std::move(fabric);
    DatabaseOptions options{.read_path = ReadPathPolicy::kOneSided};
    if (GetParam()) {
      options.directory = "/data";
      options.create_if_missing = true;
      options.durability = DurabilityMode::kAsync;  // the disk's time is not measured here
      options.files = std::make_shared<log::FaultyFileSystem>(3);
      options.log_segment_bytes = uint64_t{1} << 20;
      options.log_buffer_bytes = size_t{256} << 10;
    }
    const Placement by_remainder{.owner = OwnerByRemainder, .range_owner = OwnerOfRangeByRemainder};
    cluster_ = std::make_unique<Cluster>(
        fabric_.get(), options,
        std::vector<TableOptions>{
            {.name = "rows", .payload_bytes = sizeof(uint64_t), .expected_rows = 1000, .placement = by_remainder}});
    session_ = &cluster_->NewSession(0);
    table_ = &cluster_->table(0, "rows");
  }

  // One row at each of the nodes 1 to `owners`, inserted by one transaction and removed by another, several times.
  Took InsertAndRemove(int owners) {
    Took took;
    for (int round = 0; round < kRounds; ++round) {
      const auto key_of = [&](int owner) { return uint64_t{kNodes} * static_cast<uint64_t>(round) + owner; };
      const auto timed = [&](uint64_t* nanos, uint64_t* calls, auto body) {
        const uint64_t calls_before = session_->channel().counters().calls;
        Step step(*session_);
        body(step);
        const uint64_t start = NowNanos();
        const Status committed = step.Commit();
        *nanos = std::min(*nanos, NowNanos() - start);
        *calls = session_->channel().counters().calls - calls_before;
        EXPECT_TRUE(committed.ok()) << committed;
      };
      timed(&took.insert_nanos, &took.insert_calls, [&](Step& step) {
        for (int owner = 1; owner <= owners; ++owner) {
          const Status inserted = step->Insert(*table_, key_of(owner), uint64_t{7});
          EXPECT_TRUE(inserted.ok()) << inserted;
        }
      });
      timed(&took.remove_nanos, &took.remove_calls, [&](Step& step) {
        for (int owner = 1; owner <= owners; ++owner) {
          const Status removed = step->Remove(*table_, key_of(owner));
          EXPECT_TRUE(removed.ok()) << removed;
        }
      });
    }
    return took;
  }

  // The shortest round trip of a call: the owner refuses the empty request at once.
  uint64_t CallNanos() {
    uint64_t nanos = UINT64_MAX;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t start = NowNanos();
      session_->worker().BlockOn(RefusedCall());
      nanos = std::min(nanos, NowNanos() - start);
    }
    return nanos;
  }
  coro::Task<void> RefusedCall() {
    const StatusOr<size_t> answer = co_await session_->channel().Call(1, kTxnRead, {}, {});
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << answer.status();
  }

  rdma::sim::Simulation simulation_{{.seed = 1}};
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<Cluster> cluster_;
  Session* session_ = nullptr;
  const Table* table_ = nullptr;
};

TEST_P(OwnerCallsTest, AFurtherOwnerAddsCallsButNoRoundTrip) {
  const bool logs = GetParam();
  const uint64_t call = CallNanos();
  const Took two = InsertAndRemove(2);
  const Took three = InsertAndRemove(3);
  // A prepare, and a log part. (Both transactions tell two owners the decision; the install uses WRITEs.)
  EXPECT_EQ(three.insert_calls, two.insert_calls + 1 + (logs ? 1 : 0));
  EXPECT_LT(three.insert_nanos, two.insert_nanos + call / 2) << "a call takes " << call << " ns";
  // A finish (the decider does its part with the decision), and a log part.
  EXPECT_EQ(three.remove_calls, two.remove_calls + 1 + (logs ? 1 : 0));
  EXPECT_LT(three.remove_nanos, two.remove_nanos + call / 2) << "a call takes " << call << " ns";
  RecordProperty("call_nanos", static_cast<int>(call));
  RecordProperty("insert_at_two_nanos", static_cast<int>(two.insert_nanos));
  RecordProperty("insert_at_three_nanos", static_cast<int>(three.insert_nanos));
  RecordProperty("remove_at_two_nanos", static_cast<int>(two.remove_nanos));
  RecordProperty("remove_at_three_nanos", static_cast<int>(three.remove_nanos));
}

std::string NameOf(const testing::TestParamInfo<bool>& logs) {
  return logs.param ? "Logged" : "NotLogged";
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutLog, OwnerCallsTest, testing::Bool(), NameOf);

}  // namespace owner_calls_test
}  // namespace gannet::txn
