// Tables with every kind of index, and keys for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/key.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "tests/index/kinds.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The n-th key of a table. Some have the greatest length.
inline index::OwnedKey KeyOf(const TableOptions& options, uint64_t n) {
  if (options.index == IndexKind::kCatfish) {
    const uint64_t row = n / 100;
    const auto x = static_cast<double>(n % 100);
    const auto y = static_cast<double>(row);
    return index::OwnedKey(index::EncodeRectangleKey({x, y, x + 1, y + 1}, n)->view());
  }
  if (options.key_kind == index::KeyKind::kInteger) return index::OwnedKey(index::Key(n * 7));
  std::string bytes = absl::StrCat("key ", n * 7);
  if (options.max_key_bytes > 100 && n % 3 == 0) bytes.resize(options.max_key_bytes, 'x');
  return index::OwnedKey(index::Key(bytes));
}

// Tables of every kind of index, with integers and with byte keys as long as it takes them.
inline std::vector<TableOptions> AllKinds(size_t payload_bytes, bool variable_length) {
  std::vector<TableOptions> all;
  for (const IndexKind kind : index::KindsThat([](const index::IndexTraits&) { return true; })) {
    const size_t longest = index::EntryOf(kind).traits.max_key_bytes;
    TableOptions options{.name = absl::StrCat("bytes ", static_cast<int>(kind)),
                         .key_kind = index::KeyKind::kBytes,
                         .max_key_bytes = longest,
                         .index = kind,
                         .payload_bytes = payload_bytes,
                         .variable_length = variable_length,
                         .expected_rows = 300};
    all.push_back(options);
    if (kind == IndexKind::kCatfish) continue;
    options.name = absl::StrCat("integers ", static_cast<int>(kind));
    options.key_kind = index::KeyKind::kInteger;
    options.max_key_bytes = index::kIntegerKeyBytes;
    all.push_back(options);
  }
  return all;
}

}  // namespace gannet::txn
