// Witnesses and changes in requests and responses (rdma/rpc.h gives the integers).
//
//   witness   address of the word (8), value seen (8)
//   change    witness before, value after (8), witness of the split
#pragma once

#include "index/index.h"
#include "rdma/rpc.h"

namespace gannet::index {

inline void PutWitness(rdma::WireWriter& writer, const Witness& witness) {
  writer.PutAddress(witness.word);
  writer.PutU64(witness.seen);
}

// Anything may come from a peer, also an address of another node.
inline Witness GetWitness(rdma::WireReader& reader) {
  Witness witness;
  witness.word = reader.GetAddress();
  witness.seen = reader.GetU64();
  return witness;
}

inline void PutChange(rdma::WireWriter& writer, const Change& change) {
  PutWitness(writer, change.before);
  writer.PutU64(change.after);
  PutWitness(writer, change.split_to);
}

inline Change GetChange(rdma::WireReader& reader) {
  Change change;
  change.before = GetWitness(reader);
  change.after = reader.GetU64();
  change.split_to = GetWitness(reader);
  return change;
}

}  // namespace gannet::index
