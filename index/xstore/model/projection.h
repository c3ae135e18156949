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
#pragma once

#include <array>
#include <cstdint>

#include "index/xstore/key_codec.h"
#include "rdma/rpc.h"

namespace gannet::index::xstore {

class Projection {
 public:
  static constexpr int kMaxDigits = 72;  // bytes of the widest key

  // The identity, for integers only.
  Projection() = default;

  template <int W>
  uint64_t operator()(const KeyWords<W>& key) const {
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

  // Learns the ranges of bytes from keys.
  template <int W>
  class Learner {
   public:
    void Add(const KeyWords<W>& key) {
      for (size_t i = 0; i < W * 8; ++i) {
        const auto byte = static_cast<uint8_t>(key.words[i / 8] >> (56 - i % 8 * 8));
        if (byte < low_[i]) low_[i] = byte;
        if (byte > high_[i]) high_[i] = byte;
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

    static std::array<uint8_t, W * 8> Filled(uint8_t value) {
      std::array<uint8_t, W * 8> bytes;
      bytes.fill(value);
      return bytes;
    }
  };

  void Encode(rdma::WireWriter& writer) const;
  // Decodes a peer's projection; InvalidArgument if it is not a projection of keys of `words` words.
  static StatusOr<Projection> Decode(rdma::WireReader& reader, int words);

 private:
  struct Digit {
    uint8_t low;
    uint8_t high;
    uint64_t scale;  // product of the radices after this digit
  };
  // Sets the scales of digits whose ranges are set. False if the numbers would not fit in 63 bits.
  bool SetScales();

  int digits_ = 0;  // 0: unchanged
  std::array<Digit, kMaxDigits> digit_;
};

}  // namespace gannet::index::xstore
