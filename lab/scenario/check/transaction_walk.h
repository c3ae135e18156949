// TransactionWalk: determines from the accesses of one transaction what it read from others and what it wrote. A scan
// becomes a read of each row that it returned, and of the absence of each other key that it covered. Reads of the
// transaction's own writes are checked here, and not returned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/write_index.h"

namespace gannet::scenario {

struct ExternalRead {
  OperationId op;
  KeyIndex key;
  uint32_t write;              // kNone: found it absent
  uint32_t own_write = kNone;  // the last write of the same transaction to the key
  bool by_scan = false;
};

struct KeyWrite {
  OperationId op;
  KeyIndex key;
  uint32_t write;         // the last write of the transaction to the key
  bool has_read = false;  // the key was read before it was first written
  uint32_t read = kNone;  // which write that read saw; kNone: absent
};

class TransactionWalk {
 public:
  TransactionWalk(const History& history, const WriteIndex& index);

  // Results are valid until the next Walk. `anomalies` may be null.
  void Walk(OperationId op, std::vector<Anomaly>* anomalies);
  const std::vector<ExternalRead>& reads() const { return reads_; }
  const std::vector<KeyWrite>& writes() const { return writes_; }

 private:
  struct KeyState {
    uint64_t walk = 0;  // the walk for which the other fields are valid
    bool has_read = false;
    uint32_t read = kNone;
    uint32_t own = kNone;  // index into writes_
  };
  KeyState& StateOf(KeyIndex key);
  void Read(RowKey row, WriteId seen, bool by_scan);
  void ReadAbsent(KeyIndex key, bool by_scan);
  void ReadWrite(KeyIndex key, uint32_t write, bool by_scan);
  void AddRead(KeyIndex key, uint32_t write, bool by_scan);
  void Write(const Access& access);
  void Scan(std::span<const Access> scan_and_rows);
  void CheckScan(std::span<const Access> scan_and_rows);
  void Say(AnomalyKind kind, std::vector<OperationId> operations, std::string text);

  const History& history_;
  const WriteIndex& index_;
  std::vector<KeyState> states_;  // by key
  OperationId op_ = kNone;
  uint64_t walk_ = 0;
  std::vector<Anomaly>* anomalies_ = nullptr;
  std::vector<ExternalRead> reads_;
  std::vector<KeyWrite> writes_;
  std::vector<uint64_t> row_keys_;
};

}  // namespace gannet::scenario
