// Every state that a power cut leaves: at each sync of a run, every combination of the sectors, lengths and names that
// are not synced yet. Each state is recovered: acknowledged transactions are there, others whole or not at all.
//
// GANNET_POWER_CUT_STATES=N: at most N combinations for each sync, and all of them are recovered; without it, a fixed
// number that takes a few seconds. Where there are more combinations, N are drawn at random. The seed is printed if a
// state is wrong.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/durable/verify.h"

namespace gannet::txn {
namespace power_cut_states_test {

constexpr uint64_t kWorkers = 2;
using Acknowledged = std::array<uint64_t, kWorkers>;

struct Budget {
  size_t for_each_sync = 16;
  size_t states = 40;  // that are recovered, of each run
};

Budget BudgetOfTest() {
  const char* const wanted = std::getenv("GANNET_POWER_CUT_STATES");
  size_t number = 0;
  if (wanted == nullptr || !absl::SimpleAtoi(wanted, &number)) return {};
  return {.for_each_sync = number, .states = SIZE_MAX};
}

// What a power cut may leave, and what had been acknowledged by then.
struct CutState {
  Acknowledged acknowledged;
  Disk disk;
  std::string at;  // the sync that was about to begin
};

// Records the states of a disk at each of its syncs.
class Recorder {
 public:
  Recorder(Disk disk, uint64_t seed, size_t for_each_sync)
      : disk_(std::move(disk)), seed_(seed), for_each_sync_(for_each_sync) {
    disk_->SetOptions({.before = [this](log::DiskOperation operation, const std::string& path) {
      if (operation == log::DiskOperation::kSync || operation == log::DiskOperation::kSyncDirectory) Record(path);
    }});
  }
  ~Recorder() { disk_->SetOptions({}); }

  void Acknowledge(uint64_t worker, uint64_t n) { acknowledged_[worker].store(n); }
  // Called after the work has ended.
  std::vector<CutState>& states() { return states_; }
  uint64_t syncs() const { return syncs_; }

 private:
  // What is acknowledged later may be in the states, too.
  void Record(const std::string& path) {
    Acknowledged acknowledged{};
    for (uint64_t w = 0; w < kWorkers; ++w) acknowledged[w] = acknowledged_[w].load();
    const std::lock_guard lock(mutex_);
    ++syncs_;
    for (auto& copy : disk_->CrashedCopies(for_each_sync_, seed_ + syncs_ * 1000))
      states_.push_back({acknowledged, std::move(copy), absl::StrCat("sync ", syncs_, ", of ", path)});
  }

  const Disk disk_;
  const uint64_t seed_;
  const size_t for_each_sync_;
  std::array<std::atomic<uint64_t>, kWorkers> acknowledged_{};
  std::mutex mutex_;
  uint64_t syncs_ = 0;
  std::vector<CutState> states_;
};

std::vector<TableOptions> TablesOf(int nodes) {
  if (nodes == 1) return HistoryTables();
  return {HashTable("counters", Placement::ByHash()), OrderedTable("rows", Placement::ByHash())};
}

// Work of two runs, of which the second one recovers the first: commits, checkpoints that reuse and remove segments, a
// new table, a close.
void WorkRecorded(const Disk& disk, int nodes, uint64_t seed, Recorder* recorder) {
  constexpr uint64_t kSteps = 12;
  DatabaseOptions options;
  options.log_segment_bytes = 96 << 10;
  options.log_buffer_bytes = 8 << 10;
  options.log_large_buffer_bytes = 16 << 10;
  for (uint64_t run = 0; run < 2; ++run) {
    auto cluster = DurableCluster::Open(disk, TablesOf(nodes), {.nodes = nodes, .database = options});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    std::vector<std::thread> workers;
    for (uint64_t w = 0; w < kWorkers; ++w) {
      workers.emplace_back([&, w] {
        Database& database = (*cluster)->database(static_cast<int>(w) % nodes);
        for (uint64_t n = run * kSteps + 1; n <= (run + 1) * kSteps; ++n) {
          const Status done = RunStep(database, seed, w, n);
          ASSERT_TRUE(done.ok()) << done;
          recorder->Acknowledge(w, n);
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      for (int node = 0; node < nodes; ++node) {
        const Status taken = (*cluster)->database(node).Checkpoint();
        EXPECT_TRUE(taken.ok()) << taken;
      }
    }
    if (nodes == 1) {
      const auto created = (*cluster)->database().CreateTable(HashTable(absl::StrCat("more", run)));
      EXPECT_TRUE(created.ok()) << created.status();
    }
    for (std::thread& worker : workers) worker.join();
    const Status closed = (*cluster)->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }
}

void ExpectRecovers(const CutState& state, int nodes, uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", state.at));
  Acknowledged least = state.acknowledged;
  for (int again = 0; again < 2; ++again) {  // also after what the first recovery has written
    auto survivor = DurableCluster::Open(state.disk, TablesOf(nodes), {.nodes = nodes});
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    for (uint64_t w = 0; w < kWorkers; ++w) {
      least[w] = ExpectPrefix(ReadState((*survivor)->database(), w), seed, w, least[w]);
      ASSERT_TRUE(RunStep((*survivor)->database(), seed, w, ++least[w]).ok());
    }
    state.disk->PowerOff();
    survivor->reset();
    state.disk->PowerOn();
  }
}

// States with the same files count once, with the most that was acknowledged of them.
std::vector<CutState> Distinct(std::vector<CutState>* all) {
  std::map<DiskImage, CutState> distinct;
  for (CutState& state : *all) {
    DiskImage image = ImageOf(*state.disk);
    const auto [at, is_new] = distinct.emplace(std::move(image), state);
    if (is_new) continue;
    for (uint64_t w = 0; w < kWorkers; ++w)
      at->second.acknowledged[w] = std::max(at->second.acknowledged[w], state.acknowledged[w]);
  }
  std::vector<CutState> states;
  for (auto& [image, state] : distinct) states.push_back(std::move(state));
  return states;
}

void CutEverywhere(int nodes, uint64_t seed) {
  const Budget budget = BudgetOfTest();
  const Disk disk = NewDisk(seed);
  Recorder recorder(disk, seed, budget.for_each_sync);
  ASSERT_NO_FATAL_FAILURE(WorkRecorded(disk, nodes, seed, &recorder));
  std::vector<CutState> states = std::move(recorder.states());
  EXPECT_GT(recorder.syncs(), 50u);
  EXPECT_GT(states.size(), 2 * recorder.syncs()) << "most syncs leave several states";
  // A fixed part of them, from all over the run.
  Random random(seed);
  for (size_t i = states.size(); i > 1; --i) std::swap(states[i - 1], states[random.Below(i)]);
  if (states.size() > budget.states) states.resize(budget.states);
  states = Distinct(&states);
  for (const CutState& state : states) ASSERT_NO_FATAL_FAILURE(ExpectRecovers(state, nodes, seed));
  std::printf("%zu syncs, %zu states recovered\n", static_cast<size_t>(recorder.syncs()), states.size());
}

TEST(PowerCutStatesTest, OfOneNode) {
  CutEverywhere(1, 1);
}

TEST(PowerCutStatesTest, OfTwoNodes) {
  CutEverywhere(2, 2);
}

}  // namespace power_cut_states_test
}  // namespace gannet::txn
