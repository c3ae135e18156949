// Keys in requests and responses: one byte of kind, then eight bytes (integer) or a length-prefixed string.
#pragma once

#include "index/key.h"
#include "rdma/rpc.h"

namespace gannet::index {

// Bytes of a key in a message.
inline size_t WireKeyBytes(const Key& key) {
  return sizeof(uint8_t) + (key.kind() == KeyKind::kInteger ? sizeof(uint64_t) : sizeof(uint32_t) + key.size());
}

inline constexpr size_t kMostWireKeyBytes = sizeof(uint8_t) + sizeof(uint32_t) + kMaxKeyBytes;

inline void PutKey(rdma::WireWriter& writer, const Key& key) {
  writer.PutU8(static_cast<uint8_t>(key.kind()));
  if (key.kind() == KeyKind::kInteger) {
    writer.PutU64(key.integer());
  } else {
    writer.PutString(key.bytes());
  }
}

// The key points into the message. Sets *valid to false for an unknown kind, a key of more than kMaxKeyBytes, or a
// message that ends early (then reader.ok() is false, too). Whether the key is of the index's kind, and not longer than
// its keys may be, is for the caller to check.
inline Key GetKey(rdma::WireReader& reader, bool* valid) {
  const uint8_t kind = reader.GetU8();
  Key key;
  if (kind == static_cast<uint8_t>(KeyKind::kInteger)) {
    key = Key(reader.GetU64());
    *valid = reader.ok();
  } else {
    key = Key(reader.GetString());
    *valid = reader.ok() && kind == static_cast<uint8_t>(KeyKind::kBytes) && key.size() <= kMaxKeyBytes;
  }
  return key;
}

}  // namespace gannet::index
