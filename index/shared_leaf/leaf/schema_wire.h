// The wire form of what all users of an index have to know about its keys (Keys::Schema): kind of the keys (1), their
// most bytes (2), seed of the tags of byte keys (4 times 8). Keys: IntegerKeys or ByteKeys.
#pragma once

#include "absl/strings/str_cat.h"
#include "base/keyed_hash.h"
#include "base/status.h"
#include "index/key.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {

// Bytes of the longest key that the index takes.
template <class Keys>
size_t MaxKeyBytesOf(const typename Keys::Schema& schema) {
  if constexpr (Keys::kKeysElsewhere) {
    return schema.max_key_bytes;
  } else {
    return kIntegerKeyBytes;
  }
}

template <class Keys>
void PutSchema(const typename Keys::Schema& schema, rdma::WireWriter& writer) {
  KeyedHash::Seed seed{};
  if constexpr (Keys::kKeysElsewhere) seed = schema.hash.seed();
  writer.PutU8(static_cast<uint8_t>(Keys::kKind));
  writer.PutU16(static_cast<uint16_t>(MaxKeyBytesOf<Keys>(schema)));
  for (const uint64_t word : seed) writer.PutU64(word);
}

// InvalidArgument: the owner's index has keys of the other kind.
template <class Keys>
StatusOr<typename Keys::Schema> GetSchema(rdma::WireReader& reader) {
  const uint8_t kind = reader.GetU8();
  const size_t max_key_bytes = reader.GetU16();
  KeyedHash::Seed seed;
  for (uint64_t& word : seed) word = reader.GetU64();
  if (kind != static_cast<uint8_t>(Keys::kKind)) {
    return absl::InvalidArgumentError(absl::StrCat("the owner's index has other keys, of kind ", kind,
                                                   "; create the table with the same options everywhere"));
  }
  if constexpr (Keys::kKeysElsewhere) {
    return typename Keys::Schema(seed, max_key_bytes);
  } else {
    return typename Keys::Schema{};
  }
}

// InvalidArgument: a client was told that keys have at most `max_key_bytes`, but the owner's index has others.
template <class Keys>
Status CheckSchema(const typename Keys::Schema& schema, size_t max_key_bytes) {
  if constexpr (Keys::kKeysElsewhere) {
    if (schema.max_key_bytes != max_key_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("the owner's index has other keys, of at most ",
                                                     schema.max_key_bytes, " bytes, not ", max_key_bytes,
                                                     "; create the table with the same options everywhere"));
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::index::shared_leaf
