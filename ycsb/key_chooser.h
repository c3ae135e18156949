// KeyChooser: chooses the keys of one client thread by a distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "ycsb/key_space.h"
#include "ycsb/workload.h"
#include "ycsb/zipf.h"

namespace gannet::ycsb {

// Not thread-safe.
class KeyChooser {
 public:
  // Chooses for client number `client` of `clients`, all in this process. Together they insert KeySpace's numbers from
  // `first_insert` on. `space` must outlive this.
  KeyChooser(const KeySpace* space, Distribution distribution, uint64_t first_insert, uint64_t client, uint64_t clients,
             InsertPlace place = InsertPlace::kSpread);
  // Called if other processes have clients, too. The client gets its numbers in blocks (Give).
  KeyChooser(const KeySpace* space, Distribution distribution, InsertPlace place = InsertPlace::kSpread);

  // From now on draws by a Zipf distribution with this exponent (zipf.h).
  void SetTheta(double theta) { zipf_ = Zipf(theta); }

  // From now on only keys of this part, and inserts that are spread around them.
  void Limit(const KeyPart& part) {
    part_ = part;
    scatter_ = Permutation(part.size());
  }

  // An existing key: loaded, or inserted by this client.
  uint64_t Existing(Random* random) const;
  // The rank of a loaded key, as Existing draws it while nothing is inserted.
  uint64_t LoadedRank(Random* random) const;
  // A key that no client has inserted. Null: the key space has no more room for this client. Must not be called while
  // needs_block().
  std::optional<uint64_t> Fresh();
  // True if Fresh must wait for a block: the numbers [first, first + count), which no other client has.
  bool needs_block() const { return next_ >= end_; }
  void Give(uint64_t first, uint64_t count) {
    next_ = first;
    end_ = first + count;
  }
  // Records that the key exists now.
  void Inserted(uint64_t key) { inserted_.push_back(key); }

  // One more than the last number that Fresh used, or 0.
  uint64_t inserts_end() const { return inserts_end_; }

 private:
  // The loaded keys that are drawn: their number, and the rank of one.
  uint64_t loaded() const { return part_.has_value() ? part_->size() : space_->loaded(); }
  uint64_t RankOf(uint64_t n) const { return part_.has_value() ? part_->RankOf(n) : n; }
  uint64_t LoadedKey(uint64_t n) const { return space_->LoadedKey(RankOf(n)); }

  const KeySpace* space_;
  std::optional<KeyPart> part_;
  Distribution distribution_;
  InsertPlace place_;
  uint64_t next_ = 0;  // number of the next insert; then every step_-th one, below end_
  uint64_t step_ = 1;
  uint64_t end_ = 0;
  uint64_t inserts_end_ = 0;
  std::vector<uint64_t> inserted_;  // in the order of acknowledgement
  Zipf zipf_{kYcsbTheta};
  Permutation scatter_;
};

}  // namespace gannet::ycsb
