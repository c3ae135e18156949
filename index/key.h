// Key: the input of an index. A byte string of at most 64 bytes, compared lexicographically. An integer key is
// equivalent to its 8 bytes in big-endian order, and is specialised because it is the fast case.
//
// A Key is a view: a byte key must outlive the call it is passed to. An index is created for integer keys or for byte
// keys; giving it the other kind is a programming error (checked).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::index {

inline constexpr size_t kMaxKeyBytes = 64;
// `size` of an integer key.
inline constexpr size_t kIntegerKeyBytes = 8;

enum class KeyKind : uint8_t { kInteger, kBytes };

// InvalidArgument if an index cannot have keys of up to this length: none, or more than kMaxKeyBytes.
Status CheckMaxKeyBytes(size_t max_key_bytes);

class Key {
 public:
  constexpr Key() : integer_(0), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}
  constexpr Key(uint64_t integer) : integer_(integer), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}  // NOLINT
  constexpr Key(std::string_view bytes)                                                                      // NOLINT
      : data_(bytes.data()), size_(static_cast<uint32_t>(bytes.size())), kind_(KeyKind::kBytes) {}

  KeyKind kind() const { return kind_; }
  size_t size() const { return size_; }
  uint64_t integer() const { return integer_; }
  std::string_view bytes() const { return {data_, size_}; }

  // Both keys must be of one kind.
  friend bool operator==(const Key& a, const Key& b) {
    return a.kind_ == KeyKind::kInteger ? a.integer_ == b.integer_ : a.bytes() == b.bytes();
  }
  friend bool operator<(const Key& a, const Key& b) {
    return a.kind_ == KeyKind::kInteger ? a.integer_ < b.integer_ : a.bytes() < b.bytes();
  }

  // For messages: the number, or the bytes in hexadecimal.
  std::string ToString() const;

 private:
  union {
    uint64_t integer_;
    const char* data_;
  };
  uint32_t size_;
  KeyKind kind_;
};

// A key that owns its bytes: for results of scans, and for keys that must outlive the caller's buffer.
class OwnedKey {
 public:
  OwnedKey() = default;
  explicit OwnedKey(const Key& key) { *this = key; }
  OwnedKey& operator=(const Key& key) {
    kind_ = key.kind();
    size_ = static_cast<uint8_t>(key.size());
    if (kind_ == KeyKind::kInteger) {
      integer_ = key.integer();
    } else {
      std::memcpy(bytes_, key.bytes().data(), size_);
    }
    return *this;
  }
  // Valid as long as this object.
  Key view() const { return kind_ == KeyKind::kInteger ? Key(integer_) : Key(std::string_view(bytes_, size_)); }
  KeyKind kind() const { return kind_; }
  uint64_t integer() const { return integer_; }
  std::string_view bytes() const { return {bytes_, size_}; }

 private:
  KeyKind kind_ = KeyKind::kInteger;
  uint8_t size_ = kIntegerKeyBytes;
  uint64_t integer_ = 0;
  char bytes_[kMaxKeyBytes];
};

}  // namespace gannet::index
