// WriteBuffer: the writes of a transaction, until its commit makes them visible.
//
// It owns the write set and its memory (keys, payloads, images of records of other nodes). It serves reads of the
// transaction's own writes, inserts and removals, and counts how much of the log the changes may take, those of
// secondary indexes, too: what is written to them later was counted with the row that it belongs to. An insert at
// this node makes its record at once: locked, absent and in no index. That record belongs to the write set until the
// commit, or the transaction's end, releases it. Everything else is buffered.
//
// One for each transaction; reused for the next one after Clear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "index/index.h"
#include "rdma/global_address.h"
#include "txn/session/write_set.h"
#include "txn/store/arena.h"
#include "txn/store/requests.h"
#include "txn/store/table.h"

namespace gannet::txn {

struct SessionState;

class WriteBuffer {
 public:
  // `session` must outlive it.
  explicit WriteBuffer(SessionState* session);

  // Update, Insert and Remove are like those of Transaction. What returns an error has changed nothing. An offset of
  // GetRequest::kWhole: the whole payload.
  Status Update(RecordHandle handle, std::span<const std::byte> data, const PayloadPart& part);
  Status Insert(const Table& table, Key key, std::span<const std::byte> payload);
  Status Remove(RecordHandle handle);

  // Adds a record that was read for `request` and may be written. `direct` or `image`: as in WriteEntry.
  RecordHandle AddForUpdate(const GetRequest& request, rdma::GlobalAddress record, uint64_t state, std::byte* direct,
                            std::byte* image);

  // Number of the entry of `record`, or -1.
  int FindRecord(rdma::GlobalAddress record) const { return set_.FindRecord(record); }
  // Number of the entry that inserts `key` (also one that was removed again), or -1.
  int FindInsert(const Table& table, const Key& key) const;
  // Appends the numbers of the inserts in `range` that were not removed again: all, or at least the first range.limit.
  void InsertsIn(const Table& table, const index::ScanRange& range, std::vector<uint32_t>* numbers) const {
    if (inserts_ > 0) set_.InsertsIn(table, range, numbers);
  }
  // Number of entries that remove a record in `range`.
  size_t RemovalsIn(const Table& table, const index::ScanRange& range) const {
    return removals_ == 0 ? 0 : set_.RemovalsIn(table, range);
  }

  // Serves `request` from entry `number`.
  void ReadOwn(int number, GetRequest* request);
  // The payload of `entry` with this transaction's changes; [offset, offset + out.size()) must lie in it.
  void CopyPayload(const WriteEntry& entry, uint32_t offset, std::span<std::byte> out) const;

  WriteEntry& operator[](size_t i) { return set_[i]; }
  const WriteEntry& operator[](size_t i) const { return set_[i]; }
  std::span<WriteEntry> entries() { return set_.entries(); }
  std::span<const WriteEntry> entries() const { return set_.entries(); }
  size_t size() const { return set_.size(); }
  // The record of entry `i` has been made, or replaced by another.
  void SetRecord(size_t i, rdma::GlobalAddress record) { set_.SetRecord(i, record); }

  // Grows with each Update, Insert and Remove.
  const uint64_t& changes() const { return changes_; }
  bool has_inserts() const { return inserts_ > 0; }
  // Largest number of bytes that its changes take in logs.
  size_t change_bytes() const { return change_bytes_; }
  // True if an entry's record is not written by this CPU.
  bool uses_verbs() const { return uses_verbs_; }

  // Numbers of the entries of tables with secondary indexes that were changed since the last call.
  std::vector<uint32_t> TakeTouched() {
    for (const uint32_t i : touched_) {
      set_[i].touched = false;
      set_[i].index_redo_bytes = 0;
    }
    index_change_bytes_ = 0;
    return std::exchange(touched_, {});
  }
  // Gives numbers back that TakeTouched returned.
  void TouchAgain(std::span<const uint32_t> numbers) {
    for (const uint32_t i : numbers) {
      if (set_[i].kind != WriteKind::kNone) Touch(i, IndexChangeBytes(*set_[i].table));
    }
  }
  bool has_touched() const { return !touched_.empty(); }
  // While `keeps`, the engine itself writes entries of secondary indexes. All others are refused.
  void SetKeepsIndexes(bool keeps) { keeps_indexes_ = keeps; }

  // Memory that is valid until Clear.
  Arena& arena() { return arena_; }

  // No record may be locked when this is called.
  void Clear() {
    set_.Clear();
    arena_.Reset();
    change_bytes_ = index_change_bytes_ = 0;
    inserts_ = removals_ = 0;
    uses_verbs_ = false;
    touched_.clear();
  }

 private:
  // `share` of change_bytes_ becomes `bytes`. ResourceExhausted: the log does not take this much of one transaction,
  // and `more_index_bytes` of secondary indexes.
  Status CountChange(uint32_t* share, size_t bytes, size_t more_index_bytes) {
    const size_t total = change_bytes_ - *share + bytes;
    if (total + index_change_bytes_ + more_index_bytes > most_change_bytes_) [[unlikely]]
      return TooMuchRedo(total + index_change_bytes_ + more_index_bytes);
    change_bytes_ = total;
    *share = static_cast<uint32_t>(bytes);
    return absl::OkStatus();
  }
  // CountChange for an entry, whose changes in secondary indexes take up to `index_bytes` after that.
  Status CountChange(WriteEntry& entry, size_t bytes, size_t index_bytes) {
    return CountChange(&entry.redo_bytes, bytes, index_bytes - std::min<size_t>(index_bytes, entry.index_redo_bytes));
  }
  Status TooMuchRedo(size_t total);
  // Called for a table that checks its writes. FailedPrecondition if it is not written by transactions, or if an index
  // of it cannot be kept.
  [[gnu::cold]] Status CheckMayWrite(const Table& table) const;
  // Largest number of bytes that the changes of one row of `table` in its secondary indexes take in logs.
  [[gnu::cold]] static size_t IndexChangeBytes(const Table& table);
  // Notes that entry `i` was changed, if its table has secondary indexes, whose changes take up to `index_bytes`.
  [[gnu::cold]] void Touch(size_t i, size_t index_bytes);
  Status CheckWrite(const WriteEntry& entry, size_t size, const PayloadPart& part) const;
  Status InsertDirect(const Table& table, const Key& key, std::span<const std::byte> payload);
  void AddPatch(WriteEntry& entry, std::span<const std::byte> data, uint32_t offset);
  void ReplacePayload(WriteEntry& entry, std::span<const std::byte> data);
  void JoinPatches(WriteEntry& entry);

  SessionState* const session_;
  const size_t most_change_bytes_;
  size_t change_bytes_ = 0;
  size_t index_change_bytes_ = 0;  // of the touched entries in secondary indexes
  uint64_t changes_ = 0;
  uint32_t inserts_ = 0;
  uint32_t removals_ = 0;
  bool uses_verbs_ = false;
  bool keeps_indexes_ = false;
  std::vector<uint32_t> touched_;
  WriteSet set_;
  Arena arena_;
};

}  // namespace gannet::txn
