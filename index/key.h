// Key: the input of an index. A byte string of at most 1,024 bytes, compared lexicographically; a kind of index may
// take fewer (IndexTraits::max_key_bytes). An integer key is equivalent to its 8 bytes in big-endian order, and is
// specialised because it is the fast case.
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

inline constexpr size_t kMaxKeyBytes = 1024;
// Keys of at most this many bytes are kept in place, without memory of their own. Some kinds of index take no longer
// ones.
inline constexpr size_t kShortKeyBytes = 64;
// `size` of an integer key.
inline constexpr size_t kIntegerKeyBytes = 8;

// Flipping this bit of a signed number gives the integer whose order among integers is the same.
inline constexpr uint64_t kSignBit = uint64_t{1} << 63;

// kNone: the kind of a Key that fits no table, a negative number. It has no bytes.
enum class KeyKind : uint8_t { kInteger, kBytes, kNone };

class TupleKey;

// InvalidArgument if an index of a kind that takes keys of 1 to `most` bytes cannot have keys of up to max_key_bytes.
Status CheckMaxKeyBytes(size_t max_key_bytes, size_t most);

class Key {
 public:
  constexpr Key() : integer_(0), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}
  constexpr Key(uint64_t integer) : integer_(integer), size_(kIntegerKeyBytes), kind_(KeyKind::kInteger) {}  // NOLINT
  // A negative number is no key: Signed makes one of it.
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) constexpr Key(Integer integer)  // NOLINT
      : Key(static_cast<uint64_t>(integer)) {
    if constexpr (std::signed_integral<Integer>) {
      if (integer < 0) [[unlikely]]
        *this = Key(KeyKind::kNone, integer_, 0);
    }
  }
  constexpr Key(std::string_view bytes)  // NOLINT
      : data_(bytes.data()), size_(static_cast<uint32_t>(bytes.size())), kind_(KeyKind::kBytes) {}
  Key(const std::string& bytes) : Key(std::string_view(bytes)) {}   // NOLINT
  constexpr Key(const char* text) : Key(std::string_view(text)) {}  // NOLINT: up to the first zero
  Key(std::span<const std::byte> bytes)                             // NOLINT
      : Key(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())) {}

  // These types would be mistakes.
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
  // The number of an integer key, and of a negative number.
  uint64_t integer() const { return integer_; }
  std::string_view bytes() const { return {data_, size_}; }

  // Both keys must be of one kind.
  friend bool operator==(const Key& a, const Key& b) {
    return a.kind_ == KeyKind::kInteger ? a.integer_ == b.integer_ : a.bytes() == b.bytes();
  }
  friend bool operator<(const Key& a, const Key& b) {
    return a.kind_ == KeyKind::kInteger ? a.integer_ < b.integer_ : a.bytes() < b.bytes();
  }

  // The key as messages show it: the number, or the bytes in hexadecimal; for a long key the first ones and its length.
  std::string ToString() const;

 private:
  friend class OwnedKey;

  // Makes an integer key, or one of a negative number.
  constexpr Key(KeyKind kind, uint64_t integer, uint32_t size) : integer_(integer), size_(size), kind_(kind) {}

  union {
    uint64_t integer_;
    const char* data_;
  };
  uint32_t size_;
  KeyKind kind_;
};

// A key that owns its bytes: for results of scans, and for keys that must outlive the caller's buffer. A key of more
// than kShortKeyBytes bytes takes a heap object, any other none. A key that was moved from is an empty one of its kind,
// or unchanged.
class OwnedKey {
 public:
  OwnedKey() : integer_(0) {}
  explicit OwnedKey(const Key& key) { Set(key); }
  OwnedKey(const OwnedKey& other) { Set(other.view()); }
  OwnedKey(OwnedKey&& other) noexcept { Take(other); }
  ~OwnedKey() {
    if (is_long()) [[unlikely]]
      delete[] long_;
  }
  // `key` may be a view of this.
  OwnedKey& operator=(const Key& key) {
    const char* const old = is_long() ? long_ : nullptr;
    Set(key);
    if (old != nullptr) [[unlikely]]
      delete[] old;
    return *this;
  }
  OwnedKey& operator=(const OwnedKey& other) { return *this = other.view(); }
  OwnedKey& operator=(OwnedKey&& other) noexcept {
    if (this == &other) return *this;
    if (is_long()) [[unlikely]]
      delete[] long_;
    Take(other);
    return *this;
  }

  // Valid as long as this object is there and unchanged.
  Key view() const { return kind_ == KeyKind::kBytes ? Key(bytes()) : Key(kind_, integer_, size_); }
  KeyKind kind() const { return kind_; }
  uint64_t integer() const { return integer_; }
  // The bytes of a byte key.
  std::string_view bytes() const { return {is_long() ? long_ : short_, size_}; }

 private:
  bool is_long() const { return size_ > kShortKeyBytes; }
  // What this had is not freed.
  void Set(const Key& key) {
    const size_t size = key.size();
    if (key.kind() != KeyKind::kBytes) {
      integer_ = key.integer();
    } else if (size > kShortKeyBytes) [[unlikely]] {
      SetLong(key.bytes());
    } else if (size > 0) {
      std::memmove(short_, key.bytes().data(), size);
    }
    kind_ = key.kind();
    size_ = static_cast<uint32_t>(size);
  }
  [[gnu::cold]] void SetLong(std::string_view bytes);
  void Take(OwnedKey& other) {
    kind_ = other.kind_;
    size_ = other.size_;
    if (kind_ != KeyKind::kBytes) {
      integer_ = other.integer_;
      return;
    }
    // All of them: that takes less time than the copy of as many as there are. Of a long key it is the pointer.
    std::memcpy(short_, other.short_, sizeof short_);
    if (other.is_long()) [[unlikely]]
      other.size_ = 0;
  }

  union {
    uint64_t integer_;
    char short_[kShortKeyBytes];
    char* long_;  // `size_` bytes
  };
  uint32_t size_ = kIntegerKeyBytes;
  KeyKind kind_ = KeyKind::kInteger;
};

}  // namespace gannet::index
