// The messages between XStore's clients and owners. Integers are encoded as in rdma/rpc.h; a key is its words.
//
//   kDescribe   index (2)
//            -> words of a key (1), key kind (1), generation (8; 0: no model yet),
//               and if there is one: top model, number of line blocks (4), their block numbers (4 each)
//   kFind       index (2), number of keys (1), for each: hint, key
//            -> generation (8), for each: record (8), witness (16, if the record is null), refresh
//   kInsert     index (2), hint, key, record (8)  -> change
//   kRemove     the same  -> change
//   kScan       index (2), reverse (1), from, to, limit (8)
//            -> generation (8), more (1), next key, number of entries (4), each: key, record (8);
//               number of witnesses (4), each 16
//
//   hint      generation (8; 0: none), sub-model (4), logical leaf (4): the place of the key according to the client.
//             The owner looks it up in its own table, so a false hint does no harm.
//   refresh   present (1), and if so: sub-model line (40 bytes as in registered memory), then its table: number of
//             entries (4; 0: too many for a message), 8 each
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cache_line.h"
#include "index/change_wire.h"
#include "index/index.h"
#include "index/xstore/tree/key_codec.h"
#include "rdma/rpc.h"

namespace gannet::index::xstore {

inline constexpr rdma::MethodId kDescribe = kXStoreMethods;
inline constexpr rdma::MethodId kFind = kXStoreMethods + 1;
inline constexpr rdma::MethodId kInsert = kXStoreMethods + 2;
inline constexpr rdma::MethodId kRemove = kXStoreMethods + 3;
inline constexpr rdma::MethodId kScan = kXStoreMethods + 4;

inline constexpr size_t kMaxKeysPerFind = 32;
inline constexpr uint32_t kMaxRefreshEntries = 2048;  // 16 KiB
// Limits of one kScan response: together at most 80 + 33 KiB. With the longest keys it has 78 entries.
template <int W>
inline constexpr size_t kMaxScanEntries = std::min<size_t>(512, (80 << 10) / ((W + 1) * kWordBytes));
inline constexpr size_t kMaxScanLeaves = 2048;

struct PositionHint {
  uint64_t generation = 0;
  uint32_t sub_model = 0;
  uint32_t leaf = 0;

  void Put(rdma::WireWriter& writer) const {
    writer.PutU64(generation);
    writer.PutU32(sub_model);
    writer.PutU32(leaf);
  }
  static PositionHint Get(rdma::WireReader& reader) {
    PositionHint hint;
    hint.generation = reader.GetU64();
    hint.sub_model = reader.GetU32();
    hint.leaf = reader.GetU32();
    return hint;
  }
};

template <int W>
void PutKey(rdma::WireWriter& writer, const KeyWords<W>& key) {
  for (const uint64_t word : key.words) writer.PutU64(word);
}
template <int W>
KeyWords<W> GetKey(rdma::WireReader& reader) {
  KeyWords<W> key;
  for (uint64_t& word : key.words) word = reader.GetU64();
  return key;
}

}  // namespace gannet::index::xstore
