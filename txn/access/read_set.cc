#include "txn/access/read_set.h"

#include <algorithm>

#include "base/sometimes.h"
#include "index/witness_word.h"

namespace gannet::txn {

namespace {

// Up to this number, witnesses are searched one by one for each change; more are indexed.
constexpr size_t kFewWitnesses = 64;

}  // namespace

ReadSet::ReadSet() {
  records_.Room(512);
  witnesses_.reserve(64);
}

void ReadSet::Shrink() {
  witness_of_.clear();
  if (records_.capacity() > (idle_ < kWhile ? kMostKeptAWhile : kMostKept)) records_ = {};
  if (witnesses_.capacity() > kMostKept) witnesses_ = {};
}

void ReadSet::Carry(const index::Change& change) {
  if (change.empty() || witnesses_.empty()) return;
  if (witnesses_.size() > kFewWitnesses || !witness_of_.empty()) [[unlikely]]
    return CarryMany(change);
  size_t held = 0;  // of the change's words
  for (const index::WordChange& word : change.words()) {
    bool is_held = false;
    for (ReadEntry& witness : witnesses_) {
      if (witness.word != word.word || !index::IsSameSet(word.before, witness.seen)) continue;
      Sometimes<"commit: a witness is carried over an own insert">();
      witness.seen = word.after;
      is_held = true;
    }
    if (is_held) ++held;
  }
  if (held == 0 || held == change.words().size()) return;
  for (const index::WordChange& word : change.words()) {
    const auto has_word = [&](const ReadEntry& witness) { return witness.word == word.word; };
    if (std::ranges::none_of(witnesses_, has_word)) TakeWitness(word);
  }
}

// Does what Carry does, in constant time. Witnesses of one word with the same set are one here. Of several with
// different sets, all but one are out of date, which the validation will find.
void ReadSet::CarryMany(const index::Change& change) {
  const auto note = [this](rdma::GlobalAddress word, size_t i) {
    return witness_of_.try_emplace(word.bits(), static_cast<uint32_t>(i)).second;
  };
  if (witness_of_.empty()) {
    size_t kept = 0;
    for (const ReadEntry witness : witnesses_) {
      witnesses_[kept] = witness;
      const bool first = note(witness.word, kept);
      if (first || !index::IsSameSet(witnesses_[witness_of_[witness.word.bits()]].seen, witness.seen)) ++kept;
    }
    witnesses_.resize(kept);
  }
  size_t held = 0;
  for (const index::WordChange& word : change.words()) {
    const auto found = witness_of_.find(word.word.bits());
    if (found == witness_of_.end() || !index::IsSameSet(word.before, witnesses_[found->second].seen)) continue;
    Sometimes<"commit: a witness is carried over an own insert">();
    witnesses_[found->second].seen = word.after;
    ++held;
  }
  if (held == 0 || held == change.words().size()) return;
  for (const index::WordChange& word : change.words()) {
    if (note(word.word, witnesses_.size())) TakeWitness(word);
  }
}

// A word that came to cover keys of a word that this transaction holds (index/index.h, "Change").
void ReadSet::TakeWitness(const index::WordChange& word) {
  if (word.created()) Sometimes<"commit: a witness is carried over the split of a leaf">();
  witnesses_.push_back({word.word, word.after});
}

}  // namespace gannet::txn
