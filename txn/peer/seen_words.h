// SeenWords: the words behind an answer of an owner, to see before it is sent whether they all hold what was seen.
//
// If they do, they held it at one moment: when all had been read and none had been looked at again. The words never
// take an old value again (record.h, index/index.h), so each held it all the time in between. A transaction that read
// nothing else and writes nothing needs no validation then (ReadSet::is_snapshot).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "base/mutant.h"
#include "index/index.h"
#include "txn/node/local_node.h"
#include "txn/record/record.h"

namespace gannet::txn {

class SeenWords {
 public:
  // `word` is in this node's memory.
  void Add(const std::byte* word, uint64_t seen) { words_.push_back({word, seen}); }
  void Add(const LocalNode& local, const index::Witness& witness) { Add(local.Direct(witness.word), witness.seen); }

  bool Hold() const {
    PreemptionPoint();
    if (GANNET_MUTANT(kConfirmUnseen)) return true;
    for (const Seen& each : words_) {
      if (LoadWord(each.word) != each.seen) return false;
    }
    return true;
  }

 private:
  struct Seen {
    const std::byte* word;
    uint64_t seen;
  };
  absl::InlinedVector<Seen, 64> words_;
};

}  // namespace gannet::txn
