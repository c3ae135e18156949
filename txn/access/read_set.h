// ReadSet: the words that a transaction read and that must be unchanged when it commits.
//
// The transaction's accesses fill it (access.h). A commit checks all of it (validation), and carries witnesses over the
// changes that it makes to indexes itself. One for each transaction; reused for the next one after Clear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/plain_vector.h"
#include "index/index.h"
#include "rdma/global_address.h"
#include "txn/session/quiescent_interval.h"

namespace gannet::txn {

struct SessionState;

// Validation: the word at `word` must still hold `seen`. For state words of records and for witnesses alike.
struct ReadEntry {
  rdma::GlobalAddress word;
  uint64_t seen;
};

class ReadSet {
 public:
  ReadSet();

  void AddRecord(rdma::GlobalAddress record, uint64_t state) { records_.push_back({record, state}); }
  // Room for `count` more records. The caller writes some there and tells their number by AddWritten.
  ReadEntry* RoomForRecords(size_t count) { return records_.Room(count); }
  void AddWritten(size_t count) { records_.Resize(records_.size() + count); }
  void AddWitness(const index::Witness& witness) { witnesses_.push_back({witness.word, witness.seen}); }
  // The transaction reads by verbs or calls: this CPU cannot check everything that it reads.
  void NoteVerbs() { uses_verbs_ = true; }
  bool uses_verbs() const { return uses_verbs_; }
  // Forgets the records from number `first` on.
  void ForgetRecordsFrom(size_t first) {
    records_.Resize(first);
    confirmed_ = 0;
  }
  // An owner has confirmed that all words that were added after the first `before` ones held their values at one
  // moment. Called before any other word is added.
  void Confirm(size_t before) { confirmed_ = before == 0 ? size() : 0; }

  std::span<const ReadEntry> records() const { return {records_.data(), records_.size()}; }
  std::span<const ReadEntry> witnesses() const { return witnesses_; }
  size_t size() const { return records_.size() + witnesses_.size(); }
  bool empty() const { return size() == 0; }

  // True if all words held what was seen at one moment since the transaction began. If it writes nothing, that moment
  // can be its place in the order of all transactions, so there is nothing left to validate. The argument is the one
  // for a validation (txn/commit/commit.cc), which finds such a moment, too, only a later one.
  //
  // It is so for one record, whose state word was read unlocked, and for the words of one answer that its owner
  // confirmed. (One witness is not enough: a search may have met a mixture of moments, and found its witness last.)
  bool is_snapshot() const { return size() == confirmed_ || (records_.size() == 1 && witnesses_.empty()); }

  // The transaction, of this session, itself made `change` to an index: a witness that was current before it is current
  // after it.
  void Carry(const index::Change& change, const SessionState& session);

  QuiescentInterval& quiescent() { return quiescent_; }
  const QuiescentInterval& quiescent() const { return quiescent_; }

  // Keeps the memory, unless it is large, and larger than the last transactions needed.
  void Clear() {
    quiescent_.Clear();
    uses_verbs_ = false;
    confirmed_ = 0;
    if (records_.capacity() > kMostKept) [[unlikely]]
      idle_ = records_.size() > records_.capacity() / 4 ? 0 : idle_ + 1;
    records_.clear();
    witnesses_.clear();
    if (!witnesses_of_.empty() || records_.capacity() > kMostKept || witnesses_.capacity() > kMostKept) [[unlikely]]
      Shrink();
  }

 private:
  static constexpr size_t kMostKept = 64 * 1024;  // entries
  // Scans of so many rows follow each other in one session: their memory is not cleared by the system each time.
  static constexpr size_t kMostKeptAWhile = 16 * kMostKept;
  static constexpr int kWhile = 16;  // transactions that do not need it

  void Shrink();
  void CarryMany(const index::Change& change, const SessionState& session);
  void TakeWitness(const index::WordChange& word);

  bool uses_verbs_ = false;
  int idle_ = 0;          // transactions, one after the other, that did not need what is kept for a while
  size_t confirmed_ = 0;  // number of words, from the first on
  QuiescentInterval quiescent_;
  PlainVector<ReadEntry> records_;
  std::vector<ReadEntry> witnesses_;
  struct WitnessesOfWord {
    uint32_t first;           // its place in witnesses_
    bool has_others = false;  // also behind it
  };
  absl::flat_hash_map<uint64_t, WitnessesOfWord> witnesses_of_;  // by word; empty unless a commit carries many
};

}  // namespace gannet::txn
