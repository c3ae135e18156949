#include "index/record_header.h"

#include <algorithm>
#include <array>
#include <span>

namespace gannet::index {

bool RecordHoldsKey(const std::byte* record, const Key& key) {
  const RecordMeta meta = LoadMeta(record);
  if (meta.key_bytes != key.size()) return false;
  if (key.kind() == KeyKind::kInteger) return LoadWord(record + rdma::PlaceOf(kKeyDataOffset)) == key.integer();
  std::array<char, kMaxKeyBytes> stored;
  rdma::CopyOut(record, kKeyDataOffset, std::as_writable_bytes(std::span(stored.data(), meta.key_bytes)));
  return std::memcmp(stored.data(), key.bytes().data(), meta.key_bytes) == 0;
}

OwnedKey LoadKey(const std::byte* record, KeyKind kind) {
  if (kind == KeyKind::kInteger) return OwnedKey(Key(LoadWord(record + rdma::PlaceOf(kKeyDataOffset))));
  const RecordMeta meta = LoadMeta(record);
  std::array<char, kMaxKeyBytes> stored;
  const size_t size = std::min<size_t>(meta.key_bytes, kMaxKeyBytes);
  rdma::CopyOut(record, kKeyDataOffset, std::as_writable_bytes(std::span(stored.data(), size)));
  return OwnedKey(Key(std::string_view(stored.data(), size)));
}

void StoreHeader(std::byte* record, const RecordMeta& meta, const Key& key) {
  const uint64_t word = meta.Pack();
  rdma::CopyIn(record, kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
  if (key.kind() == KeyKind::kInteger) {
    const uint64_t integer = key.integer();
    rdma::CopyIn(record, kKeyDataOffset, std::as_bytes(std::span(&integer, 1)));
    return;
  }
  std::array<char, kMaxKeyBytes> padded{};
  std::ranges::copy(key.bytes(), padded.begin());
  rdma::CopyIn(record, kKeyDataOffset, std::as_bytes(std::span(padded.data(), StoredKeyBytes(key.size()))));
}

}  // namespace gannet::index
