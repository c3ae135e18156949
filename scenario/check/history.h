// History: what the clients of a run did and saw, as they know it; what the checkers of this folder judge.
//
//   const OperationId op = history.Invoke(client, NowNanos());
//   Status status = co_await session.Run([&](Transaction& t) -> Task<Status> {
//     Draft& draft = history.BeginAttempt(op, NowNanos());  // the body may run several times
//     ... Get k; its value says that write 44 made it:    draft.Read({table, k}, 44);
//     ... missed Get:                                     draft.Read({table, k}, kAbsent);
//     ... update, just before asking for it:              draft.Write({table, k}, history.NextWriteId());
//   });
//   history.Complete(op, NowNanos(), outcome of status);
//
// What a workload must do so that the checker can know the order of the versions of a key:
//   - every value carries the unique id of its write; a key that was never written is absent;
//   - every write of a key is preceded, in the same transaction, by a read of that key (an insert by a missed Get: see
//     Draft::Insert); or every write of that key records a version number that grows with each write of the key;
//   - rows that were there from the beginning are writes of a transaction that completed before all others;
//   - a write is recorded before the engine is asked for it, so that it is known if the client dies.
//
// Keys are numbers; a workload with byte keys numbers them in their order. Times are of one clock. Not thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gannet::scenario {

using OperationId = uint32_t;  // the number of a transaction: 0, 1, 2, ... as they were invoked
using WriteId = uint64_t;      // unique in a history
inline constexpr WriteId kAbsent = 0;
inline constexpr uint64_t kNever = UINT64_MAX;
// As a version: after all versions with a number; the order among several of these is not known.
inline constexpr uint64_t kLastUnordered = UINT64_MAX;

struct RowKey {
  uint32_t table = 0;
  uint64_t key = 0;
  auto operator<=>(const RowKey&) const = default;
  std::string ToString() const;  // "table:key"
};

enum class Outcome : uint8_t {
  kOk,    // committed, and what it read is true
  kFail,  // certainly not applied; what it read means nothing
  kInfo,  // perhaps applied, now or later: Unknown, a time-out, a client that died
};

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kRemove,  // a write of a tombstone
  kScan,    // followed by its rows
  kScanRow,
  kAbandoned,  // a write of an attempt that was rolled back
};

struct Access {
  AccessKind kind;
  uint32_t table;
  uint64_t key;      // of a scan: the first key of the range that it covered
  uint64_t id;       // the write that was made or seen; of a scan: the last key of the range that it covered
  uint64_t version;  // of a write: as the engine numbers it, 0 if not known; of a scan: how many rows follow

  RowKey row() const { return {table, key}; }
};

struct Operation {
  uint32_t client;
  Outcome outcome;
  uint64_t invoked;    // its last attempt
  uint64_t completed;  // kNever: the client never learned how it ended
  uint64_t first_access;
  uint32_t num_accesses;
};

// Of a scan: both ends are included; it stops after `limit` rows.
struct ScanQuery {
  uint32_t table = 0;
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  bool reverse = false;
  size_t limit = SIZE_MAX;
};

// One transaction's accesses, in the order in which it made them.
class Draft {
 public:
  void Read(RowKey row, WriteId seen);
  void Write(RowKey row, WriteId id, uint64_t version = 0);
  void Remove(RowKey row, WriteId id, uint64_t version = 0);
  // Found it absent, and writes it.
  void Insert(RowKey row, WriteId id, uint64_t version = 0);

  // A scan and the rows that it returned, in its order. A scan says that every other key of the range that it covered
  // is absent; EndScan knows whether the limit cut it short. Without EndScan the scan did not end, and says nothing.
  void BeginScan(const ScanQuery& query);
  void Row(uint64_t key, WriteId seen);
  void EndScan();

 private:
  friend class History;
  void Abandon();
  void DropOpenScan();
  void KeepReads();

  std::vector<Access> accesses_;
  ScanQuery query_;
  size_t scan_ = SIZE_MAX;  // place of the scan that has begun and not ended
};

class History {
 public:
  History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  History(History&&) = default;
  History& operator=(History&&) = default;

  OperationId Invoke(uint32_t client, uint64_t now);
  // The accesses of an operation that is not complete. The reference is good until then.
  Draft& draft(OperationId op);
  // The same; what an earlier attempt of the operation did is rolled back: its writes must never be seen. With `now`,
  // what the operation does it does from then on: the narrower that time is, the less is left to guess.
  Draft& BeginAttempt(OperationId op, uint64_t now = 0);
  void Complete(OperationId op, uint64_t now, Outcome outcome);
  // It was rolled back for a reason that it found in the data, and that was told: what it read up to its first write is
  // as true as if it had committed. (Later reads saw its own writes, too.)
  void CompleteRefused(OperationId op, uint64_t now);

  WriteId NextWriteId() { return ++last_write_id_; }

  size_t size() const { return operations_.size(); }
  // One that was not completed is kInfo, with the accesses of its last attempt.
  const Operation& operation(OperationId op) const { return operations_[op]; }
  std::span<const Access> accesses(OperationId op) const;

 private:
  std::vector<Operation> operations_;
  std::vector<Access> accesses_;
  absl::flat_hash_map<OperationId, std::unique_ptr<Draft>> open_;
  std::vector<std::unique_ptr<Draft>> free_;
  WriteId last_write_id_ = 0;
};

}  // namespace gannet::scenario
