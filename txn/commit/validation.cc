#include "txn/commit/validation.h"

#include <algorithm>
#include <span>

#include "base/mutant.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "index/witness_word.h"
#include "txn/record/record.h"
#include "txn/store/conflict.h"

namespace gannet::txn {

void Validation::TakeReadForUpdate() {
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.kind != WriteKind::kInsert) reads_.AddRecord(entry.record, entry.seen);
  }
}

// True if a record that this transaction read and then locked itself is unchanged. (The owner bits alone do not show
// this, because other transactions of this worker share them.)
bool Validation::IsOwnLockOf(const ReadEntry& read, uint64_t word) const {
  if (word != Locked(read.seen, session_->owner_bits)) return false;
  const int own = writes_.FindRecord(read.word);
  return own >= 0 && writes_[own].locked;
}

// A transaction that writes, or has read for update, may have read records before it added them to its read set.
std::span<const ReadEntry> Validation::RecordsInDoubt() const {
  const std::span<const ReadEntry> all = reads_.records();
  if (!writes_.entries().empty()) return all;
  return all.first(reads_.quiescent().RecordsInDoubt(session_->change_counters, all.size()));
}

Status Validation::CheckLocal() const {
  PreemptionPoint();
  for (const ReadEntry& entry : RecordsInDoubt()) {
    const uint64_t word = LoadWord(session_->Direct(entry.word));
    if (GANNET_MUTANT(kSkipValidation)) continue;
    if (word != entry.seen && !IsOwnLockOf(entry, word)) {
      Sometimes<"commit: a record that was read has changed">();
      session_->conflict.NoteRecord(*session_->local, session_->Direct(entry.word));
      return ConflictAt(word);
    }
  }
  PreemptionPoint();
  for (const ReadEntry& entry : reads_.witnesses()) {
    if (GANNET_MUTANT(kSkipWitness)) break;
    if (index::IsSameSet(LoadWord(session_->Direct(entry.word)), entry.seen)) [[likely]]
      continue;
    Sometimes<"commit: a witness has changed">();
    return Conflict(AbortCause::kIndex);
  }
  return absl::OkStatus();
}

// The connection over which this transaction has locked records at the node; 0: it has locked none there.
uint64_t Validation::ConnectionOf(rdma::NodeId node) const {
  const auto is_there = [node](const WriteEntry& entry) {
    return !entry.is_direct() && entry.kind != WriteKind::kNone && !entry.record.is_null() &&
           entry.record.node() == node;
  };
  const auto written = std::ranges::find_if(writes_.entries(), is_there);
  return written == writes_.entries().end() ? 0 : written->connection;
}

bool Validation::ReadsOnlyAt(rdma::NodeId node) const {
  const auto is_elsewhere = [this, node](const ReadEntry& entry) {
    return !IsReadDirectly(entry) && entry.word.node() != node;
  };
  if (std::ranges::any_of(reads_.records(), is_elsewhere)) return false;
  if (std::ranges::any_of(reads_.witnesses(), is_elsewhere)) return false;
  if (redo_.is_reserved()) return true;  // the epochs
  return std::ranges::any_of(reads_.records(), [this](const ReadEntry& entry) { return !IsReadDirectly(entry); }) ||
         std::ranges::any_of(reads_.witnesses(),
                             [this](const ReadEntry& entry) { return !IsReadDirectly(entry) && !IsConfirmed(entry); });
}

Validation::Pending Validation::AppendReads(Moment moment, std::vector<rdma::Operation>* operations) {
  const std::span<const ReadEntry> records = reads_.records();
  const std::span<const ReadEntry> witnesses = reads_.witnesses();
  const size_t n = moment == Moment::kAny && reads_.is_snapshot() ? 0 : reads_.size();
  if (n == 0 && !reads_.empty()) Sometimes<"commit: what was read needs no validation">();
  words_.Clear();
  confirmed_.clear();
  for (size_t i = 0; i < n; ++i) {
    const ReadEntry& entry = i < records.size() ? records[i] : witnesses[i - records.size()];
    if (IsReadDirectly(entry)) continue;
    // A claim confirms the moment at which it is looked at, which is too early if the locks are still to be taken.
    if (i >= records.size() && moment != Moment::kBehindLocks && IsConfirmed(entry)) {
      Sometimes<"commit: a claim confirms a witness">();
      confirmed_.push_back(i);
      continue;
    }
    words_.Add(entry.word, sizeof(uint64_t));
  }
  const size_t first = operations->size();
  words_.AppendTo(operations, /*merge=*/true, &writes_.arena());
  // A lock of this transaction holds as long as the connection over which it was taken.
  const rdma::Operation* last = nullptr;
  for (rdma::Operation& read : std::span(*operations).subspan(first)) {
    const rdma::NodeId node = read.remote.node();
    read.connection = last != nullptr && last->remote.node() == node ? last->connection : ConnectionOf(node);
    last = &read;
  }
  return {.words = n, .epochs = redo_.AppendEpochReads(operations)};
}

Status Validation::Judge(const Pending& pending, std::span<const rdma::Operation> operations) {
  const std::span<const ReadEntry> records = reads_.records();
  const std::span<const ReadEntry> witnesses = reads_.witnesses();
  Status unsaved = redo_.NoteRemoteEpochs(pending.epochs, operations);
  size_t confirmed = 0;
  for (size_t i = 0, read = 0; i < pending.words; ++i) {
    if (confirmed < confirmed_.size() && confirmed_[confirmed] == i) {
      ++confirmed;
      continue;
    }
    const bool is_record = i < records.size();
    const ReadEntry& entry = is_record ? records[i] : witnesses[i - records.size()];
    const uint64_t word =
        IsReadDirectly(entry) ? LoadWord(session_->Direct(entry.word)) : LoadWord(words_.image(read++));
    if (is_record && GANNET_MUTANT(kSkipValidation)) continue;
    if (!is_record && GANNET_MUTANT(kSkipWitness)) continue;
    if (is_record ? word == entry.seen || IsOwnLockOf(entry, word)
                  : session_->HasSameSet({entry.word, entry.seen}, word))
      continue;
    Sometimes<"commit: something read at another node has changed">();
    return is_record ? ConflictAt(word) : Conflict(AbortCause::kIndex);
  }
  return unsaved;
}

coro::Task<Status> Validation::Check(Moment moment) {
  operations_.clear();
  const Pending pending = AppendReads(moment, &operations_);
  if (!operations_.empty()) {
    Status status = co_await session_->channel->Post(operations_);
    if (!status.ok()) {
      Sometimes<"commit: the READs of a validation fail">();
      co_return status;
    }
  }
  co_return Judge(pending, operations_);
}

}  // namespace gannet::txn
