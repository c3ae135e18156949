// KeyChooser: the keys of one client thread, as its distribution says.
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
  // Of `clients` in all, this is number `client`; together they insert KeySpace's numbers from `first_insert` on.
  // `space` must outlive this.
  KeyChooser(const KeySpace* space, Distribution distribution, uint64_t first_insert, uint64_t client,
             uint64_t clients);

  // A key that is there: loaded, or inserted by this client.
  uint64_t Existing(Random* random) const;
  // A key that nobody has inserted.
  uint64_t Fresh() { return space_->InsertedKey(next_insert_number()); }
  // It is there now.
  void Inserted(uint64_t key) { inserted_.push_back(key); }

  // One more than the last number taken by Fresh, or 0.
  uint64_t inserts_end() const { return taken_ == 0 ? 0 : first_insert_ + (taken_ - 1) * clients_ + client_ + 1; }

 private:
  uint64_t next_insert_number() { return first_insert_ + taken_++ * clients_ + client_; }

  const KeySpace* space_;
  Distribution distribution_;
  uint64_t first_insert_;
  uint64_t client_;
  uint64_t clients_;
  uint64_t taken_ = 0;
  std::vector<uint64_t> inserted_;  // in the order of their acknowledgements
  Zipf zipf_{kYcsbTheta};
  Permutation scatter_;
};

}  // namespace gannet::ycsb
