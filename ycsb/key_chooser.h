// KeyChooser: chooses the keys of one client thread by a distribution.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "ycsb/key_space.h"
#include "ycsb/workload.h"
#include "ycsb/zipf.h"

namespace gannet::ycsb {

// Not thread-safe.
class KeyChooser {
 public:
  // For client number `client` of `clients`. Together they insert KeySpace's numbers from `first_insert` on. `space`
  // must outlive this.
  KeyChooser(const KeySpace* space, Distribution distribution, uint64_t first_insert, uint64_t client,
             uint64_t clients);

  // An existing key: loaded, or inserted by this client.
  uint64_t Existing(Random* random) const;
  // A key that no client has inserted.
  uint64_t Fresh() { return space_->InsertedKey(next_insert_number()); }
  // Records that the key exists now.
  void Inserted(uint64_t key) { inserted_.push_back(key); }

  // One more than the last number that Fresh used, or 0.
  uint64_t inserts_end() const { return taken_ == 0 ? 0 : first_insert_ + (taken_ - 1) * clients_ + client_ + 1; }

 private:
  uint64_t next_insert_number() { return first_insert_ + taken_++ * clients_ + client_; }

  const KeySpace* space_;
  Distribution distribution_;
  uint64_t first_insert_;
  uint64_t client_;
  uint64_t clients_;
  uint64_t taken_ = 0;
  std::vector<uint64_t> inserted_;  // in the order of acknowledgement
  Zipf zipf_{kYcsbTheta};
  Permutation scatter_;
};

}  // namespace gannet::ycsb
