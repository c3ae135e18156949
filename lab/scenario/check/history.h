// History: what the clients of a run did and saw, as far as they know. The checkers of this folder judge it.
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
// A workload must keep these rules so that the checker can find the order of the versions of a key:
//   - every value carries the unique id of its write; a key that was never written is absent;
//   - every write of a key is preceded, in the same transaction, by a read of that key (an insert by a missed Get: see
//     Draft::Insert); or every write of that key records a version number that grows with each write of the key;
//   - rows that were there from the beginning are writes of a transaction that completed before all others;
//   - a write is recorded before the engine is asked for it, so that it is known if the client dies.
//
// Keys are numbers; a workload with byte keys numbers them in key order. All times are from one clock. Not thread-safe.
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
// Version of a write that comes after all versions with a number. The order of several such writes is unknown.
inline constexpr uint64_t kLastUnordered = UINT64_MAX;

struct RowKey {
  uint32_t table = 0;
  uint64_t key = 0;
  auto operator<=>(const RowKey&) const = default;  // NOLINT: the generated code's 0
  std::string ToString() const;                     // "table:key"
};

enum class Outcome : uint8_t {
  kOk,    // committed, and its reads are valid
  kFail,  // certainly not applied; its reads are meaningless
  kInfo,  // may have been applied, now or later: Unknown, a time-out, a client that died
};

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kRemove,  // a write that deletes the row
  kScan,    // followed by its rows
  kScanRow,
  kAbandoned,  // a write of an attempt that was rolled back
};

struct Access {
  AccessKind kind;
  uint32_t table;
  uint64_t key;      // of a scan: the first key of the range covered
  uint64_t id;       // the write that was made or seen; of a scan: the last key of the range covered
  uint64_t version;  // of a write: the engine's version number, 0 if not known; of a scan: number of rows that follow

  RowKey row() const { return {table, key}; }
};

struct Operation {
  uint32_t client;
  Outcome outcome;
  uint64_t invoked;    // by its last attempt
  uint64_t completed;  // kNever: the client never learned the outcome
  uint64_t first_access;
  uint32_t num_accesses;
};

// A scan's query: both ends are included; the scan stops after `limit` rows.
struct ScanQuery {
  uint32_t table = 0;
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  bool reverse = false;
  size_t limit = SIZE_MAX;
};

// The accesses of one transaction, in their order.
class Draft {
 public:
  void Read(RowKey row, WriteId seen);
  void Write(RowKey row, WriteId id, uint64_t version = 0);
  void Remove(RowKey row, WriteId id, uint64_t version = 0);
  // Records that the transaction found the row absent and writes it.
  void Insert(RowKey row, WriteId id, uint64_t version = 0);

  // A scan and the rows that it returned, in its order. A scan implies that every other key in the range it covered is
  // absent; EndScan knows whether the limit cut it short. A scan without EndScan did not end, and implies nothing.
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
  size_t scan_ = SIZE_MAX;  // index of the open scan
};

class History {
 public:
  History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  History(History&&) = default;
  History& operator=(History&&) = default;

  OperationId Invoke(uint32_t client, uint64_t now);
  // The accesses of an operation in progress. The reference is valid until it completes.
  Draft& draft(OperationId op);
  // The accesses of a new attempt. Earlier attempts are rolled back: their writes must never be seen. If `now` is
  // given, the operation counts as invoked then: a shorter operation leaves less to guess.
  Draft& BeginAttempt(OperationId op, uint64_t now = 0);
  void Complete(OperationId op, uint64_t now, Outcome outcome);
  // The operation was rolled back because of the data that it read, and its client was told so. So its reads up to its
  // first write are as valid as if it had committed. (Later reads also saw its own writes.)
  void CompleteRefused(OperationId op, uint64_t now);

  WriteId NextWriteId() { return ++last_write_id_; }

  size_t size() const { return operations_.size(); }
  // An operation that was not completed is kInfo, with the accesses of its last attempt.
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
