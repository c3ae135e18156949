// RecordKeys: the keys of an owner's records, as a tree with tagged leaves reads them (tagged_leaf.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cache_line.h"
#include "index/record_header.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"
#include "index/xstore/tree/key_codec.h"
#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::index::xstore {

// Bytes from the start of a record that hold its key.
template <int W>
inline constexpr size_t kKeyReadBytes = HeaderReadBytes(CapacityOf(W));

// The words of the key of a record, in the owner's memory or in the buffer of a READ of kKeyReadBytes<W>. What is no
// key of W words is cut.
template <int W>
KeyWords<W> WordsOfRecord(const std::byte* record) {
  KeyWords<W> key{};
  const size_t size = std::min<size_t>(LoadMeta(record).key_bytes, CapacityOf(W));
  constexpr size_t kInFirst = (rdma::kLineDataBytes - kKeyDataOffset) / kWordBytes;
  if constexpr (W >= kLeastWordsWithLength) {
    if (size <= kInFirst * kWordBytes) [[likely]] {
      // A key is filled up with zeros to whole words; what follows it is left out. No branch depends on its length.
      const size_t words = (size + kWordBytes - 1) / kWordBytes;
#pragma GCC unroll 6
      for (size_t i = 0; i < kInFirst; ++i) {
        const uint64_t word = FromBigEndian(LoadWord(record + rdma::PlaceOf(kKeyDataOffset) + i * kWordBytes));
        key.words[i] = i < words ? word : 0;
      }
      key.words[W - 1] = size;
      return key;
    }
  }
  rdma::CopyOut(record, kKeyDataOffset, std::as_writable_bytes(std::span(key.words)).first(size));
  SetLength(size, &key);
  return key;
}

class RecordKeys {
 public:
  RecordKeys(std::span<const std::byte> memory, rdma::NodeId node) : memory_(memory), node_(node) {}

  // Address of the record of an entry, as bits; 0 for no entry.
  uint64_t AddressOf(shared_leaf::TaggedEntry entry) const {
    return entry.bits == 0 ? 0 : rdma::GlobalAddress(node_, entry.offset()).bits();
  }
  // The part of an address that the records of one owner have in common.
  uint64_t node_bits() const { return rdma::GlobalAddress(node_, 0).bits(); }
  template <int W>
  KeyWords<W> KeyOf(shared_leaf::TaggedEntry entry) const {
    return WordsOfRecord<W>(memory_.data() + entry.offset());
  }
  template <int W>
  void PrefetchFor(shared_leaf::TaggedEntry entry) const {
    // Most keys are shorter than they may be. (A CPU has about twelve loads from memory under way, and fetches the rest
    // of what is read in sequence by itself.)
    constexpr size_t kMostLines = W <= 9 ? 1 : 4;
    const std::byte* const record = memory_.data() + entry.offset();
    for (size_t line = 0; line < std::min(kKeyReadBytes<W> / kLineBytes, kMostLines); ++line) {
      Prefetch(record + line * kLineBytes);
    }
  }

 private:
  std::span<const std::byte> memory_;
  rdma::NodeId node_;
};

}  // namespace gannet::index::xstore
