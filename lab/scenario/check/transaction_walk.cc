#include "lab/scenario/check/transaction_walk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace gannet::scenario {

TransactionWalk::TransactionWalk(const History& history, const WriteIndex& index)
    : history_(history), index_(index), states_(index.num_keys()) {}

void TransactionWalk::Walk(OperationId op, std::vector<Anomaly>* anomalies) {
  op_ = op;
  anomalies_ = anomalies;
  reads_.clear();
  writes_.clear();
  ++walk_;
  const std::span<const Access> accesses = history_.accesses(op);
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    switch (access.kind) {
      case AccessKind::kRead:
        Read(access.row(), access.id, /*by_scan=*/false);
        break;
      case AccessKind::kWrite:
      case AccessKind::kRemove:
        Write(access);
        break;
      case AccessKind::kScan:
        Scan(accesses.subspan(i, access.version + 1));
        i += access.version;
        break;
      case AccessKind::kScanRow:
      case AccessKind::kAbandoned:
        break;
    }
  }
  for (ExternalRead& read : reads_) {
    const KeyState& state = states_[read.key];
    if (state.own != kNone) read.own_write = writes_[state.own].write;
  }
}

TransactionWalk::KeyState& TransactionWalk::StateOf(KeyIndex key) {
  KeyState& state = states_[key];
  if (state.walk != walk_) state = {.walk = walk_, .has_read = false, .read = kNone, .own = kNone};
  return state;
}

void TransactionWalk::Read(RowKey row, WriteId seen, bool by_scan) {
  if (seen == kAbsent) {
    const KeyIndex key = index_.FindKey(row);
    if (key != kNone) ReadAbsent(key, by_scan);
    return;
  }
  const uint32_t write = index_.FindWrite(seen);
  if (write == kNone) {
    return Say(AnomalyKind::kUnwrittenRead, {op_},
               absl::StrFormat("T%u read key %s as the write %u, which was never made", op_, row.ToString(), seen));
  }
  const IndexedWrite& made = index_.write(write);
  if (index_.key(made.key) != row) {
    return Say(AnomalyKind::kUnwrittenRead, {op_, made.op},
               absl::StrFormat("T%u read key %s as the write %u, which T%u made to key %s", op_, row.ToString(), seen,
                               made.op, index_.key(made.key).ToString()));
  }
  if (made.remove) {
    return Say(AnomalyKind::kUnwrittenRead, {op_, made.op},
               absl::StrFormat("T%u read key %s as the write %u, by which T%u removed it", op_, row.ToString(), seen,
                               made.op));
  }
  ReadWrite(made.key, write, by_scan);
}

void TransactionWalk::ReadAbsent(KeyIndex key, bool by_scan) {
  const KeyState& state = StateOf(key);
  if (state.own == kNone) return AddRead(key, kNone, by_scan);
  const uint32_t own = writes_[state.own].write;
  if (index_.write(own).remove) return;
  Say(AnomalyKind::kInternal, {op_},
      absl::StrFormat("T%u found key %s absent after it had written it itself (write %u)", op_,
                      index_.key(key).ToString(), index_.write(own).id));
}

void TransactionWalk::ReadWrite(KeyIndex key, uint32_t write, bool by_scan) {
  const KeyState& state = StateOf(key);
  if (state.own == kNone && index_.write(write).op == op_ && !index_.write(write).abandoned) {
    return Say(AnomalyKind::kInternal, {op_},
               absl::StrFormat("T%u read key %s as the write %u before it made that write itself", op_,
                               index_.key(key).ToString(), index_.write(write).id));
  }
  if (state.own == kNone) return AddRead(key, write, by_scan);
  const uint32_t own = writes_[state.own].write;
  if (own == write) return;
  Say(AnomalyKind::kInternal, {op_},
      absl::StrFormat("T%u read key %s as the write %u after its own write %u", op_, index_.key(key).ToString(),
                      index_.write(write).id, index_.write(own).id));
}

void TransactionWalk::AddRead(KeyIndex key, uint32_t write, bool by_scan) {
  KeyState& state = StateOf(key);
  if (state.has_read && state.read == write) return;
  if (state.has_read) {
    const auto name = [&](uint32_t seen) { return seen == kNone ? kAbsent : index_.write(seen).id; };
    Say(AnomalyKind::kInternal, {op_},
        absl::StrFormat("T%u read key %s first as the write %u, then as the write %u (0: absent)", op_,
                        index_.key(key).ToString(), name(state.read), name(write)));
  } else {
    state.has_read = true;
    state.read = write;
  }
  reads_.push_back({.op = op_, .key = key, .write = write, .by_scan = by_scan});
}

void TransactionWalk::Write(const Access& access) {
  const uint32_t write = index_.FindWrite(access.id);
  const KeyIndex key = index_.write(write).key;
  KeyState& state = StateOf(key);
  if (state.own == kNone) {
    state.own = static_cast<uint32_t>(writes_.size());
    writes_.push_back({.op = op_, .key = key, .write = write, .has_read = state.has_read, .read = state.read});
  }
  writes_[state.own].write = write;
}

void TransactionWalk::Scan(std::span<const Access> scan_and_rows) {
  const Access& scan = scan_and_rows[0];
  const std::span<const Access> rows = scan_and_rows.subspan(1);
  CheckScan(scan_and_rows);
  row_keys_.clear();
  for (const Access& row : rows) {
    Read(row.row(), row.id, /*by_scan=*/true);
    row_keys_.push_back(row.key);
  }
  std::ranges::sort(row_keys_);
  auto returned = row_keys_.begin();
  for (const auto& [row, key] : index_.Range(scan.table, scan.key, scan.id)) {
    while (returned != row_keys_.end() && *returned < row.key) ++returned;
    if (returned == row_keys_.end() || *returned != row.key) ReadAbsent(key, /*by_scan=*/true);
  }
}

void TransactionWalk::CheckScan(std::span<const Access> scan_and_rows) {
  const Access& scan = scan_and_rows[0];
  const std::span<const Access> rows = scan_and_rows.subspan(1);
  const bool down = rows.size() > 1 && rows[0].key > rows[1].key;
  for (size_t i = 0; i < rows.size(); ++i) {
    const char* wrong = nullptr;
    if (rows[i].key < scan.key || rows[i].key > scan.id) wrong = "lies outside of the range";
    if (i > 0 && rows[i].key == rows[i - 1].key) wrong = "was returned twice";
    if (i > 0 && rows[i].key != rows[i - 1].key && (rows[i].key < rows[i - 1].key) != down) wrong = "is out of order";
    if (wrong == nullptr) continue;
    Say(AnomalyKind::kMalformedScan, {op_},
        absl::StrFormat("T%u scanned table %u from %u to %u: row %u of %u, key %u, %s", op_, scan.table, scan.key,
                        scan.id, i + 1, rows.size(), rows[i].key, wrong));
  }
}

void TransactionWalk::Say(AnomalyKind kind, std::vector<OperationId> operations, std::string text) {
  if (anomalies_ != nullptr) anomalies_->push_back({kind, std::move(operations), std::move(text)});
}

}  // namespace gannet::scenario
