// KeySpace: the set of possible keys. The loaded keys have ranks (ascending); each key that is inserted later lies at a
// random place between two loaded ones, or behind all others.
//
// Every loaded key has a stretch of the key space of its own, [base, base + gap): the key lies in the first half,
// inserted keys in the second, so no two keys are equal. The forms differ in the stretches and in the place of the key:
//
//   linear    equal stretches, the key at the beginning             L of XStore (OSDI'20, table 2)
//   noised    equal stretches, the key at a random place            NL there
//   osm-like  stretches as unequal as the longitudes of a map: cities, villages, deserts, at all scales, by halving
//             the ranks 16 times and the keys each time in a random ratio from 1:4 to 4:1     in place of OSM there
//   normal    stretches that begin at the quantiles of a normal distribution: mean 2^62, standard deviation 2^59
//   lognormal the same of a lognormal distribution: its logarithm has mean 44 ln 2 and standard deviation 2
//   random    stretches as unequal as the distances of keys that are drawn at random, such as the hashes that YCSB
//   takes
//             for keys: ranks and keys are halved down to single ranks, each time in a ratio as random as the median of
//             so many draws
//
// Normal and lognormal are the synthetic data sets of ROLEX (FAST'23, section 4.1). Its source (Kraska et al.,
// SIGMOD'18, section 3.7.1) gives mu 0 and sigma 2 of the lognormal one, scaled to integers. There the keys are
// samples; here there is one key in every stretch, so distances of neighbours vary less than those of samples do.
//
// Servers hold consecutive ranges of keys, each with the same number of loaded keys.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "rdma/global_address.h"
#include "ycsb/permutation.h"

namespace gannet::ycsb {

enum class KeyForm : uint8_t { kLinear, kNoised, kOsmLike, kNormal, kLognormal, kRandom };
inline constexpr std::string_view kKeyFormNames[] = {"linear", "noised", "osm-like", "normal", "lognormal", "random"};

// The place of new keys: spread over the loaded ones, as many around each of them, so all leaves are as full as each
// other; appended, each behind the one before; or, for random keys only, drawn at random from the whole key space.
enum class InsertPlace : uint8_t { kSpread, kAppend, kRandom };
inline constexpr std::string_view kInsertPlaceNames[] = {"spread", "append", "random"};

// A pure function of its arguments. Thread-safe.
class KeySpace {
 public:
  // `loaded` in [1, 2^32).
  KeySpace(KeyForm form, uint64_t loaded, int servers);

  uint64_t loaded() const { return loaded_; }
  int servers() const { return servers_; }
  // `rank` < loaded().
  uint64_t LoadedKey(uint64_t rank) const;
  // The n-th inserted key, over all clients. Distinct for distinct n and place. `n` < max_inserts(). One that is random
  // may also be a loaded key, with a probability of loaded() / 2^60.
  uint64_t InsertedKey(uint64_t n, InsertPlace place = InsertPlace::kSpread) const;
  // The loaded key around which the n-th inserted key lies, if it is spread.
  uint64_t RankOfInsert(uint64_t n) const { return scatter_(n % loaded_); }
  uint64_t max_inserts() const;

  // Node ids of servers are 0, 1, ...
  rdma::NodeId OwnerOf(uint64_t key) const;
  // The first rank that a server loads; its range ends before FirstRankOf(s + 1).
  uint64_t FirstRankOf(int server) const {
    return loaded_ * static_cast<uint64_t>(server) / static_cast<uint64_t>(servers_);
  }

 private:
  struct Stretch {
    uint64_t base;
    uint64_t gap;
  };
  Stretch StretchOf(uint64_t rank) const;
  Stretch OsmLikeStretchOf(uint64_t rank) const;
  Stretch RandomStretchOf(uint64_t rank) const;
  // Called for normal and lognormal. `rank` <= loaded().
  uint64_t QuantileOf(uint64_t rank) const;

  KeyForm form_;
  uint64_t loaded_;
  int servers_;
  int levels_;  // number of halvings, for osm-like
  Permutation scatter_;
};

// A part of the loaded keys, on which one machine of several works (the logical partitions of DEX, VLDB'24, section 4):
// the same share of each server's keys. So a machine on a server's node has most of its keys elsewhere. A few keys
// between the parts are in none.
class KeyPart {
 public:
  // `keys` must outlive this. `part` < `parts`.
  KeyPart(const KeySpace* keys, int part, int parts)
      : keys_(keys),
        stretch_(keys->loaded() / static_cast<uint64_t>(keys->servers()) / static_cast<uint64_t>(parts)),
        skipped_(stretch_ * static_cast<uint64_t>(part)),
        is_last_(part + 1 == parts) {}

  // No part is empty if there are so many keys.
  static uint64_t LeastKeys(int servers, int parts) {
    return static_cast<uint64_t>(servers) * static_cast<uint64_t>(parts);
  }

  uint64_t size() const { return stretch_ * static_cast<uint64_t>(keys_->servers()); }
  // The number of its keys at each server; and where a rank that it Has is among those of its server.
  uint64_t stretch() const { return stretch_; }
  uint64_t PlaceOf(uint64_t rank) const {
    int server = 0;
    while (rank - FirstRankAt(server) >= stretch_) ++server;
    return rank - FirstRankAt(server);
  }
  // `n` < size().
  uint64_t RankOf(uint64_t n) const { return FirstRankAt(static_cast<int>(n / stretch_)) + n % stretch_; }
  uint64_t FirstRankAt(int server) const { return keys_->FirstRankOf(server) + skipped_; }
  // The greatest key of the part at this server, inserted ones included.
  uint64_t LastKeyAt(int server) const {
    return is_last_ ? UINT64_MAX : keys_->LoadedKey(FirstRankAt(server) + stretch_) - 1;
  }
  bool Has(uint64_t rank) const {
    for (int server = 0; server < keys_->servers(); ++server) {
      if (rank - FirstRankAt(server) < stretch_) return true;
    }
    return false;
  }

 private:
  const KeySpace* keys_;
  uint64_t stretch_;  // keys of each server
  uint64_t skipped_;  // those of the parts before
  bool is_last_;
};

}  // namespace gannet::ycsb
