#include "txn/access/read_set.h"

#include <algorithm>

#include "base/sometimes.h"
#include "index/witness_word.h"
#include "txn/session/session_state.h"

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
  witnesses_of_.clear();
  if (records_.capacity() > (idle_ < kWhile ? kMostKeptAWhile : kMostKept)) records_ = {};
  if (witnesses_.capacity() > kMostKept) witnesses_ = {};
}

void ReadSet::Carry(const index::Change& change, const SessionState& session) {
  if (change.empty() || witnesses_.empty()) return;
  if (witnesses_.size() > kFewWitnesses || !witnesses_of_.empty()) [[unlikely]]
    return CarryMany(change, session);
  size_t held = 0;  // of the change's words
  for (const index::WordChange& word : change.words()) {
    bool is_held = false;
    for (ReadEntry& witness : witnesses_) {
      if (witness.word != word.word || !session.HasSameSet({witness.word, witness.seen}, word.before)) continue;
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

// Does what Carry does, in constant time, but for words that the transaction has seen with several values.
void ReadSet::CarryMany(const index::Change& change, const SessionState& session) {
  const auto note = [this](rdma::GlobalAddress word, size_t i) {
    return witnesses_of_.try_emplace(word.bits(), WitnessesOfWord{.first = static_cast<uint32_t>(i)});
  };
  if (witnesses_of_.empty()) {
    size_t kept = 0;
    for (const ReadEntry witness : witnesses_) {
      const auto [of_word, is_first] = note(witness.word, kept);
      if (!is_first) {
        if (index::IsSameSet(witnesses_[of_word->second.first].seen, witness.seen)) continue;
        of_word->second.has_others = true;
      }
      witnesses_[kept++] = witness;
    }
    witnesses_.resize(kept);
  }
  size_t held = 0;
  for (const index::WordChange& word : change.words()) {
    const auto found = witnesses_of_.find(word.word.bits());
    if (found == witnesses_of_.end()) continue;
    bool is_held = false;
    const size_t end = found->second.has_others ? witnesses_.size() : found->second.first + 1;
    for (size_t i = found->second.first; i < end; ++i) {
      if (witnesses_[i].word != word.word || !session.HasSameSet({word.word, witnesses_[i].seen}, word.before))
        continue;
      Sometimes<"commit: a witness is carried over an own insert">();
      witnesses_[i].seen = word.after;
      is_held = true;
    }
    if (is_held) ++held;
  }
  if (held == 0 || held == change.words().size()) return;
  for (const index::WordChange& word : change.words()) {
    if (note(word.word, witnesses_.size()).second) TakeWitness(word);
  }
}

// A word that came to cover keys of a word that this transaction holds (index/index.h, "Change").
void ReadSet::TakeWitness(const index::WordChange& word) {
  if (word.created()) Sometimes<"commit: a witness is carried over the split of a leaf">();
  witnesses_.push_back({word.word, word.after});
}

}  // namespace gannet::txn
