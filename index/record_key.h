// Comparing a key with that of a record, for the callers that cannot afford a function call. All others use
// RecordHoldsKey (index/record_header.h), which is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/cache_line.h"
#include "index/key.h"
#include "index/record_header.h"
#include "rdma/versioned.h"

namespace gannet::index {

// Number of bytes of a key that lie in the first line of its record.
inline constexpr size_t kKeyBytesInFirstLine = rdma::kLineDataBytes - kKeyDataOffset;
static_assert(kKeyBytesInFirstLine % kWordBytes == 0 && kKeyBytesInFirstLine <= kShortKeyBytes);

// `size` bytes, from 1 to 7, as the lowest bytes of a word. Reads nothing beyond them.
inline uint64_t LoadPartOfWord(const char* bytes, size_t size) {
  if (size >= sizeof(uint32_t)) {
    uint32_t first, last;  // they may overlap
    std::memcpy(&first, bytes, sizeof first);
    std::memcpy(&last, bytes + size - sizeof last, sizeof last);
    return first | uint64_t{last} << 8 * (size - sizeof last);
  }
  const auto byte = [bytes](size_t i) { return uint64_t{static_cast<uint8_t>(bytes[i])} << 8 * i; };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

// True if the first `size` bytes of the record's key are these. size <= kKeyBytesInFirstLine.
inline bool KeyBeginsWith(const std::byte* record, const char* bytes, size_t size) {
  const std::byte* at = record + rdma::PlaceOf(kKeyDataOffset);
  size_t left = size;
  for (; left >= kWordBytes; left -= kWordBytes, at += kWordBytes, bytes += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, bytes, kWordBytes);
    if (LoadWord(at) != word) return false;
  }
  if (left == 0) return true;
  return (LoadWord(at) ^ LoadPartOfWord(bytes, left)) << 8 * (kWordBytes - left) == 0;
}

// True if the record's key, which has this size, is `key`.
[[gnu::cold]] bool RecordHoldsLongKey(const std::byte* record, std::string_view key);

// RecordHoldsKey for a caller that has loaded the meta word.
inline bool RecordHoldsKey(const std::byte* record, const RecordMeta& meta, const Key& key) {
  if (meta.key_bytes != key.size()) return false;
  if (key.kind() == KeyKind::kInteger) return LoadWord(record + rdma::PlaceOf(kKeyDataOffset)) == key.integer();
  if (key.size() <= kKeyBytesInFirstLine) [[likely]]
    return KeyBeginsWith(record, key.bytes().data(), key.size());
  return RecordHoldsLongKey(record, key.bytes());
}

}  // namespace gannet::index
