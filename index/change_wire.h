// Witnesses and changes in requests and responses (rdma/rpc.h encodes the integers).
//
//   witness   address of the word (8), value seen (8)
//   change    number of words (2), for each: address (8), before (8; of a created word kCreated), after (8)
#pragma once

#include "index/index.h"
#include "rdma/rpc.h"

namespace gannet::index {

// A change of more words is sent as one that lists none, which costs a transaction that holds one of them a conflict
// (index.h). So there must be room for every change: a transaction that always has one of more would never commit. An
// insert into an R-tree that reinserts entries at each level lists some hundred.
inline constexpr size_t kMostWordsInMessage = 1024;

// Size of a change that lists this many words.
constexpr size_t ChangeBytes(size_t words) {
  return sizeof(uint16_t) + words * 24;
}

inline void PutWitness(rdma::WireWriter& writer, const Witness& witness) {
  writer.PutAddress(witness.word);
  writer.PutU64(witness.seen);
}

// A peer may send anything, also an address of another node.
inline Witness GetWitness(rdma::WireReader& reader) {
  Witness witness;
  witness.word = reader.GetAddress();
  witness.seen = reader.GetU64();
  return witness;
}

// Writes a change that lists no word if `change` would leave less than `reserve` bytes of the message.
inline void PutChange(rdma::WireWriter& writer, const Change& change, size_t reserve = 0) {
  const size_t listed = change.words().size();
  if (listed > kMostWordsInMessage || ChangeBytes(listed) + reserve > writer.room()) {
    writer.PutU16(0);
    return;
  }
  writer.PutU16(static_cast<uint16_t>(listed));
  for (const WordChange& word : change.words()) {
    writer.PutAddress(word.word);
    writer.PutU64(word.before);
    writer.PutU64(word.after);
  }
}

// False if the message is no change: too many words, a null address, or an early end. Words may be of other nodes.
[[nodiscard]] inline bool GetChange(rdma::WireReader& reader, Change* change) {
  *change = {};
  const size_t listed = reader.GetU16();
  if (listed > kMostWordsInMessage) return false;
  for (size_t i = 0; i < listed; ++i) {
    const rdma::GlobalAddress word = reader.GetAddress();
    const uint64_t before = reader.GetU64();
    const uint64_t after = reader.GetU64();
    if (!reader.ok() || word.is_null()) return false;
    change->AddChanged(word, before, after);
  }
  return reader.ok();
}

}  // namespace gannet::index
