// Encodes keys as words, which the tree and the models compare.
//
// A key becomes W words that compare word by word, most significant first, in the order of the keys. An integer is its
// own word (W = 1). A byte key is padded with zeros to 8 * W - 1 bytes, followed by one byte with its length, all
// big-endian:
//
//   "ab"   W = 1   | 'a' 'b'  0   0   0   0   0   2 |
//
// From nine words on the length has the last word for itself: the keys have at most 8 * (W - 1) bytes.
//
// So a prefix sorts before longer keys, even if these continue with zero bytes. No byte key is all ones, because no
// length is 255 or fills a word; integers use the whole range. Fences are inclusive at both ends, so no value has to
// mean "infinity".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "index/key.h"

// The widths that an index may have, in words of a key, ascending: it takes the least one that is enough. The code of
// the tree, the models and the client is compiled for each of them.
#define GANNET_XSTORE_WIDTHS(Each) Each(1) Each(3) Each(5) Each(9) Each(33) Each(129)

namespace gannet::index::xstore {

#define GANNET_WIDTH(W) W,
inline constexpr int kWidths[] = {GANNET_XSTORE_WIDTHS(GANNET_WIDTH)};
#undef GANNET_WIDTH
// The place of W among them.
template <int W>
inline constexpr size_t kNumberOfWidth = std::find(std::begin(kWidths), std::end(kWidths), W) - std::begin(kWidths);

template <int W>
struct KeyWords {
  std::array<uint64_t, W> words;

  friend bool operator==(const KeyWords& a, const KeyWords& b) {
    if constexpr (W > 9) {
      return a.words == b.words;
    } else {
      uint64_t different = 0;
#pragma GCC unroll 9
      for (int i = 0; i < W; ++i) different |= a.words[i] ^ b.words[i];
      return different == 0;
    }
  }
  friend bool operator<(const KeyWords& a, const KeyWords& b) {
    for (int i = 0; i < W - 1; ++i) {
      if (a.words[i] != b.words[i]) return a.words[i] < b.words[i];
    }
    return a.words[W - 1] < b.words[W - 1];
  }
  friend bool operator<=(const KeyWords& a, const KeyWords& b) {
    return !(b < a);
  }

  static KeyWords Lowest() {
    return Filled(0);
  }
  static KeyWords Highest() {
    return Filled(~uint64_t{0});
  }
  // The neighbours, as numbers of 64 * W bits. Next must not be called for the highest, Previous not for the lowest.
  KeyWords Next() const {
    KeyWords next = *this;
    for (int i = W - 1; i >= 0 && ++next.words[i] == 0; --i) {
    }
    return next;
  }
  KeyWords Previous() const {
    KeyWords previous = *this;
    for (int i = W - 1; i >= 0 && previous.words[i]-- == 0; --i) {
    }
    return previous;
  }

 private:
  static KeyWords Filled(uint64_t word) {
    KeyWords key;
    key.words.fill(word);
    return key;
  }
};

// The high fence of the left one of two neighbouring leaves with the keys a < b at their border: at or above a, below
// b. For integers it is midway, so that a prediction that is off by less than half a key is still in the right leaf.
template <int W>
KeyWords<W> FenceBetween(KeyKind kind, const KeyWords<W>& a, const KeyWords<W>& b) {
  if constexpr (W == 1) {
    if (kind == KeyKind::kInteger) return {{a.words[0] + (b.words[0] - a.words[0] - 1) / 2}};
  }
  return a;
}

// The length of a byte key has the last one of at least so many words for itself.
inline constexpr int kLeastWordsWithLength = 9;

// Longest byte key that W words hold.
constexpr size_t CapacityOf(int words) {
  const auto all = static_cast<size_t>(words) * 8;
  return words >= kLeastWordsWithLength ? all - 8 : all - 1;
}
static_assert(CapacityOf(9) == kShortKeyBytes && CapacityOf(*std::rbegin(kWidths)) == kMaxKeyBytes);

// Returns body.operator()<W>() for the number of words that the keys of an index take. `Number`: the least width that
// it may be.
template <size_t Number = 0, class Body>
auto WithWordsOf(KeyKind kind, size_t max_key_bytes, const Body& body) {
  if constexpr (Number + 1 < std::size(kWidths)) {
    if (kind != KeyKind::kInteger && max_key_bytes > CapacityOf(kWidths[Number])) {
      return WithWordsOf<Number + 1>(kind, max_key_bytes, body);
    }
  }
  return body.template operator()<kWidths[Number]>();
}

inline uint64_t FromBigEndian(uint64_t word) {
  return __builtin_bswap64(word);
}

// The words of a key have its bytes, and zeros: makes them its encoding.
template <int W>
void SetLength(size_t size, KeyWords<W>* key) {
  if constexpr (W >= kLeastWordsWithLength) {
    const size_t words = std::min<size_t>((size + 7) / 8, W - 1);
    for (size_t i = 0; i < words; ++i) key->words[i] = FromBigEndian(key->words[i]);
    key->words[W - 1] = size;
  } else {
    for (uint64_t& word : key->words) word = FromBigEndian(word);
    key->words[W - 1] |= size;
  }
}

// Cuts what is longer than CapacityOf(W).
template <int W>
KeyWords<W> EncodeBytes(std::string_view bytes) {
  const size_t size = std::min(bytes.size(), CapacityOf(W));
  KeyWords<W> key{};
  std::memcpy(key.words.data(), bytes.data(), size);
  SetLength(size, &key);
  return key;
}

// Encodes a key for a lookup or an insert. It must be of the index's kind and not too long (checked).
template <int W>
KeyWords<W> Encode(const Key& key) {
  if constexpr (W == 1) {
    if (key.kind() == KeyKind::kInteger) return {{key.integer()}};
  }
  GANNET_CHECK(key.size() <= CapacityOf(W), "a key of %d bytes in an index for at most %d", key.size(), CapacityOf(W));
  return EncodeBytes<W>(key.bytes());
}

// The lowest words of a key >= `bound`, and the highest of a key <= `bound`. A bound may be longer than the keys.
template <int W>
KeyWords<W> EncodeFrom(const Key& bound) {
  if (bound.kind() == KeyKind::kInteger || bound.size() <= CapacityOf(W)) return Encode<W>(bound);
  return EncodeBytes<W>(bound.bytes().substr(0, CapacityOf(W))).Next();
}
template <int W>
KeyWords<W> EncodeTo(const Key& bound) {
  if (bound.kind() == KeyKind::kInteger || bound.size() <= CapacityOf(W)) return Encode<W>(bound);
  return EncodeBytes<W>(bound.bytes().substr(0, CapacityOf(W)));
}

// The reverse of Encode.
template <int W>
void Decode(const KeyWords<W>& key, KeyKind kind, OwnedKey* out) {
  if (kind == KeyKind::kInteger) {
    *out = Key(key.words[0]);
    return;
  }
  // The length was written by Encode or came from a peer, so it is limited to what fits.
  const uint64_t length = W >= kLeastWordsWithLength ? key.words[W - 1] : key.words[W - 1] & 0xff;
  const auto size = static_cast<size_t>(std::min<uint64_t>(length, CapacityOf(W)));
  const size_t words = W >= kLeastWordsWithLength ? std::min<size_t>((size + 7) / 8, W - 1) : W;
  std::array<uint64_t, W> bytes;
  for (size_t i = 0; i < words; ++i) bytes[i] = FromBigEndian(key.words[i]);
  *out = Key(std::string_view(reinterpret_cast<const char*>(bytes.data()), size));
}

// True if words from a peer are the encoding of a key.
template <int W>
bool IsKey(const KeyWords<W>& key, KeyKind kind) {
  OwnedKey decoded;
  Decode(key, kind, &decoded);
  return kind == KeyKind::kInteger || EncodeBytes<W>(decoded.bytes()) == key;
}

}  // namespace gannet::index::xstore
