// KeyedHash: hashes of keys that a possibly hostile user chooses. Hash tables of such keys use only this.
//
// A user who knows a table's hash function can choose keys that all fall into one bucket. So a table draws a secret
// seed when it is created, and the hash depends on all 256 bits of the seed.
//
// Why keys that collide cannot be chosen without knowing the seed. A number is hashed by two multiplications of 64 by
// 64 to 128 bits, whose factors are both masked with parts of the seed:
//
//   (low, high) = (number ^ s0) * (rotated number ^ s1)
//   hash        = fold((low ^ s2) * (high ^ s3))            fold: the xor of the product's halves
//
// Take two numbers whose (low, high) differ, and let s2 and s3 be uniform and independent of them. Then one factor of
// the second product differs by a chosen value, and the other factor is uniform. So the difference of the products, and
// of any bits that a table uses, is close to uniform, and no choice of numbers makes a collision more probable than
// random numbers do. The first product hides which differences enter the second. (A single multiplication by a secret
// odd number is not enough: it keeps a difference in the highest bit for every such number.) Bytes are hashed by XXH3
// with a secret derived from the seed in place of its constants. The result is masked and folded once more, because
// XXH3 alone mixes the seed into keys of up to 8 bytes by one xor.
//
// This is no cryptographic hash. A user who sees hashes, or who can measure the time of single lookups, may learn about
// the seed in the long run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gannet {

class KeyedHash {
 public:
  using Seed = std::array<uint64_t, 4>;

  // Draws a seed from base/entropy.h.
  static Seed DrawSeed();

  explicit KeyedHash(const Seed& seed);
  const Seed& seed() const { return seed_; }

  uint64_t operator()(uint64_t number) const {
    const unsigned __int128 product = Product(number ^ masks_[0], Rotate(number) ^ masks_[1]);
    return Fold(Product(static_cast<uint64_t>(product) ^ masks_[2], static_cast<uint64_t>(product >> 64) ^ masks_[3]));
  }
  uint64_t operator()(std::string_view bytes) const;

 private:
  static constexpr size_t kSecretBytes = 192;  // as many as XXH3's own

  static unsigned __int128 Product(uint64_t a, uint64_t b) { return static_cast<unsigned __int128>(a) * b; }
  static uint64_t Fold(unsigned __int128 product) {
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static uint64_t Rotate(uint64_t x) { return (x << 32) | (x >> 32); }

  std::array<uint64_t, 4> masks_;  // a bijection of the seed: small words become large
  Seed seed_;
  std::array<uint64_t, kSecretBytes / sizeof(uint64_t)> secret_;  // of XXH3
};

}  // namespace gannet
