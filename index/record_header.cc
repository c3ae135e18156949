#include "index/record_header.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace gannet::index {

namespace {

std::span<std::byte> Bytes(std::span<char> text) {
  return std::as_writable_bytes(text);
}

// The last `count` bytes of a key, 1 to 8 of them, as a word that is filled up with zeros.
uint64_t LastBytes(std::string_view key, size_t count) {
  if (key.size() >= kWordBytes) {
    uint64_t word;
    std::memcpy(&word, key.data() + key.size() - kWordBytes, kWordBytes);
    return word >> 8 * (kWordBytes - count);
  }
  uint64_t word = 0;
  if (count >= sizeof(uint32_t)) {  // all of them: halves that overlap
    uint32_t first;
    uint32_t last;
    std::memcpy(&first, key.data(), sizeof first);
    std::memcpy(&last, key.data() + count - sizeof last, sizeof last);
    return first | uint64_t{last} << 8 * (count - sizeof last);
  }
  for (size_t i = 0; i < count; ++i) word |= uint64_t{static_cast<unsigned char>(key[i])} << 8 * i;
  return word;
}

// For a key that lies in the record's first line. No call, and no branch for each byte.
bool HoldsKeyInFirstLine(const std::byte* record, std::string_view key) {
  const std::byte* at = record + rdma::PlaceOf(kKeyDataOffset);
  uint64_t differ = 0;
  size_t left = key.size();
  for (const char* word_of_key = key.data(); left > kWordBytes; at += kWordBytes, word_of_key += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, word_of_key, kWordBytes);
    differ |= LoadWord(at) ^ word;
    left -= kWordBytes;
  }
  if (left == 0) return true;
  return (differ | (LoadWord(at) ^ LastBytes(key, left)) << 8 * (kWordBytes - left)) == 0;
}

[[gnu::cold]] bool HoldsLongKey(const std::byte* record, std::string_view key) {
  std::array<char, kMaxKeyBytes> stored;
  rdma::CopyOut(record, kKeyDataOffset, Bytes(std::span(stored).first(key.size())));
  return std::memcmp(stored.data(), key.data(), key.size()) == 0;
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

bool RecordHoldsKey(const std::byte* record, const Key& key) {
  const RecordMeta meta = LoadMeta(record);
  if (meta.key_bytes != key.size()) return false;
  if (key.kind() == KeyKind::kInteger) return LoadWord(record + rdma::PlaceOf(kKeyDataOffset)) == key.integer();
  if (key.size() <= rdma::kLineDataBytes - kKeyDataOffset) [[likely]]
    return HoldsKeyInFirstLine(record, key.bytes());
  if (meta.key_bytes > kShortKeyBytes) [[unlikely]]
    return meta.key_bytes <= kMaxKeyBytes && HoldsLongKey(record, key.bytes());
  std::array<char, kShortKeyBytes> stored;
  rdma::CopyOut(record, kKeyDataOffset, Bytes(std::span(stored.data(), meta.key_bytes)));
  return std::memcmp(stored.data(), key.bytes().data(), meta.key_bytes) == 0;
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
