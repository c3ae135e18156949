#include "base/keyed_hash.h"

#include "base/entropy.h"
#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gannet {

KeyedHash::Seed KeyedHash::DrawSeed() {
  Seed seed;
  for (uint64_t& word : seed) word = EntropyBits();
  return seed;
}

KeyedHash::KeyedHash(const Seed& seed) : seed_(seed) {
  for (size_t i = 0; i < masks_.size(); ++i) masks_[i] = Mix64(seed_[i] + (i + 1) * 0x9e3779b97f4a7c15ull);
  static_assert(kSecretBytes >= XXH3_SECRET_SIZE_MIN);
  for (size_t i = 0; i < secret_.size(); ++i) {
    secret_[i] = (*this)(i) ^ Mix64(masks_[i % masks_.size()] + i);
  }
}

uint64_t KeyedHash::operator()(std::string_view bytes) const {
  const uint64_t hash = XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret_.data(), kSecretBytes);
  return Fold(Product(hash ^ masks_[0], Rotate(hash) ^ masks_[1]));
}

}  // namespace gannet
