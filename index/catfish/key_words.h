// KeyWords: version words that cover keys by their hash, each all keys of one hash value.
//
// A word is the witness of a key's absence, and the lock of inserts and removals of the key: two inserts of one key may
// choose different leaves, so the nodes' locks do not keep them apart. A holder of the lock may wait for the tree's
// locks, so a thread that waits for a word holds none of them.
//
// The words lie in the read-only part of the heap, eight a line: clients READ single words. The hash is keyed
// (keyed_hash.h), so that nobody chooses keys that share a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/cache_line.h"
#include "base/keyed_hash.h"
#include "index/backoff.h"
#include "index/index.h"
#include "rdma/versioned.h"

namespace gannet::index::catfish {

class KeyWords {
 public:
  // `words`: `count` of them, a power of two, zeroed at first. `address`: theirs.
  KeyWords(std::byte* words, rdma::GlobalAddress address, size_t count)
      : words_(words), address_(address), count_(count), hash_(KeyedHash::DrawSeed()) {}

  // Number of words for a table of this many keys.
  static size_t CountFor(uint64_t expected_keys) {
    size_t count = kFewest;
    while (count < kMost && count * kKeysPerWord < expected_keys) count *= 2;
    return count;
  }

  size_t count() const { return count_; }
  const KeyedHash::Seed& seed() const { return hash_.seed(); }
  size_t NumberOf(const Key& key) const { return hash_(key.bytes()) & (count_ - 1); }
  rdma::GlobalAddress AddressOf(size_t number) const {
    return {address_.node(), address_.offset() + number * kWordBytes};
  }

  // The word's value, once it is not locked.
  uint64_t Await(size_t number) const {
    for (Backoff backoff;; backoff.Pause()) {
      const uint64_t word = LoadWord(At(number));
      if ((word & rdma::kLockBit) == 0) return word;
    }
  }
  bool Is(size_t number, uint64_t value) const { return LoadWord(At(number)) == value; }

  // The lock of one word. Released unchanged, unless Publish was called.
  class Lock {
   public:
    Lock(const KeyWords* words, size_t number) : words_(words), number_(number) {
      do {
        before_ = words->Await(number);
      } while (CompareAndSwapWord(words->At(number), before_, before_ | rdma::kLockBit) != before_);
    }
    ~Lock() {
      if (words_ != nullptr) StoreWord(words_->At(number_), before_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    Lock(Lock&& other) noexcept
        : words_(std::exchange(other.words_, nullptr)), number_(other.number_), before_(other.before_) {}

    // Gives the word its next value, and unlocks it.
    void Publish(Change* change) {
      change->AddChanged(words_->AddressOf(number_), before_, before_ + 1);
      StoreWord(std::exchange(words_, nullptr)->At(number_), before_ + 1);
    }

   private:
    const KeyWords* words_;
    size_t number_;
    uint64_t before_ = 0;
  };

 private:
  static constexpr size_t kFewest = 256;
  static constexpr size_t kMost = size_t{1} << 16;
  static constexpr uint64_t kKeysPerWord = 8;

  std::byte* At(size_t number) const { return words_ + number * kWordBytes; }

  std::byte* words_;
  rdma::GlobalAddress address_;
  size_t count_;
  KeyedHash hash_;
};

}  // namespace gannet::index::catfish
