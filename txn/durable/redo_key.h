// Conversion of keys between a transaction and its log. In the log an integer key is its big-endian 8 bytes, so that
// bytes sort as keys do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "index/key.h"

namespace gannet::txn {

// The bytes of a key; valid while this object and the key's own bytes are.
class RedoKey {
 public:
  explicit RedoKey(const index::Key& key) {
    if (key.kind() == index::KeyKind::kInteger) {
      const uint64_t swapped = __builtin_bswap64(key.integer());
      std::memcpy(integer_.data(), &swapped, sizeof swapped);
      bytes_ = integer_;
    } else {
      bytes_ = std::as_bytes(std::span(key.bytes().data(), key.size()));
    }
  }
  RedoKey(const RedoKey&) = delete;
  RedoKey& operator=(const RedoKey&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::array<std::byte, sizeof(uint64_t)> integer_;
  std::span<const std::byte> bytes_;
};

// A view of `bytes`, which must outlive it if the kind is kBytes. `bytes` has 8 bytes if it is kInteger.
inline index::Key KeyFromRedo(index::KeyKind kind, std::span<const std::byte> bytes) {
  if (kind == index::KeyKind::kBytes) {
    return index::Key(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  uint64_t swapped;
  std::memcpy(&swapped, bytes.data(), sizeof swapped);
  return index::Key(__builtin_bswap64(swapped));
}

}  // namespace gannet::txn
