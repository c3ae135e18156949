// A worker whose n-th transaction is always the same, so that a test can check that a recovered state is a prefix of
// its history.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/txn/durable_cluster.h"
#include "txn/database.h"

namespace gannet::txn {

using Disk = std::shared_ptr<log::FaultyFileSystem>;

inline Disk NewDisk(uint64_t seed = 1) {
  return std::make_shared<log::FaultyFileSystem>(seed);
}

inline constexpr uint64_t kKeysPerWorker = 40;

// A worker's keys in the ordered table, and its counter in the hash table, after some prefix of its history.
struct WorkerState {
  uint64_t counter = 0;
  std::map<uint64_t, uint64_t> rows;
  friend bool operator==(const WorkerState&, const WorkerState&) = default;
};

enum class Action { kPut, kRemove };
struct Step3 {
  uint64_t key;
  Action action;
};

inline std::vector<Step3> StepsOf(uint64_t seed, uint64_t worker, uint64_t n) {
  Random random(seed * 1'000'003 + worker * 7919 + n);
  std::vector<Step3> steps;
  while (steps.size() < 3) {
    const uint64_t key = worker * 1000 + random.Below(kKeysPerWorker);
    bool again = false;
    for (const Step3& step : steps) again |= step.key == key;
    if (!again) steps.push_back({key, random.OneIn(3) ? Action::kRemove : Action::kPut});
  }
  return steps;
}

inline void Apply(uint64_t seed, uint64_t worker, uint64_t n, WorkerState* state) {
  state->counter = n;
  for (const Step3& step : StepsOf(seed, worker, n)) {
    if (step.action == Action::kPut) {
      state->rows[step.key] = n;
    } else {
      state->rows.erase(step.key);
    }
  }
}

inline Status RunStep(Database& database, uint64_t seed, uint64_t worker, uint64_t n) {
  const Table& counters = *database.FindTable("counters");
  const Table& rows = *database.FindTable("rows");
  return database.Run([&](BlockingTransaction& t) -> Status {
    uint64_t value;
    const Status found = t.Get(counters, worker, &value);
    const Status counted =
        absl::IsNotFound(found) ? t.Insert(counters, worker, n) : (found.ok() ? t.Update(counters, worker, n) : found);
    GANNET_RETURN_IF_ERROR(counted);
    for (const Step3& step : StepsOf(seed, worker, n)) {
      Status present = t.Get(rows, step.key, &value);
      if (!present.ok() && !absl::IsNotFound(present)) return present;
      if (step.action == Action::kPut) {
        GANNET_RETURN_IF_ERROR(present.ok() ? t.Update(rows, step.key, n) : t.Insert(rows, step.key, n));
      } else if (present.ok()) {
        GANNET_RETURN_IF_ERROR(t.Remove(rows, step.key));
      }
    }
    return absl::OkStatus();
  });
}

inline std::vector<TableOptions> HistoryTables() {
  return {HashTable("counters"), OrderedTable("rows")};
}

inline WorkerState ReadState(Database& database, uint64_t worker) {
  WorkerState state;
  const Status status = database.Run([&](BlockingTransaction& t) -> Status {
    state = {};
    Status found = t.Get(*database.FindTable("counters"), worker, &state.counter);
    if (!found.ok() && !absl::IsNotFound(found)) return found;
    ScanRows rows;
    GANNET_RETURN_IF_ERROR(
        t.Scan(*database.FindTable("rows"), {.from = worker * 1000, .to = worker * 1000 + 999}, &rows));
    for (size_t i = 0; i < rows.size(); ++i) state.rows[rows.key(i).integer()] = rows.As<uint64_t>(i);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return state;
}

// Expects the state after some n >= `acknowledged` of the worker's transactions; returns n.
inline uint64_t ExpectPrefix(const WorkerState& state, uint64_t seed, uint64_t worker, uint64_t acknowledged) {
  EXPECT_GE(state.counter, acknowledged) << "worker " << worker;
  WorkerState expected;
  for (uint64_t n = 1; n <= state.counter; ++n) Apply(seed, worker, n, &expected);
  EXPECT_EQ(state.rows, expected.rows) << "worker " << worker << " after " << state.counter;
  return state.counter;
}

}  // namespace gannet::txn
