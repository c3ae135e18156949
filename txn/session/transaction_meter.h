// TransactionMeter: counts for TransactionStatistics how the transactions of one session end. Only the thread of the
// session counts, and any thread may look.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/duration_histogram.h"
#include "txn/session/write_set.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

class TransactionMeter {
 public:
  void NoteReads(uint64_t rows) { rows_read_.Add(rows); }
  void NoteAbort(AbortCause cause) { aborts_[static_cast<size_t>(cause)].Add(1); }
  void NoteRollback() { rollbacks_.Add(1); }
  // `written`: the committed writes.
  void NoteCommit(std::span<const WriteEntry> written) {
    if (written.empty()) return readers_.Add(1);
    std::array<uint64_t, 4> rows{};  // by WriteKind
    bool wrote = false;
    for (const WriteEntry& entry : written) {
      if (entry.kind == WriteKind::kNone) continue;
      wrote = true;
      if (entry.removed || entry.table->secondary() != nullptr) continue;  // entries of indexes are no rows
      ++rows[static_cast<size_t>(entry.kind)];
    }
    inserted_.Add(rows[static_cast<size_t>(WriteKind::kInsert)]);
    updated_.Add(rows[static_cast<size_t>(WriteKind::kUpdate)]);
    removed_.Add(rows[static_cast<size_t>(WriteKind::kRemove)]);
    (wrote ? writers_ : readers_).Add(1);
  }

  // True for one commit in kCommitsPerSample: its time is worth two looks at the clock.
  bool TakesSample() { return commits_begun_++ % TransactionStatistics::kCommitsPerSample == 0; }
  void NoteCommitTime(uint64_t nanos) { commit_times_.Record(nanos); }

  void AddTo(TransactionStatistics* sum) const {
    sum->commits_of_readers += readers_.value();
    sum->commits_of_writers += writers_.value();
    sum->rollbacks += rollbacks_.value();
    for (size_t i = 0; i < aborts_.size(); ++i) sum->aborts[i] += aborts_[i].value();
    sum->rows_read += rows_read_.value();
    sum->rows_inserted += inserted_.value();
    sum->rows_updated += updated_.value();
    sum->rows_removed += removed_.value();
    commit_times_.AddTo(&sum->commits);
  }

 private:
  uint64_t commits_begun_ = 0;
  OneWriterCounter readers_;
  OneWriterCounter writers_;
  OneWriterCounter rows_read_;
  OneWriterCounter inserted_;
  OneWriterCounter updated_;
  OneWriterCounter removed_;
  OneWriterCounter rollbacks_;
  std::array<OneWriterCounter, kAbortCauses> aborts_;
  DurationHistogram commit_times_;
};

}  // namespace gannet::txn
