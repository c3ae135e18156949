#include "index/record_header.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/check.h"
#include "index/record_key.h"

namespace gannet::index {

namespace {

std::span<std::byte> Bytes(std::span<char> text) {
  return std::as_writable_bytes(text);
}

[[gnu::cold]] OwnedKey LoadLongKey(const std::byte* record, size_t size) {
  std::array<char, kMaxKeyBytes> stored;
  rdma::CopyOut(record, kKeyDataOffset, Bytes(std::span(stored).first(size)));
  return OwnedKey(Key(std::string_view(stored.data(), size)));
}

// `Room`: at least the bytes of the key, as they are stored.
template <size_t Room>
void StoreBytes(std::byte* record, std::string_view key) {
  std::array<char, Room> padded{};
  std::ranges::copy(key, padded.begin());
  rdma::CopyIn(record, kKeyDataOffset, std::as_bytes(std::span(padded.data(), StoredKeyBytes(key.size()))));
}

}  // namespace

bool RecordHoldsLongKey(const std::byte* record, std::string_view key) {
  std::array<char, kMaxKeyBytes> stored;
  if (key.size() > stored.size()) return false;
  rdma::CopyOut(record, kKeyDataOffset, Bytes(std::span(stored).first(key.size())));
  return std::memcmp(stored.data(), key.data(), key.size()) == 0;
}

bool RecordHoldsKey(const std::byte* record, const Key& key) {
  return RecordHoldsKey(record, LoadMeta(record), key);
}

OwnedKey LoadKey(const std::byte* record, KeyKind kind) {
  if (kind == KeyKind::kInteger) return OwnedKey(Key(LoadWord(record + rdma::PlaceOf(kKeyDataOffset))));
  const size_t size = std::min<size_t>(LoadMeta(record).key_bytes, kMaxKeyBytes);
  if (size > kShortKeyBytes) [[unlikely]]
    return LoadLongKey(record, size);
  std::array<char, kShortKeyBytes> stored;
  rdma::CopyOut(record, kKeyDataOffset, Bytes(std::span(stored.data(), size)));
  return OwnedKey(Key(std::string_view(stored.data(), size)));
}

void StoreHeader(std::byte* record, const RecordMeta& meta, const Key& key) {
  // Numbers that do not fit the meta word would be cut off: readers would find another record.
  GANNET_CHECK(key.size() <= kMaxKeyBytes && meta.payload_bytes >> 20 == 0,
               "a record of table %d with a key of %d and a payload of %d bytes", meta.table, key.size(),
               meta.payload_bytes);
  const uint64_t word = meta.Pack();
  rdma::CopyIn(record, kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
  if (key.kind() == KeyKind::kInteger) {
    const uint64_t integer = key.integer();
    rdma::CopyIn(record, kKeyDataOffset, std::as_bytes(std::span(&integer, 1)));
  } else if (key.size() <= kShortKeyBytes) {
    StoreBytes<kShortKeyBytes>(record, key.bytes());
  } else {
    StoreBytes<kMaxKeyBytes>(record, key.bytes());
  }
}

}  // namespace gannet::index
