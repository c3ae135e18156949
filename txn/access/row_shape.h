// What a scan by this node's CPU knows of a table's rows, and how it copies one (direct_scan.cc).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cache_line.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "txn/row_bytes.h"
#include "txn/table.h"
#include "txn/transaction.h"

namespace gannet::txn {

// The first two words of a key: so many are different in most neighbours of most tables.
struct KeyStart {
  uint64_t first = 0;
  uint64_t second = 0;

  // Without a branch: which words differ depends on the row.
  friend bool operator<(const KeyStart& a, const KeyStart& b) {
    return (static_cast<unsigned __int128>(a.first) << 64 | a.second) <
           (static_cast<unsigned __int128>(b.first) << 64 | b.second);
  }
};

// True if what a scan copies of a row may reach into the record's second line.
inline bool MayTakeSecondLine(const Table& table, ScanOptions options) {
  const size_t key_bytes = table.options().key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0;
  return !options.keys_only &&
         index::PayloadDataOffset(key_bytes) + table.accepted_payload_bytes() > rdma::kLineDataBytes;
}

// Copies `size` bytes of a record's data, a multiple of a word, from its key on. Returns the first two words. Up to
// RowBytes::kSlackBytes after them in `to` are overwritten.
inline KeyStart CopyFromKey(const std::byte* record, size_t size, std::byte* to) {
  const auto copy = [&to](const std::byte* from, size_t words) {
    for (; words > 0; --words, from += kWordBytes, to += kWordBytes) {
      const uint64_t word = LoadWord(from);
      std::memcpy(to, &word, kWordBytes);
    }
  };
  constexpr size_t kPlace = rdma::PlaceOf(index::kKeyDataOffset);
  constexpr size_t kInFirst = kLineBytes - kPlace;
  static_assert(kInFirst <= RowBytes::kSlackBytes);
  // All of the first line, however much is wanted: that takes no branch which depends on the row.
  const KeyStart start = {LoadWord(record + kPlace), LoadWord(record + kPlace + kWordBytes)};
  std::memcpy(to, &start, sizeof start);
#pragma GCC unroll 8
  for (size_t at = sizeof start; at < kInFirst; at += kWordBytes) {
    const uint64_t word = LoadWord(record + kPlace + at);
    std::memcpy(to + at, &word, kWordBytes);
  }
  if (size <= kInFirst) [[likely]]
    return start;
  to += kInFirst;
  size_t words = (size - kInFirst) / kWordBytes;
  // Each line begins with its version.
  constexpr size_t kInLine = rdma::kLineDataBytes / kWordBytes;
  for (const std::byte* line = record + kLineBytes;; line += kLineBytes, words -= kInLine) {
    copy(line + kWordBytes, std::min(words, kInLine));
    if (words <= kInLine) return start;
  }
}

// What the rows of a table may look like, and what a scan wants of them.
struct RowShape {
  RowShape(const Table& table, bool in_reverse, ScanOptions options)
      : payload_bytes(table.accepted_payload_bytes()),
        key_kind(table.options().key_kind),
        max_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : table.options().max_key_bytes),
        least_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0),
        variable_length(table.options().variable_length),
        keys_only(options.keys_only),
        second_line(MayTakeSecondLine(table, options)),
        reverse(in_reverse) {}

  void PrefetchRow(const std::byte* record) const {
    Prefetch(record);
    if (second_line) Prefetch(record + kLineBytes);
  }
  // A key's place in the order, by its first words as they are stored, which may not all be the key's.
  KeyStart StartOf(KeyStart stored, size_t key_bytes) const {
    if (key_kind == index::KeyKind::kInteger) return {stored.first, 0};
    return {key_bytes == 0 ? 0 : __builtin_bswap64(stored.first),
            key_bytes <= kWordBytes ? 0 : __builtin_bswap64(stored.second)};
  }
  bool MayHaveKeyOf(const index::RecordMeta& meta) const {
    return meta.key_bytes <= max_key_bytes && meta.key_bytes >= least_key_bytes;
  }
  bool MayHavePayloadOf(const index::RecordMeta& meta) const {
    return meta.payload_bytes == payload_bytes || (variable_length && meta.payload_bytes < payload_bytes);
  }

  size_t payload_bytes;
  index::KeyKind key_kind;
  size_t max_key_bytes;
  size_t least_key_bytes;
  bool variable_length;
  bool keys_only;
  bool second_line;
  bool reverse;
};

}  // namespace gannet::txn
