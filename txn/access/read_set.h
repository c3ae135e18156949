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
#include "index/index.h"
#include "rdma/global_address.h"

namespace gannet::txn {

// Validation: the word at `word` must still hold `seen`. For state words of records and for witnesses alike.
struct ReadEntry {
  rdma::GlobalAddress word;
  uint64_t seen;
};

class ReadSet {
 public:
  ReadSet();

  void AddRecord(rdma::GlobalAddress record, uint64_t state) { records_.push_back({record, state}); }
  void AddWitness(const index::Witness& witness) { witnesses_.push_back({witness.word, witness.seen}); }
  // The transaction reads by verbs or calls: this CPU cannot check everything that it reads.
  void NoteVerbs() { uses_verbs_ = true; }
  bool uses_verbs() const { return uses_verbs_; }
  // Forgets the records from number `first` on.
  void ForgetRecordsFrom(size_t first) { records_.resize(first); }

  std::span<const ReadEntry> records() const { return records_; }
  std::span<const ReadEntry> witnesses() const { return witnesses_; }
  bool empty() const { return records_.empty() && witnesses_.empty(); }

  // The transaction itself made `change` to an index: a witness that was current before it is current after it.
  void Carry(const index::Change& change);

  // Keeps the memory, unless it is large.
  void Clear() {
    uses_verbs_ = false;
    records_.clear();
    witnesses_.clear();
    if (!witness_of_.empty() || records_.capacity() > kMostKept || witnesses_.capacity() > kMostKept) [[unlikely]]
      Shrink();
  }

 private:
  static constexpr size_t kMostKept = 64 * 1024;  // entries

  void Shrink();
  void CarryMany(const index::Change& change);
  void TakeWitness(const index::WordChange& word);

  bool uses_verbs_ = false;
  std::vector<ReadEntry> records_;
  std::vector<ReadEntry> witnesses_;
  absl::flat_hash_map<uint64_t, uint32_t> witness_of_;  // by word; empty unless a commit carries many
};

}  // namespace gannet::txn
