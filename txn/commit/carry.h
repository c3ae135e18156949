// Carry: a transaction has changed an index itself, or an owner has for it, and what it had read of that is as it was.
#pragma once

#include <cstdint>
#include <vector>

#include "index/index.h"
#include "index/witness_word.h"
#include "txn/access/read_set.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

// ReadSet::Carry, also for witnesses from before claims by this process, which are no changes of what was read
// (index/shared_leaf/claim/claim_chains.h).
inline void Carry(const SessionState& session, const index::Change& change, ReadSet* reads) {
  // The search for such witnesses is linear in their number, so a process without claims does without it.
  const bool has_claimed = session.local->claims != nullptr && !session.local->claims->chains().is_empty();
  std::vector<uint64_t> seen_before;
  for (const index::WordChange& word : change.words()) {
    if (!has_claimed || word.created()) continue;
    seen_before.clear();
    for (const ReadEntry& witness : reads->witnesses()) {
      const bool is_other = witness.word == word.word && !index::IsSameSet(word.before, witness.seen);
      if (is_other && session.HasSameSet({witness.word, witness.seen}, word.before))
        seen_before.push_back(witness.seen);
    }
    for (const uint64_t seen : seen_before) {
      index::Change claims;
      claims.AddChanged(word.word, seen, word.before);
      reads->Carry(claims);
    }
  }
  reads->Carry(change);
}

}  // namespace gannet::txn
