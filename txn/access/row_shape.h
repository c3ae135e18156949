// What a scan by this node's CPU knows of a table's rows, and how it copies one (direct_scan.cc).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cache_line.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "txn/store/requests.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The first two words of a key: so many are different in most neighbours of most tables.
struct KeyStart {
  uint64_t first = 0;
  uint64_t second = 0;

  // The comparison has no branch: which words differ depends on the row.
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

// Copies `size` bytes of a record's data, a multiple of a word, from its key on. Up to RowBytes::kSlackBytes after them
// in `to` are overwritten: lines are copied whole, without a branch for what is wanted of one.
inline void CopyFromKey(const std::byte* record, size_t size, std::byte* to) {
  constexpr size_t kTwo = 2 * kWordBytes;
  constexpr size_t kFour = 4 * kWordBytes;
  const auto copy_two = [](const std::byte* from, std::byte* out) {
    const TwoWords words = LoadTwoWords(from);
    std::memcpy(out, &words, kTwo);
  };
  const auto copy_four = [](const std::byte* from, std::byte* out) {
    const FourWords words = LoadFourWords(from);
    std::memcpy(out, &words, kFour);
  };
  // The first line: its version, the meta word, and six words from the key on.
  static_assert(rdma::PlaceOf(index::kKeyDataOffset) == kTwo && kTwo + kFour <= RowBytes::kSlackBytes);
  copy_two(record + kTwo, to);
  copy_four(record + kFour, to + kTwo);
  for (size_t done = kTwo + kFour; done < size; done += rdma::kLineDataBytes) {
    record += kLineBytes;
    const uint64_t word = LoadWord(record + kWordBytes);  // after the line's version
    std::memcpy(to + done, &word, kWordBytes);
    copy_two(record + kTwo, to + done + kWordBytes);
    copy_four(record + kFour, to + done + kWordBytes + kTwo);
  }
}

// What the rows of a table may look like, and what a scan wants of them.
struct RowShape {
  RowShape(const Table& table, bool in_reverse, ScanOptions options, bool other_nodes)
      : payload_bytes(table.accepted_payload_bytes()),
        key_kind(table.options().key_kind),
        max_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : table.options().max_key_bytes),
        least_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0),
        least_payload_bytes(table.options().variable_length ? 0 : payload_bytes),
        payload_span(payload_bytes - least_payload_bytes),
        copied_bytes(options.keys_only ? 0 : ~uint32_t{0}),
        second_line(MayTakeSecondLine(table, options)),
        others_write(other_nodes),
        reversed(in_reverse ? ~uint64_t{0} : 0) {}

  void PrefetchRow(const std::byte* record) const {
    Prefetch(record);
    if (second_line) Prefetch(record + kLineBytes);
  }
  // A key's place in the order of the scan, by its first words. `copied`: by CopyFromKey, of a record that passes
  // MayBeCopied. A client may change the record's own key meanwhile.
  template <index::KeyKind kKind>
  KeyStart StartOf(const std::byte* copied, size_t key_bytes) const {
    KeyStart start;
    std::memcpy(&start, copied, sizeof start);
    if constexpr (kKind == index::KeyKind::kInteger) return {start.first ^ reversed, 0};
    const uint64_t second = __builtin_bswap64(start.second);
    return {__builtin_bswap64(start.first) ^ reversed, (key_bytes <= kWordBytes ? 0 : second) ^ reversed};
  }
  // True for a row that a scan may copy without a closer look: not for one with an empty key, of which a table has one.
  template <index::KeyKind kKind>
  bool MayBeCopied(const index::RecordMeta& meta) const {
    const bool key_fits = kKind == index::KeyKind::kInteger ? meta.key_bytes == index::kIntegerKeyBytes
                                                            : meta.key_bytes - size_t{1} < max_key_bytes;
    return key_fits && meta.payload_bytes - least_payload_bytes <= payload_span;
  }
  bool MayHaveKeyOf(const index::RecordMeta& meta) const {
    return meta.key_bytes <= max_key_bytes && meta.key_bytes >= least_key_bytes;
  }

  size_t payload_bytes;
  index::KeyKind key_kind;
  size_t max_key_bytes;
  size_t least_key_bytes;
  size_t least_payload_bytes;
  size_t payload_span;    // from the least to the most
  uint32_t copied_bytes;  // mask of a payload's size: all bits, or none for a scan of keys
  bool second_line;
  bool others_write;  // other nodes, into records
  uint64_t reversed;  // all bits, or none
};

}  // namespace gannet::txn
