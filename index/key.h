// Key: the input of an index. A byte string of at most 64 bytes, compared lexicographically. An integer key is
// equivalent to its 8 bytes in big-endian order, and is specialised because it is the fast case.
//
// A Key is a view: the bytes of a byte key must outlive the call it is passed to. An index is created for integer keys
// or for byte keys; giving it the other kind is a programming error (checked). Transactions return InvalidArgument.
//
// Integers of any type, strings, literals and spans of bytes become keys by themselves. Key::Signed makes integer keys
// of numbers that may be negative; Key::Tuple makes byte keys of several fields (index/tuple_key.h). Both keep the
// order.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::index {

inline constexpr size_t kMaxKeyBytes = 64;
// `size` of an integer key.
inline constexpr size_t kIntegerKeyBytes = 8;

// kNone: of a Key only, which then fits no table: a negative number.
enum class KeyKind : uint8_t { kInteger, kBytes, kNone };

class TupleKey;

// InvalidArgument if an index cannot have keys of up to this length: none, or more than kMaxKeyBytes.
Status CheckMaxKeyBytes(size_t max_key_bytes);

class Key {
 public:
  constexpr Key() : integer_(0), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}
  constexpr Key(uint64_t integer) : integer_(integer), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}  // NOLINT
  // A negative number is no key: Signed makes one of it.
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) constexpr Key(Integer integer)
      : Key(static_cast<uint64_t>(integer)) {  // NOLINT
    if constexpr (std::signed_integral<Integer>) {
      if (integer < 0) [[unlikely]]
        *this = Key(KeyKind::kNone);
    }
  }
  constexpr Key(std::string_view bytes)  // NOLINT
      : data_(bytes.data()), size_(static_cast<uint32_t>(bytes.size())), kind_(KeyKind::kBytes) {}
  Key(const std::string& bytes) : Key(std::string_view(bytes)) {}   // NOLINT
  constexpr Key(const char* text) : Key(std::string_view(text)) {}  // NOLINT: up to the first zero
  Key(std::span<const std::byte> bytes)                             // NOLINT
      : Key(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())) {}

  // Mistakes.
  Key(bool) = delete;
  Key(char) = delete;
  Key(double) = delete;
  Key(std::nullptr_t) = delete;

  // The integer keys of these are in the order of the numbers: `number` + 2^63.
  static constexpr Key Signed(int64_t number) { return Key(static_cast<uint64_t>(number) ^ kSignBit); }
  // The number of such a key.
  constexpr int64_t signed_integer() const { return static_cast<int64_t>(integer_ ^ kSignBit); }
  // A byte key of several fields, which owns its bytes (index/tuple_key.h).
  template <class... Fields>
  static TupleKey Tuple(const Fields&... fields);

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
  static constexpr uint64_t kSignBit = uint64_t{1} << 63;

  // No bytes.
  explicit constexpr Key(KeyKind kind) : data_(nullptr), size_(0), kind_(kind) {}

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
    } else if (size_ > 0) {
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
