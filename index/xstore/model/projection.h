// Projection: maps a key of any width to one number, for the models. It never decreases in the key (a model must be
// monotonic to be right about absent keys), but it is not one to one.
//
// Composite keys (warehouse, district, order) and names are numbers with huge gaps: a byte that takes 10 values out of
// 256 wastes 4.6 bits. So a projection may give each byte a digit of just the range seen in training, in a mixed radix
// number:
//
//   bytes seen   [1..2] [1..10] [0] [0..11] [0..255]   ->   digits of radix 2, 10, 1, 12, 256
//
// A byte outside its range decides the result: all following digits become the lowest, or the highest. Integers that
// are dense enough are passed through unchanged.
//
// Long keys may have hundreds of bytes that are the same in all of them. Each word of such bytes is compared as a whole
// and takes no digit. So a projection of long keys keeps one word for each word of a key that it looks at:
//
//   words seen   "countrie" "s/german" "y/berlin/" .. "y/bonn/.."   ->   compared, compared, digits
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/xstore/tree/key_codec.h"
#include "rdma/rpc.h"

namespace gannet::index::xstore {

class Projection {
 public:
  static constexpr int kMaxDigits = 72;  // as many as the bytes of nine words
  // Keys of more words than this may have words without digits.
  static constexpr int kMostWordsOfDigits = 9;

  // The identity, for integers only.
  Projection() = default;

  template <int W>
  uint64_t operator()(const KeyWords<W>& key) const {
    if constexpr (W > kMostWordsOfDigits) {
      return OfLong(key);
    } else {
      return OfDigits(key);
    }
  }

  // Learns the ranges of bytes from keys.
  template <int W>
  class Learner {
   public:
    void Add(const KeyWords<W>& key) {
      for (int word = 0; word < W; ++word) {
        // The bytes of the key before count already. In order of the keys most words are the same.
        if (W > kMostWordsOfDigits && !is_first_ && key.words[word] == previous_.words[word]) continue;
        AddWord(static_cast<size_t>(word), key.words[word]);
      }
      if (W > kMostWordsOfDigits) {
        is_first_ = false;
        previous_ = key;
      }
      if (key < least_) least_ = key;
      if (greatest_ < key) greatest_ = key;
    }
    Projection Learn() const;
    const KeyWords<W>& least() const { return least_; }
    const KeyWords<W>& greatest() const { return greatest_; }

   private:
    std::array<uint8_t, W* 8> low_ = Filled(255);
    std::array<uint8_t, W* 8> high_ = Filled(0);
    KeyWords<W> least_ = KeyWords<W>::Highest();
    KeyWords<W> greatest_ = KeyWords<W>::Lowest();
    // Used only for long keys: the last key that was added, if there was one.
    bool is_first_ = true;
    KeyWords<W> previous_;

    void AddWord(size_t word, uint64_t bytes) {
      for (size_t i = 0; i < 8; ++i) {
        const auto byte = static_cast<uint8_t>(bytes >> (56 - i * 8));
        if (byte < low_[word * 8 + i]) low_[word * 8 + i] = byte;
        if (byte > high_[word * 8 + i]) high_[word * 8 + i] = byte;
      }
    }
    static std::array<uint8_t, W * 8> Filled(uint8_t value) {
      std::array<uint8_t, W * 8> bytes;
      bytes.fill(value);
      return bytes;
    }
  };

  void Encode(rdma::WireWriter& writer) const;
  // Decodes a peer's projection; InvalidArgument if it is not a projection of keys of `words` words.
  static StatusOr<Projection> Decode(rdma::WireReader& reader, int words);
  // Memory outside of the object.
  size_t heap_bytes() const { return words_.capacity() * sizeof(uint64_t); }

 private:
  struct Digit {
    uint8_t low;
    uint8_t high;
    uint16_t word;   // of long keys: the word that has it, whose bytes are digits one after the other
    uint64_t scale;  // product of the radices after this digit
  };

  template <int W>
  uint64_t OfDigits(const KeyWords<W>& key) const {
    if (digits_ == 0) return key.words[0];
    uint64_t x = 0;
    for (int i = 0; i < digits_; ++i) {
      const Digit& digit = digit_[i];
      const int byte = static_cast<int>(key.words[static_cast<size_t>(i) / 8] >> (56 - i % 8 * 8) & 0xff);
      if (byte < digit.low) return x;
      if (byte > digit.high) return x + digit.scale * static_cast<uint64_t>(digit.high - digit.low + 1) - 1;
      x += digit.scale * static_cast<uint64_t>(byte - digit.low);
    }
    return x;
  }
  template <int W>
  uint64_t OfLong(const KeyWords<W>& key) const {
    uint64_t x = 0;
    int i = 0;  // the next digit
    for (size_t at = 0; at < words_.size(); ++at) {
      const uint64_t word = key.words[at];
      if (i == digits_ || digit_[i].word != at) {
        if (word == words_[at]) continue;
        // All that follows is the lowest, or the highest.
        return word < words_[at] || i == digits_ ? x : x + digit_[i].scale * Radix(digit_[i]) - 1;
      }
      for (int shift = 56; i < digits_ && digit_[i].word == at; ++i, shift -= 8) {
        const Digit& digit = digit_[i];
        const int byte = static_cast<int>(word >> shift & 0xff);
        if (byte < digit.low) return x;
        if (byte > digit.high) return x + digit.scale * Radix(digit) - 1;
        x += digit.scale * static_cast<uint64_t>(byte - digit.low);
      }
    }
    return x;
  }

  static uint64_t Radix(const Digit& digit) { return static_cast<uint64_t>(digit.high - digit.low) + 1; }
  // Appends a digit and sets all scales. False, without a change, if there are too many or the numbers would not fit.
  bool Append(const Digit& digit);
  // Sets the scales of digits whose ranges are set. False if the numbers would not fit in 63 bits.
  bool SetScales();

  int digits_ = 0;  // 0: unchanged
  std::array<Digit, kMaxDigits> digit_;
  std::vector<uint64_t> words_;  // of long keys: what a word without digits is compared with
};

}  // namespace gannet::index::xstore
